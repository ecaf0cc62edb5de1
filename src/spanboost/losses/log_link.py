"""Losses of counts and positive numbers: the prediction y is the logarithm of the mean.

Each value is half the unit deviance of a Tweedie distribution of power p: Poisson (p = 1), Gamma
(p = 2) or between. With the mean m = exp(y) and the ratio r = y* / m, the gradient is
m^(2 - p) (1 - r). All three losses are convex in y.

The constants hold for labels in [0, 2], as a fixed label range (low, high) scales them: its middle
is 1. Labels have no upper end with label_range="auto", so nothing is proved there.
"""

import math
from typing import NamedTuple

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel
from spanboost.losses.protocol import VectorLoss, require

FARTHEST = 700.0  # exp of larger numbers overflows
MOST = 2.0  # largest label for which the constants hold


@kernel
def mean_of(y: float) -> float:
    """Return exp(y), which is always finite."""
    return math.exp(min(y, FARTHEST))


@kernel
def swing(ratio: float) -> float:
    """Return the factor by which a label above the mean raises the curvature.

    It is the slope of the chord from the mean to the label, so a step of slope over curvature ends
    at the label, however large that is.
    """
    return (ratio - 1) / math.log(ratio) if ratio > 1.0001 else 1.0


@kernel
class Poisson(NamedTuple):
    """l(y*, y) = exp(y) - y* y + y* ln y* - y* for labels of at least 0, such as counts."""

    @property
    def log_link(self) -> bool:
        return True

    @property
    def power(self) -> float:
        return 1.0

    @property
    def takes_zero(self) -> bool:
        return True

    def value(self, label: float, y: float) -> float:
        known = label * (math.log(label) - y - 1) if label > 0 else 0.0
        return max(mean_of(y) + known, 0.0)

    def gradient(self, label: float, y: float) -> float:
        return mean_of(y) - label

    def curvature(self, label: float, y: float) -> float:
        return mean_of(y) * swing(label / mean_of(y))

    def L(self, b: float) -> float:
        return math.exp(b)  # at 0 and b; with the label 2 at -b it is 2 - exp(-b), which is less

    def beta(self, b: float) -> float:
        return math.exp(b)

    def eps(self, b: float) -> float:
        return math.exp(-b)  # of the label 0 at -b; that of the label 2 at b is less


@kernel
class Gamma(NamedTuple):
    """l(y*, y) = y* exp(-y) - 1 - ln(y* exp(-y)) for labels above 0."""

    @property
    def log_link(self) -> bool:
        return True

    @property
    def power(self) -> float:
        return 2.0

    @property
    def takes_zero(self) -> bool:
        return False

    def value(self, label: float, y: float) -> float:
        if label <= 0:
            return math.inf
        return max(label * mean_of(-y) - 1 - (math.log(label) - y), 0.0)

    def gradient(self, label: float, y: float) -> float:
        return 1 - label * mean_of(-y)

    def curvature(self, label: float, y: float) -> float:
        return swing(label * mean_of(-y))

    def L(self, b: float) -> float:
        return MOST * math.exp(b) - 1

    def beta(self, b: float) -> float:
        return MOST * math.exp(b)

    def eps(self, b: float) -> float:
        return 1.0  # of labels close to 0, at -b


@kernel
class Tweedie(NamedTuple):
    """Half the unit deviance of power p between 1 and 2, for labels of at least 0.

    Many labels may be 0, and the others any positive numbers: rainfall, the cost of claims.
    """

    power: float = 1.5

    def check(self) -> None:
        require(1 < self.power < 2, self, "power", "1 < power < 2")

    @property
    def log_link(self) -> bool:
        return True

    @property
    def takes_zero(self) -> bool:
        return True

    def value(self, label: float, y: float) -> float:
        p = self.power
        above = mean_of((2 - p) * y) / (2 - p)
        if label <= 0:
            return above
        constant = math.pow(label, 2 - p) / ((p - 1) * (2 - p))
        return max(above + label * mean_of((1 - p) * y) / (p - 1) - constant, 0.0)

    def gradient(self, label: float, y: float) -> float:
        p = self.power
        return mean_of((2 - p) * y) - label * mean_of((1 - p) * y)

    def curvature(self, label: float, y: float) -> float:
        return mean_of((2 - self.power) * y) * swing(label * mean_of(-y))

    def L(self, b: float) -> float:
        p = self.power
        low = MOST * math.exp((p - 1) * b) - math.exp((p - 2) * b)  # of the label 2, at -b
        return max(math.exp((2 - p) * b), low)

    def beta(self, b: float) -> float:
        p = self.power  # the second derivative is convex in y, so it is largest at an end
        high = (2 - p) * math.exp((2 - p) * b) + MOST * (p - 1) * math.exp((1 - p) * b)
        low = (2 - p) * math.exp((p - 2) * b) + MOST * (p - 1) * math.exp((p - 1) * b)
        return max(high, low)

    def eps(self, b: float) -> float:
        return math.exp((self.power - 2) * b)  # of the label 0 at -b; that of 2 at b is less


@kernel
class ScaledLoss(NamedTuple):
    """A loss divided by a number."""

    loss: VectorLoss
    unit: float

    @property
    def d(self) -> int:
        return self.loss.d

    def values(self, label: Array, Y: Array, out: Array) -> None:
        self.loss.values(label, Y, out)
        for i in range(out.shape[0]):
            out[i] /= self.unit

    def gradients(self, label: Array, Y: Array, out: Array) -> None:
        self.loss.gradients(label, Y, out)
        for k in range(out.shape[0]):
            slope = out[k]
            for i in range(slope.shape[0]):
                slope[i] /= self.unit
