"""AutoBoost with its experts on several workers.

The experts share nothing, so each worker holds some of them. This process checks and encodes every
block once and sends it to all workers; each returns the predictions of its experts, and this
process learns their weights. It holds the encoder of rows, the label range and the weights, and no
experts. All calculations are those of AutoBoost on one machine, with the same result, bit for bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import ArrayLike

from spanboost.checks import is_integer
from spanboost.compiling.arrays import Array
from spanboost.errors import ParameterError
from spanboost.losses import require_fixed_classes
from spanboost.models.auto import AutoBoost
from spanboost.models.booster import Booster
from spanboost.models.booster_core import CheckedBlock
from spanboost.models.mixture import stack
from spanboost.models.model import Model
from spanboost.models.past_model import AutoBlock
from spanboost.parallel.executor import Executor, LocalExecutor, pickle_model, unpickle_model
from spanboost.parallel.residents import Resident
from spanboost.rows.encoder import EncodedBlock, NumberedBlock, RowEncoder
from spanboost.rows.labels import Labels
from spanboost.rows.past_rows import split_past
from spanboost.rows.user_types import RowsLike

SNAPSHOT_EVERY = 100_000  # rows between two snapshots of the experts


class ExpertTeam(Model):
    """AutoBoost whose experts are on the workers of an executor; `model()` returns it.

    model: an AutoBoost, fresh or trained; it does not change.
    workers: number of workers; more workers than experts are not used.
    executor: where the workers are, for example a `Cluster`; None is this process. The result does
        not depend on the workers and the executor.

    >>> import numpy as np
    >>> from spanboost import AutoBoost, ExpertTeam
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 3))
    >>> y = X @ [0.5, -0.3, 0.1]
    >>> alone, team = AutoBoost(budget="fast"), ExpertTeam(AutoBoost(budget="fast"), workers=2)
    >>> bool((team.learn_many(X, y) == alone.learn_many(X, y)).all())
    True
    >>> model = team.model()  # an ordinary model, which can continue to learn
    """

    round = SNAPSHOT_EVERY  # rows to learn at a time
    averages = False

    def __init__(self, model: AutoBoost, workers: int, executor: Executor | None = None) -> None:
        if not (is_integer(workers) and workers >= 1):
            raise ParameterError("workers", f"must be a positive integer (got {workers!r})")
        if not model.has_experts:
            raise ValueError(f"only AutoBoost has experts to distribute, not {model!r}")
        require_fixed_classes(model.loss, "training in parallel")
        vars(self)["schema"] = model.schema  # its encoders have it already
        self.names = list(model.experts)
        self._shell: AutoBoost = unpickle_model(pickle_model(model))
        # readers fill in the columns of this schema, which name the key of past labels
        vars(self._shell)["schema"] = model.schema
        experts, (first, *_) = self._shell.experts, self.names
        self._executor: Executor = LocalExecutor() if executor is None else executor
        self._residents = [
            Resident(
                self._executor, ExpertGroup, pickle_model({name: experts[name] for name in own})
            )
            for own in deal_experts(experts, workers)
        ]
        self._shell.replace_experts({first: remove_copies(experts[first])})
        self._rows = 0  # learned since the last snapshot

    @property
    def workers(self) -> int:
        """Number of workers."""
        return len(self._residents)

    @property
    def parts(self) -> Mapping[str, Booster]:
        """The experts, fetched from the workers."""
        return self.model().experts

    @property
    def loss_(self) -> Any:
        """The loss."""
        return self._shell.loss_

    @property
    def labels(self) -> Labels:
        """The label range so far, and how many rows were seen."""
        return self._shell.labels

    @property
    def encoder(self) -> RowEncoder:
        """The encoder of rows."""
        return self._shell.encoder

    def encoders(self) -> list[RowEncoder]:
        """Return the encoder of rows; those of the experts get its rows."""
        return [self.encoder]

    @property
    def started(self) -> bool:
        """Whether the model has seen a row."""
        return self.labels.rows > 0

    @property
    def weights_(self) -> dict[str, float]:
        """The weight of each expert, and of the regressions over all of them."""
        return self._shell.mixture.named_weights(self.names)

    def check(self, X: Any, y: Any, weights: Any = None) -> AutoBlock:
        """Return the block in the experts' terms; a `DataError` names the first bad row."""
        return self._shell.check(X, y, weights)

    def learn_checked(self, block: AutoBlock) -> Array:
        """Learn a block that was checked; nothing else may have been learned since."""
        own = block.experts[0]
        try:
            answers = self._ask_all("learn", own.rows, *own._replace(given=own.learned)[1:])
        except BaseException:  # some experts have learned the block, others have not
            self.close()
            raise
        for resident in self._residents:
            resident.keep()
        self._count(own)
        combined = self._shell.combine_learned(block, answers)
        if self._rows >= SNAPSHOT_EVERY:
            self._save()
        return combined

    def learn_again(self, X: RowsLike, y: ArrayLike, weights: ArrayLike | None = None) -> Array:
        """Learn a block of rows that the experts have learned before; their weights stay."""
        block = self.check(X, y, weights)
        answers = self.learn_checked(block._replace(weights=0 * block.weights))
        self._shell.restart_shifts()
        return answers

    def predict_many(self, X: RowsLike) -> Array:
        """Return predictions for a block of rows; learn nothing."""
        rows = self.encoder.read(split_past(X)[0])
        answers = self._ask_all("predict", rows)
        self.encoder.kind = rows.kind
        return self._shell.combine_predicted(X, rows.encoded, stack(answers))

    def model(self) -> AutoBoost:
        """Return the model so far."""
        states = {
            name: one for group in self._save() for name, one in unpickle_model(group).items()
        }
        model: AutoBoost = unpickle_model(pickle_model(self._shell))
        first = states[self.names[0]]
        # this process has read the rows for all experts
        first.core.encoder, first.core.labels = model.encoder, model.labels
        model.replace_experts({name: states[name] for name in self.names})
        model.schema = self.schema
        return model

    def close(self) -> None:
        """End the workers; the next block starts them again."""
        for resident in self._residents:
            resident.stop()

    def _ask_all(self, method: str, rows: EncodedBlock, *others: Any) -> list[Array]:
        """Call a method of all groups; return the predictions in the order of the experts."""
        numbered = NumberedBlock(rows.encoded, rows.number, rows.kind.named, rows.new, rows.columns)
        sent = self._executor.put(pickle_model((numbered, *others)))
        for resident in self._residents:
            resident.ask(method, sent)
        found: dict[str, Array] = {}
        for resident in self._residents:
            found |= resident.answer()
        return [found[name] for name in self.names]

    def _save(self) -> list[bytes]:
        """Take snapshots of all experts, which this process keeps; return them."""
        self._rows = 0
        return [resident.save() for resident in self._residents]

    def _count(self, block: CheckedBlock) -> None:
        """Count the rows of a block in this process, as the core of a booster does."""
        encoder, labels, rows = self.encoder, self.labels, block.rows
        encoder.kind = rows.kind
        encoder.accept(rows)
        labels.count(block.weights, block.history, block.ends)
        for change in block.changes:
            labels.change(change)
        self._rows += rows.number


