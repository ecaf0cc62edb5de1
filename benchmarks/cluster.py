"""`python -m benchmarks.cluster`: compare teams of workers with one booster."""

import os
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from benchmarks import common
from benchmarks.common import Stream
from spanboost import LinearSGD, Network, SpanBoost, Stumps, Trees
from spanboost.parallel.cluster import Cluster
from spanboost.parallel.executor import LocalExecutor
from spanboost.parallel.team import EVERY, Team

ABOUT = f"""\
Learn a shuffled data set with one booster, and with teams of 1, 2 and 4 workers that average after
every {EVERY} rows each (trees form a committee). Print the average loss on the last fifth of the
rows, which are not learned, and rows per second.

Losses do not depend on where the workers run, but times do. The machines are simulated: they are
Ray processes on this machine, with one processor each. More workers than processors cannot be
faster, and no network is involved. The times do show the cost of distributing rows, snapshots and
averaging.

The estimated rows per second assume that each worker has its own processor and that communication
takes no time. The estimate adds the processor time of the slowest worker in each round to the time
for distributing rows and averaging. Other work on the machine hardly affects it.
"""
ENDS = """\
examples:
  python -m benchmarks.cluster --data DIR
  python -m benchmarks.cluster --data DIR --learner linear --set casp
"""
LEARNERS: dict[str, Any] = {
    "linear": LinearSGD(),
    "stumps": Stumps(),
    "network": Network(),
    "trees": Trees(),
}
SETS = ("casp", "covtype")
WORKERS = (1, 2, 4)


class Row(NamedTuple):
    """A line of the table."""

    set: str
    learner: str
    workers: int  # 0: no team
    loss: float
    rows_a_second: float
    estimated: float  # estimated rows per second with one processor for each worker


def measure(name: str, learner: str, stream: Stream, most: int) -> Iterator[Row]:
    """Measure one booster, then teams on as many machines as workers."""
    learned = len(stream.y) * 4 // 5
    X, y = stream.X[:learned], stream.y[:learned]
    rest = stream.X[learned:], stream.y[learned:]

    def row(workers: int, model: Any, began: float, estimated: float) -> Row:
        speed = learned / (time.perf_counter() - began)
        made = model.model() if workers else model
        return Row(name, learner, workers, loss(made, *rest), speed, estimated)

    def learn(team: Team) -> None:
        for first in range(0, learned, most):
            team.learn_many(X[first : first + most], y[first : first + most])

    fresh(learner, stream.y).learn_many(X[:100], y[:100])  # compiles the code
    began, model = time.perf_counter(), fresh(learner, stream.y)
    alone = time.process_time()
    model.learn_many(X, y)
    yield row(0, model, began, learned / (time.process_time() - alone))
    for workers in WORKERS:
        clocked = Clocked()
        learn(Team(fresh(learner, stream.y), workers, EVERY, clocked))
        estimated = learned / clocked.seconds()
        with Machines(workers) as place:
            warm = Team(fresh(learner, stream.y), workers, 50, place)
            warm.learn_many(X[: 100 * workers], y[: 100 * workers])  # starts the processes
            team = Team(fresh(learner, stream.y), workers, EVERY, place)
            began = time.perf_counter()
            learn(team)
            yield row(workers, team, began, estimated)


def fresh(learner: str, y: np.ndarray) -> SpanBoost:
    """Create a booster with 32 copies, or 100 trees."""
    n = 100 if learner == "trees" else 32
    return SpanBoost(LEARNERS[learner], n=n, label_range="auto")


def loss(model: Any, X: Any, y: np.ndarray) -> float:
    """Return the mean squared error."""
    return float(np.mean((model.predict_many(X) - y) ** 2))


class Clocked(LocalExecutor):
    """Runs tasks one after another, timed as if those of a round ran in parallel."""

    def __init__(self) -> None:
        self._began, self._tasks = time.process_time(), 0.0
        self._round: list[float] = []
        self._longest = 0.0

    def call(self, task: Any, *given: Any, answers: int = 1) -> Any:
        """Run a task and record its processor time."""
        began = time.process_time()
        found = super().call(task, *given, answers=answers)
        self._round.append(time.process_time() - began)
        return found

    def results(self, handles: Sequence[Any]) -> list[Any]:
        """End a round, in which all workers wait for the slowest."""
        self._tasks += sum(self._round)
        self._longest += max(self._round, default=0.0)
        self._round = []
        return super().results(handles)

    def seconds(self) -> float:
        """Return the time of this process plus the longest task of each round."""
        return time.process_time() - self._began - self._tasks + self._longest


class Machines:
    """Simulated machines with one processor each; the head node runs no tasks."""

    def __init__(self, number: int) -> None:
        from ray.cluster_utils import Cluster as Simulated

        self._machines = Simulated(initialize_head=True, head_node_args={"num_cpus": 0})
        for _ in range(number):
            self._machines.add_node(num_cpus=1)
        self._machines.wait_for_nodes()

    def __enter__(self) -> Cluster:
        self._place = Cluster(self._machines.address)
        return self._place

    def __exit__(self, *_: object) -> None:
        self._place.close()
        self._machines.shutdown()


def rows_of(args: Any, name: str) -> Stream:
    """Return a data set, shuffled."""
    table = common.table_of(args.data, name)
    X = common.numbers_of(table, table.column_names[:-1])
    label = table.column("label").to_numpy()
    y = np.where(label == 2, 1.0, -1.0) if name == "covtype" else label.astype(np.float64)
    order = np.random.default_rng(0).permutation(len(y))[: args.rows]
    return Stream(X[order], y[order])


def main() -> None:
    """Measure the chosen data sets and learners and print the table."""
    parser = common.parser("cluster", ABOUT, ENDS)
    common.add_data(parser)
    common.add_choice(parser, "--set", SETS, "Data sets")
    common.add_choice(parser, "--learner", LEARNERS, "Base learners")
    parser.add_argument(
        "--rows",
        type=common.at_least_one,
        default=400_000,
        help="Maximum number of rows (default: 400,000)",
    )
    args = parser.parse_args()
    args.rows = 5000 if args.quick else args.rows
    load = os.getloadavg()[0]
    rows = []
    for name in args.set:
        stream = rows_of(args, name)
        for learner in args.learner:
            for row in measure(name, learner, stream, most=200_000):
                common.say(f"{name} {learner}: {row.workers or 'no'} workers")
                rows.append(row)
    show(rows)
    if load > 0.5:
        print(f"\nThe machine was busy (load {load:.1f}), so the times of teams are too long.")
    common.save(args.json, [row._asdict() for row in rows], every=EVERY, load_before=load)


def show(rows: list[Row]) -> None:
    """Print each team, compared with one booster."""
    head = ["data", "learner", "workers", "loss", "change", "rows/s", "speed-up"]
    head += ["estimated rows/s", "speed-up"]
    lines = []
    for row in rows:
        one = next(
            other
            for other in rows
            if (other.set, other.learner, other.workers) == (row.set, row.learner, 0)
        )
        lines.append(
            (
                row.set,
                row.learner,
                str(row.workers) if row.workers else "-",
                f"{row.loss:.5g}",
                f"{row.loss / one.loss - 1:+.1%}",
                f"{row.rows_a_second:,.0f}",
                f"{row.rows_a_second / one.rows_a_second:.2f}",
                f"{row.estimated:,.0f}",
                f"{row.estimated / one.estimated:.2f}",
            )
        )
    common.show(head, lines)


if __name__ == "__main__":
    main()
