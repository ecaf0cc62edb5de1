"""The metrics of models that predict one quantile: errors, and the share of labels up to it."""

from typing import Any, NamedTuple, Self

import numpy as np

from spanboost.analysis.metrics.errors import finite
from spanboost.analysis.metrics.of_numbers import NumberMetrics, new_number_metrics
from spanboost.analysis.metrics.states import merge_states
from spanboost.analysis.progressive import running_totals
from spanboost.compiling.arrays import Array


class LevelMetrics(NamedTuple):
    """The state of the metrics; a record is the label and the prediction of a row.

    R^2 is left out: it compares with the mean, which such models do not predict.
    """

    numbers: NumberMetrics
    sums: Array  # [2] weights, weights of labels at or below the prediction

    @property
    def columns(self) -> int:
        """How many numbers a record has."""
        return self.numbers.columns

    def record(self, y: Any, predictions: Array) -> Array:
        """Return the records of rows, [rows, columns]."""
        return self.numbers.record(y, predictions)

    def add(self, weights: Array, records: Array) -> None:
        """Add rows."""
        self.numbers.add(weights, records)
        labels, predictions = records.T
        gains = np.column_stack([weights, np.where(labels <= predictions, weights, 0.0)])
        self.sums[:] = running_totals(self.sums, gains)[-1]

    def merge(self, other: Self) -> "LevelMetrics":
        """Return the state of both parts of a stream together."""
        return LevelMetrics(merge_states(self.numbers, other.numbers), self.sums + other.sums)

    def results(self) -> dict[str, Any]:
        """Return the metrics by name."""
        weight, below = self.sums.tolist()
        found = {"at_or_below": finite(below / weight) if weight > 0 else None}
        found |= self.numbers.results()
        del found["r2"]
        return found


def new_level_metrics() -> LevelMetrics:
    """Return the metrics of no rows."""
    return LevelMetrics(new_number_metrics(1), np.zeros(2))


def complete_level_state(sums: Any) -> Any:
    """Return a state as JSON in the present form: earlier versions did not count the labels."""
    if isinstance(sums, dict) and "errors" in sums:
        return {"numbers": sums, "sums": {"at": [], "values": []}}
    return sums
