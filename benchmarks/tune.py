"""`python -m benchmarks.tune`: a sweep in one pass against as many runs one after the other."""

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
Tunes boosted linear functions on covtype, 64 configurations (8 rates, 8 steps) of up to 32 copies
in one pass, and prints one line for each demand: what was measured, our figure, the figure it is
held against, their ratio, what is demanded of it and whether it is met. Figures are rows a second,
times configurations.

The lines "from memory" are about learning alone: no process starts, no file is read; Vowpal Wabbit
reads a binary cache. The lines "from files" count everything, as somebody meets it who tunes by a
loop in a shell: 64 processes, each of which reads the file. Measure on an idle machine: threads are
of no use on a busy one.
"""
ENDS = """\
examples:
  python -m benchmarks.tune --data DIR                some minutes, most of them Vowpal Wabbit's
  python -m benchmarks.tune --data DIR --only memory  without files
"""
RATES = [0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0]
STEPS = [0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1.0]
GRID = {"rate": RATES, "eta": STEPS}
BOTH = [(rate, step) for rate in RATES for step in STEPS]
COPIES = 32


def memory(setting: Setting) -> Iterator[Row]:
    """The library, over rows in memory."""
    stream = rows_of(setting)
    one, two, alone = race(
        setting.repeats,
        lambda: sweep(stream, 1),
        lambda: sweep(stream, None),
        lambda: [booster(rate, step).learn_many(stream.X, stream.y) for rate, step in BOTH],
    )
    losses = [np.mean((answers - stream.y) ** 2) for answers in alone.result]
    ours = [whole_loss(one.result, stream, rate, step) for rate, step in BOTH]
    note = f"losses are {'the same' if np.allclose(losses, ours, rtol=1e-9) else 'OTHERS'}"
    yield line("tune from memory, against 64 runs", stream, two.seconds, alone.seconds, None, note)
    measure = "the same, one thread"
    yield line(measure, stream, one.seconds, alone.seconds, None, "what lanes gain by themselves")
    yield against_vw(stream, two.seconds)


def against_vw(stream: Stream, ours: float) -> Row:
    """64 runs of Vowpal Wabbit's boosting, which has rates but no steps."""
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
    return line(measure, stream, ours, theirs, ">= 30", "VW from a cache file; one run of the 64")


def files(setting: Setting) -> Iterator[Row]:
    """The commands, with the start of their processes."""
    table = data_set(setting, "covtype").slice(0, length(setting))
    stream = Stream(None, np.empty(len(table)))
    with TemporaryDirectory() as folder:
        file = write(Path(folder) / "covtype.vw", table)
        grid = ["--rate", ",".join(map(str, RATES)), "--step", ",".join(map(str, STEPS))]
        command = [*train(file)[:3], "tune", str(file), "--learner", "linear", "--booster", "span"]
        tuning = [*command, "-n", str(COPIES), *grid, "-o", f"{folder}/tuned.sb", "--quiet"]
        run(*tuning)
        run(*train(file, "-n", str(COPIES)))  # both have compiled
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
    measure = f"the same, against 64 vw --boosting {COPIES}"
    yield line(measure, stream, ours, vws, None, f"{ours:.1f} s against {vws:.0f} s")


def line(
    measure: str, stream: Stream, ours: float, theirs: float, must: str | None, note: str
) -> Row:
    """Seconds as rows a second, times configurations."""
    work = len(BOTH) * len(stream.y)
    return Row(measure, "rows/s", work / ours, work / theirs, must, note)


def booster(rate: float, step: float) -> SpanBoost:
    """One configuration on its own."""
    return SpanBoost(LinearSGD(rate), n=COPIES, eta=step)


def sweep(stream: Stream, threads: int | None) -> Any:
    """All of them in one pass."""
    fixed = {"learner": LinearSGD(), "grid": GRID, "booster": "span", "n": COPIES}
    return tune(stream.X, stream.y, threads=threads, **fixed)


def whole_loss(tuned: Any, stream: Stream, rate: float, step: float) -> float:
    """The average loss of all copies of a configuration over all rows, of which half are first."""
    k = [one.settings for one in tuned.configurations].index(
        {"booster": "span", "rate": rate, "eta": step}
    )
    first, rest = tuned.loss_first[k, -1], tuned.loss_rest[k, -1]
    half = len(stream.y) // 2
    return float((half * first + (len(stream.y) - half) * rest) / len(stream.y))


def rows_of(setting: Setting) -> Stream:
    """The first rows of covtype."""
    stream = setting.stream("covtype")
    return Stream(stream.X[: length(setting)], stream.y[: length(setting)])


def length(setting: Setting) -> int:
    """Rows that are tuned on."""
    return 2000 if setting.quick else 50_000


SECTIONS: dict[str, Callable[[Setting], Iterator[Row]]] = {"memory": memory, "files": files}


if __name__ == "__main__":
    measure.main("tune", ABOUT, ENDS, SECTIONS, repeats=2)
