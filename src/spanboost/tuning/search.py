"""One-pass tuning: a grid of boosters over the same rows, chosen on the first of them.

The paper's protocol: every configuration predicts and learns every row; parameters are chosen by
the progressive loss of the first part, and what was chosen is judged by its loss on the rest. The
number of copies needs no runs of its own where a booster's first n copies are the booster of n.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from spanboost.checks import is_integer, is_number
from spanboost.compiling.arrays import Array
from spanboost.compiling.threads import cpu_count, run_in_threads
from spanboost.data.batch import Batch
from spanboost.errors import DataError, ParameterError
from spanboost.learners.descent import Descent
from spanboost.learners.objects import ObjectLearner, as_learner
from spanboost.losses import on_vectors, resolve
from spanboost.models.booster import Booster
from spanboost.models.spec import COPIES
from spanboost.parallel.executor import (
    Executor,
    capture_warnings,
    pickle_model,
    reissue_warnings,
    unpickle_model,
)
from spanboost.rows.encoder import count_rows
from spanboost.tuning.grid import Configuration, configurations
from spanboost.tuning.stacked import StackedBoosters, stacking_key

LANES = 512  # copies in one bank: more are not faster, and threads want several banks
ROWS = 4096  # learned between two looks at the clock


class Choice(NamedTuple):
    """One booster of the sweep."""

    settings: dict[str, Any]
    n: int
    loss_first: float  # average over the first part, by which it was chosen
    loss_rest: float  # average over the rest; NaN over no rows
    configuration: int  # its position among all


class Tuned:
    """What a sweep came to: average losses [configuration, n - 1], NaN where there is no such n.

    loss_first: over the rows that parameters are chosen on.
    loss_rest: over the rest.
    """

    def __init__(
        self,
        configurations: Sequence[Configuration],
        groups: Sequence[StackedBoosters],
        order: Array,
    ) -> None:
        """Groups hold the configurations in this order."""
        self.configurations = list(configurations)
        self._groups = list(groups)
        self._places: dict[int, tuple[StackedBoosters, int]] = {}
        shape = len(self.configurations), max(one.n for one in self.configurations)
        self.loss_first, self.loss_rest = np.full((2, *shape), np.nan)
        waiting = iter(order.tolist())
        for group in groups:
            for c, member in enumerate(group.members):
                k = next(waiting)
                self._places[k] = group, c
                allowed = self.configurations[k].allowed()
                for table, losses in zip(
                    (self.loss_first, self.loss_rest), group.averages(), strict=True
                ):
                    table[k, : member.n] = np.where(allowed, losses[c], np.nan)

    def best(self, **settings: Any) -> Choice:
        """The least loss on the first part, among all or among those with these settings.

        `best(booster="hull", n=1)`, for one, is the learner alone.
        """
        losses = self.loss_first.copy()
        n = settings.pop("n", None)
        if n is not None:
            losses[:, np.arange(1, losses.shape[1] + 1) != n] = np.nan
        for k, one in enumerate(self.configurations):
            if any(one.settings.get(name) != value for name, value in settings.items()):
                losses[k] = np.nan
        if not np.isfinite(self.loss_first).any():
            raise ValueError(
                "no booster of the sweep has a loss to choose by: the rows of the first part weigh "
                "0, or their losses are beyond all numbers"
            )
        if not np.isfinite(losses).any():
            raise ValueError(f"no booster of the sweep has a loss and n={n}, {settings}")
        i, k = divmod(int(np.nanargmin(losses.T)), len(losses))  # of equals, the fewest copies
        return self.choice(k, i + 1)

    def choice(self, configuration: int, n: int) -> Choice:
        """What became of n copies of a configuration."""
        settings, at = self.configurations[configuration].settings, (configuration, n - 1)
        losses = float(self.loss_first[at]), float(self.loss_rest[at])
        return Choice(settings, n, *losses, configuration)

    def best_of_each(self) -> list[Choice]:
        """Every configuration with its best number of copies, the best one first."""
        losses = np.where(np.isfinite(self.loss_first), self.loss_first, np.inf)
        found = [self.choice(k, int(row.argmin()) + 1) for k, row in enumerate(losses)]
        return sorted(found, key=lambda one: np.nan_to_num(one.loss_first, nan=np.inf))

    def model(self, choice: Choice | None = None) -> Booster:
        """The chosen booster, as if it had learned all rows alone, ready to go on."""
        choice = self.best() if choice is None else choice
        group, c = self._places[choice.configuration]
        alone = self.configurations[choice.configuration].model(choice.n)
        return group.extract(c, alone, self._groups[0].core.labels)


class Sweeping:
    """A sweep under way. Groups of configurations share nothing, so that threads do not matter."""

    def __init__(self, configurations: Sequence[Configuration], threads: int | None = None) -> None:
        if not (threads is None or (is_integer(threads) and threads >= 1)):
            raise ParameterError("threads", f"must be a positive integer (got {threads!r})")
        self.configurations, self.threads = list(configurations), threads or cpu_count()
        self.order, self.groups = groups_of(self.configurations)

    @property
    def rows(self) -> int:
        """How many were learned."""
        return self.groups[0].core.labels.rows

    def at_once(self, rows: int) -> int:
        """How many of so many rows are best learned at a time."""
        return ROWS

    def learn(self, batch: Batch) -> None:
        """Learn and score some rows."""
        X, y, weights = batch.X, batch.y, batch.weights
        lead = self.groups[0]
        block = lead.core.check(X, y, weights)

        def task(group: StackedBoosters) -> None:
            rows = block.rows if group is lead else group.core.encoder.read(X)
            group.learn_block(block._replace(rows=rows), y, weights)

        run_in_threads(task, self.groups, self.threads)

    def mark(self) -> None:
        """The first part ends here."""
        for group in self.groups:
            group.mark()

    def tuned(self) -> Tuned:
        """What is known so far."""
        return Tuned(self.configurations, self.groups, self.order)


class Spread(Sweeping):
    """As `Sweeping`, bit for bit; every group of configurations is a task of its own."""

    def __init__(self, configurations: Sequence[Configuration], executor: Executor) -> None:
        super().__init__(configurations, threads=1)
        self.executor = executor
        self._states: list[Any] = []  # handles of snapshots
        self._rows = 0

    @property
    def rows(self) -> int:
        """How many were learned."""
        return self._rows

    def at_once(self, rows: int) -> int:
        """A twentieth: with every task a group travels."""
        return max(ROWS, -(-rows // 20))

    def learn(self, batch: Batch) -> None:
        """Learn and score some rows; they are sent to every machine once."""
        if not self._states:
            self._states = [self.executor.put(pickle_model(group)) for group in self.groups]
        X, y, weights = map(self.executor.put, (batch.X, batch.y, batch.weights))
        done = [
            self.executor.call(learn_group, state, X, y, weights, answers=2)
            for state in self._states
        ]
        said = self.executor.results([said for _, said in done])
        self._states = [state for state, _ in done]  # only now: a bad row leaves all as it was
        self._rows += batch.rows
        reissue_warnings(said[0])  # the labels are the same everywhere

    def mark(self) -> None:
        """The first part ends here."""
        self._states = [self.executor.call(mark_group, state) for state in self._states]

    def tuned(self) -> Tuned:
        """What is known so far."""
        if self._states:
            self.groups = list(map(unpickle_model, self.executor.results(self._states)))
        return super().tuned()


def tune(
    X: Any,
    y: Any,
    weights: Any = None,
    *,
    learner: Any,
    grid: Mapping[str, Sequence[Any]] | None = None,
    booster: str = "both",
    n: int = COPIES,
    split: float = 0.5,
    threads: int | None = None,
    progress: Callable[[int], None] | None = None,
    executor: Executor | None = None,
    **fixed: Any,
) -> Tuned:
    """Every booster of a grid over the rows, in one pass.

    learner: a learner of this package.
    grid: values of parameters of the learner (rate, hidden, ...) and of the booster (eta, scale,
        feedback, alpha, offset); None is a grid of rates and steps.
    booster: "span", "hull" or "both".
    n: most copies; losses of fewer are known too.
    split: share of the rows that parameters are chosen on.
    threads: None for as many as there are processors; the result is the same, bit for bit.
    progress: called with how many rows more have been learned.
    executor: where it is done, a `Cluster` for one; None is here. The result is the
        same, bit for bit.
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
    sweeping = sweep_of(configurations(learner, grid, booster, n, **fixed), threads, executor)
    whole_block = Batch(X, np.asarray(y), _array(weights), "", np.arange(rows))
    for batch in parts([whole_block], first, sweeping.at_once(rows)):
        try:
            sweeping.learn(batch)
        except DataError as error:
            raise DataError(sweeping.rows + error.row, error.what) from None
        if sweeping.rows == first:
            sweeping.mark()
        if progress is not None:
            progress(batch.rows)
    return sweeping.tuned()


