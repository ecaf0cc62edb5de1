"""The loss of the service: every row is predicted before its label is learned.

The figures depend only on the rows, not on how they were grouped into requests or blocks, so a
restart does not change them. The times are an exception: they tell when rows were learned.
"""

from collections import deque
from typing import Any

import numpy as np

from spanboost.analysis.progressive import running_totals
from spanboost.compiling.arrays import Array
from spanboost.models.model import Model
from spanboost.models.row_losses import losses_of

MAX_POINTS = 400  # points of the loss curve
MAX_PAIRS = 200  # pairs of prediction and label
MAX_DRIFTS = 100  # positions of drifts
STEP = 100  # rows whose average loss is one observation of the drift test
REFERENCE, RECENT, THRESHOLD = 30, 5, 6.0  # of the drift test: steps, steps, standard errors


class RunningLoss:
    """Sums over all rows, the loss curve, the last predictions with their labels, and drifts."""

    def __init__(self, state: dict[str, Any] | None = None) -> None:
        """Start from zero, or from what `state` returned."""
        state = state or {}
        self.rows: int = state.get("rows", 0)
        self.totals = np.array([*map(float.fromhex, state.get("totals", ["0x0p0"] * 2))])
        self.stride: int = state.get("stride", 1)
        self.curve: list[list[float]] = [
            [*map(float.fromhex, point)] for point in state.get("curve", [])
        ]  # rows, weight, loss, time
        self.drifts: list[int] = state.get("drifts", [])  # rows of the last ones
        self.drifted: int = state.get("drifted", len(self.drifts))  # number of all drifts
        self.steps = deque(map(float.fromhex, state.get("steps", [])), REFERENCE + RECENT)
        self._last_step = np.array([*map(float.fromhex, state.get("last_step", ["0x0p0"] * 2))])
        self.pairs: deque[tuple[float, float]] = deque(
            ((float.fromhex(a), float.fromhex(b)) for a, b in state.get("pairs", [])), MAX_PAIRS
        )

    def state(self) -> dict[str, Any]:
        """Return everything as JSON values; floats are hexadecimal, since JSON has no infinity."""
        return {
            "rows": self.rows,
            "totals": _hex(self.totals.tolist()),
            "stride": self.stride,
            "curve": [_hex(point) for point in self.curve],
            "drifts": self.drifts,
            "drifted": self.drifted,
            "steps": _hex(self.steps),
            "last_step": _hex(self._last_step.tolist()),
            "pairs": [_hex(pair) for pair in self.pairs],
        }

    @property
    def loss(self) -> float | None:
        """The average loss over all rows; None before the first."""
        weight, loss = self.totals.tolist()  # read together: another thread may add rows
        return loss / weight if weight > 0 else None

    @property
    def recent(self) -> float | None:
        """The average loss over the last ten steps, about 1,000 rows."""
        last = list(self.steps)[-10:]
        return float(np.mean(last)) if last else self.loss

    def add(self, model: Model, y: Array, weights: Array, predictions: Array, now: float) -> None:
        """Add rows that were predicted and learned."""
        gains = np.stack([weights, weights * losses_of(model, y, predictions)], axis=1)
        totals = running_totals(self.totals, gains)
        first, self.rows, self.totals = self.rows, self.rows + len(y), totals[-1]
        for row in range(first // STEP * STEP + STEP, self.rows + 1, STEP):
            self._add_step(row, totals[row - first - 1])
        row = first // self.stride * self.stride + self.stride
        while row <= self.rows:
            self._add_point(row, totals[row - first - 1], now)
            row = row // self.stride * self.stride + self.stride
        shown = predictions if predictions.ndim == 1 else predictions.argmax(axis=1)
        self.pairs.extend(zip(shown[-MAX_PAIRS:].tolist(), y[-MAX_PAIRS:].tolist(), strict=True))

    def _add_point(self, row: int, totals: Array, now: float) -> None:
        """Add a point to the loss curve, and drop every second point when there are too many."""
        self.curve.append([float(row), *totals.tolist(), now])
        if len(self.curve) > MAX_POINTS:
            self.curve = self.curve[1::2]
            self.stride *= 2

    def _add_step(self, row: int, totals: Array) -> None:
        """Add an observation, and mark a drift if the recent ones are much worse than before."""
        weight, loss = totals - self._last_step
        self._last_step = totals.copy()
        self.steps.append(float(loss / weight) if weight > 0 else 0.0)
        if len(self.steps) < REFERENCE + RECENT:
            return
        values = np.array(self.steps)
        reference, recent = values[:REFERENCE], values[REFERENCE:]
        error = reference.std(ddof=1) * np.sqrt(1 / RECENT + 1 / REFERENCE)
        if recent.mean() > reference.mean() + THRESHOLD * error and error > 0:
            self.drifts = [*self.drifts[1 - MAX_DRIFTS :], row]
            self.drifted += 1
            self.steps.clear()


def _hex(values: Any) -> list[str]:
    return [float(value).hex() for value in values]
