"""The whole reproduction: every cell that is asked for, kept as it is known."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from spanboost.data.batch import Batch
from spanboost.paper import protocol
from spanboost.paper.cells import Cell, CellStore, stamp_of
from spanboost.paper.dataset_folder import file_of, read
from spanboost.paper.datasets import SETS, DataSet
from spanboost.paper.protocol import Grid
from spanboost.paper.table_content import counts, digest, examples_of, shuffle_rows
from spanboost.parallel.executor import Executor

AT_ONCE = 4  # cells of a set on a cluster, each of some groups of configurations
COSTS = {"linear": 1, "stumps": 4, "network": 4}  # of a feature, roughly, for the progress bar


class Asked(NamedTuple):
    """What is to be reproduced."""

    sets: Sequence[str]
    learners: Sequence[str]
    orders: Sequence[str]
    feedbacks: Sequence[str]

    def of_a_set(self) -> Iterator[tuple[str, str, str]]:
        """The cells of one data set: order, learner, feedback."""
        for order in self.orders:
            for feedback in self.feedbacks:
                for learner in self.learners:
                    yield order, learner, feedback


class Found(NamedTuple):
    """A data set that is there."""

    published: bool  # its content is the published one
    rows: int
    features: int
    active: float


class Watcher(NamedTuple):
    """Who is told how a reproduction goes on."""

    starts: Callable[[str], None]  # a data set, or a cell of it
    works: Callable[[float], None]  # so much of the work more is done
    ends: Callable[[Cell, bool], None]  # a cell is known; whether it was kept from before


def present(sets: Sequence[str], folder: Path) -> tuple[list[str], dict[str, str]]:
    """Those of the data sets that are in the folder, and why the others are not."""
    there = [name for name in sets if file_of(SETS[name], folder).is_file()]
    gone = f"there is no {{}}.parquet in {folder}"
    return there, {name: gone.format(name) for name in sets if name not in there}


def work_of(asked: Asked) -> float:
    """All of it, in the units that `Watcher.works` hears."""
    return sum(
        _cost(SETS[name], learner) for name in asked.sets for _, learner, _ in asked.of_a_set()
    )


@np.errstate(over="ignore", invalid="ignore")  # rates that are too much for a learner lose
def reproduce(
    asked: Asked,
    folder: Path,
    kept: CellStore,
    watcher: Watcher,
    grid: Grid,
    executor: Executor | None = None,
) -> tuple[list[Cell], dict[str, Found]]:
    """All cells, those that were kept among them, and what was found of each data set.

    At a place of its own the cells of a set are worked on several at a time.
    """
    cells: list[Cell] = []
    found = {}
    for name in asked.sets:
        watcher.starts(name)
        one = SETS[name]
        table = read(one, folder)
        content, examples = digest(table), examples_of(one, table)
        found[name] = Found(content == one.content, examples.rows, *counts(examples))
        orders = {"file": examples, "shuffled": shuffle_rows(examples)}
        stamp = stamp_of(content, (grid, protocol.SCALES))

        def work(
            named: tuple[str, str, str],
            one: DataSet = one,
            stamp: str = stamp,
            orders: dict[str, Batch] = orders,
        ) -> Cell:
            cell = kept.find(stamp, one.name, *named)
            before, cost = cell is not None, _cost(one, named[1])
            if cell is None:
                watcher.starts(" ".join((one.name, *named)))
                rows = orders[named[0]]
                works = partial(_works, watcher, cost / (rows.rows // 2))
                cell = protocol.run((one.name, *named), rows, one.largest, grid, works, executor)
                kept.keep(stamp, cell)
            else:
                watcher.works(cost)
            watcher.ends(cell, before)
            return cell

        cells += _each(work, list(asked.of_a_set()), 1 if executor is None else AT_ONCE)
    return cells, found


def _each(work: Callable[[Any], Cell], items: Sequence[Any], at_once: int) -> list[Cell]:
    """The cells of all items; one that fails ends the others, which are not waited for."""
    if at_once == 1:
        return list(map(work, items))
    pool = ThreadPoolExecutor(at_once)
    try:  # in copies of this context: NumPy keeps there what it is told to ignore
        running = [pool.submit(copy_context().run, work, item) for item in items]
        return [one.result() for one in running]
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _works(watcher: Watcher, cost: float, rows: int) -> None:
    watcher.works(cost * rows)


def _cost(one: DataSet, learner: str) -> float:
    return one.paper.rows * (1 + one.paper.active) * COSTS[learner]
