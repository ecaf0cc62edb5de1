"""`python -m benchmarks.speed`: how fast it learns, against others and against the machine."""

from collections.abc import Callable, Iterator

from benchmarks import common, limits, rivals
from benchmarks.measure import Row, Setting, measure_all

ABOUT = """\
Times spanboost on one thread, with rows already in memory, and prints one line for each demand:
what was measured, our figure, the figure it is held against, their ratio, what is demanded (of the
ratio; of our figure where it stands alone) and whether it is met.

Both sides of a ratio run in turn in this very process, and the best of several repeats counts.
Compiling is not counted, except in the lines about the first call. Measure on an idle machine:
Vowpal Wabbit runs a thread of its own beside the learning one, so work of others slows it more
than it slows us, and ratios against it come out too high.
"""
ENDS = """\
examples:
  python -m benchmarks.speed --data DIR                    everything, some minutes
  python -m benchmarks.speed --data DIR --only boosting    against Vowpal Wabbit's boosting alone
  python -m benchmarks.speed --only objects one-row start  what needs no data
"""
SECTIONS: dict[str, Callable[[Setting], Iterator[Row]]] = {
    "boosting": rivals.boosting,
    "single": rivals.single,
    "copies": limits.copies,
    "objects": rivals.objects,
    "limit": limits.limit,
    "one-row": rivals.one_row,
    "start": limits.start,
}


def main() -> None:
    """Measure what is asked for and print the table."""
    parser = common.parser("speed", ABOUT, ENDS)
    common.add_data(parser)
    common.add_choice(parser, "--only", SECTIONS, "parts of the table")
    common.add_choice(parser, "--learner", ("linear", "stumps", "network"), "base learners")
    parser.add_argument(
        "--repeats", type=common.at_least_one, default=5, help="the best of so many counts"
    )
    args = parser.parse_args()
    setting = Setting(args.data, args.learner, args.repeats, args.quick)
    measure_all(args, SECTIONS, setting, busy="ratios against VW are too high")


if __name__ == "__main__":
    main()
