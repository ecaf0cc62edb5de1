"""Calibration: whether events with a predicted probability of 30 % happen in 30 % of the rows."""

from typing import NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array

BINS = 10


class Reliability(NamedTuple):
    """Weighted sums over the rows of each bin of predicted probabilities: 0 to 0.1, and so on.

    With two classes, the event is the positive label. With more, it is that the predicted class is
    the label, and the probability is that of the predicted class.
    """

    sums: Array  # [BINS, 3] weights, predicted probabilities, events

    def add(self, weights: Array, probabilities: Array, events: Array) -> None:
        """Add rows: the predicted probabilities, and whether the event happened."""
        bins = np.minimum((np.nan_to_num(probabilities) * BINS).astype(np.int64), BINS - 1)
        for k, values in enumerate((weights, weights * probabilities, weights * events)):
            np.add.at(self.sums[:, k], bins, values)

    def error(self) -> float | None:
        """Return the expected calibration error; None without rows.

        This is the difference between the mean probability and the frequency of the event in each
        bin, averaged over the rows.
        """
        weights, predicted, happened = self.sums.T
        weight = float(weights.sum())
        return float(np.abs(predicted - happened).sum()) / weight if weight > 0 else None

    def curve(self) -> Array:
        """Return [bins, 3] for bins with rows: mean probability, frequency of events, weight."""
        weights, predicted, happened = self.sums[self.sums[:, 0] > 0].T
        return np.column_stack([predicted / weights, happened / weights, weights])


def new_reliability() -> Reliability:
    """Return the sums over no rows."""
    return Reliability(np.zeros((BINS, 3)))
