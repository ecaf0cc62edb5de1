"""The metrics of the service: every row is predicted before its label is learned.

Rows are collected in windows of a fixed number of rows, and complete windows are merged. So the
metrics depend only on the rows, not on how they were grouped into requests, and a restart does not
change them.
"""

from typing import Any, NamedTuple

import numpy as np

from spanboost.analysis.metrics.collected import Metrics
from spanboost.analysis.metrics.states import numbers_from_json, numbers_to_json
from spanboost.compiling.arrays import Array

WINDOW = 500  # rows


class Windows(NamedTuple):
    """The rows so far. It is never changed, so that other threads can read it."""

    earlier: Metrics  # of all complete windows but the last
    last: Metrics  # of the last complete window
    rows: Array  # [rows, 1 + columns] weights and records of the rows after it


class RunningMetrics:
    """The metrics of all rows, and of the last ones: the last complete window and those after it.

    loss: the loss of the model.
    state: what `state` returned, to continue; None starts from zero.
    """

    def __init__(self, loss: Any, state: dict[str, Any] | None = None) -> None:
        self._none = Metrics(loss)
        columns = 1 + self._none.columns
        state = state or {"earlier": None, "last": None, "rows": []}
        rows = np.array(numbers_from_json(state["rows"]), np.float64).reshape(-1, columns)
        earlier, last = (Metrics(loss, state[name]) for name in ("earlier", "last"))
        self._windows = Windows(earlier, last, rows)

    def add(self, y: Array, weights: Array, predictions: Array) -> None:
        """Add rows that were predicted and learned."""
        earlier, last, rows = self._windows
        new = np.column_stack([weights, self._none.record(y, predictions)])
        rows = np.concatenate([rows, new])
        while len(rows) >= WINDOW:
            earlier, last, rows = earlier + last, self._metrics(rows[:WINDOW]), rows[WINDOW:]
        self._windows = Windows(earlier, last, rows)

    def all_rows(self) -> Metrics:
        """Return the metrics of all rows."""
        earlier, last, rows = self._windows
        return earlier + last + self._metrics(rows)

    def recent_rows(self) -> Metrics:
        """Return the metrics of the last 500 to 999 rows."""
        _, last, rows = self._windows
        return last + self._metrics(rows)

    def state(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        earlier, last, rows = self._windows
        numbers = numbers_to_json(rows.ravel())
        return {"earlier": earlier.state(), "last": last.state(), "rows": numbers}

    def _metrics(self, rows: Array) -> Metrics:
        found = Metrics(self._none.loss)
        found.add_records(rows[:, 0], rows[:, 1:])
        return found
