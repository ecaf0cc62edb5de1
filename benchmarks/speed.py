"""`python -m benchmarks.speed`: measure learning speed."""

from collections.abc import Callable, Iterator

from benchmarks import auto_speed, class_speed, common, limits, rivals
from benchmarks.measure import Row, Setting, measure_all

ABOUT = """\
Time spanboost on one thread (AutoBoost on all processors), with rows in memory. The table has one
line for each measurement: our figure, the figure it is compared with, their ratio, the target (for
the ratio, or for our figure if there is no other) and whether it is met.

Both sides of a ratio alternate in this process, and the best of several repeats counts. Compiling
does not count, except in the lines about the first call. Measure on an idle machine: Vowpal Wabbit
runs a second thread next to its learning thread, so other work slows it more than spanboost, and
the ratios come out too high.
"""
ENDS = """\
examples:
  python -m benchmarks.speed --data DIR                    all parts, some minutes
  python -m benchmarks.speed --data DIR --only boosting    only the comparison with VW's boosting
  python -m benchmarks.speed --only objects one-row start  the parts that need no data
  python -m benchmarks.speed --data DIR --only auto --old OLD/bin/python
                             AutoBoost, next to the version that another Python has installed
  python -m benchmarks.speed --data DIR --only classes --old OLD/bin/python
                             the same for streams of 7, 26 and 1,000 classes
"""
SECTIONS: dict[str, Callable[[Setting], Iterator[Row]]] = {
    "boosting": rivals.boosting,
    "single": rivals.single,
    "copies": limits.copies,
    "objects": rivals.objects,
    "limit": limits.limit,
    "one-row": rivals.one_row,
    "start": limits.start,
    "auto": auto_speed.auto,
    "classes": class_speed.classes,
}


def main() -> None:
    """Measure the chosen parts and print the table."""
    parser = common.parser("speed", ABOUT, ENDS)
    common.add_data(parser)
    common.add_choice(parser, "--only", SECTIONS, "Parts of the table")
    common.add_choice(parser, "--learner", ("linear", "stumps", "network"), "Base learners")
    parser.add_argument(
        "--repeats",
        type=common.at_least_one,
        default=5,
        help="Timed runs; the best counts (default: 5)",
    )
    parser.add_argument(
        "--old",
        metavar="PYTHON",
        help="Python with another version of spanboost, to compare AutoBoost with",
    )
    args = parser.parse_args()
    setting = Setting(args.data, args.learner, args.repeats, args.quick, args.old)
    measure_all(args, SECTIONS, setting, busy="the ratios to VW are too high")


if __name__ == "__main__":
    main()
