"""Quantile curves: the quantiles of a window at fixed log-odds, and straight lines in between.

The curve of several windows is the weighted mean of their curves. Loops without branches compute it
and find a value on it. Reading single quantiles from every window takes three times as long.

The points are at the default levels and those of the user. Calibrated levels are read near
themselves, so the lines hardly matter; a level that has not moved is read exactly.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array, unsigned
from spanboost.compiling.kernels import kernel
from spanboost.models.quantiles.asked_levels import log_odds
from spanboost.models.quantiles.sorted_window import read_tail

_LOW = (0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4)
LEVELS = (*_LOW, 0.5, *(round(1 - level, 3) for level in reversed(_LOW)))
FARTHEST = 8.0  # log-odds of the last point; those of the first are negative
MIDDLE = 6.5  # log-odds of a point between the outermost levels and the end


@kernel
class CurvePoints(NamedTuple):
    """The points at which curves hold quantiles."""

    odds: Array  # [points] log-odds, ascending
    share: Array  # [points] the same as shares
    below: Array  # [points] logarithms of the shares
    above: Array  # [points] logarithms of 1 - share
    own: Array  # [K] number of the point at each level, or before it

    def fill_curve(self, ordered: Array, size: int, curve: Array) -> None:
        """Set a curve to the quantiles of the first `size` values, ascending; 0 without values."""
        if size == 0:
            curve[:] = 0.0
            return
        first, last, middle, more = 0, len(curve), ordered[size // 2], math.log(size + 1)
        while first < last and self.share[first] * (size + 1) <= 1:
            beyond = self.below[first] + more
            curve[first] = read_tail(ordered[0], middle, beyond)
            first += 1
        while first < last and (1 - self.share[last - 1]) * (size + 1) <= 1:
            last -= 1
            beyond = self.above[last] + more
            curve[last] = read_tail(ordered[size - 1], middle, beyond)
        for g in range(first, last):
            place = self.share[g] * (size + 1) - 1
            j = unsigned(min(place, size - 2.0))
            low, high = ordered[j], ordered[j + unsigned(1)]
            curve[g] = min(low + (place - j) * (high - low), high)

    def read_curve(self, curve: Array, k: int, odds: float) -> float:
        """Return the value at the log-odds of level k, which are between the ends of the curve."""
        g = unsigned(self.own[unsigned(k)])
        while odds < self.odds[g]:
            g -= unsigned(1)
        while odds >= self.odds[g + unsigned(1)]:
            g += unsigned(1)
        low, high = curve[g], curve[g + unsigned(1)]
        part = (odds - self.odds[g]) / (self.odds[g + unsigned(1)] - self.odds[g])
        return min(low + part * (high - low), high)

    def find_odds(self, curve: Array, value: float) -> float:
        """Return about the log-odds at which a curve has this value, or those of an end."""
        place = find_place(curve, value)
        g = unsigned(min(place, curve.shape[0] - 2.0))
        low, high = self.odds[g], self.odds[g + unsigned(1)]
        return low + (place - g) * (high - low)


def new_points(levels: Sequence[float]) -> CurvePoints:
    """Return the points of curves that are read at these levels."""
    given = log_odds(levels)
    known = np.concatenate([given, log_odds(LEVELS), [-MIDDLE, MIDDLE]])
    odds = np.unique([-FARTHEST, *known[np.abs(known) < FARTHEST], FARTHEST])
    own = np.clip(np.searchsorted(odds, given, side="right") - 1, 0, len(odds) - 2)
    below, above = -np.log1p(np.exp(-odds)), -np.log1p(np.exp(odds))
    return CurvePoints(odds, 1 / (1 + np.exp(-odds)), below, above, own)


@kernel
def fill_knots(ordered: Array, size: int, knots: Array) -> None:
    """Set the medians of equal parts of the first `size` values, ascending; 0 without values."""
    if size == 0:
        knots[:] = 0.0
        return
    parts = knots.shape[0]
    for i in range(parts):
        place = max(0.0, min((i + 0.5) * size / parts - 0.5, size - 1.0))
        j = unsigned(place)
        low, high = ordered[j], ordered[unsigned(min(place + 1, size - 1.0))]
        knots[i] = low + (place - j) * (high - low)


@kernel
def find_place(points: Array, value: float) -> float:
    """Return where a value is among points that ascend: 1.5 is the middle between points 1 and 2.

    The place of a value beyond the points is that of the nearer end.
    """
    below = 0
    for g in range(points.shape[0]):
        below += points[g] < value
    if below == 0:
        return 0.0
    if below == points.shape[0]:
        return below - 1.0
    low, high = points[unsigned(below - 1)], points[unsigned(below)]
    return below - 1 + (value - low) / (high - low)
