"""Rows learned copy by copy, as in stages.py, for predictions that are numbers.

A copy gets the rows of a chunk in three passes. The first one shrinks the partial sums and updates
sigma, which needs no weak predictions. In the second one, the copy predicts and learns each row.
The third one adds the predictions to the partial sums. Each pass is a short loop over numbers, so
the compiler keeps them in registers: all passes together take half the time of one loop over
tables. Results are those of loop.py, bit for bit.
"""

from typing import Any, NamedTuple, cast

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel
from spanboost.core.algorithms import Span
from spanboost.core.feedback import LinearMode
from spanboost.core.loop import BoosterState
from spanboost.core.stages import has_stages
from spanboost.losses import Loss
from spanboost.losses.vector import Scalar


class PassedRows(NamedTuple):
    """What one pass over the rows of a chunk leaves for the next."""

    rate: Array  # [ROWS] the step of sigma in the round of a row; the same for all copies
    kept: Array  # [ROWS] the shrunken partial sums
    slope: Array  # [ROWS] the slopes of the linear losses
    h: Array  # [ROWS] the weak predictions


def new_passed_rows(number: int, dtype: Any) -> PassedRows:
    """Return room for this many rows."""
    return PassedRows(*np.zeros((4, number), dtype))


@kernel
class ScalarSpan(NamedTuple):
    """Algorithm 1; the fields and the lines are those of `Span`."""

    eta: Array
    sigma: Array
    t: Array
    B: float
    L_B: float
    scale: float

    def begin_rows(self, weights: Array, passed: PassedRows) -> None:
        """Count the rounds, and set the steps of sigma."""
        one = self.eta.dtype.type(1)
        for t in range(weights.shape[0]):
            if weights[t] > 0:
                self.t[0] += 1
                rounds = self.eta.dtype.type(self.t[0])
                passed.rate[t] = one / (self.L_B * self.B * np.sqrt(rounds))

    def shrink_rows(
        self, i: int, loss: Loss, labels: Array, weights: Array, y: Array, passed: PassedRows
    ) -> None:
        """Shrink the partial sums of copy i, and do lines 11-15 with them."""
        zero, one = self.eta.dtype.type(0), self.eta.dtype.type(1)
        real, eta, sigma = self.eta.dtype.type, self.eta[i], self.sigma[i]
        for t in range(y.shape[0]):
            before, weight = y[t, 0], weights[t]
            passed.kept[t] = (one - sigma * eta) * before
            slope = real(loss.gradient(np.float64(labels[t, 0]), np.float64(before))) * weight
            passed.slope[t] = slope / self.L_B  # line 13
            if weight > 0:
                sigma = max(min(sigma + passed.rate[t] * (slope * before), one), zero)  # line 14
        self.sigma[i] = sigma

    def add_rows(self, i: int, y: Array, passed: PassedRows) -> None:
        """Add the predictions of copy i to the partial sums: lines 8-9."""
        for t in range(y.shape[0]):
            new = passed.kept[t] + self.eta[i] * (self.scale * passed.h[t])
            y[t, 0] = max(min(new, self.B), -self.B)


@kernel
class ScalarHull(NamedTuple):
    """Algorithm 2; the fields and the lines are those of `Hull`."""

    eta: Array
    L_D: float
    scale: float

    def begin_rows(self, weights: Array, passed: PassedRows) -> None:
        """Do nothing: no step depends on the number of the round."""

    def shrink_rows(
        self, i: int, loss: Loss, labels: Array, weights: Array, y: Array, passed: PassedRows
    ) -> None:
        """Shrink the partial sums of copy i, and do lines 9-12 with them."""
        real, keep = self.eta.dtype.type, self.eta.dtype.type(1) - self.eta[i]
        for t in range(y.shape[0]):
            before = y[t, 0]
            passed.kept[t] = keep * before
            slope = real(loss.gradient(np.float64(labels[t, 0]), np.float64(before))) * weights[t]
            passed.slope[t] = slope / self.L_D

    def add_rows(self, i: int, y: Array, passed: PassedRows) -> None:
        """Add the predictions of copy i to the partial sums: line 6."""
        for t in range(y.shape[0]):
            y[t, 0] = passed.kept[t] + self.eta[i] * (self.scale * passed.h[t])


