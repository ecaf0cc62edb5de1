"""Losses on R: the four of the paper (linear, p-norm, modified least squares, logistic) and others.

Labels lie in [-1, 1]. Losses with ``binary`` accept only the labels -1 and +1, because the paper's
constants for modified least squares and the logistic loss hold for those two labels only. (Under
modified least squares with y* = 1/2 and b = 1, projecting costs 1/4 per unit of distance, while the
paper states eps_1 = 0.)
"""

import math
from typing import NamedTuple

from spanboost.compiling.kernels import kernel
from spanboost.losses.protocol import require


@kernel
class Linear(NamedTuple):
    """l(y*, y) = -y* y."""

    @property
    def margin(self) -> bool:
        return True

    def value(self, label: float, y: float) -> float:
        return -label * y

    def gradient(self, label: float, y: float) -> float:
        return -label

    def L(self, b: float) -> float:
        return 1.0

    def beta(self, b: float) -> float:
        return 0.0

    def eps(self, b: float) -> float:
        return 1.0


@kernel
class Squared(NamedTuple):
    """l(y*, y) = (y* - y)^2, the p-norm loss with p = 2 (without a factor 1/2)."""

    def value(self, label: float, y: float) -> float:
        return (label - y) * (label - y)

    def gradient(self, label: float, y: float) -> float:
        return 2 * (y - label)

    def L(self, b: float) -> float:
        return 2 * (b + 1)

    def beta(self, b: float) -> float:
        return 2.0

    def eps(self, b: float) -> float:
        return max(2 * (1 - b), 0.0)


@kernel
class PNorm(NamedTuple):
    """l(y*, y) = |y* - y|^p for p >= 2."""

    p: float = 4.0

    def check(self) -> None:
        require(2 <= self.p < math.inf, self, "p", "p >= 2")

    @property
    def degree(self) -> float:
        return self.p

    def value(self, label: float, y: float) -> float:
        return math.pow(abs(label - y), self.p)

    def gradient(self, label: float, y: float) -> float:
        return math.copysign(self.p * math.pow(abs(y - label), self.p - 1), y - label)

    def L(self, b: float) -> float:
        return self.p * math.pow(b + 1, self.p - 1)

    def beta(self, b: float) -> float:
        return self.p * (self.p - 1) * math.pow(b + 1, self.p - 2)

    def eps(self, b: float) -> float:
        return self.p * math.pow(max(1 - b, 0.0), self.p - 1)


@kernel
class ModifiedLeastSquares(NamedTuple):
    """l(y*, y) = max{1 - y* y, 0}^2 / 2 for labels -1 and +1."""

    @property
    def binary(self) -> bool:
        return True

    def value(self, label: float, y: float) -> float:
        return max(1 - label * y, 0.0) ** 2 / 2

    def gradient(self, label: float, y: float) -> float:
        return -label * max(1 - label * y, 0.0)

    def L(self, b: float) -> float:
        return b + 1

    def beta(self, b: float) -> float:
        return 1.0

    def eps(self, b: float) -> float:
        return max(1 - b, 0.0)


@kernel
class Logistic(NamedTuple):
    """l(y*, y) = ln(1 + exp(-y* y)) for labels -1 and +1; y is the log-odds of +1."""

    @property
    def binary(self) -> bool:
        return True

    def value(self, label: float, y: float) -> float:
        m = label * y  # the exponents below are never positive, so exp cannot overflow
        return math.log1p(math.exp(-abs(m))) + max(-m, 0.0)

    def gradient(self, label: float, y: float) -> float:
        m = label * y
        e = math.exp(-abs(m))
        return -label * (e if m > 0 else 1.0) / (1 + e)

    def L(self, b: float) -> float:
        return 1 / (1 + math.exp(-b))

    def beta(self, b: float) -> float:
        return 0.25

    def eps(self, b: float) -> float:
        return math.exp(-b) / (1 + math.exp(-b))


@kernel
class Absolute(NamedTuple):
    """l(y*, y) = |y* - y|; not smooth."""

    @property
    def degree(self) -> float:
        return 1.0

    def value(self, label: float, y: float) -> float:
        return abs(label - y)

    def gradient(self, label: float, y: float) -> float:
        return 1.0 if y > label else -1.0 if y < label else 0.0

    def L(self, b: float) -> float:
        return 1.0

    def beta(self, b: float) -> float:
        return math.inf

    def eps(self, b: float) -> float:
        return 1.0 if b < 1 else 0.0  # a label can lie outside the ball while b < 1


@kernel
class Quantile(NamedTuple):
    """The pinball loss, minimised by the tau-quantile of the label; not smooth."""

    tau: float = 0.5

    def check(self) -> None:
        require(0 < self.tau < 1, self, "tau", "0 < tau < 1")

    @property
    def degree(self) -> float:
        return 1.0

    def value(self, label: float, y: float) -> float:
        return self.tau * max(label - y, 0.0) + (1 - self.tau) * max(y - label, 0.0)

    def gradient(self, label: float, y: float) -> float:
        return 1 - self.tau if y > label else -self.tau if y < label else 0.0

    def L(self, b: float) -> float:
        return max(self.tau, 1 - self.tau)

    def beta(self, b: float) -> float:
        return math.inf

    def eps(self, b: float) -> float:
        return max(self.tau, 1 - self.tau) if b < 1 else 0.0


@kernel
class Hinge(NamedTuple):
    """l(y*, y) = max{1 - y* y, 0} for labels -1 and +1; not smooth."""

    @property
    def binary(self) -> bool:
        return True

    def value(self, label: float, y: float) -> float:
        return max(1 - label * y, 0.0)

    def gradient(self, label: float, y: float) -> float:
        return -label if label * y < 1 else 0.0

    def L(self, b: float) -> float:
        return 1.0

    def beta(self, b: float) -> float:
        return math.inf

    def eps(self, b: float) -> float:
        return 1.0 if b < 1 else 0.0


@kernel
class Huber(NamedTuple):
    """Half the squared residual up to delta, linear with slope delta beyond."""

    delta: float = 0.1

    def check(self) -> None:
        require(0 < self.delta < math.inf, self, "delta", "delta > 0")

    def value(self, label: float, y: float) -> float:
        r = abs(label - y)
        q = min(r, self.delta)
        return q * (r - q / 2)

    def gradient(self, label: float, y: float) -> float:
        return max(min(y - label, self.delta), -self.delta)

    def L(self, b: float) -> float:
        return min(b + 1, self.delta)

    def beta(self, b: float) -> float:
        return 1.0

    def eps(self, b: float) -> float:
        return min(max(1 - b, 0.0), self.delta)
