"""The metrics of models that predict numbers."""

from typing import Any, NamedTuple

import numpy as np

from spanboost.analysis.metrics.errors import ErrorSums, new_error_sums
from spanboost.compiling.arrays import Array


class NumberMetrics(NamedTuple):
    """The state of the metrics; a record is the label and the prediction of a row."""

    errors: ErrorSums

    @property
    def columns(self) -> int:
        """How many numbers a record has."""
        return 2 * len(self.errors.centre)

    def record(self, y: Any, predictions: Array) -> Array:
        """Return the records of rows, [rows, columns]."""
        shape = len(predictions), len(self.errors.centre)
        return np.hstack([np.asarray(one, np.float64).reshape(shape) for one in (y, predictions)])

    def add(self, weights: Array, records: Array) -> None:
        """Add rows."""
        self.errors.add(weights, *np.hsplit(records, 2))

    def results(self) -> dict[str, Any]:
        """Return the metrics by name."""
        return self.errors.results()


def new_number_metrics(d: int) -> NumberMetrics:
    """Return the metrics of no rows, for d outputs."""
    return NumberMetrics(new_error_sums(d))
