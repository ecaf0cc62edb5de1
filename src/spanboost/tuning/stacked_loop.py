"""Many boosters of one kind side by side in one bank: one pass over the rows learns them all.

Configuration c has the copies c N to c N + N - 1 of the bank, and runs the algorithm as it stands
in algorithms.py over its part of the round. Every row is scored after each of its partial sums, so
that the losses of all numbers of copies up to N are known, where a booster's first n copies are the
booster of n copies.
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
    """Algorithm 1 of every configuration."""

    eta: Array  # [C N]
    sigma: Array  # [C N]
    t: Array  # [C]
    B: Array  # [C]
    L_B: Array  # [C]
    scale: Array  # [C]
    at_final: bool

    def one(self, c: int, first: int, last: int) -> Span:
        """That of configuration c, with these copies."""
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
    """Algorithm 2 of every configuration."""

    eta: Array  # [C N]
    L_D: Array  # [C]
    scale: Array  # [C]
    at_final: bool
    linear: bool

    def one(self, c: int, first: int, last: int) -> Hull:
        """That of configuration c, with these copies."""
        return Hull(self.eta[first:last], self.L_D[c], self.scale[c], self.at_final, self.linear)


class StackedTrace(NamedTuple):
    """One round of all configurations: a `Trace` of all copies, and the same memory again."""

    output: Output
    h: Array  # [d, C N] and so on, as the bank and the feedback see them
    before: Array
    kept: Array
    y: Array  # [C, d] the answers
    slope: Array
    point: Array
    each: Trace  # of [C, d, N]


@kernel
class StackedAlgorithm(NamedTuple):
    """Every configuration runs its algorithm over its own copies."""

    each: Spans | Hulls
    N: int  # copies of one configuration

    def forward(self, trace: StackedTrace) -> None:
        """From the weak predictions to the answers."""
        for c in range(trace.y.shape[0]):
            first, last = c * self.N, (c + 1) * self.N
            self.each.one(c, first, last).forward(part(trace.each, c))

    def backward(self, loss: VectorLoss, label: Array, weight: float, trace: StackedTrace) -> None:
        """From the loss function to the copies' losses."""
        for c in range(trace.y.shape[0]):
            first, last = c * self.N, (c + 1) * self.N
            one = self.each.one(c, first, last)
            one.backward(loss, label, weight, part(trace.each, c))


@kernel
def part(each: Trace, c: int) -> Trace:
    """The round as configuration c sees it."""
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
    """Room for one round; of several configurations only where predictions are numbers."""
    trace = new_trace(d, C * N, dtype)._replace(y=np.zeros((C, d), dtype))
    shaped = {
        name: getattr(trace, name).reshape(C, d, N)
        for name in ("h", "before", "kept", "slope", "point")
    }
    return StackedTrace(*trace, trace._replace(**shaped))


@kernel
class Scores(NamedTuple):
    """Losses in the units of the labels, as evaluate.py reckons them, of every partial sum."""

    labels: Array  # [rows, d] float64
    weights: Array  # [rows] float64; a row without weight is not scored
    centre: Array  # [d] from the model's units to those of the labels: centre + half * y
    half: float
    sums: Array  # [C N] weighted losses so far, of c after n copies at c N + n - 1
    total: Array  # [1] weights so far
    point: Array  # [d, C N] scratch
    value: Array  # [C N] scratch

    def mark(self, t: int, loss: VectorLoss, N: int, trace: Any) -> None:
        """Row t, as it has just been answered."""
        weight = self.weights[t]
        if not weight > 0:
            return
        self.total[0] += weight
        for k in range(self.point.shape[0]):
            point, before, centre = self.point[k], trace.before[k], self.centre[k]
            for i in range(point.shape[0] - 1):
                point[i] = centre + self.half * np.float64(before[i + 1])
            for c in range(trace.y.shape[0]):  # what follows the last copy is another's first
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
    """As loop.py's `learn`, but the answers are scored, not kept."""
    for t in range(first, last):
        learn_row(model, X.row(t), labels[t], weights[t])
        scores.mark(t, model.loss, model.algorithm.N, model.trace)
