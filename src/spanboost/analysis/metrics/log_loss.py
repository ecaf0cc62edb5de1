"""The log-loss: the mean of -ln(predicted probability of the label)."""

import math
from typing import NamedTuple

import numpy as np

from spanboost.analysis.progressive import running_totals
from spanboost.compiling.arrays import Array


class LogLoss(NamedTuple):
    """The sums of the weights and of the log-losses."""

    sums: Array  # [2]

    def add(self, weights: Array, losses: Array) -> None:
        """Add the log-losses of rows."""
        self.sums[:] = running_totals(self.sums, np.column_stack([weights, weights * losses]))[-1]

    def mean(self) -> float | None:
        """Return the log-loss; None without rows, or if it is not finite."""
        weight, loss = self.sums.tolist()
        return loss / weight if weight > 0 and math.isfinite(loss) else None


def new_log_loss() -> LogLoss:
    """Return the sums over no rows."""
    return LogLoss(np.zeros(2))
