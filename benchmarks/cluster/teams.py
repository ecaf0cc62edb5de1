"""Compare teams of workers, each of which learns a share of the rows, with one booster."""

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from benchmarks import common
from benchmarks.cluster.clock import Clocked, Machines
from benchmarks.common import Stream
from spanboost import LinearSGD, Network, SpanBoost, Stumps, Trees
from spanboost.compiling.threads import cpu_count
from spanboost.parallel.team import EVERY, Team

LEARNERS: dict[str, Any] = {
    "linear": LinearSGD(),
    "stumps": Stumps(),
    "network": Network(),
    "trees": Trees(),
}
SETS = ("casp", "covtype")
WORKERS = (1, 2, 4, 8)


class Row(NamedTuple):
    """A line of the table."""

    set: str
    learner: str
    workers: int  # 0: no team
    loss: float
    rows_a_second: float | None  # None: there are too few processors to measure it
    estimated: float  # estimated rows per second with one processor for each worker


def measure(name: str, learner: str, stream: Stream, most: int) -> Iterator[Row]:
    """Measure one booster, then teams on as many machines as workers."""
    learned = len(stream.y) * 4 // 5
    X, y = stream.X[:learned], stream.y[:learned]
    rest = stream.X[learned:], stream.y[learned:]

    def row(workers: int, model: Any, seconds: float | None, estimated: float) -> Row:
        speed = None if seconds is None else learned / seconds
        made = model.model() if workers else model
        return Row(name, learner, workers, loss(made, *rest), speed, estimated)

    def learn(team: Team) -> None:
        for first in range(0, learned, most):
            team.learn_many(X[first : first + most], y[first : first + most])

    fresh(learner, stream.y).learn_many(X[:100], y[:100])  # compiles the code
    began, model = time.perf_counter(), fresh(learner, stream.y)
    alone = time.process_time()
    model.learn_many(X, y)
    estimated = learned / (time.process_time() - alone)
    yield row(0, model, time.perf_counter() - began, estimated)
    for workers in WORKERS:
        clocked = Clocked()
        learn(team := Team(fresh(learner, stream.y), workers, EVERY, clocked))
        estimated = learned / clocked.seconds()
        if workers > cpu_count():
            yield row(workers, team, None, estimated)
            continue
        with Machines(workers) as place:
            warm = Team(fresh(learner, stream.y), workers, 50, place)
            warm.learn_many(X[: 100 * workers], y[: 100 * workers])  # starts the processes
            team = Team(fresh(learner, stream.y), workers, EVERY, place)
            began = time.perf_counter()
            learn(team)
            yield row(workers, team, time.perf_counter() - began, estimated)


def fresh(learner: str, y: np.ndarray) -> SpanBoost:
    """Create a booster with 32 copies, or 100 trees."""
    n = 100 if learner == "trees" else 32
    return SpanBoost(LEARNERS[learner], n=n, label_range="auto")


def loss(model: Any, X: Any, y: np.ndarray) -> float:
    """Return the mean squared error."""
    return float(np.mean((model.predict_many(X) - y) ** 2))


def rows_of(args: Any, name: str) -> Stream:
    """Return a data set, shuffled."""
    table = common.table_of(args.data, name)
    X = common.numbers_of(table, table.column_names[:-1])
    label = table.column("label").to_numpy()
    y = np.where(label == 2, 1.0, -1.0) if name == "covtype" else label.astype(np.float64)
    order = np.random.default_rng(0).permutation(len(y))[: args.rows]
    return Stream(X[order], y[order])


def measured_speeds(row: Row, one: Row) -> tuple[str, str]:
    """Return the measured speed of a team, and relative to one booster."""
    if row.rows_a_second is None or one.rows_a_second is None:
        return "-", "-"
    return f"{row.rows_a_second:,.0f}", f"{row.rows_a_second / one.rows_a_second:.2f}"


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
                *measured_speeds(row, one),
                f"{row.estimated:,.0f}",
                f"{row.estimated / one.estimated:.2f}",
            )
        )
    common.show(head, lines)
