"""The loop of stacked boosters: one pass over the rows for many boosters of one kind.

Configuration c owns the copies c N to c N + N - 1 of the bank, and runs the algorithm of
core/algorithms.py over them. Every partial sum of a row is scored. Where the first n copies of a
booster equal the booster with n copies, this gives the losses of all numbers of copies up to N.
"""

from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel
from spanboost.core.algorithms import Hull, Span, Trace, new_trace
from spanboost.core.loop import BoosterState, learn_row
from spanboost.core.projection import Output
from spanboost.losses import VectorLoss


@kernel
class Spans(NamedTuple):
    """Algorithm 1 for every configuration."""

    eta: Array  # [C N]
    sigma: Array  # [C N]
    t: Array  # [C]
    B: Array  # [C]
    L_B: Array  # [C]
    scale: Array  # [C]
    at_final: bool

    def one(self, c: int, first: int, last: int) -> Span:
        """Return the algorithm of configuration c; its copies are `first` to `last` - 1."""
        return Span(
            self.eta[first:last],
            self.sigma[first:last],
            self.t[c : c + 1],
            self.B[c],
            self.L_B[c],
            self.scale[c],
            self.at_final,
        )


@kernel
class Hulls(NamedTuple):
    """Algorithm 2 for every configuration."""

    eta: Array  # [C N]
    L_D: Array  # [C]
    scale: Array  # [C]
    at_final: bool
    linear: bool

    def one(self, c: int, first: int, last: int) -> Hull:
        """Return the algorithm of configuration c; its copies are `first` to `last` - 1."""
        return Hull(self.eta[first:last], self.L_D[c], self.scale[c], self.at_final, self.linear)


class StackedTrace(NamedTuple):
    """One round: a `Trace` of all copies, and a view of it for each configuration."""

    output: Output
    h: Array  # [d, C N], like `before` and `kept`: the layout of the bank and the feedback
    before: Array
    kept: Array
    y: Array  # [C, d] predictions
    slope: Array
    point: Array
    each: Trace  # the same arrays as [C, d, N]


@kernel
class StackedAlgorithm(NamedTuple):
    """The algorithm of every configuration, each over its own copies."""

    each: Spans | Hulls
    N: int  # copies of one configuration

    def forward(self, trace: StackedTrace) -> None:
        """Compute the predictions from those of the copies."""
        for c in range(trace.y.shape[0]):
            first, last = c * self.N, (c + 1) * self.N
            self.each.one(c, first, last).forward(part(trace.each, c))

    def backward(self, loss: VectorLoss, label: Array, weight: float, trace: StackedTrace) -> None:
        """Compute the losses of the copies from the loss function."""
        for c in range(trace.y.shape[0]):
            first, last = c * self.N, (c + 1) * self.N
            one = self.each.one(c, first, last)
            one.backward(loss, label, weight, part(trace.each, c))


@kernel
def part(each: Trace, c: int) -> Trace:
    """Return the trace of configuration c."""
    return Trace(
        each.output,
        each.h[c],
        each.before[c],
        each.kept[c],
        each.y[c],
        each.slope[c],
        each.point[c],
    )


def new_stacked_trace(d: int, C: int, N: int, dtype: Any) -> StackedTrace:
    """Allocate the trace of one round; C > 1 requires numeric predictions."""
    trace = new_trace(d, C * N, dtype)._replace(y=np.zeros((C, d), dtype))
    shaped = {
        name: getattr(trace, name).reshape(C, d, N)
        for name in ("h", "before", "kept", "slope", "point")
    }
    return StackedTrace(*trace, trace._replace(**shaped))


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
