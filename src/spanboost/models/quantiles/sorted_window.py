"""The values of the last rows, in order: residuals, scores or forecasts."""

import math
from typing import NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel

WINDOW = 1000  # rows
LARGEST = 1e100  # values are clipped, so that products stay finite
TAIL = 0.5  # beyond the values, a quantile moves by this share of their spread, per unit of log


@kernel
def count_below(ordered: Array, size: int, value: float) -> int:
    """Return how many of the first `size` values, which are in order, are below a value."""
    low, high = 0, size
    while low < high:
        middle = (low + high) // 2
        if ordered[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def insert_value(ring: Array, ordered: Array, counts: Array, value: float) -> None:
    """Add a value to a window; the oldest one leaves a full window.

    ring: [rows] values in the order of the rows. ordered: [rows] the same, ascending.
    counts: [2] values in the window, next place in the ring.
    """
    size, place = counts[0], counts[1]
    value = max(min(value, LARGEST), -LARGEST)
    gap, target = size, count_below(ordered, size, value)
    if size == ring.shape[0]:
        gap = count_below(ordered, size, ring[place])  # the place of the value that leaves
        target -= 1 if target > gap else 0
    else:
        counts[0] = size + 1
    for j in range(gap, target):
        ordered[j] = ordered[j + 1]
    for j in range(gap, target, -1):
        ordered[j] = ordered[j - 1]
    ordered[target], ring[place] = value, value
    counts[1] = (place + 1) % ring.shape[0]


@kernel
def read_share(ordered: Array, size: int, share: float) -> float:
    """Return the quantile of a share of the first `size` values; 0 without values."""
    if size == 0:
        return 0.0
    place = share * (size + 1) - 1
    if place <= 0:
        first = ordered[0]
        return first + TAIL * (ordered[size // 2] - first) * math.log(share * (size + 1))
    if place >= size - 1:
        last = ordered[size - 1]
        return last - TAIL * (last - ordered[size // 2]) * math.log((1 - share) * (size + 1))
    j = int(place)
    return ordered[j] + (place - j) * (ordered[j + 1] - ordered[j])


@kernel
class SortedWindow(NamedTuple):
    """A window of values."""

    ring: Array  # [rows] in the order of the rows
    ordered: Array  # [rows] the same, ascending
    counts: Array  # [2] values in the window, next place in the ring

    def clear_window(self) -> None:
        """Remove all values."""
        self.counts[:] = 0

    def add_value(self, value: float) -> None:
        """Add a value; the oldest one leaves a full window."""
        insert_value(self.ring, self.ordered, self.counts, value)

    def rank_value(self, value: float) -> float:
        """Return the share of the values that are below this one; 0.5 without values."""
        size = self.counts[0]
        return count_below(self.ordered, size, value) / size if size > 0 else 0.5

    def safe_share(self, level: float, share: float) -> float:
        """Return `share`; 0 or 1, for an infinite quantile, while there are too few values.

        The largest of n values is a safe quantile up to level n / (n + 1).
        """
        if min(level, 1 - level) * (self.counts[0] + 1) < 1 - 1e-9 and level != 0.5:
            return 0.0 if level < 0.5 else 1.0
        return share


def new_window(rows: int = WINDOW) -> SortedWindow:
    """Return an empty window."""
    return SortedWindow(np.zeros(rows), np.zeros(rows), np.zeros(2, np.int64))


def is_sound(window: SortedWindow) -> bool:
    """Return whether all indices are in range and the window is in order."""
    size, place = window.counts.tolist()
    most, ordered = len(window.ring), window.ordered[: max(size, 0)]
    return (
        0 <= size <= most
        and 0 <= place < most
        and size in (most, place)
        and bool((np.diff(ordered) >= 0).all())
        and bool((np.sort(window.ring[:size]) == ordered).all())
    )
