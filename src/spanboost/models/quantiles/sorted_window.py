"""The values of the last rows, in order: residuals, scores or forecasts."""

import math
from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array, unsigned
from spanboost.compiling.kernels import kernel
from spanboost.compiling.memory_moves import move_values

WINDOW = 1000  # rows
LARGEST = 1e100  # values are clipped, so that products stay finite
PARTS = 16  # of a window that is searched
TAIL = 0.5  # beyond the values, a quantile moves by this share of their spread, per unit of log


@kernel
def count_below(ordered: Array, size: int, value: float) -> int:
    """Return how many of the first `size` values, which are in order, are below a value."""
    # Two passes without branches take less time than a binary search, which no processor foresees.
    length = size // PARTS + 1
    first = 0
    for last in range(length - 1, size, length):
        first += ordered[last] < value
    first *= length
    below, part = 0, ordered[first : min(first + length, size)]
    for j in range(part.shape[0]):
        below += part[j] < value
    return first + below


@kernel
def count_up_to(ordered: Array, size: int, value: float) -> int:
    """Return how many of the first `size` values, which are in order, are at most a value."""
    number = count_below(ordered, size, value)
    while number < size and ordered[number] == value:
        number += 1
    return number


@kernel
def insert_value(ring: Array, ordered: Array, counts: Array, value: float, target: int) -> None:
    """Add a value to a window; the oldest one leaves a full window.

    ring: [rows] values in the order of the rows. ordered: [rows] the same, ascending.
    counts: [2] values in the window, next place in the ring.
    target: number of values in the window that are below this one.
    """
    size, place = counts[0], counts[1]
    value = max(min(value, LARGEST), -LARGEST)
    gap = size
    if size == ring.shape[0]:
        gap = count_below(ordered, size, ring[place])  # the place of the value that leaves
        target -= 1 if target > gap else 0
    else:
        counts[0] = size + 1
    if gap < target:
        move_values(ordered, gap, gap + 1, target - gap)
    else:
        move_values(ordered, target + 1, target, gap - target)
    ordered[target], ring[place] = value, value
    counts[1] = (place + 1) % ring.shape[0]


@kernel
def read_share(ordered: Array, size: int, share: float) -> float:
    """Return the quantile of a share of the first `size` values; 0 without values.

    Rounding errors do not make it fall where the share rises.
    """
    if size == 0:
        return 0.0
    place = share * (size + 1) - 1
    if place <= 0:
        return read_tail(ordered[0], ordered[size // 2], math.log(share * (size + 1)))
    if place >= size - 1:
        beyond = math.log((1 - share) * (size + 1))
        return read_tail(ordered[size - 1], ordered[size // 2], beyond)
    return read_between(ordered, unsigned(place), place)


@kernel
def read_tail(end: float, middle: float, beyond: float) -> float:
    """Return a quantile beyond the values.

    end: the outermost value. middle: the median.
    beyond: log of the share outside the quantile, relative to that of one value.
    """
    return end + TAIL * (middle - end) * min(beyond, 0.0)


@kernel
def read_between(ordered: Array, j: Any, place: float) -> float:
    """Return the value between those at j and j + 1, where `place` is."""
    low, high = ordered[j], ordered[j + unsigned(1)]
    return min(low + (place - j) * (high - low), high)


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
        place = count_below(self.ordered, self.counts[0], value)
        insert_value(self.ring, self.ordered, self.counts, value, place)

    def safe_share(self, level: float, share: float) -> float:
        """Return `share`; 0 or 1, for an infinite quantile, while there are too few values.

        The largest of n values is a safe quantile up to level n / (n + 1).
        """
        if self.lacks_values(level):
            return 0.0 if level < 0.5 else 1.0
        return share

    def lacks_values(self, level: float) -> bool:
        """Return whether there are too few values for a finite quantile of this level."""
        return min(level, 1 - level) * (self.counts[0] + 1) < 1 - 1e-9 and level != 0.5


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
