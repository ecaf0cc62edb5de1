"""The metrics of models that predict means: errors, and the deviance of their loss."""

from typing import Any, NamedTuple, Self

import numpy as np

from spanboost.analysis.metrics.errors import finite
from spanboost.analysis.metrics.of_numbers import NumberMetrics, new_number_metrics
from spanboost.analysis.metrics.states import merge_states
from spanboost.analysis.progressive import running_totals
from spanboost.compiling.arrays import Array


class MeanMetrics(NamedTuple):
    """The state of the metrics; a record is the label and the prediction of a row."""

    numbers: NumberMetrics
    sums: Array  # [2] weights, weighted deviances
    power: Array  # [1] of the variance as a function of the mean: 1 Poisson, 2 Gamma

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
        found = deviances(self.power.item(), *records.T)
        gains = np.column_stack([weights, np.where(weights > 0, weights * found, 0.0)])
        self.sums[:] = running_totals(self.sums, gains)[-1]

    def merge(self, other: Self) -> "MeanMetrics":
        """Return the state of both parts of a stream together."""
        numbers = merge_states(self.numbers, other.numbers)
        return MeanMetrics(numbers, self.sums + other.sums, self.power.copy())

    def results(self) -> dict[str, Any]:
        """Return the metrics by name."""
        weight, total = self.sums.tolist()
        deviance = finite(total / weight) if weight > 0 else None
        return {"deviance": deviance} | self.numbers.results()


def deviances(power: float, y: Array, means: Array) -> Array:
    """Return the unit deviance of each row, as scikit-learn's `mean_tweedie_deviance` has it."""
    if power == 1:
        logs = np.log(np.where(y > 0, y, 1.0) / means)
        return np.asarray(2 * (np.where(y > 0, y * logs, 0.0) - y + means))
    if power == 2:
        return np.asarray(2 * (y / means - 1 - np.log(y / means)))
    a, b = 2 - power, 1 - power
    return np.asarray(2 * (y**a / (a * b) - y * means**b / b + means**a / a))


def new_mean_metrics(power: float) -> MeanMetrics:
    """Return the metrics of no rows."""
    return MeanMetrics(new_number_metrics(1), np.zeros(2), np.array([power]))
