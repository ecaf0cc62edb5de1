"""Losses on R^d. Predictions are the columns of Y[output, copy]; one call handles all copies."""

import math
from typing import Any, NamedTuple

import numpy as np

from spanboost.checks import is_integer
from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import jit, kernel
from spanboost.compiling.vectors import largest, total
from spanboost.losses.protocol import Loss, require

SERIES = tuple(1 / math.factorial(k) for k in range(8))  # the coefficients of exp


@kernel
class Scalar(NamedTuple):
    """A scalar loss as a loss on R^1, for boosters whose predictions are numbers."""

    loss: Loss

    @property
    def d(self) -> int:
        return 1

    def values(self, label: Array, Y: Array, out: Array) -> None:
        y_star, y = np.float64(label[0]), Y[0]
        for i in range(y.shape[0]):
            out[i] = self.loss.value(y_star, np.float64(y[i]))

    def gradients(self, label: Array, Y: Array, out: Array) -> None:
        # in double precision, rounded once, so that compiled code and plain Python agree exactly
        y_star, y, g = np.float64(label[0]), Y[0], out[0]
        for i in range(y.shape[0]):
            g[i] = self.loss.gradient(y_star, np.float64(y[i]))


@kernel
class SquaredEuclidean(NamedTuple):
    """l(y*, y) = ||y* - y||_2^2 in R^d, for labels with ||y*||_2 <= 1."""

    d: int

    def check(self) -> None:
        require(is_integer(self.d) and self.d >= 1, self, "d", "d >= 1, a whole number")

    def values(self, label: Array, Y: Array, out: Array) -> None:
        for i in range(Y.shape[1]):
            total = np.float64(0)
            for k in range(Y.shape[0]):
                r = np.float64(label[k]) - np.float64(Y[k, i])
                total += r * r
            out[i] = total

    def gradients(self, label: Array, Y: Array, out: Array) -> None:
        for k in range(Y.shape[0]):
            y_star, y, g = np.float64(label[k]), Y[k], out[k]
            for i in range(y.shape[0]):
                g[i] = 2 * (np.float64(y[i]) - y_star)

    def L(self, b: float) -> float:
        return 2 * (b + 1)

    def beta(self, b: float) -> float:
        return 2.0

    def eps(self, b: float) -> float:
        return max(2 * (1 - b), 0.0)


@kernel
class Softmax(NamedTuple):
    """Cross-entropy ln sum_j exp(y_j) - y_c of class c, whose label is the unit vector e_c.

    Norms are Euclidean. For d classes L_b <= sqrt(2) s(sqrt(2) b + ln(d - 1)), where s is the
    logistic function; this is exact for d = 2. beta_b <= 1/2. eps_b is exact: adding a number to
    all scores does not change the loss, so on the sphere of radius b the score of the class can
    exceed the others by b delta for any delta up to sqrt(d / (d - 1)), and
    eps_b = max_delta delta / (1 + exp(b delta) / (d - 1)). Without the bound on delta the maximum
    is W((d - 1) / e) / b, with Lambert's W, attained at b delta = 1 + W.
    """

    d: int

    def check(self) -> None:
        require(is_integer(self.d) and self.d >= 2, self, "d", "d >= 2, a whole number")

    @property
    def margin(self) -> bool:
        return True

    def values(self, label: Array, Y: Array, out: Array) -> None:
        for i in range(Y.shape[1]):
            top = np.float64(Y[0, i])
            for k in range(1, Y.shape[0]):
                top = max(top, np.float64(Y[k, i]))
            total, score = np.float64(0), np.float64(0)
            for k in range(Y.shape[0]):
                total += math.exp(np.float64(Y[k, i]) - top)
                score += np.float64(label[k]) * np.float64(Y[k, i])
            out[i] = math.log(total) + top - score

    def gradients(self, label: Array, Y: Array, out: Array) -> None:
        d, N = Y.shape
        if N == 1:  # known to the compiler in this branch, so the loops over classes vectorise
            top = np.float64(largest(Y[:, 0]))
            for k in range(d):
                out[k, 0] = exp_below(np.float64(Y[k, 0]) - top)
            share = 1 / total(out[:, 0])
            for k in range(d):
                out[k, 0] = np.float64(out[k, 0]) * share - np.float64(label[k])
            return
        # loops over copies vectorise; row 0 of `out` holds the largest score of each copy at first
        for i in range(N):
            out[0, i] = largest(Y[:, i])
        for k in range(1, d):
            for i in range(N):
                out[k, i] = exp_below(np.float64(Y[k, i]) - np.float64(out[0, i]))
        for i in range(N):
            out[0, i] = exp_below(np.float64(Y[0, i]) - np.float64(out[0, i]))
            share = 1 / total(out[:, i])
            for k in range(d):
                out[k, i] = np.float64(out[k, i]) * share - np.float64(label[k])

    def L(self, b: float) -> float:
        return math.sqrt(2) / (1 + math.exp(-math.sqrt(2) * b) / (self.d - 1))

    def beta(self, b: float) -> float:
        return 0.5

    def eps(self, b: float) -> float:
        w = _lambert_w((self.d - 1) / math.e)
        delta = min((1 + w) / b, math.sqrt(self.d / (self.d - 1)))
        return delta / (1 + math.exp(b * delta) / (self.d - 1))


@kernel
def exp_below(x: float) -> float:
    """Return exp(x) for x <= 0, without a branch or a call, so that loops vectorise.

    The power series of exp(x / 1024), whose terms are added in pairs so that few of them wait for
    another, then ten squarings. The relative error is below 1e-12 for x >= -40 and below 1e-9 for
    x >= -100; smaller numbers count as -100.
    """
    x = max(x, -100.0) * (1 / 1024)
    square = x * x
    low = (1.0 + x) + square * (SERIES[2] + x * SERIES[3])
    high = (SERIES[4] + x * SERIES[5]) + square * (SERIES[6] + x * SERIES[7])
    y = low + square * square * high
    for _ in range(10):
        y *= y
    return y


def _lambert_w(x: float) -> float:
    """Return the w >= 0 with w exp(w) = x, by Newton's method."""
    w = math.log1p(x)
    for _ in range(50):
        w -= (w - x * math.exp(-w)) / (1 + w)
    return w


def on_vectors(loss: Any) -> Any:
    """Return the loss as a loss on R^d; a scalar loss is wrapped in `Scalar`."""
    if callable(getattr(loss, "values", None)) and callable(getattr(loss, "gradients", None)):
        return loss
    for name in ("value", "gradient"):
        if not callable(getattr(loss, name, None)):
            raise ValueError(f"the loss {type(loss).__name__} has no method {name}(label, y)")
    return Scalar(loss)


def values_of(loss: Any, labels: Array, Y: Array) -> Array:
    """Return the losses of predictions Y[rows, d] under labels[rows, d], contiguous float64."""
    out = np.empty(len(Y))
    _values(loss, labels, Y, out)
    return out


def write_values(loss: Any, labels: Array, Y: Array, out: Array) -> None:
    """Set out[t] to the loss of prediction Y[t] under labels[t]."""
    for t in range(Y.shape[0]):
        loss.values(labels[t], Y[t].reshape((-1, 1)), out[t : t + 1])


_values = jit(write_values)
