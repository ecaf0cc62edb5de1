"""The loop of stacked boosters: one pass over the rows for many boosters of one kind.

Each configuration is a lane (core/stacked.py). Every partial sum of a row is scored. Where the
first n copies of a booster equal the booster with n copies, this gives the losses of all numbers of
copies up to N.
"""

from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel
from spanboost.core.loop import BoosterState, learn_row
from spanboost.losses import VectorLoss


@kernel
class Scores(NamedTuple):
    """Losses of every partial sum, in the units of the labels, as in analysis/progressive.py."""

    labels: Array  # [rows, d] float64
    weights: Array  # [rows] float64; a row with weight 0 is not scored
    centre: Array  # [d]; centre + half * y converts y to the units of the labels
    half: float
    sums: Array  # [C N] weighted losses so far; c N + n - 1 is configuration c with n copies
    total: Array  # [1] sum of the weights so far
    point: Array  # [d, C N] scratch
    value: Array  # [C N] scratch

    def mark(self, t: int, loss: VectorLoss, N: int, trace: Any) -> None:
        """Score row t, which was just predicted."""
        weight = self.weights[t]
        if not weight > 0:
            return
        self.total[0] += weight
        for k in range(self.point.shape[0]):
            point, before, centre = self.point[k], trace.before[k], self.centre[k]
            for i in range(point.shape[0] - 1):
                point[i] = centre + self.half * np.float64(before[i + 1])
            for c in range(trace.y.shape[0]):  # the last copy's partial sum is the prediction
                point[c * N + N - 1] = centre + self.half * np.float64(trace.y[c, k])
        loss.values(self.labels[t], self.point, self.value)
        for i in range(self.sums.shape[0]):
            self.sums[i] += weight * self.value[i]


def learn_scored(
    model: BoosterState,
    X: Any,
    labels: Array,
    weights: Array,
    scores: Scores,
    first: int,
    last: int,
) -> None:
    """Learn rows as `learn` of core/loop.py does, but score predictions instead of storing them."""
    for t in range(first, last):
        learn_row(model, X.row(t), labels[t], weights[t])
        scores.mark(t, model.loss, model.algorithm.N, model.trace)
