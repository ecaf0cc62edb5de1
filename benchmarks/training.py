"""Speed and memory of `spanboost train` as a separate process."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.common import race
from benchmarks.formats import write
from benchmarks.measure import Row, Setting
from benchmarks.reading import data_set

FORMATS = ("vw", "svmlight", "csv", "parquet", "jsonl")
TIMES = 10  # a large file repeats a small one this many times
# The system never reports a peak below the memory of the parent process, so a small process starts
# the command.
PEAK = """
import os, subprocess, sys
child = subprocess.Popen(sys.argv[1:])
_, status, usage = os.wait4(child.pid, 0)
print(usage.ru_maxrss)
sys.exit(os.waitstatus_to_exitcode(status))
"""


def boosting(setting: Setting) -> Iterator[Row]:
    """Compare boosted linear functions with Vowpal Wabbit's boosting."""
    yield against_vw(setting, "n=32", "--boosting 32", ">= 5")


def single(setting: Setting) -> Iterator[Row]:
    """Compare one linear function with Vowpal Wabbit's SGD."""
    yield against_vw(setting, "n=1", "", ">= 1")


def against_vw(setting: Setting, n: str, options: str, must: str) -> Row:
    """Measure rows per second and start-up time of both commands on the same VW text."""
    table = data_set(setting, "covtype")
    with TemporaryDirectory() as folder:
        file = write(Path(folder) / "covtype.vw", table)
        few = write(Path(folder) / "few.vw", table.slice(0, 20))
        mine = ["-n", "1", "--booster", "hull"] if n == "n=1" else ["-n", "32"]
        ours, theirs, our_start, their_start = race(
            setting.repeats,
            lambda: run(*train(file, *mine)),
            lambda: run(*vw(file, *options.split())),
            lambda: run(*train(few, *mine)),
            lambda: run(*vw(few, *options.split())),
        )
    starts = our_start.seconds, their_start.seconds
    rest = (ours.seconds - starts[0]) / (theirs.seconds - starts[1])
    return Row(
        f"train {n}, covtype as VW text, against VW {options or 'SGD'}",
        "rows/s",
        len(table) / ours.seconds,
        len(table) / theirs.seconds,
        must,
        f"20 rows take {starts[0]:.2f} s (VW: {starts[1]:.2f}); ratio without {1 / rest:.2f}",
    )


def memory(setting: Setting) -> Iterator[Row]:
    """Compare the peak memory of training on a file with that on one ten times smaller."""
    rows = 20_000 if setting.quick else 300_000
    table = data_set(setting, "covtype").slice(0, rows)
    for format in FORMATS:
        with TemporaryDirectory() as folder:
            file = Path(folder) / f"covtype.{format}"
            peaks = []
            for times in (1, 1, TIMES):  # the first run compiles, which also takes memory
                write(file, table, times)
                peaks.append(peak(*train(file)))
            size = file.stat().st_size / 2**20
        measure = f"train, covtype {TIMES * rows:,} rows of {format}, against {rows:,}"
        yield Row(
            measure, "MiB", peaks[2], peaks[1], "<= 1.1", f"the larger file has {size:.0f} MiB"
        )


def train(file: Path, *options: str) -> list[str]:
    """Return the spanboost command."""
    model = str(file.with_suffix(".sb"))
    options = ("--learner", "linear", "--quiet", *options)
    return [sys.executable, "-m", "spanboost", "train", str(file), "-o", model, *options]


def vw(file: Path, *options: str) -> list[str]:
    """Return the Vowpal Wabbit command."""
    model = str(file.with_suffix(".model"))
    return [sys.executable, "-m", "vowpalwabbit", "-d", str(file), "--quiet", "-f", model, *options]


def run(*command: str) -> str:
    """Run a command to its end and return its output."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr}")
    return done.stdout


def peak(*command: str) -> float:
    """Return the peak resident memory of a command, in MiB."""
    size = int(run(sys.executable, "-c", PEAK, *command))
    return size / (2**20 if sys.platform == "darwin" else 2**10)