def sweep_of(
    configurations: Sequence[Configuration],
    threads: int | None = None,
    executor: Executor | None = None,
) -> Sweeping:
    """A sweep, here or elsewhere."""
    return (
        Sweeping(configurations, threads) if executor is None else Spread(configurations, executor)
    )


def learn_group(state: bytes, X: Any, y: Any, weights: Any) -> tuple[bytes, list[str]]:
    """A group that has also learned these rows."""
    group = unpickle_model(state)
    _, said = capture_warnings(partial(group.learn, X, y, weights))
    return pickle_model(group), said


def mark_group(state: bytes) -> bytes:
    """A group whose first part ends here."""
    group = unpickle_model(state)
    group.mark()
    return pickle_model(group)


def first_rows(rows: int, split: float) -> int:
    """How many rows parameters are chosen on."""
    if not (is_number(split) and 0 < split < 1):
        raise ParameterError("split", f"must be between 0 and 1 (got {split!r})")
    first = int(split * rows)
    if first == 0:
        raise ValueError(f"there are no rows to choose on: {rows} in all, and split={split:g}")
    return first


def parts(batches: Iterable[Batch], first: int, most: int | None = None) -> Iterator[Batch]:
    """The same rows, a few at a time; none of them on both sides of the split."""
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
    """Configurations side by side where they are alike, and in which order they are.

    A group learns on its own, `StackedBoosters.learn`, wherever it is sent: the unit of work.
    """
    members = [one.model(one.n) for one in configurations]
    keys = list(map(stacking_key, members))
    kinds = {key: k for k, key in reversed(list(enumerate(keys)))}  # by their first members
    order = sorted(range(len(members)), key=lambda k: kinds[keys[k]])
    groups = []
    for _, same in groupby(order, key=lambda k: kinds[keys[k]]):
        here = list(same)
        size = _side_by_side(members[here[0]])
        groups += [
            StackedBoosters([members[k] for k in here[i : i + size]])
            for i in range(0, len(here), size)
        ]
    return np.array(order), groups


def _side_by_side(member: Booster) -> int:
    """How many of a kind share a bank."""
    learner = as_learner(member.learner)
    if isinstance(learner, ObjectLearner):
        raise ValueError(
            f"tuning is for learners of this package, and {type(member.learner).__name__} is none"
        )
    if not isinstance(learner, Descent) or on_vectors(resolve(member.loss)).d > 1:
        return 1
    return max(1, LANES // (member.n * getattr(learner, "hidden", 1)))


def _array(weights: Any) -> Any:
    return None if weights is None else np.asarray(weights)
