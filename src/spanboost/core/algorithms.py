"""Algorithm 1 (span) and Algorithm 2 (hull) of *Online Gradient Boosting*, line by line.

A round is always the same four steps (see loop.py): all N weak predictions h at once; `forward`,
from them to the answer; `backward`, from the loss to one loss function per copy; all N updates.

`forward` and `backward` keep the round in a `Trace`. Arrays are [output, copy]: ``h[k, i]`` is
output k of copy A^{i+1}. Predictions are vectors of R^d, numbers when d = 1.
"""

from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel
from spanboost.core.projection import Output, output_of
from spanboost.losses import VectorLoss


class Trace(NamedTuple):
    """One round t, as both algorithms leave it."""

    output: Output

    h: Array  # [d, N] the weak predictions A^i(x_t)
    before: Array  # [d, N] the partial sums y_t^{i-1}
    kept: Array  # [d, N] what is kept of them when A^i(x_t) is added
    y: Array  # [d] y_t^i while i runs; in the end y_t^N, the answer
    slope: Array  # [d, N] the linear losses of line 13 (line 11)
    point: Array  # [d, N] scratch


def new_trace(d: int, N: int, dtype: Any) -> Trace:
    """Room for one round."""
    h, before, kept, slope, point = (np.zeros((d, N), dtype) for _ in range(5))
    return Trace(output_of(d), h, before, kept, np.zeros(d, dtype), slope, point)


@kernel
class Span(NamedTuple):
    """Algorithm 1: competes with the span of the base functions."""

    eta: Array  # [N] the step, the same for every copy
    sigma: Array  # [N] shrinkage, tuned by online gradient descent
    t: Array  # [1] rounds seen
    B: float
    L_B: float
    scale: float  # lambda: copies are taken from the lambda-scaled class
    at_final: bool  # corollary 1: every gradient is taken at the answer y_t^N

    def forward(self, trace: Trace) -> None:
        """Lines 5-10: from the weak predictions to the answer."""
        one, d, y = self.eta.dtype.type(1), trace.output.number(), trace.y
        for k in range(d):
            y[k] = 0  # line 6
        for i in range(self.eta.shape[0]):  # line 7
            keep = one - self.sigma[i] * self.eta[i]
            for k in range(d):  # line 8
                trace.before[k, i] = y[k]
                trace.kept[k, i] = keep * y[k]
                y[k] = trace.kept[k, i] + self.eta[i] * (self.scale * trace.h[k, i])
            trace.output.project(y, self.B)

    def backward(self, loss: VectorLoss, label: Array, weight: float, trace: Trace) -> None:
        """Lines 11-15: from the loss function to the copies' losses, and the update of sigma."""
        zero, one, d = self.eta.dtype.type(0), self.eta.dtype.type(1), trace.output.number()
        self.t[0] += 1
        alpha_t = one / (self.L_B * self.B * np.sqrt(self.eta.dtype.type(self.t[0])))
        gradients(loss, label, weight, self.at_final, trace)
        for i in range(self.eta.shape[0]):  # line 12
            along = zero
            for k in range(d):
                along += trace.slope[k, i] * trace.before[k, i]
                trace.slope[k, i] /= self.L_B  # line 13
            self.sigma[i] = max(min(self.sigma[i] + alpha_t * along, one), zero)  # line 14


@kernel
class Hull(NamedTuple):
    """Algorithm 2: competes with the convex hull of the base functions."""

    eta: Array  # [N] line 1: eta_i = 2 / (i + 1)
    L_D: float
    scale: float  # lambda: copies are taken from the lambda-scaled class
    at_final: bool  # non-smooth losses: every gradient is taken at the answer y_t^N
    linear: bool  # greedy feedback has no use for the slopes

    def forward(self, trace: Trace) -> None:
        """Lines 3-8: from the weak predictions to the answer."""
        one, d, y = self.eta.dtype.type(1), trace.output.number(), trace.y
        for k in range(d):
            y[k] = 0  # line 4
        for i in range(self.eta.shape[0]):  # line 5
            keep = one - self.eta[i]
            for k in range(d):  # line 6
                trace.before[k, i] = y[k]
                trace.kept[k, i] = keep * y[k]
                y[k] = trace.kept[k, i] + self.eta[i] * (self.scale * trace.h[k, i])

    def backward(self, loss: VectorLoss, label: Array, weight: float, trace: Trace) -> None:
        """Lines 9-12: from the loss function to the copies' losses."""
        if not self.linear:
            return
        gradients(loss, label, weight, self.at_final, trace)
        for k in range(trace.y.shape[0]):
            slope = trace.slope[k]
            for i in range(slope.shape[0]):  # lines 10-11
                slope[i] /= self.L_D


@kernel
def gradients(loss: VectorLoss, label: Array, weight: float, at_final: bool, trace: Trace) -> None:
    """slope[:, i] = grad w l_t at y_t^{i-1}, or at y_t^N for every i (corollary 1)."""
    at = trace.before
    if at_final:
        at = trace.point
        for k in range(at.shape[0]):
            for i in range(at.shape[1]):
                at[k, i] = trace.y[k]
    loss.gradients(label, at, trace.slope)
    for k in range(at.shape[0]):
        slope = trace.slope[k]
        for i in range(slope.shape[0]):
            slope[i] *= weight
