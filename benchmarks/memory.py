"""`python -m benchmarks.memory`: whether memory stays what it is, however long the stream."""

import resource
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from benchmarks import common
from spanboost import SpanBoost

ABOUT = """\
Learns a long generated stream (ten dense features, blocks of 10,000 rows made on the fly, 16
copies) in a fresh process for each base learner, and compares the peak of its memory after the
whole stream with the peak after the first rows. A model keeps nothing of the rows it has learned,
so the two must be within 5 %.

A short run before, in a process of its own, sees to it that compiled code is on disk: compiling
takes memory, and a peak of it would hide what the stream adds.
"""
ENDS = """\
examples:
  python -m benchmarks.memory                   all learners, ten million rows each
  python -m benchmarks.memory --learner linear  one of them
"""
BLOCK = 10_000
MIB = 2**20


def peaks(name: str, marks: tuple[int, ...]) -> list[int]:
    """Peak memory in bytes of this process, after each of so many blocks."""
    model = SpanBoost(common.learner(name), n=16)
    found = []
    for block in range(1, max(marks) + 1):
        model.learn_many(*common.generated(BLOCK, seed=block))
        if block in marks:
            found.append(peak())
    return found


def peak() -> int:
    """Peak resident memory of this process so far, in bytes."""
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size if sys.platform == "darwin" else size * 1024


def fresh(name: str, marks: tuple[int, ...]) -> list[int]:
    """The peaks of a process that does nothing else."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(peaks, name, marks).result()


def main() -> None:
    """Measure every learner asked for and print the table."""
    parser = common.parser("memory", ABOUT, ENDS)
    common.add_choice(parser, "--learner", common.LEARNERS, "base learners")
    args = parser.parse_args()
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
        ["learner", f"MiB after {early}", f"MiB after {late}", "ratio", "must", "met"],
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
    common.save(args.json, rows, blocks=marks, block=BLOCK, quick=args.quick)


if __name__ == "__main__":
    main()
