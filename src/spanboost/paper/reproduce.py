"""The reproduction: run the selected cells and keep each one when it is finished."""

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
from spanboost.paper.dataset_folder import read, table_path
from spanboost.paper.datasets import SETS, DataSet
from spanboost.paper.protocol import Grid
from spanboost.paper.table_content import count_features, digest, examples_of, shuffle_rows
from spanboost.parallel.executor import Executor

AT_ONCE = 4  # cells of a data set that run at once on a cluster
COSTS = {"linear": 1, "stumps": 4, "network": 4}  # rough cost of a feature, for the progress bar


class Selection(NamedTuple):
    """The experiments to run."""

    sets: Sequence[str]
    learners: Sequence[str]
    orders: Sequence[str]
    feedbacks: Sequence[str]

    def cells(self) -> Iterator[tuple[str, str, str]]:
        """Yield the cells of each data set: order, learner, feedback."""
        for order in self.orders:
            for feedback in self.feedbacks:
                for learner in self.learners:
                    yield order, learner, feedback


class DataSetFacts(NamedTuple):
    """Facts about a data set in the folder."""

    published: bool  # whether its content is the published one
    rows: int
    features: int
    active: float


class Watcher(NamedTuple):
    """Callbacks that report the progress of a reproduction."""

    on_start: Callable[[str], None]  # with the name of a data set or cell
    on_work: Callable[[float], None]  # with the amount of work done since the last call
    on_finish: Callable[[Cell, bool], None]  # with a cell, and whether an earlier run had it


def find_datasets(sets: Sequence[str], folder: Path) -> tuple[list[str], dict[str, str]]:
    """Return the data sets that are in the folder, and the reason for each missing one."""
    available = [name for name in sets if table_path(SETS[name], folder).is_file()]
    absent = {name: f"{name}.parquet not found in {folder}" for name in sets}
    return available, {name: why for name, why in absent.items() if name not in available}


def total_work(selection: Selection) -> float:
    """Return the amount of all work, in the units of `Watcher.on_work`."""
    return sum(
        _cost(SETS[name], learner) for name in selection.sets for _, learner, _ in selection.cells()
    )


@np.errstate(over="ignore", invalid="ignore")  # too large a rate overflows, and is not chosen
def reproduce(
    selection: Selection,
    folder: Path,
    store: CellStore,
    watcher: Watcher,
    grid: Grid,
    executor: Executor | None = None,
) -> tuple[list[Cell], dict[str, DataSetFacts]]:
    """Run all cells that the store lacks; return all cells and the facts of each data set.

    With an executor, several cells of a data set run at once.
    """
    cells: list[Cell] = []
    facts = {}
    for name in selection.sets:
        watcher.on_start(name)
        one = SETS[name]
        table = read(one, folder)
        content, examples = digest(table), examples_of(one, table)
        facts[name] = DataSetFacts(content == one.content, examples.rows, *count_features(examples))
        orders = {"file": examples, "shuffled": shuffle_rows(examples)}
        stamp = stamp_of(content, (grid, protocol.SCALES))

        def work(
            named: tuple[str, str, str],
            one: DataSet = one,
            stamp: str = stamp,
            orders: dict[str, Batch] = orders,
        ) -> Cell:
            cell = store.find(stamp, one.name, *named)
            was_known, cost = cell is not None, _cost(one, named[1])
            if cell is None:
                watcher.on_start(" ".join((one.name, *named)))
                rows = orders[named[0]]
                report = partial(_report_rows, watcher, cost / (rows.rows // 2))
                cell = protocol.run((one.name, *named), rows, one.largest, grid, report, executor)
                store.save(stamp, cell)
            else:
                watcher.on_work(cost)
            watcher.on_finish(cell, was_known)
            return cell

        cells += _each(work, list(selection.cells()), 1 if executor is None else AT_ONCE)
    return cells, facts


def _each(work: Callable[[Any], Cell], items: Sequence[Any], at_once: int) -> list[Cell]:
    """Return the cells of all items; the first failure cancels the others without waiting."""
    if at_once == 1:
        return list(map(work, items))
    pool = ThreadPoolExecutor(at_once)
    try:  # in copies of this context, which holds the error settings of NumPy
        running = [pool.submit(copy_context().run, work, item) for item in items]
        return [one.result() for one in running]
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _report_rows(watcher: Watcher, cost: float, rows: int) -> None:
    watcher.on_work(cost * rows)


def _cost(one: DataSet, learner: str) -> float:
    return one.paper.rows * (1 + one.paper.active) * COSTS[learner]
