"""The scale of a row's residual: a mixture of the same scale for all rows and a forecast for each.

The forecast of a row is that of a model that learns the square roots of the residuals. Both scales
are medians of |residual|: they move by a factor after each row, whatever its size, so one wild
label does no harm. Their weights are exponential in their losses as scales of a Laplace
distribution; older losses count less.
"""

import math
from typing import NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel

SLOWEST, FIRST = 0.01, 30.0  # medians move by a factor of about e until row FIRST, then less
FADE = 0.999  # of losses, per row
MOST = 20.0  # a residual counts as at most this many scales
SMALLEST, LARGEST = 1e-280, 1e280  # medians
APART = 50.0  # forecasts are within this factor of the median of all rows


@kernel
class Scales(NamedTuple):
    """The medians, and the losses of the candidates."""

    median: Array  # [2] of |residual|, and of |residual| / forecast
    loss: Array  # [3] of the same scale for all rows, of the forecast, and of their geometric mean
    rows: Array  # [1] rows learned with a residual other than 0

    def candidate_scale(self, j: int, root: float) -> float:
        """Return candidate j for a row whose forecast of sqrt|residual| is `root`."""
        same = self.median[0]
        own = self.median[1] * max(root, 0.0) * max(root, 0.0)
        own = max(min(own, APART * same), same / APART)
        if j == 0:
            return same
        return own if j == 1 else math.sqrt(same) * math.sqrt(own)

    def mix_scales(self, root: float) -> float:
        """Return the scale of a row; 1 before the first residual."""
        if self.rows[0] == 0:
            return 1.0
        least = min(self.loss[0], self.loss[1], self.loss[2])
        total, log = 0.0, 0.0
        for j in range(3):
            weight = math.exp(least - self.loss[j])
            total += weight
            log += weight * math.log(self.candidate_scale(j, root))
        return math.exp(log / total)

    def learn_scales(self, size: float, root: float) -> None:
        """Learn from the |residual| of a row."""
        if not size > 0:
            return
        square = root * root
        if self.rows[0] == 0:
            self.median[0], self.median[1] = size, size / square if square > 0 else 1.0
        else:
            for j in range(3):
                scale = self.candidate_scale(j, root)
                loss = math.log(scale / self.median[0]) + min(size / scale, MOST)
                self.loss[j] = FADE * self.loss[j] + loss
        move = max(SLOWEST, min(1.0, FIRST / (self.rows[0] + 1)))
        self.rows[0] += 1
        self.median[0] *= math.exp(move * (0.5 if size > self.median[0] else -0.5))
        self.median[1] *= math.exp(move * (0.5 if size > self.median[1] * square else -0.5))
        for j in range(2):
            self.median[j] = max(min(self.median[j], LARGEST), SMALLEST)


def new_scales() -> Scales:
    """Return scales that have seen no row."""
    return Scales(np.ones(2), np.zeros(3), np.zeros(1))


def set_medians(scales: Scales, sizes: Array, roots: Array) -> None:
    """Set both medians to those of some rows, given their |residual| and forecasts."""
    known = (sizes > 0) & (roots > 0)
    if known.any():
        ratios = sizes[known] / roots[known] ** 2
        scales.median[:] = np.clip([np.median(sizes[known]), np.median(ratios)], SMALLEST, LARGEST)
        scales.rows[0] = max(scales.rows[0], known.sum())
