"""A model that learns the same rows as a tuning run, and is compared with its choice."""

from typing import Any

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.data.batch import Batch
from spanboost.models.row_losses import losses_of


class Rival:
    """AutoBoost, with its average losses on both parts of the rows.

    Labels are scored as they are learned, as those of the grid are (stacked.py).
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        self._sums = np.zeros(2)  # weights and weighted losses since the mark
        self._first: Array | None = None

    def learn(self, batch: Batch) -> None:
        """Learn and score some rows."""
        block = self.model.check(batch.X, batch.y, batch.weights)
        y = batch.y if self.model.labels.scores else block.experts[0].learned[:, 0]
        answers = self.model.learn_checked(block)
        weights = np.ones(batch.rows) if batch.weights is None else batch.weights
        losses = losses_of(self.model, y, answers)
        self._sums += [weights.sum(), np.where(weights > 0, weights * losses, 0.0).sum()]

    def mark(self) -> None:
        """End the first part of the rows, which chooses the parameters of the grid."""
        self._first, self._sums = self._sums, np.zeros(2)

    def averages(self) -> tuple[float, float]:
        """Return the average losses before and after the mark; NaN without rows."""
        if self._first is None:
            return _average(self._sums), np.nan
        return _average(self._first), _average(self._sums)


def _average(sums: Array) -> float:
    weight, loss = sums.tolist()
    return loss / weight if weight > 0 else np.nan
