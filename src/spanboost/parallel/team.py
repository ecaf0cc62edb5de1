"""One model learned by several workers: data-parallel training.

Row t of the stream goes to worker t mod W, so that every worker sees a fair part of the stream
however it is ordered. All workers begin a round with the same model and learn K rows each; then
their models become one (averaging.py), and the next round begins. Learners whose functions do not
average, such as trees, go through the whole stream on their own and form a committee in the end.

Nothing depends on which worker is quick, nor on where it works, nor on the blocks that rows come
in. What a worker is given is a snapshot and rows, so that it can be asked again if it was lost.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from spanboost.checks import is_integer
from spanboost.compiling.arrays import Array
from spanboost.data.batch import Batch
from spanboost.errors import DataError, ParameterError
from spanboost.models.booster import Booster
from spanboost.models.committee import Committee
from spanboost.models.model import Model
from spanboost.parallel.averaging import AVERAGED, average, check_averageable
from spanboost.parallel.executor import (
    Executor,
    LocalExecutor,
    capture_warnings,
    pickle_model,
    reissue_warnings,
    unpickle_model,
)
from spanboost.rows.encoder import RowKind, count_rows
from spanboost.rows.feature_names import FeatureNames, are_named
from spanboost.rows.validation import parse_rows

EVERY = 10_000  # rows that a worker learns between two averages
ALONE = 20_000  # and between two snapshots, if there is nothing to average


class TeamState(NamedTuple):
    """How far a team is; snapshots by their handles."""

    rows: int  # given so far
    begun: Any  # the model that the round began with
    states: tuple[Any, ...]  # of the workers, now
    busy: frozenset[int]  # those that have learned in this round


class Answer(NamedTuple):
    """What a worker has to say of its rows."""

    predictions: Any  # [rows]; None of a block with a bad one
    warnings: list[str]
    bad: DataError | None  # the first bad row, by its number in the stream


class Team:
    """Workers that learn one model; `model` is what they have learned so far.

    model: a booster, fresh or not. Linear functions, stumps and networks are averaged; of any other
        learner every worker keeps a booster, and these answer together (committee.py). Or such a
        committee, with a member for each worker.
    workers: how many, W. One is the model itself, bit for bit.
    average_every: K, how many rows each of them learns between two averages: few for accuracy,
        many where models are large and the way between machines is long.
    executor: where they work, a `Cluster` for one; None is here, one after the
        other. The result is the same, bit for bit.
    rows: of the stream that the model has learned already, where a stream is gone on with.

    >>> import numpy as np
    >>> from spanboost import SpanBoost, Stumps
    >>> from spanboost.parallel.team import Team
    >>> X = np.random.default_rng(0).uniform(-1, 1, (4000, 3))
    >>> y = X @ [0.5, -0.3, 0.1]
    >>> team = Team(SpanBoost(Stumps(), n=16, eta=0.1), workers=2)
    >>> answers = team.learn_many(X, y)
    >>> bool(np.mean((answers - y)[2000:] ** 2) < 0.1 * np.var(y))
    True
    >>> model = team.model()  # goes on learning, here or elsewhere
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
        models = _members(model, workers)
        self.averages = workers > 1 and isinstance(models[0].learner, AVERAGED)
        if self.averages:
            check_averageable(models[0])
        self.learner, self.loss_, self.schema = models[0].learner, model.loss_, model.schema
        self.workers, self.average_every = workers, average_every
        self._learned = models[0].labels.seen > 0  # a row: all workers have heard of it
        self.executor: Executor = LocalExecutor() if executor is None else executor
        first = unpickle_model(pickle_model(models[0]))
        self._names: FeatureNames | None = first.encoder.names
        self._named: bool | None = None if first.encoder.kind is None else first.encoder.kind.named
        self._earlier = model.labels.rows - rows  # of other streams
        states = [
            self.executor.put(pickle_model(_bare(unpickle_model(pickle_model(one)))))
            for one in models
        ]
        states *= workers // len(states)
        self._now = TeamState(rows, states[0], tuple(states), frozenset())

    @property
    def rows(self) -> int:
        """How many of the stream were learned."""
        return self._now.rows

    @property
    def round(self) -> int:
        """Rows from one average to the next, or one snapshot, of all workers together."""
        return self.workers * (self.average_every if self.averages else ALONE)

    def learn_many(self, X: Any, y: Any, weights: Any = None) -> Array:
        """Learn a block of rows; returns the predictions, each made before its label was seen.

        Each is that of the worker who learned the row. A `DataError` names the first bad row, and
        then nothing of the block was learned.
        """
        rows, before = count_rows(X), (self._now, self._learned)
        X, new, named = self._numbered(X)
        batch = Batch(X, np.asarray(y), _array(weights), "", np.arange(rows))
        answers, said = [], []
        try:
            while (first := self.rows - before[0].rows) < rows:
                last = min(rows, first + self._next_rows(batch, first))
                answer = self._learn(batch.part(first, last))
                answers.append(answer.predictions)
                said += answer.warnings
        except BaseException as error:
            self._now, self._learned = before
            if isinstance(error, DataError):  # so far by its number in the stream
                row = error.row - self._earlier - self.rows
                raise DataError(row, error.what) from None
            raise
        self._named = named
        if self._names is not None:
            self._names.add(new)
        reissue_warnings(said)
        return np.concatenate(answers)

    def model(self) -> Booster | Committee:
        """What was learned so far, by all of them."""
        if self.workers > 1 and not self.averages:
            states = self.executor.results(self._now.states)
            made = Committee([self._dressed(unpickle_model(state)) for state in states])
            made.schema = self.schema
            return made
        return self._dressed(unpickle_model(self._merged()))

    def _next_rows(self, batch: Batch, first: int) -> int:
        """How many rows there are to learn before all workers meet."""
        if self._learned or not self.averages:
            return self.round - self.rows % self.round
        # the first row that is learned says where the range of labels lies, and all must hear it
        learned = np.flatnonzero(batch.weights[first:] > 0) if batch.weights is not None else [0]
        return int(learned[0]) + 1 if len(learned) else batch.rows

    def _learn(self, batch: Batch) -> Answer:
        """Rows of one round, each worker its own."""
        now, W = self._now, self.workers
        numbers = now.rows + np.arange(batch.rows)
        if self.averages and not self._learned:
            own = {0: np.arange(batch.rows)}
        else:
            own = {w: np.flatnonzero(numbers % W == w) for w in np.unique(numbers % W).tolist()}
        asked = {
            w: self.executor.call(
                learn_rows,
                *(now.states[w], *batch.take(rows)[:3], self._earlier + numbers[rows]),
                answers=2,
            )
            for w, rows in own.items()
        }
        answers = self.executor.results([answer for _, answer in asked.values()])
        bad = [answer.bad for answer in answers if answer.bad is not None]
        if bad:
            raise min(bad, key=lambda error: error.row)
        states = list(now.states)
        for w, (state, _) in asked.items():
            states[w] = state
        rows, busy = now.rows + batch.rows, now.busy | frozenset(own)
        self._now = TeamState(rows, now.begun, tuple(states), busy)
        if rows % self.round == 0 or not self._learned:
            self._meet()
        self._learned = self._learned or batch.weights is None or bool((batch.weights > 0).any())
        return _in_order(answers, list(own.values()))

    def _meet(self) -> None:
        """A round is over: models become one, and snapshots are kept here, where they are safe."""
        if not self.averages:
            states = self.executor.results(self._now.states)
            kept = tuple(map(self.executor.put, states))
            self._now = self._now._replace(begun=kept[0], states=kept, busy=frozenset())
            return
        state = self.executor.put(self._merged())
        self._now = TeamState(self.rows, state, (state,) * self.workers, frozenset())

    def _merged(self) -> bytes:
        """The model of all that have learned in this round, or of none."""
        now = self._now
        begun, *states = self.executor.results(
            [now.begun, *(now.states[w] for w in sorted(now.busy))]
        )
        if len(states) < 2:
            return states[0] if states else begun
        return pickle_model(average(unpickle_model(begun), list(map(unpickle_model, states))))

    def _numbered(self, X: Any) -> tuple[Any, dict[str, int], bool]:
        """Rows as arrays, the same features in the same columns for all; new names among them."""
        named = self._names is not None and are_named(X)
        if self._named not in (None, named):
            RowKind((), bool(self._named)).refuse(RowKind((), named))
        if self._names is not None and named:
            return *self._names.read(X), named
        return (parse_rows(X) if isinstance(X, list | tuple) else X), {}, named

    def _dressed(self, model: Booster) -> Booster:
        """With the names of features, and how files were read."""
        model.schema = self.schema
        if self._names is not None and model.encoder.names is not None:
            model.encoder.names.add(self._names.columns)
        if model.encoder.kind is not None:
            model.encoder.kind = model.encoder.kind._replace(named=bool(self._named))
        return model


