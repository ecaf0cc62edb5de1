"""One-pass tuning: a grid of boosters learns the same rows, and the first part chooses.

This is the paper's protocol: every configuration predicts and learns every row. The progressive
loss on the first part of the rows chooses the parameters, and the loss on the rest evaluates the
choice. Where the first n copies of a booster equal the booster with n copies, one run gives the
losses of all numbers of copies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spanboost.analysis.row_bar import row_bar
from spanboost.checks import is_integer, is_number
from spanboost.compiling.arrays import Array
from spanboost.compiling.threads import cpu_count, run_in_threads
from spanboost.data.batch import Batch, as_batch
from spanboost.errors import (
    DataError,
    ParameterError,
    RowWarning,
    capture_warnings,
    reissue_warnings,
)
from spanboost.learners.descent import Descent
from spanboost.learners.objects import ObjectLearner, as_learner
from spanboost.learners.protocol import Learner
from spanboost.learners.trees import Trees
from spanboost.losses import on_vectors, predicts_scores, resolve
from spanboost.models.booster import Booster
from spanboost.models.spec import COPIES
from spanboost.parallel.executor import (
    Executor,
    pickle_model,
    unpickle_model,
)
from spanboost.rows.encoder import count_rows
from spanboost.rows.user_types import RowsLike
from spanboost.tuning.grid import Configuration, configurations
from spanboost.tuning.result import TuningResult
from spanboost.tuning.stacked import StackedBoosters, stacking_key

BANK_COPIES = 512  # most copies in one bank: more are not faster, and threads need several banks
ROWS = 4096  # learned between two reports of progress


class Sweep:
    """A tuning run in progress.

    Groups of configurations share nothing, so the result does not depend on the number of threads.
    """

    def __init__(self, configurations: Sequence[Configuration], threads: int | None = None) -> None:
        if not (threads is None or (is_integer(threads) and threads >= 1)):
            raise ParameterError("threads", f"must be a positive integer (got {threads!r})")
        self.configurations, self.threads = list(configurations), threads or cpu_count()
        self.order, self.groups = groups_of(self.configurations)

    @property
    def rows(self) -> int:
        """Number of rows learned so far."""
        return self.groups[0].core.labels.rows

    def block_rows(self, rows: int) -> int:
        """Return how many of `rows` rows to learn at a time."""
        return ROWS

    def learn(self, batch: Batch) -> None:
        """Learn and score some rows."""
        X, y, weights = batch.X, batch.y, batch.weights
        lead = self.groups[0]
        block = lead.core.check(X, y, weights)

        def task(group: StackedBoosters) -> None:
            rows = block.rows if group is lead else group.core.encoder.read(X)
            group.learn_block(block._replace(rows=rows), weights)

        run_in_threads(task, self.groups, self.threads)

    def mark(self) -> None:
        """End the first part of the rows."""
        for group in self.groups:
            group.mark()

    def result(self) -> TuningResult:
        """Return the result so far."""
        return TuningResult(self.configurations, self.groups, self.order)


class DistributedSweep(Sweep):
    """A tuning run on an executor, one task for each group; same result as `Sweep`."""

    def __init__(self, configurations: Sequence[Configuration], executor: Executor) -> None:
        super().__init__(configurations, threads=1)
        self.executor = executor
        self._states: list[Any] = []  # handles of snapshots
        self._rows = 0

    @property
    def rows(self) -> int:
        """Number of rows learned so far."""
        return self._rows

    def block_rows(self, rows: int) -> int:
        """Return a twentieth of the rows: every task sends a whole group to a worker."""
        return max(ROWS, -(-rows // 20))

    def learn(self, batch: Batch) -> None:
        """Learn and score some rows; each machine receives them once."""
        if not self._states:
            self._states = [self.executor.put(pickle_model(group)) for group in self.groups]
        X, y, weights = map(self.executor.put, (batch.X, batch.y, batch.weights))
        done = [
            self.executor.call(learn_group, state, X, y, weights, answers=2)
            for state in self._states
        ]
        warnings = self.executor.results([caught for _, caught in done])
        self._states = [state for state, _ in done]  # not earlier: a bad row must change nothing
        self._rows += batch.rows
        reissue_warnings(warnings[0])  # every group learns the same labels

    def mark(self) -> None:
        """End the first part of the rows."""
        self._states = [self.executor.call(mark_group, state) for state in self._states]

    def result(self) -> TuningResult:
        """Return the result so far."""
        if self._states:
            self.groups = list(map(unpickle_model, self.executor.results(self._states)))
        return super().result()


def tune(
    X: RowsLike,
    y: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    learner: Learner | None = None,
    grid: Mapping[str, Sequence[Any]] | None = None,
    booster: str = "both",
    n: int = COPIES,
    split: float = 0.5,
    threads: int | None = None,
    progress: bool | Callable[[int], None] = False,
    executor: Executor | None = None,
    **fixed: Any,
) -> TuningResult:
    """Run every booster of a grid over the rows, in one pass.

    learner: a learner of this package; None is `Trees()` with label_range="auto", as for the
        command.
    grid: lists of values for parameters of the learner (rate, hidden, ...) and of the booster (eta,
        scale, feedback, alpha, offset); None is a grid of rates and steps.
    booster: "span", "hull" or "both".
    n: the largest number of copies; the result also has the losses of fewer copies.
    split: share of the rows, at the start, that chooses the parameters.
    threads: number of threads; None is the number of processors. The result does not depend on it.
    progress: True shows a bar with the rows so far and their speed, in notebooks and terminals. A
        function is called with the number of rows that were learned since the last call.
    executor: runs the tasks, for example a `Cluster`; None is this process. The result does not
        depend on it.
    fixed: parameters that all boosters share, such as loss, D, label_range and seed.

    >>> import numpy as np
    >>> from spanboost import Stumps, tune
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 4))
    >>> y = X @ [0.3, -0.2, 0.2, -0.1]
    >>> grid = {"rate": [0.1, 0.5], "eta": [0.1, 0.2, 1.0]}
    >>> tuned = tune(X, y, learner=Stumps(), grid=grid, n=16)
    >>> best, alone = tuned.best(), tuned.best(n=1)
    >>> best.loss_rest < 0.2 * alone.loss_rest
    True
    >>> model = tuned.model(best)  # has learned all rows
    >>> prediction = model.learn_one(X[0], y[0])
    """
    rows = count_rows(X)
    first = first_rows(rows, split)
    if learner is None:
        learner = Trees()
        if not predicts_scores(resolve(fixed.get("loss", "squared"))):
            fixed = {"label_range": "auto"} | fixed
    sweep = new_sweep(configurations(learner, grid, booster, n, **fixed), threads, executor)
    parts = split_batches([as_batch(X, y, weights)], first, sweep.block_rows(rows))
    with _report_rows(progress, rows) as report:
        for batch in parts:
            try:
                sweep.learn(batch)
            except DataError as error:
                raise DataError(sweep.rows + error.row, error.what, error.field) from None
            if sweep.rows == first:
                sweep.mark()
            report(batch.rows)
    return sweep.result()


@contextmanager
def _report_rows(
    progress: bool | Callable[[int], None] | None, rows: int
) -> Iterator[Callable[[int], Any]]:
    """Yield a function to call with the number of rows that were learned."""
    if callable(progress):
        yield progress
        return
    with row_bar(rows, shown=bool(progress)) as bar:
        yield bar.update


def new_sweep(
    configurations: Sequence[Configuration],
    threads: int | None = None,
    executor: Executor | None = None,
) -> Sweep:
    """Return a new tuning run, in this process or on an executor."""
    if executor is None:
        return Sweep(configurations, threads)
    return DistributedSweep(configurations, executor)


def learn_group(state: bytes, X: Any, y: Any, weights: Any) -> tuple[bytes, list[RowWarning]]:
    """Learn the rows with a group; return its new snapshot and the warnings."""
    group = unpickle_model(state)
    _, warnings = capture_warnings(partial(group.learn, X, y, weights))
    return pickle_model(group), warnings


def mark_group(state: bytes) -> bytes:
    """End the first part of a group; return its new snapshot."""
    group = unpickle_model(state)
    group.mark()
    return pickle_model(group)


def first_rows(rows: int, split: float) -> int:
    """Return the number of rows in the first part, which chooses the parameters."""
    if not (is_number(split) and 0 < split < 1):
        raise ParameterError("split", f"must be between 0 and 1 (got {split!r})")
    first = int(split * rows)
    if first == 0:
        raise ParameterError("split", f"selects none of {rows} rows to choose on (got {split:g})")
    return first


def split_batches(batches: Iterable[Batch], first: int, most: int | None = None) -> Iterator[Batch]:
    """Yield the same rows, at most `most` at a time; no batch crosses the end of the first part."""
    most, before = most or ROWS, 0
    for batch in batches:
        ends = {*range(most, batch.rows, most), batch.rows}
        if 0 < first - before < batch.rows:
            ends.add(first - before)
        last = 0
        for end in sorted(ends):
            yield batch.part(last, end)
            last = end
        before += batch.rows


def groups_of(configurations: Sequence[Configuration]) -> tuple[Array, list[StackedBoosters]]:
    """Stack configurations of one kind in groups; return their order in the groups, and the groups.

    A group is the unit of work: it learns independently of the others, on any machine.
    """
    members = [one.model(one.n) for one in configurations]
    keys = list(map(stacking_key, members))
    kinds = {key: k for k, key in reversed(list(enumerate(keys)))}  # by their first members
    order = sorted(range(len(members)), key=lambda k: kinds[keys[k]])
    groups = []
    for _, same in groupby(order, key=lambda k: kinds[keys[k]]):
        here = list(same)
        size = _group_size(members[here[0]])
        groups += [
            StackedBoosters([members[k] for k in here[i : i + size]])
            for i in range(0, len(here), size)
        ]
    return np.array(order), groups


def _group_size(member: Booster) -> int:
    """Return how many configurations of the kind of `member` share a bank."""
    learner = as_learner(member.learner)
    if isinstance(learner, ObjectLearner):
        raise ValueError(
            f"cannot tune {type(member.learner).__name__}: only learners of this package can be "
            "tuned"
        )
    if not isinstance(learner, Descent) or on_vectors(resolve(member.loss)).d > 1:
        return 1
    return max(1, BANK_COPIES // (member.n * getattr(learner, "hidden", 1)))
