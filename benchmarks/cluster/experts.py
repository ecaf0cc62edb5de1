"""Compare AutoBoost whose experts are on several workers with AutoBoost on one core."""

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from benchmarks import common
from benchmarks.cluster.clock import Clocked, PinnedCluster
from benchmarks.common import Stream
from spanboost import AutoBoost, ExpertTeam
from spanboost.compiling.threads import cpu_count

BUDGETS = ("fast", "default", "thorough", "exhaustive")
WORKERS = (1, 2, 4, 8)
BLOCK = 5000  # rows that are sent at a time


class Row(NamedTuple):
    """A line of the table."""

    set: str
    budget: str
    workers: int  # 0: no team
    measured: float | None  # rows per second; None: there are too few processors
    estimated: float  # rows per second from processor time
    loss: float  # average squared loss of the second half, each row before it is learned


def measure(name: str, budget: str, stream: Stream) -> Iterator[Row]:
    """Measure AutoBoost with one thread, then teams of workers that are pinned to processors."""
    rows = len(stream.y)
    learn(
        AutoBoost(budget=budget, refit=False), Stream(stream.X[:200], stream.y[:200])
    )  # compiles the code
    model = AutoBoost(budget=budget, refit=False)
    model.threads = 1
    began, processor = time.perf_counter(), time.process_time()
    answers = learn(model, stream)
    used, seconds = time.process_time() - processor, time.perf_counter() - began
    loss = float(np.mean((answers - stream.y)[rows // 2 :] ** 2))
    yield Row(name, budget, 0, rows / seconds, rows / used, loss)
    for workers in WORKERS:
        clocked = Clocked()
        learn(ExpertTeam(AutoBoost(budget=budget, refit=False), workers, clocked), stream)
        estimated, measured = rows / clocked.seconds(), None
        if workers <= cpu_count():
            with PinnedCluster(workers) as cluster:
                team = ExpertTeam(AutoBoost(budget=budget, refit=False), workers, cluster)
                few = min(1000, rows // 2)  # starts the processes
                team.learn_many(stream.X[:few], stream.y[:few])
                began = time.perf_counter()
                learn(team, Stream(stream.X[few:], stream.y[few:]))
                measured = (rows - few) / (time.perf_counter() - began)
                team.close()
        yield Row(name, budget, workers, measured, estimated, loss)


def learn(model: Any, stream: Stream) -> np.ndarray:
    """Learn all rows in blocks; return the predictions."""
    parts = [slice(first, first + BLOCK) for first in range(0, len(stream.y), BLOCK)]
    return np.concatenate([model.learn_many(stream.X[part], stream.y[part]) for part in parts])


def show(rows: list[Row]) -> None:
    """Print each team, compared with AutoBoost on one core."""
    head = [
        "data",
        "budget",
        "loss",
        "workers",
        "rows/s",
        "speed-up",
        "estimated rows/s",
        "speed-up",
    ]
    lines = []
    for row in rows:
        one = next(
            other
            for other in rows
            if (other.set, other.budget, other.workers) == (row.set, row.budget, 0)
        )
        found = (row.measured, one.measured), (row.estimated, one.estimated)
        cells = [
            ("-", "-") if a is None or b is None else (f"{a:,.0f}", f"{a / b:.2f}")
            for a, b in found
        ]
        lines.append(
            (row.set, row.budget, f"{row.loss:.5g}", str(row.workers or "-"), *cells[0], *cells[1])
        )
    common.show(head, lines)
