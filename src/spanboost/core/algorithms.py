"""Algorithm 1 (span) and Algorithm 2 (hull) of *Online Gradient Boosting*, line by line.

Each round has four steps (see loop.py). All N copies of the weak learner predict; `forward`
combines their predictions h into the answer; `backward` derives a loss per copy; all copies learn.

The arrays of one round are in a `Trace` (trace.py): ``h[k, i]`` is output k of copy A^{i+1}.

`only(i)` is the part of the round that belongs to copy i. Unless `at_final`, it needs nothing from
the copies after it, so a block of rows can also be learned copy by copy (stages.py).
"""

from typing import NamedTuple

import numpy as np

from spanboost.checks import is_round_count
from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel
from spanboost.compiling.vectors import dot
from spanboost.core.trace import Trace, gradients
from spanboost.losses import VectorLoss


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
        """Whether the shrinkage is in [0, 1], and every round that follows has a step."""
        return bool(((self.sigma >= 0) & (self.sigma <= 1)).all()) and is_round_count(self.t[0])

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
            along = dot(trace.slope[:, i], trace.before[:, i])
            for k in range(d):
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
