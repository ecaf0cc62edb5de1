"""`python -m benchmarks.memory`: memory of models, their files and pickles; no growth with rows."""

import argparse
import resource
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

from benchmarks import common
from benchmarks.environments import add_old, measure, pythons
from spanboost import SpanBoost

ABOUT = """\
Learn a long generated stream (ten dense features, blocks of 10,000 rows generated on the fly, 16
copies) in a new process for each base learner. Compare the peak memory after the whole stream with
the peak after the first rows. A model does not store the rows it has learned, so the target is at
most 5 % more.

Then learn 8,000 rows of 8 columns with AutoBoost, and print its resident memory, the sizes of its
file and its pickle, and the CPU seconds to save and load it. With --old, do the same in another
environment.

A short run in another process compiles the code first. Compiling takes memory, and its peak would
hide the growth.
"""
ENDS = """\
examples:
  python -m benchmarks.memory                   all learners, ten million rows each
  python -m benchmarks.memory --learner linear  one learner
  python -m benchmarks.memory --model --old ../old/.venv/bin/python   AutoBoost alone, two versions
"""
BLOCK = 10_000
MIB = 2**20
SIZES = {"memory": "<= 15", "file": "<= 5", "pickle": "<= 5"}  # targets in MB


def peaks(name: str, marks: tuple[int, ...]) -> list[int]:
    """Return the peak memory of this process in bytes, after each number of blocks in marks."""
    model = SpanBoost(common.learner(name), n=16)
    found = []
    for block in range(1, max(marks) + 1):
        model.learn_many(*common.generated(BLOCK, seed=block))
        if block in marks:
            found.append(peak())
    return found


def peak() -> int:
    """Return the peak resident memory of this process so far, in bytes."""
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size if sys.platform == "darwin" else size * 1024


def fresh(name: str, marks: tuple[int, ...]) -> list[int]:
    """Return the peaks of a new process."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(peaks, name, marks).result()


def main() -> None:
    """Measure the chosen learners and print the table."""
    parser = common.parser("memory", ABOUT, ENDS)
    common.add_choice(parser, "--learner", common.LEARNERS, "Base learners")
    parser.add_argument("--model", action="store_true", help="Measure AutoBoost only")
    add_old(parser)
    args = parser.parse_args()
    rows = [] if args.model else growth(args)
    models = {name: measure(python, "sizes") for name, python in pythons(args.old).items()}
    show_sizes(models)
    common.save(args.json, rows, models=models, block=BLOCK, quick=args.quick)


def show_sizes(models: dict[str, dict[str, float]]) -> None:
    """Print the sizes of a model in each environment."""
    new, old = models["new"], models.get("old", {})
    lines = []
    for name in new:
        size = name in SIZES
        texts = [
            "-" if name not in of else f"{of[name] / 1e6:.1f}" if size else f"{of[name]:.3f}"
            for of in (old, new)
        ]
        met = common.meets(new[name] / 1e6, SIZES[name]) if size else None
        unit = "MB" if size else "s"
        lines.append((f"{name}, {unit}", *texts, SIZES.get(name, "-"), common.yes_no(met)))
    common.show(["AutoBoost after 8,000 x 8", "old", "new", "target", "met"], lines)


def growth(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Measure whether memory grows with the stream, and print the table."""
    marks = (10, 100 if args.quick else 1000)
    early, late = (f"{blocks * BLOCK:,} rows" for blocks in marks)
    rows = []
    for name in args.learner:
        common.say(f"{name}: {late}")
        fresh(name, (1,))
        before, after = fresh(name, marks)
        must = "<= 1.05"
        met = common.meets(after / before, must)
        rows.append({"learner": name, "before": before, "after": after, "must": must, "met": met})
    common.show(
        ["learner", f"MiB after {early}", f"MiB after {late}", "ratio", "target", "met"],
        (
            (
                row["learner"],
                f"{row['before'] / MIB:.1f}",
                f"{row['after'] / MIB:.1f}",
                f"{row['after'] / row['before']:.4f}",
                row["must"],
                common.yes_no(row["met"]),
            )
            for row in rows
        ),
    )
    return rows


if __name__ == "__main__":
    main()
