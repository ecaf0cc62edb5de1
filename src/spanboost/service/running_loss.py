"""How well the service predicts: the loss of every row, made before its label was learned.

Everything here depends on the rows alone, not on the groups in which they came, so that after a
restart it is what it was (but for the times, which are when rows were learned).
"""

from collections import deque
from typing import Any

import numpy as np

from spanboost.analysis.progressive import losses_of, running_totals
from spanboost.compiling.arrays import Array
from spanboost.models.model import Model

POINTS = 400  # of the curve at most
PAIRS = 200  # of predictions and labels
STEP = 100  # rows whose average loss is one observation of the drift test
REFERENCE, RECENT, THRESHOLD = 30, 5, 6.0


class RunningLoss:
    """Sums over all rows, a curve of them, the last predictions beside their labels, drifts."""

    def __init__(self, state: dict[str, Any] | None = None) -> None:
        state = state or {}
        self.rows: int = state.get("rows", 0)
        self.totals = np.array([*map(float.fromhex, state.get("totals", ["0x0p0"] * 2))])
        self.stride: int = state.get("stride", 1)
        self.curve: list[list[float]] = [
            [*map(float.fromhex, point)] for point in state.get("curve", [])
        ]  # rows, weight, loss, time
        self.drifts: list[int] = state.get("drifts", [])  # the last hundred
        self.drifted: int = state.get("drifted", len(self.drifts))  # how often, of all
        self.steps = deque(map(float.fromhex, state.get("steps", [])), REFERENCE + RECENT)
        self._last_step = np.array([*map(float.fromhex, state.get("last_step", ["0x0p0"] * 2))])
        self.pairs: deque[tuple[float, float]] = deque(
            ((float.fromhex(a), float.fromhex(b)) for a, b in state.get("pairs", [])), PAIRS
        )

    def state(self) -> dict[str, Any]:
        """All of it, in terms of JSON, which has no infinite numbers."""
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
        """The average over all rows."""
        weight, loss = self.totals.tolist()  # at once: another thread may be adding
        return loss / weight if weight > 0 else None

    @property
    def recent(self) -> float | None:
        """The average over the last 1,000 rows or so: the last ten steps."""
        last = list(self.steps)[-10:]
        return float(np.mean(last)) if last else self.loss

    def add(self, model: Model, y: Array, weights: Array, answers: Array, now: float) -> None:
        """More rows, answered and learned."""
        gains = np.stack([weights, weights * losses_of(model, y, answers)], axis=1)
        totals = running_totals(self.totals, gains)
        first, self.rows, self.totals = self.rows, self.rows + len(y), totals[-1]
        for row in range(first // STEP * STEP + STEP, self.rows + 1, STEP):
            self._step(row, totals[row - first - 1])
        row = first // self.stride * self.stride + self.stride
        while row <= self.rows:
            self._point(row, totals[row - first - 1], now)
            row = row // self.stride * self.stride + self.stride
        shown = answers if answers.ndim == 1 else answers.argmax(axis=1)
        self.pairs.extend(zip(shown[-PAIRS:].tolist(), y[-PAIRS:].tolist(), strict=True))

    def _point(self, row: int, totals: Array, now: float) -> None:
        self.curve.append([float(row), *totals.tolist(), now])
        if len(self.curve) > POINTS:
            self.curve = self.curve[1::2]
            self.stride *= 2

    def _step(self, row: int, totals: Array) -> None:
        """A hundred rows more: a drift if they, and those just before, lose more than usual."""
        weight, loss = totals - self._last_step
        self._last_step = totals.copy()
        self.steps.append(float(loss / weight) if weight > 0 else 0.0)
        if len(self.steps) < REFERENCE + RECENT:
            return
        values = np.array(self.steps)
        usual, recent = values[:REFERENCE], values[REFERENCE:]
        error = usual.std(ddof=1) * np.sqrt(1 / RECENT + 1 / REFERENCE)
        if recent.mean() > usual.mean() + THRESHOLD * error and error > 0:
            self.drifts, self.drifted = [*self.drifts[-99:], row], self.drifted + 1
            self.steps.clear()


def _hex(values: Any) -> list[str]:
    return [float(value).hex() for value in values]
