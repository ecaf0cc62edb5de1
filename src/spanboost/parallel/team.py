"""Data-parallel training: several workers learn one model.

Worker t mod W learns row t of the stream, so every worker sees a fair sample of the stream whatever
its order. All workers start a round with the same model and learn K rows each. Then their models
are averaged (averaging.py), and the next round starts. Workers whose learners cannot be averaged,
such as trees, learn separately, and their boosters form a committee at the end.

The result does not depend on the speed of workers, on the machines, or on the blocks that rows
arrive in. A task gets a snapshot and rows, so it can run again if its worker is lost.
"""

from __future__ import annotations

import copy
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from spanboost.checks import is_integer
from spanboost.compiling.arrays import Array
from spanboost.data.batch import Batch, as_batch
from spanboost.errors import (
    DataError,
    ParameterError,
    RowWarning,
    capture_warnings,
    reissue_warnings,
    renumber_warnings,
)
from spanboost.losses import require_fixed_classes
from spanboost.models.booster import Booster
from spanboost.models.committee import Committee
from spanboost.models.model import Model
from spanboost.parallel.averaging import AVERAGED, average, check_averageable
from spanboost.parallel.executor import (
    Executor,
    LocalExecutor,
    pickle_model,
    unpickle_model,
)
from spanboost.rows.encoder import RowKind, count_rows
from spanboost.rows.feature_names import FeatureNames, are_named
from spanboost.rows.user_types import RowsLike
from spanboost.rows.validation import parse_rows

EVERY = 10_000  # rows that a worker learns between two averages
SNAPSHOT_EVERY = 20_000  # rows between two snapshots of a worker that is not averaged


class TeamState(NamedTuple):
    """The progress of a team; models are handles of snapshots."""

    rows: int  # learned so far
    start: Any  # the model at the start of the round
    states: tuple[Any, ...]  # the current model of each worker
    busy: frozenset[int]  # workers that have learned in this round


class Answer(NamedTuple):
    """The result of learning rows."""

    predictions: Any  # [rows]; None if a row is bad
    warnings: list[RowWarning]
    bad: DataError | None  # the first bad row, numbered from the start of the stream


