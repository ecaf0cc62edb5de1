"""One row for all experts of AutoBoost: it is encoded once, in arrays that are used again.

`AutoBoost.predict_many` and `learn_many` do the same for blocks, with the same result.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.core.loop import predict
from spanboost.models.booster import HullBoost, SpanBoost
from spanboost.models.past_row import PastRow
from spanboost.models.recent_row import RecentRow
from spanboost.rows.encoder import EncodedBlock, NumberedBlock
from spanboost.rows.labels import Labels

if TYPE_CHECKING:
    from spanboost.models.past_model import PastModel


class ExpertRow:
    """The arrays of one row, which later rows are written into.

    rows: the row as the first expert reads it.
    """

    def __init__(self, model: "PastModel", rows: EncodedBlock) -> None:
        self.rows, self.mixture, self.stage = rows, model.mixture, model.past_stage
        self.recent = model.recent_stage
        self.loss_record, self.loss = model.loss_record, model.loss_
        experts = model.boosters()
        numbered = NumberedBlock(rows.encoded, 1, rows.kind.named, {}, rows.columns)
        cores, dtype = [one.core for one in experts], experts[0].core.dtype
        blocks = [core.encoder.read(numbered) for core in cores]
        for core, block in zip(cores, blocks, strict=True):
            core.prepare(block, 0)
        self._outs = np.zeros((len(cores), 1, 1), dtype)
        self._parts = list(zip(cores, blocks, self._outs, strict=True))
        self._accepted = False
        self._label, self._weight = np.zeros((1, 1), dtype), np.ones(1, dtype)
        self._forecasts, self._known = np.zeros((1, 1, len(cores))), np.zeros((1, 1))
        self._near = None if self.recent is None else RecentRow(self.recent, rows)
        self._past = None if self.stage is None else PastRow(self.stage, rows)

    def __reduce__(self) -> Any:
        return _no_row, ()  # the next row of a copied model creates it again

    def predict(self, labels: Labels, key: int) -> float:
        """Return the prediction of the mixture, corrected by past labels; learn nothing."""
        for core, block, out in self._parts:
            core.call(predict, core.state, block.rows, out, 0, 1)
        units = self.mixture.units(labels)
        forecast = self.mixture.combine_one(units, self._read_forecasts(labels))
        if self._near is not None:
            forecast = self._near.predict(forecast, units)
        return forecast if self._past is None else self._past.predict(forecast, units, key)

    def learn(self, labels: Labels, key: int, y: float, label: float) -> float:
        """Learn a label; return the prediction made before it.

        labels: of the first expert; label: what `labels.single` returned for y.
        """
        units = self.mixture.units(labels)
        if not self._accepted:
            for core, block, _ in self._parts:
                core.accept(block)
            self._accepted = True
        self._label[0, 0] = label
        (first, block, _), *others = self._parts
        first.count_single(block, y, label)
        for core, _, _ in others:
            core.labels.count_as(labels)
        for core, block, out in self._parts:
            core.learn_span(block, self._label, self._weight, out, core.learn_rows, 0, 1)
        in_units = labels.scores or self.mixture.aggregator.relative
        known = self._label.item() if in_units else y
        self._known[0, 0] = known
        answer = self.mixture.learn_one(units, self._read_forecasts(labels), self._known)
        if self._near is not None:
            answer = self._near.learn(answer, units, y, self._known)
        if self._past is not None:
            answer = self._past.learn(answer, units, key, y, known)
        scored = known if labels.scores else y
        self.loss_record.add_one(self.loss, scored, self._forecasts, answer)
        return answer

    def _read_forecasts(self, labels: Labels) -> Array:
        """Return the forecasts of the experts in the units of the labels, [1, 1, K]."""
        forecasts, outs = self._forecasts, self._outs[:, 0, 0]
        if labels.scores:
            forecasts[0, 0] = outs
        else:
            np.multiply(outs, labels.half, out=forecasts[0, 0], dtype=np.float64)
            forecasts += labels.centre
        return forecasts


def new_expert_row(model: "PastModel", rows: EncodedBlock | None) -> ExpertRow | None:
    """Return the arrays of one row; None if it must be predicted and learned as a block.

    Predictions must be numbers, the experts plain boosters that have learned, and the row must
    have no new names.
    """
    labels, stage = model.labels, model.past_stage
    if rows is None or rows.new or labels.d > 1 or labels.log_link or not labels.seen:
        return None
    plain = all(type(one) in (SpanBoost, HullBoost) for one in model.boosters())
    return ExpertRow(model, rows) if plain and (stage is None or stage.cores[0].started) else None


def _no_row() -> None:
    return None
