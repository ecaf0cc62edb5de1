"""Linear functions by stochastic gradient descent: adaptive, normalised, importance-invariant.

The learner of the paper's experiments, "VW's default linear learner": a sum of W_f z_f over the
normalised features z of a row, each weight stepping along its own gradient (descent.py).

Under linear feedback the slope never vanishes and nothing stops the weights, so there the functions
themselves are kept D-bounded: sum |W| <= D over features and outputs, by shrinking all weights of a
copy together.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel
from spanboost.learners.descent import Descent, Steps
from spanboost.learners.feature_weights import FeatureWeights, new_feature_weights, rescale_squares
from spanboost.learners.protocol import Feedback, Task
from spanboost.rows.block import Row


@dataclass(frozen=True)
class LinearSGD(Descent):
    """One weight for each feature and a constant."""

    def bank(self, task: Task) -> "LinearBank":
        """N copies, all weights 0."""
        raw, slope, reach = np.zeros((3, task.d, task.n), self.dtype)
        return LinearBank(
            inputs=new_feature_weights(task.d * task.n, self.dtype),
            keep=np.ones(task.n, self.dtype),
            mass=np.zeros(task.n),
            D=np.float64(task.D),
            steps=self.steps(task),
            scratch=LinearScratch(raw, slope, reach),
        )


class LinearScratch(NamedTuple):
    """What a round leaves for its update."""

    raw: Array  # [d, N] what was predicted, before it was cut to norm D
    slope: Array  # [d, N] of the losses
    reach: Array  # [d, N] how far a unit of slope moves the prediction


@kernel
class LinearBank(NamedTuple):
    """N linear functions, of d outputs each: d N lanes."""

    inputs: FeatureWeights  # whose weights are to be multiplied by `keep`
    keep: Array  # [N]
    mass: Array  # [N] sum of |W|, kept under linear feedback
    D: float  # bound of the functions there
    steps: Steps
    scratch: LinearScratch

    def grown(self, features: int, width: int) -> "LinearBank":
        """The same functions, with room for more features and wider rows."""
        return self._replace(inputs=self.inputs.grown(features, width))

    def rescale(self, a: float, b: float) -> None:
        """In wider units: functions times a, slopes times b."""
        seen = np.flatnonzero(self.inputs.S)
        self.inputs.W[seen] *= a
        self.mass[...] *= a
        rescale_squares(self.inputs.G, b * b, seen)

    def effects(self) -> tuple[Array, Array]:
        """The features seen, and how far each can move each copy's prediction [features, N]."""
        seen = np.flatnonzero(self.inputs.S)
        lanes = np.abs(self.inputs.W[seen]).reshape(len(seen), -1, len(self.keep))
        return seen, lanes.sum(axis=1) * self.keep

    def predict(self, x: Row, h: Array) -> None:
        """keep * sum_f W_f z_f, for all lanes at once."""
        self.inputs.sum_up(x, h.reshape(-1))
        for k in range(h.shape[0]):
            out, raw = h[k], self.scratch.raw[k]
            for i in range(out.shape[0]):
                out[i] *= self.keep[i]
                raw[i] = out[i]

    def update(self, x: Row, h: Array, feedback: Feedback) -> None:
        """One step of every copy."""
        lanes, reach = self.scratch.slope.reshape(-1), self.scratch.reach.reshape(-1)
        self.steps.ask(feedback, self.scratch.raw, h, self.scratch.slope)
        pace = self.inputs.measure(self.steps, x, feedback.weight, lanes, reach)
        for k in range(h.shape[0]):
            slope, far = self.scratch.slope[k], self.scratch.reach[k]
            for i in range(slope.shape[0]):
                slope[i] *= self.steps.size(i, pace, feedback.weight, far[i]) / self.keep[i]
        for a in range(x.feature.shape[0]):
            feedback.watch(self, x.feature[a], -1.0)
            self.inputs.move(x, a, lanes)
            feedback.watch(self, x.feature[a], 1.0)
        feedback.restrain(self, 0)

    def weigh(self, f: int, sign: float) -> None:
        """Add the weights of feature f to the mass, or take them away."""
        n = self.mass.shape[0]
        for first in range(0, self.inputs.W.shape[1], n):  # an output after the other
            W = self.inputs.W[f, first : first + n]
            for i in range(n):
                self.mass[i] += sign * abs(W[i])

    def hold(self, f: int) -> None:
        """Shrink the copies whose functions could exceed D: by `keep`, now and then for good."""
        for i in range(self.mass.shape[0]):
            if self.keep[i] * self.mass[i] > self.D:
                self.keep[i] = self.D / self.mass[i]
                if self.keep[i] < 1e-9:
                    self.fold(i)

    def fold(self, i: int) -> None:
        """The weights of copy i as they are meant."""
        for g in range(self.inputs.W.shape[0]):
            for lane in range(i, self.inputs.W.shape[1], self.mass.shape[0]):
                self.inputs.W[g, lane] *= self.keep[i]
        self.mass[i] *= self.keep[i]
        self.keep[i] = 1