class Team:
    """Workers that learn one model together; `model()` returns it.

    model: a booster, fresh or trained. Boosters of linear functions, stumps and networks are
        averaged. With other learners, each worker has its own booster, and the result is a
        `Committee` that predicts their mean. To continue such a committee, pass it; it must have a
        member for each worker.
    workers: number of workers, W. One worker learns exactly as the model alone.
    average_every: K, the rows that each worker learns between two averages. Small values are more
        accurate; large values send less data between machines.
    executor: runs the tasks, for example a `Cluster`; None is this process. The result does not
        depend on it.
    rows: rows of this stream that the model has already learned, to resume a run.

    >>> import numpy as np
    >>> from spanboost import SpanBoost, Stumps
    >>> from spanboost.parallel.team import Team
    >>> X = np.random.default_rng(0).uniform(-1, 1, (4000, 3))
    >>> y = X @ [0.5, -0.3, 0.1]
    >>> team = Team(SpanBoost(Stumps(), n=16, eta=0.1), workers=2)
    >>> answers = team.learn_many(X, y)
    >>> bool(np.mean((answers - y)[2000:] ** 2) < 0.1 * np.var(y))
    True
    >>> model = team.model()  # an ordinary model, which can continue to learn
    """

    def __init__(
        self,
        model: Model,
        workers: int,
        average_every: int = EVERY,
        executor: Executor | None = None,
        rows: int = 0,
    ) -> None:
        for name, value in (("workers", workers), ("average_every", average_every)):
            if not (is_integer(value) and value >= 1):
                raise ParameterError(name, f"must be a positive integer (got {value!r})")
        models = _starting_models(model, workers)
        require_fixed_classes(models[0].loss, "training in parallel")
        self.averages = workers > 1 and isinstance(models[0].learner, AVERAGED)
        if self.averages:
            check_averageable(models[0])
        self.learner, self.loss_, self.schema = models[0].learner, model.loss_, model.schema
        self.workers, self.average_every = workers, average_every
        self._learned = (
            models[0].labels.seen > 0
        )  # whether a row was learned, so that all workers share a label range
        self.executor: Executor = LocalExecutor() if executor is None else executor
        first = unpickle_model(pickle_model(models[0]))
        self._names: FeatureNames | None = first.encoder.names
        self._named: bool | None = None if first.encoder.kind is None else first.encoder.kind.named
        self._earlier = model.labels.rows - rows  # rows of earlier streams
        states = [
            self.executor.put(pickle_model(_remove_names(unpickle_model(pickle_model(one)))))
            for one in models
        ]
        states *= workers // len(states)
        self._now = TeamState(rows, states[0], tuple(states), frozenset())

    @property
    def names(self) -> FeatureNames | None:
        """The names of features so far; None if the learner does not read features."""
        return self._names

    @property
    def rows(self) -> int:
        """Number of rows of the stream that were learned."""
        return self._now.rows

    @property
    def round(self) -> int:
        """Rows in a round, over all workers: between two averages, or between two snapshots."""
        return self.workers * (self.average_every if self.averages else SNAPSHOT_EVERY)

    def learn_many(self, X: RowsLike, y: ArrayLike, weights: ArrayLike | None = None) -> Array:
        """Learn a block of rows; return the predictions, each made before the row was learned.

        The worker that learns a row also predicts it. Raises `DataError` with the number of the
        first bad row; then no row of the block was learned.
        """
        rows, before = count_rows(X), (self._now, self._learned)
        X, new, named = self._resolve_names(X)
        batch = as_batch(X, y, weights)
        answers, warnings = [], []
        try:
            while (first := self.rows - before[0].rows) < rows:
                last = min(rows, first + self._next_rows(batch, first))
                answer = self._learn(batch.part(first, last))
                answers.append(answer.predictions)
                warnings += answer.warnings
        except BaseException as error:
            self._now, self._learned = before
            if isinstance(error, DataError):  # its row is numbered from the start of the stream
                row = error.row - self._earlier - self.rows
                raise DataError(row, error.what, error.field) from None
            raise
        self._named = named
        if self._names is not None:
            self._names.add(new)
        reissue_warnings(warnings)
        return np.concatenate(answers)

    def model(self) -> Booster | Committee:
        """Return the model of all workers so far."""
        if self.workers > 1 and not self.averages:
            states = self.executor.results(self._now.states)
            committee = Committee([self._add_names(unpickle_model(state)) for state in states])
            committee.schema = self.schema
            return committee
        return self._add_names(unpickle_model(self._average()))

    def _next_rows(self, batch: Batch, first: int) -> int:
        """Return how many rows to learn before the next end of a round."""
        if self._learned or not self.averages:
            return self.round - self.rows % self.round
        # the first learned row sets the centre of the label range, which all workers must share
        learned = np.flatnonzero(batch.weights[first:] > 0) if batch.weights is not None else [0]
        return int(learned[0]) + 1 if len(learned) else batch.rows

    def _learn(self, batch: Batch) -> Answer:
        """Learn rows of one round, each with its worker."""
        now, W = self._now, self.workers
        numbers = now.rows + np.arange(batch.rows)
        if self.averages and not self._learned:
            own = {0: np.arange(batch.rows)}
        else:
            own = {w: np.flatnonzero(numbers % W == w) for w in np.unique(numbers % W).tolist()}
        calls = {
            w: self.executor.call(
                learn_rows,
                *(now.states[w], *batch.take(rows)[:3], self._earlier + numbers[rows]),
                answers=2,
            )
            for w, rows in own.items()
        }
        answers = self.executor.results([answer for _, answer in calls.values()])
        bad = [answer.bad for answer in answers if answer.bad is not None]
        if bad:
            raise min(bad, key=lambda error: error.row)
        states = list(now.states)
        for w, (state, _) in calls.items():
            states[w] = state
        rows, busy = now.rows + batch.rows, now.busy | frozenset(own)
        self._now = TeamState(rows, now.start, tuple(states), busy)
        if rows % self.round == 0 or not self._learned:
            self._end_round()
        self._learned = self._learned or batch.weights is None or bool((batch.weights > 0).any())
        return _join_answers(answers, list(own.values()))

    def _end_round(self) -> None:
        """End a round: average the models, and keep the snapshots in this process.

        A snapshot in this process survives the loss of a machine.
        """
        if not self.averages:
            states = self.executor.results(self._now.states)
            saved = tuple(map(self.executor.put, states))
            self._now = self._now._replace(start=saved[0], states=saved, busy=frozenset())
            return
        state = self.executor.put(self._average())
        self._now = TeamState(self.rows, state, (state,) * self.workers, frozenset())

    def _average(self) -> bytes:
        """Return a snapshot of the average of the workers that have learned in this round."""
        now = self._now
        start, *states = self.executor.results(
            [now.start, *(now.states[w] for w in sorted(now.busy))]
        )
        if len(states) < 2:
            return states[0] if states else start
        return pickle_model(average(unpickle_model(start), list(map(unpickle_model, states))))

    def _resolve_names(self, X: Any) -> tuple[Any, dict[str, int], bool]:
        """Return rows with column numbers instead of names, the new names, and whether X has names.

        All workers use the same columns.
        """
        named = self._names is not None and are_named(X)
        if self._named not in (None, named):
            RowKind((), bool(self._named)).refuse(RowKind((), named))
        if self._names is not None and named:
            return *self._names.read(X), named
        return (parse_rows(X) if isinstance(X, list | tuple) else X), {}, named

    def _add_names(self, model: Booster) -> Booster:
        """Give a worker's model the feature names and the schema; return it."""
        if self._names is not None and model.encoder.names is not None:
            model.encoder.names = copy.deepcopy(self._names)
        model.schema = self.schema
        if model.encoder.kind is not None:
            model.encoder.kind = model.encoder.kind._replace(named=bool(self._named))
        return model


