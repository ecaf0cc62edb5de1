"""One row for all experts of AutoBoost: it is encoded once, in arrays that are used again.

`AutoBoost.predict_many` and `learn_many` do the same for blocks, with the same result.
"""

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import runs_plainly
from spanboost.models.booster import HullBoost, SpanBoost
from spanboost.models.core_row import CoreRow
from spanboost.models.loss_record import LossRow
from spanboost.models.mixture_row import MixtureRow
from spanboost.models.past_row import PastRow
from spanboost.models.past_stage import PastStage
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
        self.recent, self.plain = model.recent_stage, runs_plainly()
        self._losses = LossRow(model.loss_record, model.loss_)
        experts = model.boosters()
        numbered = NumberedBlock(rows.encoded, 1, rows.kind.named, {}, rows.columns)
        cores, dtype = [one.core for one in experts], experts[0].core.dtype
        blocks = [core.encoder.read(numbered) for core in cores]
        self._outs = np.zeros((len(cores), 1, 1), dtype)
        self._label, weight = np.zeros((1, 1), dtype), np.ones(1, dtype)
        self._parts = [
            CoreRow(core, block, self._label, weight, out)
            for core, block, out in zip(cores, blocks, self._outs, strict=True)
        ]
        self._accepted = False
        self._mixed = MixtureRow(self.mixture)
        forecasts = self._outs[:, 0, 0], self._mixed.forecasts
        run = self.mixture.call.find(write_in_units, *forecasts, 0.0, 1.0)
        self._write_in_units = partial(run, *forecasts)
        self._near = None if self.recent is None else RecentRow(self.recent, rows)
        # only numbers are read row by row, and their stage is a `PastStage`
        self._past = PastRow(self.stage, rows) if isinstance(self.stage, PastStage) else None

    def __reduce__(self) -> Any:
        return _no_row, ()  # the next row of a copied model creates it again

    def predict(self, labels: Labels, key: int) -> float:
        """Return the prediction of the mixture, corrected by past labels; learn nothing."""
        for part in self._parts:
            part.predict()
        units = self.mixture.units(labels)
        self._read_forecasts(labels)
        forecast = self._mixed.combine(units)
        if self._near is not None:
            forecast = self._near.predict(forecast, units)
        return forecast if self._past is None else self._past.predict(forecast, units, key)

    def learn(self, labels: Labels, key: int, y: float, label: float) -> float:
        """Learn a label; return the prediction made before it.

        labels: of the first expert; label: what `labels.single` returned for y.
        """
        units = self.mixture.units(labels)
        if not self._accepted:
            for part in self._parts:
                part.accept()
            self._accepted = True
        self._label[0, 0] = label
        first, *others = self._parts
        first.core.count_single(first.block, y, label)
        for part in others:
            part.core.labels.count_as(labels)
        for part in self._parts:
            part.learn()
        in_units = labels.scores or self.mixture.aggregator.relative
        known = self._label.item() if in_units else y
        self._read_forecasts(labels)
        answer = self._mixed.learn(units, known)
        if self._near is not None:
            answer = self._near.learn(answer, units, y, known)
        if self._past is not None:
            answer = self._past.learn(answer, units, key, y, known)
        scored = known if labels.scores else y
        self._losses.add(scored, self._mixed.forecasts, answer)
        return answer

    def _read_forecasts(self, labels: Labels) -> None:
        """Set the forecasts of the experts in the units of the labels."""
        if labels.scores:
            self._mixed.forecasts[:] = self._outs[:, 0, 0]
        else:
            self._write_in_units(labels.centre.item(), labels.half)


def write_in_units(outs: Array, forecasts: Array, centre: float, half: float) -> None:
    """Set the forecasts, in the units of the labels, to predictions in those of the model."""
    for k in range(forecasts.shape[0]):
        forecasts[k] = centre + half * np.float64(outs[k])


def new_expert_row(model: "PastModel", rows: EncodedBlock | None) -> ExpertRow | None:
    """Return the arrays of one row; None if it must be predicted and learned as a block.

    Predictions must be numbers, the experts plain boosters that have learned, and the row must
    have no new names.
    """
    labels, stage = model.labels, model.past_stage
    if rows is None or rows.new or labels.d > 1 or labels.log_link or not labels.seen:
        return None
    plain = all(type(one) in (SpanBoost, HullBoost) for one in model.boosters())
    ready = stage is None or (isinstance(stage, PastStage) and stage.cores[0].started)
    return ExpertRow(model, rows) if plain and ready else None


def _no_row() -> None:
    return None
