"""The residuals of the last rows, in units of their scale, in order."""

import math
from typing import NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel
from spanboost.models.quantiles.levels import LIMIT

WINDOW = 1000  # rows
LARGEST = 1e100  # residuals are clipped, so that products stay finite
TAIL = 0.5  # beyond the residuals, a quantile moves by this share of their spread, per unit of log


@kernel
class Residuals(NamedTuple):
    """A window of residuals."""

    ring: Array  # [WINDOW] in the order of the rows
    ordered: Array  # [WINDOW] the same, ascending
    counts: Array  # [2] residuals in the window, next place in the ring

    def clear_residuals(self) -> None:
        """Remove all residuals."""
        self.counts[:] = 0

    def add_residual(self, value: float) -> None:
        """Add a residual; the oldest one leaves a full window."""
        size, place = self.counts[0], self.counts[1]
        value = max(min(value, LARGEST), -LARGEST)
        if size == self.ring.shape[0]:
            size -= 1
            for j in range(np.searchsorted(self.ordered[: size + 1], self.ring[place]), size):
                self.ordered[j] = self.ordered[j + 1]
        j = size
        while j > 0 and self.ordered[j - 1] > value:
            self.ordered[j] = self.ordered[j - 1]
            j -= 1
        self.ordered[j], self.ring[place] = value, value
        self.counts[0], self.counts[1] = size + 1, (place + 1) % self.ring.shape[0]

    def read_level(self, level: float, odds: float) -> float:
        """Return the quantile of a level, which is read at these log-odds.

        It is infinite while there are too few residuals for the level: the largest of n residuals
        is a safe quantile up to level n / (n + 1). The median of no residuals is 0.
        """
        if min(level, 1 - level) * (self.counts[0] + 1) < 1 - 1e-9 and level != 0.5:
            return -np.inf if level < 0.5 else np.inf
        return self.read_quantile(odds)

    def read_quantile(self, odds: float) -> float:
        """Return the quantile at these log-odds; 0 without residuals, infinite beyond LIMIT."""
        size = self.counts[0]
        if odds <= -LIMIT:
            return -np.inf
        if odds >= LIMIT:
            return np.inf
        if size == 0:
            return 0.0
        below = 1 / (1 + math.exp(-odds))
        place = below * (size + 1) - 1
        first, middle, last = self.ordered[0], self.ordered[size // 2], self.ordered[size - 1]
        if place <= 0:
            return first + TAIL * (middle - first) * math.log(below * (size + 1))
        if place >= size - 1:
            return last - TAIL * (last - middle) * math.log((1 - below) * (size + 1))
        j = int(place)
        return self.ordered[j] + (place - j) * (self.ordered[j + 1] - self.ordered[j])


def new_residuals() -> Residuals:
    """Return an empty window."""
    return Residuals(np.zeros(WINDOW), np.zeros(WINDOW), np.zeros(2, np.int64))


def sound_residuals(residuals: Residuals) -> bool:
    """Return whether all indices are in range and the window is in order."""
    size, place = residuals.counts.tolist()
    most, ordered = len(residuals.ring), residuals.ordered[: max(size, 0)]
    return (
        0 <= size <= most
        and 0 <= place < most
        and size in (most, place)
        and bool((np.diff(ordered) >= 0).all())
        and bool((np.sort(residuals.ring[:size]) == ordered).all())
    )
