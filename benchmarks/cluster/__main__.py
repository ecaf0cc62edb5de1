"""`python -m benchmarks.cluster`: measure teams of workers, teams of experts and shards."""

import os
from typing import Any

from benchmarks import common
from benchmarks.cluster import experts, shards, teams
from benchmarks.common import Stream
from spanboost.parallel.team import EVERY

ABOUT = f"""\
teams: learn a shuffled data set with one booster, and with teams of 1 to 8 workers that average
after every {EVERY} rows each (trees form a committee). Print the average loss on the last fifth of
the rows, which are not learned, and rows per second.
experts: learn a shuffled data set with AutoBoost, and with its experts on 1 to 8 workers. The
result is the same, so only rows per second are printed. The workers are Ray processes, each pinned
to a processor of its own.
shards: 32 linear functions learn {shards.FILES} files of equal size, which the workers read.

Losses do not depend on where the workers run, but times do. Times are measured for at most as many
workers as there are processors. The machines of the teams are simulated, and no network is
involved.

The estimated rows per second assume that each worker has its own processor and that communication
takes no time. The estimate adds the processor time of the slowest worker in each round (shards: the
average worker) to that of the command. Other work on the machine hardly affects it.
"""
ENDS = """\
examples:
  python -m benchmarks.cluster --data DIR
  python -m benchmarks.cluster --data DIR --part teams --learner linear --set casp
  python -m benchmarks.cluster --data DIR --part experts --budget thorough
"""
PARTS = ("teams", "experts", "shards")


def main() -> None:
    """Measure the chosen parts and print their tables."""
    parser = common.parser("cluster", ABOUT, ENDS)
    common.add_data(parser)
    common.add_choice(parser, "--part", PARTS, "What to measure")
    common.add_choice(parser, "--set", teams.SETS, "Data sets")
    common.add_choice(parser, "--learner", teams.LEARNERS, "Base learners of teams")
    common.add_choice(parser, "--budget", experts.BUDGETS, "Budgets of experts")
    parser.add_argument(
        "--rows",
        type=common.at_least_one,
        default=400_000,
        help="Maximum number of rows (default: 400,000; experts: 40,000)",
    )
    args = parser.parse_args()
    args.rows = 5000 if args.quick else args.rows
    load, found = os.getloadavg()[0], {part: list[Any]() for part in args.part}
    for name in args.set:
        stream = teams.rows_of(args, name)
        few = Stream(stream.X[:40_000], stream.y[:40_000])
        if "teams" in found:
            for learner in args.learner:
                common.say(f"teams: {name} {learner}")
                found["teams"] += teams.measure(name, learner, stream, most=200_000)
        if "experts" in found:
            for budget in args.budget:
                common.say(f"experts: {name} {budget}")
                found["experts"] += experts.measure(name, budget, few)
        if "shards" in found:
            for format in shards.FORMATS:
                common.say(f"shards: {name} {format}")
                found["shards"] += shards.measure(name, format, stream)
    for part, show in (("teams", teams.show), ("experts", experts.show), ("shards", shards.show)):
        if part in found:
            print(f"\n{part}")
            show(found[part])
    if load > 0.5:
        print(f"\nThe machine was busy (load {load:.1f}), so rows/s that are measured are too low.")
    rows = [{"part": part} | row._asdict() for part, each in found.items() for row in each]
    common.save(args.json, rows, every=EVERY, load_before=load)


if __name__ == "__main__":
    main()
