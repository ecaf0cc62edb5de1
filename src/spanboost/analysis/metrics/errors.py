"""RMSE, MAE and R^2: the metrics of numeric predictions."""

import math
from typing import NamedTuple

import numpy as np

from spanboost.analysis.progressive import running_totals
from spanboost.compiling.arrays import Array


class ErrorSums(NamedTuple):
    """Weighted sums over the errors and the labels of d outputs.

    Labels are summed as distances from `centre`, the first label: the sum of squares then keeps its
    precision even if labels are far from 0.
    """

    centre: Array  # [d]
    sums: Array  # [1 + 4 d] weights; absolute errors, squared errors, labels, squared labels

    def add(self, weights: Array, labels: Array, predictions: Array) -> None:
        """Add rows: labels and predictions, [rows, d]."""
        rounds = weights > 0
        if self.sums[0] == 0 and rounds.any():
            self.centre[:] = labels[rounds.argmax()]
        distances, errors = labels - self.centre, predictions - labels
        parts = np.hstack([np.abs(errors), errors**2, distances, distances**2])
        # infinite errors in a row of weight 0 would make the sums NaN
        gains = np.where(rounds[:, None], weights[:, None] * parts, 0.0)
        self.sums[:] = running_totals(self.sums, np.hstack([weights[:, None], gains]))[-1]

    def merge(self, other: "ErrorSums") -> "ErrorSums":
        """Return the sums of both, around the centre of the first one that has rows."""
        if self.sums[0] == 0:
            return ErrorSums(other.centre.copy(), other.sums.copy())
        if other.sums[0] == 0:
            return ErrorSums(self.centre.copy(), self.sums.copy())
        weight, moved = other.sums[0], other.centre - self.centre
        absolute, squared, labels, squares = other.sums[1:].reshape(4, -1)
        squares = squares + 2 * moved * labels + weight * moved**2
        around = [absolute, squared, labels + weight * moved, squares]
        return ErrorSums(self.centre.copy(), self.sums + np.append(weight, np.concatenate(around)))

    def results(self) -> dict[str, float | None]:
        """Return RMSE, MAE and R^2, averaged over the outputs; None if undefined."""
        weight = float(self.sums[0])
        if weight == 0:
            return dict.fromkeys(("rmse", "mae", "r2"))
        absolute, squared, labels, squares = self.sums[1:].reshape(4, -1) / weight
        variance = squares - labels**2
        varies = (variance > 0).all()  # R^2 compares with the variance of the labels
        return {
            "rmse": finite(np.sqrt(squared).mean()),
            "mae": finite(absolute.mean()),
            "r2": finite((1 - squared / variance).mean()) if varies else None,
        }


def new_error_sums(d: int) -> ErrorSums:
    """Return the sums over no rows, for d outputs."""
    return ErrorSums(np.zeros(d), np.zeros(1 + 4 * d))


def finite(value: float) -> float | None:
    """Return the number, or None if it is not finite."""
    return float(value) if math.isfinite(value) else None