def _members(model: Model, workers: int) -> list[Booster]:
    """What workers begin with: the same, or one each."""
    if isinstance(model, Committee):
        if len(model.members) != workers:
            raise ValueError(
                f"the committee has {len(model.members)} members, and there are {workers} workers"
            )
        return model.members
    if not isinstance(model, Booster):
        raise ValueError(f"a team learns one booster, and {type(model).__name__} is none")
    return [model]


def learn_rows(state: bytes, X: Any, y: Any, weights: Any, numbers: Array) -> tuple[bytes, Answer]:
    """A model that has also learned these rows, which have these numbers in the stream."""
    model = unpickle_model(state)
    model.labels.rows = 0
    try:
        predictions, said = capture_warnings(partial(model.learn_many, X, y, weights))
    except DataError as error:
        return state, Answer(None, [], DataError(int(numbers[error.row]), error.what))
    model.labels.rows = int(numbers[-1]) + 1
    return pickle_model(model), Answer(predictions, [_placed(text, numbers) for text in said], None)


def _placed(text: str, numbers: Array) -> str:
    """A warning about a row, by its number in the stream."""
    row, _, rest = text.partition(":")
    return f"row {numbers[int(row.removeprefix('row '))]}:{rest}"


def _in_order(answers: list[Answer], own: list[Array]) -> Answer:
    """What all workers say, as of one; each says it of its own rows."""
    order = np.argsort(np.concatenate(own))
    predictions = np.concatenate([answer.predictions for answer in answers])[order]
    return Answer(predictions, [text for answer in answers for text in answer.warnings], None)


def _bare(model: Booster) -> Booster:
    """Without what workers do not need: names of features, and how files were read."""
    model.schema = None
    if model.encoder.names is not None:
        model.encoder.names = FeatureNames(model.encoder.names.bits)
    if model.encoder.kind is not None:
        model.encoder.kind = model.encoder.kind._replace(named=False)
    return model


def _array(weights: Any) -> Any:
    return None if weights is None else np.asarray(weights)
