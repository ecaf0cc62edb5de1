"""`python -m benchmarks.tune`: compare a sweep in one pass with separate runs."""

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks import common, measure
from benchmarks.common import Stream, race, seconds
from benchmarks.formats import write
from benchmarks.measure import Row, Setting
from benchmarks.reading import data_set
from benchmarks.training import run, train, vw
from spanboost import LinearSGD, SpanBoost, tune

ABOUT = """\
Tune boosted linear functions on covtype: 64 configurations (8 rates, 8 steps) of up to 32 copies
in one pass. The table has one line for each measurement: our figure, the figure it is compared
with, their ratio, the target for the ratio and whether it is met. Figures are rows per second,
multiplied by the number of configurations.

The lines "from memory" measure learning only: no process starts and no file is read. Vowpal Wabbit
reads a binary cache. The lines "from files" count everything that tuning with a shell loop costs:
64 processes, each of which reads the file. Measure on an idle machine, because threads do not help
on a busy one.
"""
ENDS = """\
examples:
  python -m benchmarks.tune --data DIR                some minutes, mostly for Vowpal Wabbit
  python -m benchmarks.tune --data DIR --only memory  without files
"""
RATES = [0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0]
STEPS = [0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1.0]
GRID = {"rate": RATES, "eta": STEPS}
BOTH = [(rate, step) for rate in RATES for step in STEPS]
COPIES = 32


def memory(setting: Setting) -> Iterator[Row]:
    """Measure the library on rows in memory."""
    stream = rows_of(setting)
    one, two, alone = race(
        setting.repeats,
        lambda: sweep(stream, 1),
        lambda: sweep(stream, None),
        lambda: [booster(rate, step).learn_many(stream.X, stream.y) for rate, step in BOTH],
    )
    losses = [np.mean((answers - stream.y) ** 2) for answers in alone.result]
    ours = [whole_loss(one.result, stream, rate, step) for rate, step in BOTH]
    note = f"losses are {'the same' if np.allclose(losses, ours, rtol=1e-9) else 'DIFFERENT'}"
    yield line("tune from memory, against 64 runs", stream, two.seconds, alone.seconds, None, note)
    measure = "tune from memory in one thread, against 64 runs"
    yield line(measure, stream, one.seconds, alone.seconds, None, "the gain from vectorising alone")
    yield against_vw(stream, two.seconds)


def against_vw(stream: Stream, ours: float) -> Row:
    """Compare with 64 runs of Vowpal Wabbit's boosting, which has rates but no steps."""
    from benchmarks.vw import Vw

    rates = np.geomspace(RATES[0], RATES[-1], len(BOTH))
    with TemporaryDirectory() as folder:
        rival = Vw(Path(folder), stream)
        options = ("--boosting", str(COPIES), "-l")

        def every() -> None:
            for rate in common.counted(rates, len(rates), "Vowpal Wabbit"):
                rival.run(*options, f"{rate:g}")

        theirs = seconds(every)
    measure = f"tune from memory, against 64 runs of VW --boosting {COPIES}"
    return line(
        measure, stream, ours, theirs, ">= 30", "VW reads a cache file; the 64 runs are timed once"
    )


def files(setting: Setting) -> Iterator[Row]:
    """Measure the commands, including process starts."""
    table = data_set(setting, "covtype").slice(0, length(setting))
    stream = Stream(None, np.empty(len(table)))
    with TemporaryDirectory() as folder:
        file = write(Path(folder) / "covtype.vw", table)
        grid = ["--rate", ",".join(map(str, RATES)), "--step", ",".join(map(str, STEPS))]
        command = [*train(file)[:3], "tune", str(file), "--learner", "linear", "--booster", "span"]
        tuning = [*command, "-n", str(COPIES), *grid, "-o", f"{folder}/tuned.sb", "--quiet"]
        run(*tuning)
        run(*train(file, "-n", str(COPIES)))  # compiles both
        ours = seconds(lambda: run(*tuning))

        def alone() -> None:
            for rate, step in common.counted(BOTH, len(BOTH), "train"):
                run(*train(file, *(f"-n {COPIES} --rate {rate} --step {step}".split())))

        def rival() -> None:
            for rate in common.counted(np.geomspace(0.02, 5, len(BOTH)), len(BOTH), "VW"):
                run(*vw(file, "--boosting", str(COPIES), "-l", f"{rate:g}"))

        theirs, vws = seconds(alone), seconds(rival)
    measure = "tune from files (VW text), against 64 spanboost train"
    yield line(measure, stream, ours, theirs, ">= 5", f"{ours:.1f} s against {theirs:.0f} s")
    measure = f"tune from files (VW text), against 64 vw --boosting {COPIES}"
    yield line(measure, stream, ours, vws, None, f"{ours:.1f} s against {vws:.0f} s")


def line(
    measure: str, stream: Stream, ours: float, theirs: float, must: str | None, note: str
) -> Row:
    """Convert seconds to rows per second, multiplied by the number of configurations."""
    work = len(BOTH) * len(stream.y)
    return Row(measure, "rows/s", work / ours, work / theirs, must, note)


def booster(rate: float, step: float) -> SpanBoost:
    """Create the booster of one configuration."""
    return SpanBoost(LinearSGD(rate), n=COPIES, eta=step)


def sweep(stream: Stream, threads: int | None) -> Any:
    """Run all configurations in one pass."""
    fixed = {"learner": LinearSGD(), "grid": GRID, "booster": "span", "n": COPIES}
    return tune(stream.X, stream.y, threads=threads, **fixed)


def whole_loss(tuned: Any, stream: Stream, rate: float, step: float) -> float:
    """Return the average loss of a configuration, with all its copies, over all rows."""
    k = [one.settings for one in tuned.configurations].index(
        {"booster": "span", "rate": rate, "eta": step}
    )
    first, rest = tuned.loss_first[k, -1], tuned.loss_rest[k, -1]
    half = len(stream.y) // 2
    return float((half * first + (len(stream.y) - half) * rest) / len(stream.y))


def rows_of(setting: Setting) -> Stream:
    """Return the first rows of covtype."""
    stream = setting.stream("covtype")
    return Stream(stream.X[: length(setting)], stream.y[: length(setting)])


def length(setting: Setting) -> int:
    """Return the number of rows used for tuning."""
    return 2000 if setting.quick else 50_000


SECTIONS: dict[str, Callable[[Setting], Iterator[Row]]] = {"memory": memory, "files": files}


if __name__ == "__main__":
    measure.main("tune", ABOUT, ENDS, SECTIONS, repeats=2)
