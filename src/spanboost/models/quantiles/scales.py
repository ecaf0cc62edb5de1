"""The scale of a row's residual: a mixture of scales that are the same for all rows and a forecast.

The forecast of a row is that of a model that learns the square roots of the residuals. The scale is
proportional to it, not to its square: it is shrunk towards that of all rows, because intervals that
follow a forecast all the way are wider on average. All scales are medians of |residual|: they move
by a factor after each row, whatever its size, so one wild label does no harm. A fast one follows
jumps. Their weights are exponential in their losses as scales of a Laplace distribution; older
losses count less.

If a wild label is the first one, the first residuals are wild, too. The scales start again after
`RUN` residuals in a row that are less than a billionth of the fast scale: they have other units.
"""

import math
from typing import NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel

FIRST = 6.0  # medians move by a factor of about e until row FIRST, then less
SLOW, FAST = 0.01, 0.1  # the least that medians move
FADE = 0.995  # of losses, per row
MOST = 20.0  # a residual counts as at most this many scales
SMALLEST, LARGEST = 1e-280, 1e280  # medians
APART = 7.0  # forecasts are within this factor of the median of all rows
FAINT = 1e-9  # a residual of less than this many scales is in other units
STRANGE = 1e6  # a forecast that is this many times as large as the median is in other units
RUN = 32  # such rows in a row start the scales again
UP = math.exp(SLOW / 2), math.exp(SLOW / 2), math.exp(FAST / 2)  # the least moves of medians
DOWN = math.exp(-SLOW / 2), math.exp(-SLOW / 2), math.exp(-FAST / 2)


class ScaleScratch(NamedTuple):
    """Scratch space, from `mix_scales` to `learn_scales`."""

    scale: Array  # [3] the candidates of the row
    log: Array  # [3] their logarithms


@kernel
class Scales(NamedTuple):
    """The medians, and the losses of the candidates."""

    median: Array  # [3] of |residual|, of |residual| / forecast, of |residual| lately
    loss: Array  # [3] of each as a scale
    rows: Array  # [1] rows learned with a residual other than 0
    runs: Array  # [2] of rows so far: with a residual, and with a forecast, in other units
    scratch: ScaleScratch

    def candidate_scale(self, j: int, root: float) -> float:
        """Return candidate j for a row whose forecast of sqrt|residual| is `root`."""
        if j != 1:
            return self.median[j]
        own = self.median[1] * max(root, 0.0)
        return max(min(own, APART * self.median[0]), self.median[0] / APART)

    def mix_scales(self, root: float) -> float:
        """Return the scale of a row; 1 before the first residual."""
        if self.rows[0] == 0:
            return 1.0
        least = min(self.loss[0], self.loss[1], self.loss[2])
        total, log = 0.0, 0.0
        for j in range(3):
            scale = self.candidate_scale(j, root)
            self.scratch.scale[j], self.scratch.log[j] = scale, math.log(scale)
            weight = 1.0 if self.loss[j] == least else math.exp(least - self.loss[j])
            total += weight
            log += weight * self.scratch.log[j]
        return math.exp(log / total)

    def follow_units(self, size: float, root: float) -> bool:
        """Return whether the scales start again with the |residual| of this row.

        If only the forecasts have other units, their scale becomes that of all rows.
        """
        if not size > 0 or self.rows[0] == 0:
            return False
        self.runs[0] = self.runs[0] + 1 if size < FAINT * self.median[2] else 0
        if self.runs[0] >= RUN:
            self.rows[0], self.loss[:], self.runs[:] = 0, 0.0, 0
            return True
        if root > 0:
            own, same = self.median[1] * root, self.median[0]
            self.runs[1] = self.runs[1] + 1 if not same / STRANGE < own < same * STRANGE else 0
            if self.runs[1] >= RUN:
                self.median[1], self.runs[1] = same / root, 0
        return False

    def learn_scales(self, size: float, root: float) -> None:
        """Learn from the |residual| of the row whose scale was mixed last."""
        if not size > 0:
            return
        if self.rows[0] == 0:
            self.median[0] = self.median[2] = size
            self.median[1] = size / root if root > 0 else 1.0
        else:
            for j in range(3):
                far = min(size / self.scratch.scale[j], MOST)
                loss = self.scratch.log[j] - self.scratch.log[0] + far
                self.loss[j] = FADE * self.loss[j] + loss
        self.rows[0] += 1
        start = min(1.0, FIRST / self.rows[0])
        for j in range(3):
            half = self.median[j] * (root if j == 1 else 1.0)
            move = UP[j] if size > half else DOWN[j]
            if start > (FAST if j == 2 else SLOW):
                move = math.exp(start / 2 if size > half else -start / 2)
            self.median[j] = max(min(self.median[j] * move, LARGEST), SMALLEST)


def new_scales() -> Scales:
    """Return scales that have seen no row."""
    runs = np.zeros(2, np.int64)
    return Scales(np.ones(3), np.zeros(3), np.zeros(1), runs, ScaleScratch(np.ones(3), np.zeros(3)))


def set_medians(scales: Scales, sizes: Array, roots: Array) -> None:
    """Set the medians to those of some rows, given their |residual| and forecasts."""
    known = (sizes > 0) & (roots > 0)
    if known.any():
        same, ratio = np.median(sizes[known]), np.median(sizes[known] / roots[known])
        scales.runs[:] = 0
        scales.median[:] = np.clip([same, ratio, same], SMALLEST, LARGEST)
        scales.rows[0] = max(scales.rows[0], known.sum())
