"""Several boosters of one kind as lanes of one state: one bank holds the copies of all of them.

Lane c owns the copies c N to c N + N - 1 of the bank, and runs the algorithm of algorithms.py over
them. Each lane learns exactly what it would learn alone.
"""

from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel
from spanboost.core.algorithms import Hull, Span
from spanboost.core.loop import BoosterState, learn_row, predict_row
from spanboost.core.projection import Output
from spanboost.core.trace import Trace, new_trace
from spanboost.losses import VectorLoss


@kernel
class Spans(NamedTuple):
    """Algorithm 1 for every lane."""

    eta: Array  # [C N]
    sigma: Array  # [C N]
    t: Array  # [C]
    B: Array  # [C]
    L_B: Array  # [C]
    scale: Array  # [C]
    at_final: bool

    def one(self, c: int, first: int, last: int) -> Span:
        """Return the algorithm of lane c; its copies are `first` to `last` - 1."""
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
    """Algorithm 2 for every lane."""

    eta: Array  # [C N]
    L_D: Array  # [C]
    scale: Array  # [C]
    at_final: bool
    linear: bool

    def one(self, c: int, first: int, last: int) -> Hull:
        """Return the algorithm of lane c; its copies are `first` to `last` - 1."""
        return Hull(self.eta[first:last], self.L_D[c], self.scale[c], self.at_final, self.linear)


class StackedTrace(NamedTuple):
    """One round: a `Trace` of all copies, and a view of it for each lane."""

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
    """The algorithm of every lane, each over its own copies."""

    each: Spans | Hulls
    N: int  # copies of one lane

    def begin(self, trace: StackedTrace) -> None:
        """Start every lane at 0."""
        for c in range(trace.y.shape[0]):
            for k in range(trace.y.shape[1]):
                trace.y[c, k] = 0

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
    """Return the trace of lane c."""
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
    """Allocate the trace of one round."""
    trace = new_trace(d, C * N, dtype)._replace(y=np.zeros((C, d), dtype))
    shaped = {
        name: getattr(trace, name).reshape(d, C, N).transpose(1, 0, 2)  # views, not copies
        for name in ("h", "before", "kept", "slope", "point")
    }
    return StackedTrace(*trace, trace._replace(**shaped))


@kernel
def write_partial_sums(trace: StackedTrace, N: int, places: Array, out: Array) -> None:
    """Write some partial sums of the row that was predicted last to out[d K].

    places: [K] place c N + n - 1 is the sum of the first n copies of lane c.
    """
    K = places.shape[0]
    for k in range(trace.h.shape[0]):
        for j in range(K):
            c, i = places[j] // N, places[j] % N
            last = i == N - 1  # the last partial sum of a lane is its prediction
            out[k * K + j] = trace.y[c, k] if last else trace.before[k, places[j] + 1]


def predict_partial_sums(
    model: BoosterState, places: Array, X: Any, out: Array, first: int, last: int
) -> None:
    """Set out[t] to the partial sums for row t, for the rows first <= t < last."""
    for t in range(first, last):
        predict_row(model, X.row(t))
        write_partial_sums(model.trace, model.algorithm.N, places, out[t])


def learn_partial_sums(
    model: BoosterState,
    places: Array,
    X: Any,
    labels: Array,
    weights: Array,
    out: Array,
    first: int,
    last: int,
) -> None:
    """Predict as `predict_partial_sums` does, and learn each row after its prediction."""
    for t in range(first, last):
        learn_row(model, X.row(t), labels[t], weights[t])
        write_partial_sums(model.trace, model.algorithm.N, places, out[t])
