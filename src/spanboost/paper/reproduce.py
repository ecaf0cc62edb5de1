"""The reproduction: run the selected cells and keep each one when it is finished."""

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.threads import cpu_count
from spanboost.data.batch import Batch
from spanboost.paper import protocol
from spanboost.paper.cells import ADVANTAGE, Cell, CellStore, feedbacks_of, stamp_of
from spanboost.paper.dataset_folder import read, table_path
from spanboost.paper.datasets import SETS, DataSet
from spanboost.paper.protocol import Grid
from spanboost.paper.row_order import gap_of_halves, headline_order, in_order, shuffle_name
from spanboost.paper.table_content import count_features, digest, examples_of
from spanboost.parallel.executor import Executor

AT_ONCE = 4  # cells of a data set that run at once on a cluster
COSTS = {  # rough cost of a feature, for the progress bar and the order of the cells
    "linear": {"linear": 1, "greedy": 1},
    "stumps": {"linear": 6, "greedy": 3, ADVANTAGE: 3},
    "network": {"linear": 6, "greedy": 6},
}


class CellName(NamedTuple):
    """An experiment on a data set."""

    order: str
    learner: str
    feedback: str


class DataSetFacts(NamedTuple):
    """Facts about a data set in the folder."""

    content: str  # digest
    published: bool  # whether its content is the published one
    rows: int
    features: int
    active: float
    gap: float  # between the average labels of both halves, in standard errors
    order: str  # the order of the rows in the headline

    def as_json(self) -> dict[str, Any]:
        """Return the facts as JSON types; an infinite gap is null."""
        return self._asdict() | {"gap": self.gap if math.isfinite(self.gap) else None}


def facts_from_json(state: Mapping[str, Any]) -> DataSetFacts:
    """Return the facts that `as_json` was called on."""
    gap = math.inf if state["gap"] is None else state["gap"]
    return DataSetFacts(**{**state, "gap": gap})


class Selection(NamedTuple):
    """The experiments to run."""

    sets: Sequence[str]
    learners: Sequence[str]
    shuffles: int = 0  # of every data set, besides the order of the headline

    def cells(self, headline: str) -> list[CellName]:
        """Return the cells of a data set, given the order of its rows in the headline."""
        orders = dict.fromkeys([headline, *map(shuffle_name, range(self.shuffles))])
        return [
            CellName(order, learner, feedback)
            for order in orders
            for learner in self.learners
            for feedback in feedbacks_of(learner)
        ]


class Watcher(NamedTuple):
    """Callbacks that report the progress of a reproduction; several threads call them."""

    on_start: Callable[[str], None]  # with the name of a data set or cell
    on_work: Callable[[float], None]  # with the amount of work done since the last call
    on_finish: Callable[[Cell, bool], None]  # with a cell, and whether an earlier run had it


class StoppedError(Exception):
    """Another cell failed, or the run was interrupted."""


def find_datasets(sets: Sequence[str], folder: Path) -> tuple[list[str], dict[str, str]]:
    """Return the data sets that are in the folder, and the reason for each missing one."""
    available = [name for name in sets if table_path(SETS[name], folder).is_file()]
    absent = {name: f"{name}.parquet not found in {folder}" for name in sets}
    return available, {name: why for name, why in absent.items() if name not in available}


def survey(sets: Sequence[str], folder: Path) -> dict[str, DataSetFacts]:
    """Return the facts of each data set; they include the order of its rows."""
    with ThreadPoolExecutor(cpu_count()) as pool:
        facts = pool.map(partial(_facts, folder=folder), [SETS[name] for name in sets])
        return dict(zip(sets, facts, strict=True))


def _facts(one: DataSet, folder: Path) -> DataSetFacts:
    table = read(one, folder)
    content, examples = digest(table), examples_of(one, table)
    labels = np.asarray(examples.y)
    return DataSetFacts(
        content,
        content == one.content,
        examples.rows,
        *count_features(examples),
        gap_of_halves(labels),
        headline_order(labels),
    )


