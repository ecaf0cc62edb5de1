"""Linear functions by stochastic gradient descent: adaptive, normalised, importance-invariant.

This is the learner of the paper's experiments, "VW's default linear learner". A function is the sum
of W_f z_f over the normalised features z of a row. Each weight steps along its own gradient
(descent.py).

Under linear feedback the slope never vanishes, so the loss does not stop the weights from growing.
There the functions are kept D-bounded: if the sum of |W| over features and outputs exceeds D, all
weights of the copy are scaled down.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel
from spanboost.learners.constructors import own_constructor
from spanboost.learners.descent import Descent, Steps
from spanboost.learners.feature_weights import FeatureWeights, new_feature_weights, rescale_squares
from spanboost.learners.protocol import Feedback, Task
from spanboost.rows.block import Row

# Below it, `keep` is multiplied into the weights. Weights up to D / FAINTEST and their steps fit
# into 32 bits. A larger value costs time, because the weights of a copy are far apart in memory.
FAINTEST = 1e-20


@own_constructor({"step": "rate"})
@dataclass(frozen=True, repr=False)
class LinearSGD(Descent):
    """Linear functions: one weight for each feature, and a constant."""

    def bank(self, task: Task) -> "LinearBank":
        """Return N copies with all weights 0."""
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
    """Scratch space, from `predict` to `update`."""

    raw: Array  # [d, N] the predictions before the projection to norm D
    slope: Array  # [d, N] slopes of the losses
    reach: Array  # [d, N] how far a unit of slope moves the prediction


@kernel
class LinearBank(NamedTuple):
    """N linear functions with d outputs each, in d N lanes."""

    inputs: FeatureWeights  # the actual weights are these times `keep`
    keep: Array  # [N] factor that keeps a copy D-bounded
    mass: Array  # [N] sum of |W|; updated under linear feedback only
    D: float  # bound on the functions under linear feedback
    steps: Steps
    scratch: LinearScratch

    @property
    def predicts_with(self) -> tuple[str, ...]:
        """Names of the arrays that predictions depend on."""
        return ("inputs.S", "inputs.W", "keep")

    def grown(self, features: int, width: int) -> "LinearBank":
        """Return the same functions with room for more features and wider rows."""
        return self._replace(inputs=self.inputs.grown(features, width))

    def rescale(self, a: float, b: float) -> None:
        """Multiply the functions by a, and past slopes by b."""
        seen = np.flatnonzero(self.inputs.S)
        self.inputs.W[seen] *= a
        self.mass[...] *= a
        rescale_squares(self.inputs.G, b * b, seen)

    def effects(self) -> tuple[Array, Array]:
        """Return the features seen, and how far each can move the predictions [features, N]."""
        seen = np.flatnonzero(self.inputs.S)
        weights = np.abs(self.inputs.W[seen])  # with one column for each lane and output
        outputs = weights.shape[1] // len(self.keep)
        lanes = weights.reshape(len(seen), outputs, len(self.keep))
        return seen, lanes.sum(axis=1) * self.keep

    def predict(self, x: Row, h: Array) -> None:
        """Predict keep * sum_f W_f z_f, for all lanes at once."""
        self.inputs.sum_terms(x, h.reshape(-1))
        for k in range(h.shape[0]):
            out, raw = h[k], self.scratch.raw[k]
            for i in range(out.shape[0]):
                out[i] *= self.keep[i]
                raw[i] = out[i]

    def update(self, x: Row, h: Array, feedback: Feedback) -> None:
        """Make one gradient step in every copy."""
        lanes, reach = self.scratch.slope.reshape(-1), self.scratch.reach.reshape(-1)
        self.steps.find_slopes(feedback, self.scratch.raw, h, self.scratch.slope)
        pace = self.inputs.prepare_steps(self.steps, x, feedback.weight, lanes, reach)
        for k in range(h.shape[0]):
            slope, far = self.scratch.slope[k], self.scratch.reach[k]
            for i in range(slope.shape[0]):
                slope[i] *= self.steps.step_size(i, pace, feedback.weight, far[i]) / self.keep[i]
        for a in range(x.feature.shape[0]):
            feedback.watch(self, x.feature[a], -1.0)
            self.inputs.move(x, a, lanes)
            feedback.watch(self, x.feature[a], 1.0)
        feedback.restrain(self, 0)

    def weigh(self, f: int, sign: float) -> None:
        """Add (sign 1) or subtract (sign -1) the |weights| of feature f in the sum of |W|."""
        n = self.mass.shape[0]
        for first in range(0, self.inputs.W.shape[1], n):  # one output at a time
            W = self.inputs.W[f, first : first + n]
            for i in range(n):
                self.mass[i] += sign * abs(W[i])

    def hold(self, f: int) -> None:
        """Scale down, by `keep`, the copies whose functions could exceed D."""
        for i in range(self.mass.shape[0]):
            if self.keep[i] * self.mass[i] > self.D:
                self.keep[i] = self.D / self.mass[i]
                if self.keep[i] < FAINTEST:
                    self.fold(i)

    def fold(self, i: int) -> None:
        """Multiply the weights of copy i by `keep`, and reset `keep` to 1."""
        for g in range(self.inputs.W.shape[0]):
            if self.inputs.S[g] > 0:  # the others have weight 0
                for lane in range(i, self.inputs.W.shape[1], self.mass.shape[0]):
                    w = self.inputs.W[g, lane] * self.keep[i]
                    self.inputs.W[g, lane] = w if abs(w) > 1e-30 else 0  # subnormals are slow
        self.mass[i] *= self.keep[i]
        self.keep[i] = 1
