"""Algorithm 1 (span) and Algorithm 2 (hull) of *Online Gradient Boosting*, line by line.

Each round has four steps (see loop.py). All N copies of the weak learner predict; `forward`
combines their predictions h into the answer; `backward` derives a loss per copy; all copies learn.

A `Trace` holds the arrays of one round. They are indexed [output, copy]: ``h[k, i]`` is output k of
copy A^{i+1}. Predictions are vectors in R^d, plain numbers when d = 1.

`only(i)` is the part of the round that belongs to copy i. Unless `at_final`, it needs nothing from
the copies after it, so a block of rows can also be learned copy by copy (stages.py).
"""

from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel
from spanboost.core.projection import Output, output_of
from spanboost.losses import VectorLoss


@kernel
class Trace(NamedTuple):
    """The values of one round t."""

    output: Output

    h: Array  # [d, N] the weak predictions A^i(x_t)
    before: Array  # [d, N] the partial sums y_t^{i-1}
    kept: Array  # [d, N] the shrunken partial sums, to which A^i(x_t) is added
    y: Array  # [d] y_t^i during the loop over i; afterwards y_t^N, the answer
    slope: Array  # [d, N] the slopes of the linear losses of line 13 (Algorithm 2: line 11)
    point: Array  # [d, N] scratch space

    def only(self, i: int) -> "Trace":
        """Return the arrays of copy i; they share y with those of all others."""
        return Trace(
            self.output,
            self.h[:, i, None],
            self.before[:, i, None],
            self.kept[:, i, None],
            self.y,
            self.slope[:, i, None],
            self.point[:, i, None],
        )


def new_trace(d: int, N: int, dtype: Any) -> Trace:
    """Allocate the arrays of one round."""
    h, before, kept, slope, point = (np.zeros((d, N), dtype) for _ in range(5))
    return Trace(output_of(d), h, before, kept, np.zeros(d, dtype), slope, point)


@kernel
class Span(NamedTuple):
    """Algorithm 1, which competes with the span of the base functions."""

    eta: Array  # [N] the step size, the same for every copy
    sigma: Array  # [N] the shrinkage, tuned by online gradient descent in line 14
    t: Array  # [1] the number of rounds learned
    B: float  # the partial sums are projected onto the ball of radius B
    L_B: float  # the Lipschitz constant of the losses on that ball
    scale: float  # lambda: every weak prediction is multiplied by it
    at_final: bool  # corollary 1: take every gradient at the answer y_t^N

    @property
    def sound(self) -> bool:
        """Whether the shrinkage is in [0, 1]."""
        return bool(((self.sigma >= 0) & (self.sigma <= 1)).all())

    def only(self, i: int) -> "Span":
        """Return the algorithm of copy i alone."""
        eta, sigma = self.eta[i, None], self.sigma[i, None]
        return Span(eta, sigma, self.t, self.B, self.L_B, self.scale, self.at_final)

    def rewind(self, rounds: int) -> None:
        """Set t back, so that another copy can learn the same rounds."""
        self.t[0] -= rounds

    def begin(self, trace: Trace) -> None:
        """Line 6: start at y_t^0 = 0."""
        for k in range(trace.output.number()):
            trace.y[k] = 0

    def forward(self, trace: Trace) -> None:
        """Lines 7-10: add the weak predictions to the partial sum; the last one is the answer."""
        one, d, y = self.eta.dtype.type(1), trace.output.number(), trace.y
        for i in range(self.eta.shape[0]):  # line 7
            keep = one - self.sigma[i] * self.eta[i]
            for k in range(d):  # line 8
                trace.before[k, i] = y[k]
                trace.kept[k, i] = keep * y[k]
                y[k] = trace.kept[k, i] + self.eta[i] * (self.scale * trace.h[k, i])
            trace.output.project(y, self.B)

    def backward(self, loss: VectorLoss, label: Array, weight: float, trace: Trace) -> None:
        """Lines 11-15: derive a linear loss for each copy from the loss, and update sigma."""
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
    """Algorithm 2, which competes with the convex hull of the base functions."""

    eta: Array  # [N] line 1: eta_i = 2 / (i + 1)
    L_D: float  # the Lipschitz constant of the losses on the ball of radius D
    scale: float  # lambda: every weak prediction is multiplied by it
    at_final: bool  # non-smooth losses: take every gradient at the answer y_t^N
    linear: bool  # whether the feedback is linear; greedy feedback needs no slopes

    def only(self, i: int) -> "Hull":
        """Return the algorithm of copy i alone."""
        return Hull(self.eta[i, None], self.L_D, self.scale, self.at_final, self.linear)

    def rewind(self, rounds: int) -> None:
        """Do nothing: no step depends on the number of the round."""

    def begin(self, trace: Trace) -> None:
        """Line 4: start at y_t^0 = 0."""
        for k in range(trace.output.number()):
            trace.y[k] = 0

    def forward(self, trace: Trace) -> None:
        """Lines 5-8: add the weak predictions to the partial sum; the last one is the answer."""
        one, d, y = self.eta.dtype.type(1), trace.output.number(), trace.y
        for i in range(self.eta.shape[0]):  # line 5
            keep = one - self.eta[i]
            for k in range(d):  # line 6
                trace.before[k, i] = y[k]
                trace.kept[k, i] = keep * y[k]
                y[k] = trace.kept[k, i] + self.eta[i] * (self.scale * trace.h[k, i])

    def backward(self, loss: VectorLoss, label: Array, weight: float, trace: Trace) -> None:
        """Lines 9-12: derive a linear loss for each copy from the loss."""
        if not self.linear:
            return
        gradients(loss, label, weight, self.at_final, trace)
        for k in range(trace.y.shape[0]):
            slope = trace.slope[k]
            for i in range(slope.shape[0]):  # lines 10-11
                slope[i] /= self.L_D


@kernel
def gradients(loss: VectorLoss, label: Array, weight: float, at_final: bool, trace: Trace) -> None:
    """Set slope[:, i] to the gradient of w l_t at y_t^{i-1}, or at y_t^N (corollary 1)."""
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