def total_work(selection: Selection, facts: Mapping[str, DataSetFacts]) -> float:
    """Return the amount of all work, in the units of `Watcher.on_work`."""
    return sum(
        _cost(facts[name], cell)
        for name in selection.sets
        for cell in selection.cells(facts[name].order)
    )


@np.errstate(over="ignore", invalid="ignore")  # too large a rate overflows, and is not chosen
def reproduce(
    selection: Selection,
    facts: Mapping[str, DataSetFacts],
    folder: Path,
    store: CellStore,
    watcher: Watcher,
    grid: Grid,
    executor: Executor | None = None,
) -> list[Cell]:
    """Run all cells that the store lacks; return all cells.

    Several cells run at once: one per processor, or `AT_ONCE` on an executor. A data set is read
    while the last cells of the one before it run, so that no processor is idle.
    """
    here, stop = executor is None, threading.Event()
    pool = ThreadPoolExecutor(cpu_count() if here else AT_ONCE)
    cells: list[Cell] = []
    before: list[Future[Cell]] = []
    try:
        for name in selection.sets:
            watcher.on_start(name)
            work = _DataSetWork(
                SETS[name],
                facts[name],
                examples_of(SETS[name], read(SETS[name], folder)),
                stamp_of(facts[name].content, (grid, protocol.LEARNERS)),
                store,
                watcher,
                grid,
                executor,
                stop,
            )
            running = work.start(pool, selection.cells(facts[name].order))
            cells += _results(before)  # so at most two data sets are in memory
            before = running
        return cells + _results(before)
    except BaseException:
        stop.set()
        raise
    finally:
        pool.shutdown(wait=here, cancel_futures=True)


def _results(running: Sequence[Future[Cell]]) -> list[Cell]:
    """Wait for the cells; raise the first error at once."""
    finished, _ = wait(running, return_when=FIRST_EXCEPTION)
    for one in finished:
        one.result()
    return [one.result() for one in running]


class _DataSetWork:
    """The cells of one data set."""

    def __init__(
        self,
        one: DataSet,
        facts: DataSetFacts,
        examples: Batch,
        stamp: str,
        store: CellStore,
        watcher: Watcher,
        grid: Grid,
        executor: Executor | None,
        stop: threading.Event,
    ) -> None:
        self.one, self.facts, self.examples, self.stamp = one, facts, examples, stamp
        self.store, self.watcher, self.grid, self.executor = store, watcher, grid, executor
        self.stop = stop  # set when a cell failed or the run was interrupted

    def start(self, pool: ThreadPoolExecutor, names: Sequence[CellName]) -> list[Future[Cell]]:
        """Start all cells, and return them in this order.

        Expensive cells start first, so that no processor is idle at the end. They run in copies of
        this context, which holds the error settings of NumPy.
        """
        first = sorted(names, key=lambda name: -_cost(self.facts, name))
        running = {name: pool.submit(copy_context().run, self.cell, name) for name in first}
        return [running[name] for name in names]

    def cell(self, name: CellName) -> Cell:
        """Return a cell; run it if the store lacks it."""
        if self.stop.is_set():
            raise StoppedError
        cell = self.store.find(self.stamp, self.one.name, *name)
        was_known, cost = cell is not None, _cost(self.facts, name)
        if cell is None:
            self.watcher.on_start(" ".join((self.one.name, *name)))
            cell = self.compute(name, cost)
            self.store.save(self.stamp, cell)
        else:
            self.watcher.on_work(cost)
        self.watcher.on_finish(cell, was_known)
        return cell

    def compute(self, name: CellName, cost: float) -> Cell:
        """Run a cell."""
        rows = in_order(self.examples, name.order)

        def report(done: int) -> None:
            if self.stop.is_set():
                raise StoppedError
            self.watcher.on_work(cost * done / (rows.rows // 2))

        named = (self.one.name, *name)
        return protocol.run(named, rows, self.one.largest, self.grid, report, self.executor)


def _cost(facts: DataSetFacts, name: CellName) -> float:
    return facts.rows * (1 + facts.active) * COSTS[name.learner][name.feedback]