class ExpertGroup:
    """Some experts, on one worker. Blocks and snapshots are pickled, so that arrays are its own."""

    def __init__(self, state: bytes) -> None:
        self.experts: dict[str, Booster] = unpickle_model(state)

    def learn(self, sent: bytes) -> dict[str, Array]:
        """Learn a block of rows; return the predictions of each expert, made before."""
        rows, *labels = unpickle_model(sent)
        read = {name: one.encoder.read(rows) for name, one in self.experts.items()}
        for name, one in self.experts.items():
            one.core.prepare(read[name], read[name].features)
        return {
            name: one.learn_checked(CheckedBlock(read[name], *labels))
            for name, one in self.experts.items()
        }

    def predict(self, sent: bytes) -> dict[str, Array]:
        """Return the predictions of each expert for a block of rows; learn nothing."""
        (rows,) = unpickle_model(sent)
        return {name: one.predict_many(rows) for name, one in self.experts.items()}

    def snapshot(self) -> bytes:
        """Return the experts as they are now."""
        return pickle_model(self.experts)


def deal_experts(experts: Mapping[str, Booster], workers: int) -> list[list[str]]:
    """Return the names of the experts of each worker; the slowest worker decides how long it takes.

    The time of an expert is proportional to its copies, and to how often it learns a row. Experts
    are dealt out in the order of their times, each to the worker with the least to do.
    """
    time = {name: one.n * (1 + one.replay) for name, one in experts.items()}
    groups: list[list[str]] = [[] for _ in range(min(workers, len(experts)))]
    for name in sorted(experts, key=lambda name: -time[name]):
        min(groups, key=lambda own: sum(time[one] for one in own)).append(name)
    return groups


def remove_copies(booster: Booster) -> Booster:
    """Remove the copies of a booster and the rows that it keeps, but not its encoder and labels."""
    core = booster.core
    core.state, core.memory, core.sample = core.state._replace(bank=None), None, None
    return booster
