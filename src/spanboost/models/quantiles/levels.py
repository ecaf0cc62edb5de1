"""Calibrated levels: quantiles that keep their levels on any sequence of labels.

This is adaptive conformal inference (I. Gibbs, E. Candes, *Adaptive Conformal Inference Under
Distribution Shift*, NeurIPS 2021) for several levels at once. Each level has a number h, the
log-odds at which a quantile is read from the residuals. After each label, h moves up if the label
was above the quantile, and down if it was below, such that the moves cancel if the share of labels
below is right. If they are equal, h moves towards the log-odds of its level: labels that are often
the same say nothing about the levels on their quantile. Numbers that are out of order are averaged
before they are used (isotonic regression), so quantiles never cross. theory/coverage.py has the
bound, which holds on every interval of the stream.
"""

import math
from typing import NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel
from spanboost.models.quantiles.curves import FARTHEST

STEP = 0.05  # of h, for each label
LIMIT = FARTHEST  # quantiles at log-odds of at least this size are infinite


class LevelScratch(NamedTuple):
    """Scratch space."""

    total: Array  # [K] sum of h in each block of levels
    size: Array  # [K] number of levels in each block


@kernel
class CalibratedLevels(NamedTuple):
    """The log-odds at which the quantile of each level is read."""

    level: Array  # [K] increasing, between 0 and 1
    h: Array  # [K] log-odds, moved after each label
    used: Array  # [K] log-odds in use: h, in order
    scratch: LevelScratch

    def restart_levels(self) -> None:
        """Read every level as it is again."""
        for k in range(self.h.shape[0]):
            self.h[k] = self.used[k] = math.log(self.level[k] / (1 - self.level[k]))

    def share_at(self, k: int) -> float:
        """Return the share at which the quantile of level k is read; 0 or 1 if it is infinite."""
        odds = self.used[k]
        if odds <= -LIMIT:
            return 0.0
        return 1.0 if odds >= LIMIT else 1 / (1 + math.exp(-odds))

    def levels_before(self, odds: float) -> int:
        """Return the number of levels that are read below these log-odds."""
        before = 0
        for k in range(self.used.shape[0]):
            before += self.used[k] < odds
        return before

    def move_levels(self, below: int, up_to: int) -> None:
        """Move the log-odds after a label.

        A level whose quantile is equal to the label moves towards its own log-odds, by at most as
        much as a label beyond the quantile would move it there.

        below: number of levels whose quantiles were below the label.
        up_to: number of levels whose quantiles were below the label or equal to it.
        """
        for k in range(below):
            self.h[k] += STEP * self.level[k]
        for k in range(below, up_to):
            own = math.log(self.level[k] / (1 - self.level[k]))
            most, least = STEP * self.level[k], STEP * (self.level[k] - 1)
            self.h[k] += max(min(own - self.h[k], most), least)
        for k in range(up_to, self.h.shape[0]):
            self.h[k] += STEP * (self.level[k] - 1)
        self.put_in_order()

    def put_in_order(self) -> None:
        """Set `used` to the isotonic regression of h: pool levels that are out of order."""
        for k in range(self.h.shape[0]):
            self.used[k] = self.h[k]
        falls, lower, upper = 0, self.h[:-1], self.h[1:]
        for k in range(upper.shape[0]):  # a loop without branches is vectorised
            falls += upper[k] < lower[k]
        if falls > 0:
            self.pool_levels()

    def pool_levels(self) -> None:
        """Set `used` to the means of the blocks of levels that are out of order."""
        total, size, blocks = self.scratch.total, self.scratch.size, 0
        for k in range(self.h.shape[0]):
            total[blocks], size[blocks] = self.h[k], 1
            blocks += 1
            while blocks > 1 and (
                total[blocks - 2] * size[blocks - 1] > total[blocks - 1] * size[blocks - 2]
            ):
                blocks -= 1
                total[blocks - 1] += total[blocks]
                size[blocks - 1] += size[blocks]
        k = 0
        for b in range(blocks):
            for _ in range(size[b]):
                self.used[k] = total[b] / size[b]
                k += 1


def new_levels(levels: Array) -> CalibratedLevels:
    """Return levels that are read as they are."""
    h = np.log(levels / (1 - levels))
    scratch = LevelScratch(np.zeros(len(h)), np.zeros(len(h), np.int64))
    return CalibratedLevels(levels, h, h.copy(), scratch)
