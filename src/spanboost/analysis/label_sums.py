"""Statistics of a stream's labels: their sum, and the best constant prediction."""

import math
from typing import Any

import numpy as np

from spanboost.analysis.progressive import running_totals
from spanboost.compiling.arrays import Array
from spanboost.losses import Hinge, Logistic, Softmax, Squared, has_log_link


class LabelSums:
    """Weighted sums over the labels so far, in constant memory; saved with a checkpoint.

    `sums` are the sum of the weights, the weighted sum of squared distances from `centre`, and the
    weighted sum of distances from it. For classes, the rest are the weights of each class. For a
    loss with a log link, the last is the weighted sum of `_deviance_part`; checkpoints of earlier
    versions do not have it.
    """

    def __init__(self, loss: Any, state: dict[str, Any] | None = None) -> None:
        self.loss = loss
        self.centre = 0.0  # the first label: squared distances from it are summed precisely
        d = loss.d if isinstance(loss, Softmax) else 1
        self.sums = np.zeros(2 + d + has_log_link(loss))
        if state is not None:
            self.centre, self.sums = state["centre"], np.array([*map(float.fromhex, state["sums"])])

    def state(self) -> dict[str, Any]:
        """Return the state as JSON values; sums are hexadecimal, as JSON has no infinity."""
        return {"centre": self.centre, "sums": [value.hex() for value in self.sums.tolist()]}

    @np.errstate(over="ignore", invalid="ignore")  # labels such as 1e300 have no sum of squares
    def add(self, y: Array, weights: Array) -> None:
        """Add labels y with their weights."""
        if isinstance(self.loss, Softmax):
            classes = y.astype(np.int64)
            d = max(len(self.sums) - 2, 1 + int(classes.max(initial=0)))
            self.sums = np.pad(self.sums, (0, 2 + d - len(self.sums)))  # new classes
            parts = np.eye(d)[classes]
        else:
            if not self.sums[0] and weights.any():
                self.centre = float(y[(weights > 0).argmax()])
            parts = (y - self.centre)[:, None]
        gains = np.empty((len(y), len(self.sums)))
        gains[:, 0] = weights
        gains[:, 1] = weights * parts[:, 0] ** 2
        gains[:, 2 : 2 + parts.shape[1]] = weights[:, None] * parts
        if self._knows_deviance:
            gains[:, 3] = weights * _deviance_part(self.loss.power, y, self.centre or 1.0)
        self.sums = running_totals(self.sums, gains)[-1]

    @property
    def label_sum(self) -> float | None:
        """The weighted sum of the labels; None for classes."""
        if isinstance(self.loss, Softmax):
            return None
        return float(self.sums[2] + self.centre * self.sums[0])

    @property
    def weight(self) -> float:
        """The sum of the weights."""
        return float(self.sums[0])

    @np.errstate(over="ignore", invalid="ignore")
    def best_constant(self) -> tuple[float | None, float | None]:
        """Return the best constant prediction and its average loss; None if sums do not tell.

        For two labels, the prediction is a score. For more classes it is None.
        """
        total = self.sums[0]
        if total == 0:
            return None, None
        shares = self.sums[2:] / total
        if isinstance(self.loss, Softmax):
            return None, _entropy(shares)
        mean = self.centre + float(shares[0])
        if isinstance(self.loss, Squared):
            return mean, max(float(self.sums[1] / total - shares[0] ** 2), 0.0)
        if has_log_link(self.loss):
            return mean, self._mean_deviance(mean)
        return self._best_score(mean)

    def _mean_deviance(self, mean: float) -> float | None:
        """Return the average loss of the mean, for a loss with a log link; None if not known."""
        if not self._knows_deviance:
            return None
        whole = _deviance_part(self.loss.power, np.array([mean]), self.centre or 1.0)[0]
        return max(float(self.sums[3] / self.sums[0] - whole), 0.0)

    def _best_score(self, mean: float) -> tuple[float | None, float | None]:
        """Return the best constant score for labels -1 and +1 of this mean, and its loss."""
        p = min(max((1 + mean) / 2, 0.0), 1.0)  # the share of labels +1
        if isinstance(self.loss, Hinge):
            return (1.0 if mean > 0 else -1.0), 2 * min(p, 1 - p)
        if isinstance(self.loss, Logistic):
            return (math.log(p / (1 - p)) if 0 < p < 1 else None), _entropy(np.array([p, 1 - p]))
        return None, None

    @property
    def _knows_deviance(self) -> bool:
        return has_log_link(self.loss) and len(self.sums) > 3


def _deviance_part(power: float, y: Array, unit: float) -> Array:
    """Return a convex function f of labels; mean f(y) - f(mean y) is the loss of the mean.

    That is half the unit deviance of a Tweedie distribution of this power. The unit, a typical
    label, keeps rounding errors small; it does not change the difference.
    """
    ratio = y / unit
    if power == 1:
        return y * np.log(np.where(ratio > 0, ratio, 1.0))
    if power == 2:
        return -np.log(ratio)
    scale = unit ** (2 - power) / ((power - 1) * (2 - power))
    return -scale * ratio ** (2 - power)


def _entropy(shares: Array) -> float:
    shares = shares[shares > 0]
    return float(0.0 - (shares * np.log(shares)).sum())  # of one class it is 0, not -0