@kernel
class ScalarLinear(NamedTuple):
    """Linear feedback, as in `LinearMode`."""

    def slope_at(
        self, i: int, loss: Loss, label: float, weight: float, y: float, t: int, passed: PassedRows
    ) -> float:
        """Return the slope of the loss that copy i gets for row t."""
        return passed.slope[t]


@kernel
class ScalarGreedy(NamedTuple):
    """Greedy feedback, as in `GreedyMode`."""

    alpha: Array
    shrunk: bool

    def slope_at(
        self, i: int, loss: Loss, label: float, weight: float, y: float, t: int, passed: PassedRows
    ) -> float:
        """Return the slope of the loss that copy i gets for row t."""
        offset, alpha = passed.kept[t] if self.shrunk else y, self.alpha[i]
        point = offset + alpha * passed.h[t]
        slope = self.alpha.dtype.type(loss.gradient(np.float64(label), np.float64(point)))
        return slope * (weight * alpha)


class ScalarState(NamedTuple):
    """The state of a booster whose predictions are numbers; it shares the arrays."""

    algorithm: ScalarSpan | ScalarHull
    mode: Any  # ScalarLinear or ScalarGreedy
    loss: Loss
    bank: Any
    D: float


def has_scalar_stages(model: BoosterState) -> bool:
    """Return whether a booster can learn copy by copy with plain numbers."""
    return has_stages(model) and type(model.loss) is Scalar


def scalar_state(model: BoosterState) -> ScalarState:
    """Return the state of a booster as `learn_scalar_stages` takes it."""
    given, mode, loss = model.algorithm, model.mode, cast("Scalar", model.loss).loss
    if isinstance(given, Span):
        fields = given.eta, given.sigma, given.t, given.B, given.L_B, given.scale
        algorithm: Any = ScalarSpan(*fields)
    else:
        algorithm = ScalarHull(given.eta, given.L_D, given.scale)
    if isinstance(mode, LinearMode):
        return ScalarState(algorithm, ScalarLinear(), loss, model.bank, model.D)
    return ScalarState(algorithm, ScalarGreedy(mode.alpha, mode.shrunk), loss, model.bank, model.D)


def learn_scalar_stages(
    model: ScalarState, X: Any, labels: Array, weights: Array, out: Array, first: int, last: int
) -> None:
    """Learn as `learn` of loop.py does."""
    while first < last:
        stop = model.bank.load_rows(X, first, last)
        rows = slice(first, stop)
        learn_chunk(model, labels[rows], weights[rows], out[rows], model.bank.scratch.passed)
        first = stop


@kernel
def learn_chunk(
    model: ScalarState, labels: Array, weights: Array, y: Array, passed: PassedRows
) -> None:
    """Learn rows that are loaded; y[t] holds y_t^i after copy i."""
    algorithm, loss = model.algorithm, model.loss
    algorithm.begin_rows(weights, passed)
    for t in range(y.shape[0]):
        y[t, 0] = 0
    for i in range(algorithm.eta.shape[0]):
        algorithm.shrink_rows(i, loss, labels, weights, y, passed)
        learn_copy(model, i, labels, weights, y, passed)
        algorithm.add_rows(i, y, passed)
    model.bank.finish_rows(weights)


@kernel
def learn_copy(
    model: ScalarState, i: int, labels: Array, weights: Array, y: Array, passed: PassedRows
) -> None:
    """Let copy i predict the loaded rows, and learn each of them after its prediction."""
    copy, learned = model.bank.stage(i), 0
    for t in range(y.shape[0]):
        h, weight = max(min(copy.predict_number(t), model.D), -model.D), weights[t]
        passed.h[t] = h
        if weight > 0:
            row = labels[t, 0], weight, y[t, 0]
            slope = model.mode.slope_at(i, model.loss, *row, t, passed)
            copy.learn_number(t, learned, h, slope, weight)
            learned += 1
