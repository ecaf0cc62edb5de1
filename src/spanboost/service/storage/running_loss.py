"""The loss of the service: every row is predicted before its label is learned.

The figures depend only on the rows, not on how they were grouped into requests or blocks, so a
restart does not change them. The times are an exception: they tell when rows were learned.
"""

from collections import deque
from typing import Any

import numpy as np

from spanboost.analysis.progressive import running_totals, sums_up_to, weigh
from spanboost.compiling.arrays import Array
from spanboost.models.model import Model
from spanboost.models.row_losses import losses_of
from spanboost.service.storage.exact_sum import ExactSum

MAX_POINTS = 400  # points of the loss curve
MAX_PAIRS = 200  # pairs of prediction and label
MAX_DRIFTS = 100  # positions of drifts
STEP = 100  # rows whose average loss is one observation of the drift test
_NONE = ["0x0p0"] * 2  # the weights and losses of no rows
REFERENCE, RECENT, THRESHOLD = 30, 5, 6.0  # of the drift test: steps, steps, standard errors


class RunningLoss:
    """Sums over all rows, the loss curve, the last predictions with their labels, and drifts.

    Each part of the curve, and each observation of the drift test, is summed on its own: as a
    difference of totals, it would lose its digits to one huge loss before it.
    """

    def __init__(self, state: dict[str, Any] | None = None) -> None:
        """Start from zero, or from what `state` returned."""
        state = _convert(state) if state is not None and "curve" in state else state or {}
        self.rows: int = state.get("rows", 0)
        self.totals = _floats(state.get("totals", _NONE))
        self._exact = ExactSum(_floats(state.get("exact", [])).tolist(), state.get("huge", 0))
        self.stride: int = state.get("stride", 1)
        self.curve: list[list[float]] = [
            _floats(point).tolist() for point in state.get("points", [])
        ]  # rows so far; weight and loss of the rows since the point before; time
        self.drifts: list[int] = state.get("drifts", [])  # rows of the last ones
        self.drifted: int = state.get("drifted", len(self.drifts))  # number of all drifts
        self.steps = deque(map(float.fromhex, state.get("steps", [])), REFERENCE + RECENT)
        self._point = _floats(state.get("point", _NONE))  # sums of the rows since the last point
        self._step = _floats(state.get("step", _NONE))  # sums of the rows since the last step
        self.pairs: deque[tuple[float, float]] = deque(
            ((float.fromhex(a), float.fromhex(b)) for a, b in state.get("pairs", [])), MAX_PAIRS
        )

    def state(self) -> dict[str, Any]:
        """Return everything as JSON values; floats are hexadecimal, since JSON has no infinity."""
        return {
            "rows": self.rows,
            "totals": _hex(self.totals.tolist()),
            "exact": _hex(self._exact.parts),
            "huge": self._exact.huge,
            "stride": self.stride,
            "points": [_hex(point) for point in self.curve],
            "drifts": self.drifts,
            "drifted": self.drifted,
            "steps": _hex(self.steps),
            "point": _hex(self._point.tolist()),
            "step": _hex(self._step.tolist()),
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

    def loss_since(self, before: "RunningLoss") -> float | None:
        """Return the average loss of the rows after those of an earlier state; None without any."""
        weight = float(self.totals[0] - before.totals[0])
        return (self._exact - before._exact) / weight if weight > 0 else None

    def add(self, model: Model, y: Array, weights: Array, predictions: Array, now: float) -> None:
        """Add rows that were predicted and learned."""
        gains = np.stack([weights, weigh(losses_of(model, y, predictions), weights)], axis=1)
        totals = running_totals(self.totals, gains)
        first, self.rows, self.totals = self.rows, self.rows + len(y), totals[-1]
        self._exact.add(gains[:, 1].tolist())
        rows = range(first // STEP * STEP + STEP, self.rows + 1, STEP)
        steps, self._step = sums_up_to((row - first for row in rows), self._step, gains)
        for row, sums in zip(rows, steps, strict=True):
            self._add_step(row, sums)
        self._add_points(first, gains, now)
        shown = predictions if predictions.ndim == 1 else predictions.argmax(axis=1)
        self.pairs.extend(zip(shown[-MAX_PAIRS:].tolist(), y[-MAX_PAIRS:].tolist(), strict=True))

    def _add_points(self, first: int, gains: Array, now: float) -> None:
        """Add the points of the loss curve that are due in rows after `first`."""
        done = first
        while (row := done // self.stride * self.stride + self.stride) <= self.rows:
            part = gains[done - first : row - first]
            [sums], self._point = sums_up_to([len(part)], self._point, part)
            self._add_point(row, sums, now)
            done = row
        _, self._point = sums_up_to([], self._point, gains[done - first :])

    def _add_point(self, row: int, sums: Array, now: float) -> None:
        """Add a point to the loss curve; join every two points when there are too many."""
        self.curve.append([float(row), *sums.tolist(), now])
        if len(self.curve) > MAX_POINTS:
            self._point = np.array(self.curve[-1][1:3])
            pairs = zip(self.curve[:-1:2], self.curve[1::2], strict=True)
            self.curve = [[b[0], a[1] + b[1], a[2] + b[2], b[3]] for a, b in pairs]
            self.stride *= 2

    @np.errstate(over="ignore", invalid="ignore")  # the spread of losses such as 1e200 is unknown
    def _add_step(self, row: int, sums: Array) -> None:
        """Add an observation, and mark a drift if the recent ones are much worse than before."""
        weight, loss = sums.tolist()
        self.steps.append(loss / weight if weight > 0 else 0.0)
        if len(self.steps) < REFERENCE + RECENT:
            return
        values = np.array(self.steps)
        reference, recent = values[:REFERENCE], values[REFERENCE:]
        error = reference.std(ddof=1) * np.sqrt(1 / RECENT + 1 / REFERENCE)
        if recent.mean() > reference.mean() + THRESHOLD * error and error > 0:
            self.drifts = [*self.drifts[1 - MAX_DRIFTS :], row]
            self.drifted += 1
            self.steps.clear()


def _convert(state: dict[str, Any]) -> dict[str, Any]:
    """Return the state of earlier versions, which had totals, in the present form."""
    totals, last_step = (_floats(state.get(name, _NONE)) for name in ("totals", "last_step"))
    points = np.array([_floats(point) for point in state["curve"]]).reshape(-1, 4)
    last = points[-1, 1:3].copy() if len(points) else np.zeros(2)
    with np.errstate(invalid="ignore"):  # parts after an infinite loss are not known
        points[:, 1:3] = np.diff(points[:, 1:3], axis=0, prepend=np.zeros((1, 2)))
        return state | {
            "exact": _hex(totals[1:]),
            "points": [_hex(point) for point in points.tolist()],
            "point": _hex(totals - last),
            "step": _hex(totals - last_step),
        }


def _floats(values: Any) -> Array:
    return np.array([*map(float.fromhex, values)])


def _hex(values: Any) -> list[str]:
    return [float(value).hex() for value in values]