def _starting_models(model: Model, workers: int) -> list[Booster]:
    """Return the models that workers start with: one for all, or one for each."""
    if isinstance(model, Committee):
        if len(model.members) != workers:
            raise ValueError(
                f"workers must equal the committee's {len(model.members)} members (got {workers})"
            )
        return model.members
    if not isinstance(model, Booster):
        raise ValueError(f"a team can only train a booster, not {type(model).__name__}")
    return [model]


def learn_rows(state: bytes, X: Any, y: Any, weights: Any, numbers: Array) -> tuple[bytes, Answer]:
    """Learn rows with the model of a snapshot; return its new snapshot and the answer.

    numbers: the numbers of the rows, from the start of the stream.
    """
    model = unpickle_model(state)
    model.labels.rows = 0
    try:
        predictions, caught = capture_warnings(partial(model.learn_many, X, y, weights))
    except DataError as error:
        return state, Answer(None, [], DataError(int(numbers[error.row]), error.what, error.field))
    model.labels.rows = int(numbers[-1]) + 1
    warnings = renumber_warnings(caught, numbers)
    return pickle_model(model), Answer(predictions, warnings, None)


def _join_answers(answers: list[Answer], own: list[Array]) -> Answer:
    """Join the answers of workers, with the predictions in the order of the rows."""
    order = np.argsort(np.concatenate(own))
    predictions = np.concatenate([answer.predictions for answer in answers])[order]
    return Answer(predictions, [one for answer in answers for one in answer.warnings], None)


def _remove_names(model: Booster) -> Booster:
    """Remove what workers do not need, the feature names and the schema; return the model."""
    model.schema = None
    if model.encoder.names is not None:
        model.encoder.names = FeatureNames(model.encoder.names.bits)
    if model.encoder.kind is not None:
        model.encoder.kind = model.encoder.kind._replace(named=False)
    return model
