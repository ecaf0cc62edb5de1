"""A shift of forecasts of a quantile, such that the right share of the labels is below them.

If each of several forecasts has the right share of the labels below it, their mean often has not:
their errors partly cancel, and their distance from the middle of the labels stays. So a number is
added to the mean. After each label it moves along the gradient of the pinball loss: down by
step (1 - tau) if the label is below the forecast, and up by step tau if it is above. These moves
cancel when the share of labels below is tau.

- The step is relative to the typical distance of labels from the forecast: the geometric mean of
  the median distances below and above it. These are tracked on a logarithmic scale, so they recover
  from a wild label. Nothing depends on the units.
- After t labels, the step falls with tau (1 - tau) t, which is how much they say about the
  quantile. It never falls below a limit, so that the shift follows drift.
- A label on the forecast does not move it. A row of weight 2 moves it twice as far, relative to
  the mean weight, but no row by more than the typical distance.
"""

import math
from typing import NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel

STEP = 0.8  # of moves, over the typical distance, if labels say as much as one about a median
PRIOR = 4.0  # what is known before the first label, in such labels
LEAST_STEP = 0.01  # of late moves
FOLLOW = 0.05  # least relative change of a median distance at each label
NEAREST = 1e-9  # least median distance, in half-widths of the label range
BELOW, ABOVE = 0, 1  # sides of the forecast


@kernel
class QuantileShift(NamedTuple):
    """The state of a shift. For losses other than quantile loss, all arrays are empty."""

    tau: float
    shift: Array  # [1] in the units of the forecasts
    distance: Array  # [2] median distance of the labels on each side; 0 before the first one
    labels: Array  # [2] number of labels on each side that have moved the shift
    weight: Array  # [1] the sum of their weights

    @property
    def sound(self) -> bool:
        """Whether a file can hold these numbers."""
        sums = np.concatenate((self.distance, self.weight, self.labels))
        finite = np.isfinite(self.shift).all() and np.isfinite(sums).all()
        return bool(finite and sums.min(initial=0.0) >= 0)

    def amount(self) -> float:
        """Return the number to add to the next forecast, which is 0 without a shift."""
        return self.shift[0] if self.shift.shape[0] > 0 else 0.0

    def track(self, y: float, answer: float, weight: float) -> None:
        """Learn a label; `answer` is the forecast with the shift."""
        away = y - answer
        if self.shift.shape[0] == 0 or away == 0:
            return
        side = BELOW if away < 0 else ABOVE
        self.labels[side] += 1
        self.weight[0] += weight
        self.follow_distance(side, abs(away))
        t = self.labels[BELOW] + self.labels[ABOVE]
        part = max(STEP / (PRIOR + self.tau * (1 - self.tau) * t), LEAST_STEP)
        step = self.typical_distance() * min(part * weight * t / self.weight[0], 1.0)
        self.shift[0] += step * (self.tau if side == ABOVE else self.tau - 1)

    def typical_distance(self) -> float:
        """Return the geometric mean of the median distances that are known."""
        below, above = self.distance[BELOW], self.distance[ABOVE]
        if below == 0 or above == 0:
            return max(below, above)
        return math.sqrt(below) * math.sqrt(above)

    def follow_distance(self, side: int, distance: float) -> None:
        """Move the median distance on one side towards a new one."""
        if self.distance[side] == 0:
            self.distance[side] = distance
            return
        factor = 1 + max(1 / math.sqrt(self.labels[side]), FOLLOW)
        if distance > self.distance[side]:
            self.distance[side] *= factor
        else:
            self.distance[side] = max(self.distance[side] / factor, NEAREST)

    def begin_again(self) -> None:
        """Take large steps again, because what is shifted has changed."""
        self.labels[...] = 0
        self.weight[...] = 0.0

    def resize(self, a: float) -> None:
        """Multiply all distances by a: the units of the forecasts changed."""
        self.shift[...] *= a
        self.distance[...] *= a


def new_shift(tau: float | None) -> QuantileShift:
    """Return a shift of 0 for forecasts of the tau-quantile; None for no shift."""
    one, two = (0, 0) if tau is None else (1, 2)
    return QuantileShift(
        tau=0.0 if tau is None else tau,
        shift=np.zeros(one),
        distance=np.zeros(two),
        labels=np.zeros(two, np.int64),
        weight=np.zeros(one),
    )
