"""Linear functions by stochastic gradient descent: adaptive, normalised, importance-invariant.

The learner of the paper's experiments, "VW's default linear learner": a sum of U_f z_f over the
normalised features z of a row (see descent.py), U_f stepping along its own gradient by rate / root
of G_f, the sum of its squares.

Under linear feedback the slope never vanishes and nothing stops the weights, so there the functions
themselves are kept D-bounded: sum_f |U_f| <= D, by shrinking all weights of a copy together.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from spanboost._jit import kernel
from spanboost.arrays import Array
from spanboost.block import Row
from spanboost.learners.descent import LEAST, Descent, Steps, more, normalise, shrink, widen
from spanboost.learners.protocol import Feedback, Task


@dataclass(frozen=True)
class LinearSGD(Descent):
    """One weight for each feature and a constant."""

    def bank(self, task: Task) -> "LinearBank":
        """N copies, all weights 0."""
        lanes = (0, task.d * task.n)
        shape = (task.d, task.n)
        return LinearBank(
            U=np.zeros(lanes, self.dtype),
            G=np.zeros(lanes, self.dtype),
            S=np.zeros(0, self.dtype),
            seen=np.zeros(2),
            keep=np.ones(task.n, self.dtype),
            mass=np.zeros(task.n),
            D=np.float64(task.D),
            steps=self.steps(task),
            scratch=LinearScratch(
                slope=np.zeros(shape, self.dtype),
                reach=np.zeros(shape, self.dtype),
                rates=np.zeros(lanes, self.dtype),
            ),
        )


class LinearScratch(NamedTuple):
    """What a round leaves for its update."""

    slope: Array  # [d, N] of the losses, at what was predicted
    reach: Array  # [d, N] how far a unit of slope moves the prediction
    rates: Array  # [width, lane] how far each lane steps along its gradient


@kernel
class LinearBank(NamedTuple):
    """N linear functions, of d outputs each: d N lanes, those of one feature side by side."""

    U: Array  # [feature, lane] weights of the normalised features, to be multiplied by `keep`
    G: Array  # [feature, lane] summed squared gradients
    S: Array  # [feature] largest |x| seen
    seen: Array  # [2] rows learned, and the sum of z^2 in them
    keep: Array  # [N]
    mass: Array  # [N] sum of |U|, kept under linear feedback
    D: float  # bound of the functions there
    steps: Steps
    scratch: LinearScratch

    def grown(self, features: int, width: int) -> "LinearBank":
        """The same functions, with room for more features and wider rows."""
        return self._replace(
            U=more(self.U, features),
            G=more(self.G, features, LEAST),
            S=more(self.S, features),
            scratch=self.scratch._replace(rates=more(self.scratch.rates, width)),
        )

    def rescale(self, a: float, b: float) -> None:
        """In wider units: functions times a, slopes times b."""
        np.multiply(self.U, a, out=self.U)
        np.multiply(self.mass, a, out=self.mass)
        shrink(self.G, b * b)

    def predict(self, x: Row, h: Array) -> None:
        """keep * sum_f U_f z_f, for all lanes at once."""
        normalise(self.S, x)
        h.fill(0)
        out = h.reshape(-1)
        for a in range(x.feature.shape[0]):
            z = x.z[a]
            if z != 0:
                U = self.U[x.feature[a]]
                for i in range(out.shape[0]):
                    out[i] += U[i] * z
        for k in range(h.shape[0]):
            out = h[k]
            for i in range(out.shape[0]):
                out[i] *= self.keep[i]

    def update(self, x: Row, h: Array, feedback: Feedback) -> None:
        """One step of every copy."""
        feedback.slopes(h, self.scratch.slope)
        pace = self.measure(x, feedback.weight)
        for k in range(h.shape[0]):
            slope, reach = self.scratch.slope[k], self.scratch.reach[k]
            for i in range(slope.shape[0]):
                slope[i] *= self.steps.size(i, pace, feedback.weight, reach[i]) / self.keep[i]
        step = self.scratch.slope.reshape(-1)
        for a in range(x.feature.shape[0]):
            f = x.feature[a]
            z, U, rate = x.z[a], self.U[f], self.scratch.rates[a]
            feedback.watch(self, f, -1.0)
            for i in range(step.shape[0]):
                U[i] -= step[i] * z * rate[i]
            feedback.watch(self, f, 1.0)
        feedback.restrain(self, 0)

    def measure(self, x: Row, weight: float) -> float:
        """Learn scales and squared gradients: how far each lane will step, and its reach."""
        slope, reach = self.scratch.slope.reshape(-1), self.scratch.reach.reshape(-1)
        least = slope.dtype.type(LEAST)
        reach.fill(0)
        self.seen[0] += weight
        for a in range(x.feature.shape[0]):
            G, rate = self.G[x.feature[a]], self.scratch.rates[a]
            part = widen(self.S, x, a)
            if part < 1:
                for i in range(G.shape[0]):
                    G[i] = max(G[i] * part * part, least)
            z = x.z[a]
            square = z * z
            self.seen[1] += weight * square
            self.steps.gather(G, slope, square, weight, self.seen[0], rate, reach)
        return self.steps.pace(self.seen[0], self.seen[1])

    def weigh(self, f: int, sign: float) -> None:
        """Add the weights of feature f to the mass, or take them away."""
        U, n = self.U[f], self.mass.shape[0]
        for i in range(U.shape[0]):
            self.mass[i % n] += sign * abs(U[i])

    def hold(self, f: int) -> None:
        """Shrink the copies whose functions could exceed D: by `keep`, now and then for good."""
        n = self.mass.shape[0]
        low = self.keep[0]
        for i in range(n):
            if self.keep[i] * self.mass[i] > self.D:
                self.keep[i] = self.D / self.mass[i]
            low = min(low, self.keep[i])
        if low < 1e-9:
            for g in range(self.U.shape[0]):
                U = self.U[g]
                for i in range(U.shape[0]):
                    U[i] *= self.keep[i % n]
            for i in range(n):
                self.mass[i] *= self.keep[i]
            self.keep.fill(1)
