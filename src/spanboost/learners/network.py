"""Two-layer networks: sigmoid units between normalised features and a linear output.

Unit j of a copy is s_j = tanh(a_j / 2), where a_j is the sum of W_fj z_f over the features f of a
row. Output k is V_0k + sum_j V_jk s_j. The steps are those of descent.py, applied to the linearised
network: every weight steps along its own gradient, divided by the root of the sum of its squared
gradients. One factor per copy scales all these steps. It follows the gradient flow of the loss, and
depends on how far the outputs move if all weights step together.

The output layer starts at 0. Each W_fj starts at a pseudo-random number between -1 and 1, a hash of
the seed, the copy, the unit and the feature. So the copies differ, and a weight's start depends
neither on the number of copies nor on when its feature first appears.

Under linear feedback the functions are kept D-bounded. The units lie between -1 and 1, so it is
enough that sum_j ||V_j|| <= D, including the constant j = 0. Otherwise the output layer of the copy
is scaled down.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from spanboost.checks import is_integer
from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel
from spanboost.compiling.random_numbers import hash_integers
from spanboost.errors import ParameterError
from spanboost.learners.constructors import own_constructor
from spanboost.learners.descent import Descent, Steps, exponential
from spanboost.learners.feature_weights import (
    LEAST,
    FeatureWeights,
    new_feature_weights,
    rescale_squares,
    shrink_to_bound,
)
from spanboost.learners.protocol import BankSize, Feedback, Task
from spanboost.rows.block import Row


@own_constructor({"step": "rate"})
@dataclass(frozen=True, repr=False)
class Network(Descent):
    """Two-layer networks: `hidden` sigmoid units over all features, and a linear output."""

    hidden: int = 10

    def check(self, task: Task) -> None:
        """Raise a ValueError if a parameter is out of range."""
        super().check(task)
        if not (is_integer(self.hidden) and self.hidden >= 1):
            raise ParameterError("hidden", f"must be a positive integer (got {self.hidden!r})")

    def bank_size(self, n: int, d: int, features: int) -> BankSize:
        """Return the numbers in n copies: files contain `key`; the weights start at random."""
        units = int(self.hidden) * n
        return BankSize(units, units * features)

    def bank(self, task: Task) -> "NetworkBank":
        """Return N copies with different units and an output layer of 0."""
        H, d, n = int(self.hidden), task.d, task.n
        key = hash_integers(
            hash_integers(np.uint64(task.seed % 2**64)) + task.copy.astype(np.uint64)
        )

        def zeros(*shape: int) -> Array:
            return np.zeros(shape, self.dtype)

        return NetworkBank(
            inputs=new_feature_weights(H * n, self.dtype),
            V=zeros(1 + H, d, n),
            G=np.full((1 + H, d, n), LEAST, self.dtype),
            key=np.tile(key, H) + np.repeat(np.arange(H, dtype=np.uint64) << 40, n),
            D=np.dtype(self.dtype).type(task.D),
            steps=self.steps(task),
            scratch=NetworkScratch(
                unit=zeros(1 + H, n),
                raw=zeros(d, n),
                slope=zeros(d, n),
                back=zeros(H, n),
                rate=zeros(1 + H, d, n),
                reach=zeros(H, n),
                along=zeros(n),
                square=zeros(n),
                moved=zeros(n),
            ),
        )


class NetworkScratch(NamedTuple):
    """Scratch space, from `predict` to `update`."""

    unit: Array  # [1 + H, N] a constant 1, then the values of the units
    raw: Array  # [d, N] the predictions before the projection to norm D
    slope: Array  # [d, N] slopes of the losses
    back: Array  # [H, N] slopes of the losses with respect to the sums a
    rate: Array  # [1 + H, d, N] step factors of the output layer
    reach: Array  # [H, N] how far a unit of slope moves the sums a
    along: Array  # [N] slope . movement of the outputs, for step size 1; then the step size
    square: Array  # [N] squared norm of the movement
    moved: Array  # [N] movement of one output; then the reach


@kernel
class NetworkBank(NamedTuple):
    """N networks; lane j N + i of the inputs is unit j of copy i."""

    inputs: FeatureWeights
    V: Array  # [1 + H, d, N] the output layer, the constant first
    G: Array  # [1 + H, d, N] summed squared gradients of V
    key: Array  # [lane] hash keys of the initial weights of the inputs
    D: float  # bound on the functions under linear feedback
    steps: Steps
    scratch: NetworkScratch

    @property
    def predicts_with(self) -> tuple[str, ...]:
        """Names of the arrays that predictions depend on."""
        return ("inputs.S", "inputs.W", "V")

    def grown(self, features: int, width: int) -> "NetworkBank":
        """Return the same functions with room for more features and wider rows."""
        inputs, known = self.inputs.grown(features, width), len(self.inputs.W)
        for f in range(known, len(inputs.W), 1024):
            new = inputs.W[f : f + 1024]
            new[...] = initial_weights(self.key, np.arange(f, f + len(new), dtype=np.uint64))
        return self._replace(inputs=inputs)

    def rescale(self, a: float, b: float) -> None:
        """Multiply the functions by a, past slopes by b, and those of the units by a b."""
        self.V[...] *= a
        rescale_squares(self.G, b * b)
        rescale_squares(self.inputs.G, (a * b) ** 2, np.flatnonzero(self.inputs.S))

    def effects(self) -> tuple[Array, Array]:
        """Return the features seen, and how far each can move the predictions [features, N].

        The slope of tanh(a / 2) is at most 1/2.
        """
        seen = np.flatnonzero(self.inputs.S)
        units = np.abs(self.V[1:]).sum(axis=1)  # [H, N]
        inputs = np.abs(self.inputs.W[seen]).reshape(len(seen), *units.shape)
        return seen, (inputs * units).sum(axis=1) / 2

    def predict(self, x: Row, h: Array) -> None:
        """Compute the units, then the outputs, for all copies at once."""
        unit = self.scratch.unit
        unit[0].fill(1)
        sums = unit[1:].reshape(-1)
        self.inputs.sum_terms(x, sums)
        for i in range(sums.shape[0]):
            sums[i] = sigmoid(sums[i], sums)
        h.fill(0)
        for k in range(h.shape[0]):
            out, raw = h[k], self.scratch.raw[k]
            for j in range(unit.shape[0]):
                V, s = self.V[j, k], unit[j]
                for i in range(out.shape[0]):
                    out[i] += V[i] * s[i]
            for i in range(out.shape[0]):
                raw[i] = out[i]

    def update(self, x: Row, h: Array, feedback: Feedback) -> None:
        """Make one gradient step in every copy."""
        weight = feedback.weight
        self.steps.find_slopes(feedback, self.scratch.raw, h, self.scratch.slope)
        self.backpropagate()
        back, reach = self.scratch.back.reshape(-1), self.scratch.reach.reshape(-1)
        pace = self.inputs.prepare_steps(self.steps, x, weight, back, reach)
        pace_out = self.steps.pace(1.0, self.V.shape[0])
        self.measure_movement(weight, pace, pace_out)
        size, far, one = self.scratch.along, self.scratch.moved, back.dtype.type(1)
        for i in range(size.shape[0]):
            size[i] = self.steps.step_size(i, one, weight, far[i])
        self.move_units(x, pace)
        self.move_outputs(pace_out)
        feedback.restrain(self, 0)

    def backpropagate(self) -> None:
        """Set `back` to the slopes with respect to the sums a: (1 - s^2) / 2 times V . slope."""
        one, half = self.V.dtype.type(1), self.V.dtype.type(0.5)
        for j in range(self.scratch.back.shape[0]):
            back, s = self.scratch.back[j], self.scratch.unit[1 + j]
            back.fill(0)
            for k in range(self.V.shape[1]):
                slope, V = self.scratch.slope[k], self.V[1 + j, k]
                for i in range(back.shape[0]):
                    back[i] += slope[i] * V[i]
            for i in range(back.shape[0]):
                back[i] *= (one - s[i] * s[i]) * half

    def measure_movement(self, weight: float, pace: float, pace_out: float) -> None:
        """Set `moved` to the reach of each copy, |movement|^2 / (slope . movement).

        The movement is that of all outputs, for step size 1. Slopes are divided by the weight of
        the row, so that their squares do not overflow.
        """
        one, half = self.V.dtype.type(1), self.V.dtype.type(0.5)
        along, square, moved = self.scratch.along, self.scratch.square, self.scratch.moved
        along.fill(0)
        square.fill(0)
        for k in range(self.V.shape[1]):
            slope = self.scratch.slope[k]
            moved.fill(0)
            for j in range(self.V.shape[0]):
                self.accumulate_output(j, k, weight)
            for i in range(moved.shape[0]):
                moved[i] *= pace_out * (slope[i] / weight)
            for j in range(self.scratch.back.shape[0]):
                V, s = self.V[1 + j, k], self.scratch.unit[1 + j]
                back, far = self.scratch.back[j], self.scratch.reach[j]
                for i in range(moved.shape[0]):
                    bend = (one - s[i] * s[i]) * half
                    moved[i] += pace * (V[i] * bend * (back[i] / weight) * far[i])
            for i in range(moved.shape[0]):
                along[i] += slope[i] / weight * moved[i]
                square[i] += moved[i] * moved[i]
        for i in range(moved.shape[0]):
            moved[i] = square[i] / along[i] if along[i] > 0 else along.dtype.type(0)

    def accumulate_output(self, j: int, k: int, weight: float) -> None:
        """Do what `Steps.accumulate` does, for the weight of unit j in output k."""
        G, rate, s = self.G[j, k], self.scratch.rate[j, k], self.scratch.unit[j]
        slope, reach = self.scratch.slope[k], self.scratch.moved
        if self.steps.decay < 0:
            one = G.dtype.type(1)
            for i in range(s.shape[0]):
                gradient = slope[i] * s[i]
                G[i] += gradient * (gradient / weight)
                rate[i] = one / np.sqrt(G[i])
        else:
            rate.fill(self.steps.decayed_step(self.inputs.seen[0]))
        for i in range(s.shape[0]):
            reach[i] += s[i] * s[i] * rate[i]

    def move_units(self, x: Row, pace: float) -> None:
        """Move the weights of the units by one step."""
        size = self.scratch.along
        for j in range(self.scratch.back.shape[0]):
            back = self.scratch.back[j]
            for i in range(back.shape[0]):
                back[i] *= size[i] * pace
        step = self.scratch.back.reshape(-1)
        for a in range(x.feature.shape[0]):
            self.inputs.move(x, a, step)

    def move_outputs(self, pace_out: float) -> None:
        """Move the output layer by one step."""
        size = self.scratch.along
        for k in range(self.V.shape[1]):
            slope = self.scratch.slope[k]
            for i in range(slope.shape[0]):
                slope[i] *= size[i] * pace_out
            for j in range(self.V.shape[0]):
                V, s, rate = self.V[j, k], self.scratch.unit[j], self.scratch.rate[j, k]
                for i in range(slope.shape[0]):
                    V[i] -= slope[i] * s[i] * rate[i]

    def hold(self, f: int) -> None:
        """Scale down the output layers of copies whose functions could exceed D."""
        shrink_to_bound(self.V, self.D)


@kernel
def sigmoid(a: float, like: Array) -> float:
    """Return tanh(a / 2)."""
    one = like.dtype.type(1)
    e = exponential(abs(a), like)
    s = (e - one) / (e + one)
    return s if a > 0 else -s


def initial_weights(key: Array, features: Array) -> Array:
    """Return pseudo-random numbers in (-1, 1), [feature, lane]."""
    bits = hash_integers(key + hash_integers(features)[:, None])
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-52 - (1 - 2.0**-53)
