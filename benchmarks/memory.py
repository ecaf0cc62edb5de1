"""`python -m benchmarks.memory`: check that memory does not grow with the stream."""

import resource
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from benchmarks import common
from spanboost import SpanBoost

ABOUT = """\
Learn a long generated stream (ten dense features, blocks of 10,000 rows generated on the fly, 16
copies) in a new process for each base learner. Compare the peak memory after the whole stream with
the peak after the first rows. A model does not store the rows it has learned, so the target is at
most 5 % more.

A short run in another process compiles the code first. Compiling takes memory, and its peak would
hide the growth.
"""
ENDS = """\
examples:
  python -m benchmarks.memory                   all learners, ten million rows each
  python -m benchmarks.memory --learner linear  one learner
"""
BLOCK = 10_000
MIB = 2**20


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
    common.save(args.json, rows, blocks=marks, block=BLOCK, quick=args.quick)


if __name__ == "__main__":
    main()
