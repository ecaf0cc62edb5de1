"""Predict with the learner alone until a mixture with boosted copies has a smaller loss.

At first, all candidates of a mixture have similar weights. A stream can be too short to make up for
what the poor ones cost then. Nothing is known about a learner of another library, so boosting it
must prove itself first.
"""

from typing import Any

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.models.loss_record import LossRecord


class Caution:
    """The losses so far of the learner alone, which is the first candidate, and of the mixture."""

    def __init__(self) -> None:
        self.record = LossRecord(1)

    def predict(self, forecasts: Array, answers: Array) -> Array:
        """Return the better predictions so far: of the first candidate, or of the mixture.

        forecasts: [rows, d, K] of the candidates; answers: those of the mixture.
        """
        return self._select(self.record.sums[None], forecasts, answers)

    def learn(
        self, loss: Any, labels: Array, weights: Array, forecasts: Array, answers: Array
    ) -> Array:
        """Return predictions as `predict` does, each before its label, and add the losses."""
        totals = self.record.add(loss, labels, weights, forecasts[:, :, :1], answers)
        return self._select(totals[:-1], forecasts, answers)

    def _select(self, totals: Array, forecasts: Array, answers: Array) -> Array:
        better = (totals[:, 2] < totals[:, 1]).reshape(-1, *[1] * (answers.ndim - 1))
        return np.where(better, answers, forecasts[:, :, 0].reshape(answers.shape))
