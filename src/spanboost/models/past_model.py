"""Models that correct the forecast of a mixture by recent rows and past labels, as AutoBoost."""

import copy
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.losses import Quantile
from spanboost.models.booster import Booster
from spanboost.models.booster_core import CheckedBlock
from spanboost.models.known_past import KnownPast
from spanboost.models.loss_record import AverageLoss, LossRecord
from spanboost.models.mixture import Mixture, Units, stack
from spanboost.models.model import Model
from spanboost.models.past_class_stage import PastClassStage
from spanboost.models.past_stage import PastStage, StageLabels, StageRows
from spanboost.models.recent_stage import RecentStage
from spanboost.rows.block import slice_block
from spanboost.rows.labels import RangeChange
from spanboost.rows.past_rows import RowsWithPast, split_past
from spanboost.rows.row_keys import refuse_absent_key
from spanboost.rows.user_types import RowsLike


class AutoBlock(NamedTuple):
    """A checked block, in the form that every expert can learn."""

    experts: list[CheckedBlock]
    labels: Array  # [rows, d] as the aggregator scores them
    weights: Array  # [rows] for the aggregator
    units: Units  # before the first row
    known: KnownPast | None  # what is known about past labels; None if the model does not use them


class PastModel(Model):
    """A mixture, and two stages that correct its forecast.

    recent_stage: reads the last rows; None if the model has recent=False.
    past_stage: reads past labels and errors, and comes last; None if the model has past=False.
    """

    mixture: Mixture
    loss_record: LossRecord
    recent_stage: RecentStage | None
    past_stage: PastStage | PastClassStage | None

    @property
    def stages(self) -> dict[str, RecentStage | PastStage | PastClassStage]:
        """The stages that the model has, by name."""
        both = {"recent": self.recent_stage, "past": self.past_stage}
        return {name: stage for name, stage in both.items() if stage is not None}

    def combine_predicted(self, X: Any, encoded: Any, forecasts: Array) -> Array:
        """Return predictions for rows, given those of all experts.

        encoded: the same rows as the experts read them.
        """
        units, stage = self.mixture.units(self.labels), self.past_stage
        rows = StageRows(encoded, self.mixture.combine(units, forecasts), units)
        if self.recent_stage is not None:
            rows = rows._replace(forecasts=self.recent_stage.predict(rows))
        if stage is None:
            return rows.forecasts
        return stage.predict(rows, stage.known_past(X, self.schema))

    def restart_shifts(self) -> None:
        """Learn the shifts of quantiles anew, after a pass over rows that were learned before."""
        for part in (self, *self.stages.values()):
            part.mixture.restart_shift()

    @property
    def needs_new_rows(self) -> bool:
        """Whether rows that were not learned before must come last."""
        return isinstance(self.loss_, Quantile)

    def known_past(self, X: Any) -> KnownPast | None:
        """Return what is known about past labels for rows to learn; None if it is not used."""
        stage = self.past_stage
        if stage is None:
            return None
        # rows with a schema may come from a journal, whose first row can lack the key
        if stage.key is not None and self.schema is None and not self.started:
            refuse_absent_key(split_past(X)[0], stage.key)
        return stage.known_past(X, self.schema)

    def with_past(self, X: RowsLike) -> RowsWithPast:
        """Return rows together with what is known now about past labels.

        Predict and learn the rows that this returns if labels arrive late: a row is then learned
        with what was known when it was predicted.
        """
        if self.past_stage is None:
            raise ValueError("this model does not use past labels: it has past=False")
        keys = self.past_stage.known_past(X, self.schema).keys
        return RowsWithPast(X, self.past_stage.read_past(keys), np.ones(len(keys), bool))

    def without_past(self) -> Self:
        """Return a model that predicts without past labels; it shares the experts of this one.

        Use it for rows far ahead of the last label.
        """
        return self._without("past")

    def without_corrections(self) -> Self:
        """Return a model that predicts with the experts alone, which it shares with this one.

        It has neither past labels nor recent rows. Exports predict as it does.
        """
        return self._without("recent", "past")

    def _without(self, *names: str) -> Self:
        """Return a model without some stages; this one if it has none of them."""
        found = [name for name in names if name in self.stages]
        if not found:
            return self
        plain = copy.copy(self)
        for name in found:
            setattr(plain, f"{name}_stage", None)
            object.__setattr__(plain, name, False)
        if "past" in found:
            object.__setattr__(plain, "key", None)
        return plain

    def combine_learned(self, block: AutoBlock, answers: Sequence[Array], first: int = 0) -> Array:
        """Return predictions for rows of a checked block, given those of all experts, and learn.

        first: the first of these rows; those before it have been learned.
        """
        last, one = first + len(answers[0]), block.experts[0]
        rows, units = slice(first, last), block.units
        changes = list[RangeChange]()
        for change in one.changes:
            if first <= change.row < last:
                changes.append(change._replace(row=change.row - first))
            elif change.row < first and self.mixture.aggregator.relative:
                units = units._replace(centre=change.centre, half=change.half)
        weights = block.weights[rows]
        labels = StageLabels(one.learned[rows], block.labels[rows], weights, changes)
        forecasts = stack(answers)
        combined = self.mixture.learn(units, forecasts, *labels[1:])
        stage_rows = StageRows(slice_block(one.rows.encoded, first, last), combined, units)
        known = None if block.known is None else block.known.part(first, last)
        final = self.learn_stages(stage_rows, known, labels)
        self.record_losses(labels, forecasts, final)
        return final

    def record_losses(self, labels: StageLabels, forecasts: Array, answers: Array) -> None:
        """Add the losses of rows that were learned, given all forecasts and predictions."""
        scored = labels.labels if self.labels.scores else labels.learned
        self.loss_record.add(self.loss_, scored, labels.weights, forecasts, answers)

    @property
    def losses_(self) -> dict[str, float]:
        """The average loss of each part so far; every row is predicted before it is learned."""
        return dict(zip(self.parts, self.loss_record.averages(), strict=False))

    @property
    def average_loss(self) -> AverageLoss | None:
        """The average loss so far; every row is predicted before it is learned."""
        averages = self.loss_record.averages()
        return AverageLoss(averages[-1], self.loss_record.weight) if averages else None

    def loss_facts(self) -> dict[str, Any]:
        """Return the losses so far as JSON, for `inspect`."""
        average = self.average_loss
        if average is None:
            return {}
        loss, weight = average
        return {"losses": self.losses_, "average_loss": loss, "average_loss_weight": weight}

    def learn_stages(self, rows: StageRows, known: KnownPast | None, labels: StageLabels) -> Array:
        """Return predictions for rows that the experts have learned, and learn from them."""
        if self.recent_stage is not None:
            rows = rows._replace(forecasts=self.recent_stage.learn(rows, labels))
        if self.past_stage is None or known is None:
            return rows.forecasts
        return self.past_stage.learn(rows, known, labels)

    def corrections(self, X: RowsLike) -> Array | float:
        """Return what recent rows and past labels add to the predictions of a block."""
        if not self.stages:
            return 0.0
        return self.predict_many(X) - self.without_corrections().predict_many(split_past(X)[0])

    def stored_boosters(self) -> list[Booster]:
        """Return all boosters that take memory, with those that read past labels."""
        past = [] if self.past_stage is None else self.past_stage.boosters
        return [*self.boosters(), *past]
