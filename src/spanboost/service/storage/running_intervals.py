"""The intervals of the service: the last ones with their labels, and their coverage over time.

Every interval is made before its label is learned. The figures depend only on the rows, not on how
they were grouped into requests, so a restart does not change them.
"""

from collections import deque
from typing import Any

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.models.quantiles.asked_levels import interval_levels

COVERAGE = 0.9  # of the intervals that are counted
LEVELS = interval_levels(COVERAGE)
MAX_ROWS = 200  # intervals that are kept
MAX_POINTS = 100  # points of the curve
FIRST_STRIDE = 100  # rows between two points of the curve, at first


class RunningIntervals:
    """The coverage of all intervals, its curve, and the last intervals with their labels."""

    def __init__(self, state: dict[str, Any] | None = None) -> None:
        """Start from zero, or from what `state` returned."""
        state = state or {}
        self.rows: int = state.get("rows", 0)
        self.inside: int = state.get("inside", 0)  # labels inside their interval
        self.stride: int = state.get("stride", FIRST_STRIDE)
        self.curve: list[list[int]] = state.get("curve", [])  # rows, labels inside
        self.last: deque[list[float]] = deque(
            ([*map(float.fromhex, one)] for one in state.get("last", [])), MAX_ROWS
        )  # prediction, label, low, high

    def state(self) -> dict[str, Any]:
        """Return everything as JSON values; floats are hexadecimal, since JSON has no infinity."""
        return {
            "rows": self.rows,
            "inside": self.inside,
            "stride": self.stride,
            "curve": self.curve,
            "last": [[float(value).hex() for value in one] for one in self.last],
        }

    def add(self, y: Array, weights: Array, predictions: Array, intervals: Array) -> None:
        """Add rows with their intervals [rows, 2]; rows of weight 0 do not count."""
        rows = np.column_stack([predictions, y, intervals])[weights > 0]
        low, high = rows[:, 2], rows[:, 3]
        inside = np.cumsum((low <= rows[:, 1]) & (rows[:, 1] <= high)) + self.inside
        first, self.rows = self.rows, self.rows + len(rows)
        row = first // self.stride * self.stride + self.stride
        while row <= self.rows:
            self._add_point(row, int(inside[row - first - 1]))
            row = row // self.stride * self.stride + self.stride
        self.inside = int(inside[-1]) if len(rows) else self.inside
        self.last.extend(rows[-MAX_ROWS:].tolist())

    def _add_point(self, row: int, inside: int) -> None:
        self.curve = [*self.curve, [row, inside]]  # other threads read the list
        if len(self.curve) > MAX_POINTS:
            self.stride *= 2
            self.curve = [point for point in self.curve if point[0] % self.stride == 0]
