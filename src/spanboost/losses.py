"""Loss functions and the constants the paper asks of them: L_b, beta_b, eps_b, and the radius B.

A scalar loss is a small object. ``value`` and ``gradient`` take a label y* and a prediction y;
``L``, ``beta`` and ``eps`` give, for the ball of radius b > 0 ("Loss function classes"),

- ``L(b)``: the largest norm of a (sub)gradient inside the ball,
- ``beta(b)``: the smoothness inside the ball, infinity for a loss with a kink,
- ``eps(b)``: how much can be lost, per unit of distance, by projecting a prediction onto the ball.

Labels are in [-1, 1], or just -1 and +1 where ``binary`` is true: the constants printed in the paper
for modified least squares and the logistic loss hold for those two labels only. (At y* = 1/2 and
b = 1 projecting loses 1/4 per unit of distance under modified least squares; the printed eps_1 is 0.)
``margin`` says that a prediction is a score whose sign is the answer, not a number in label units.

A loss of your own is a NamedTuple with the same methods; an ordinary class works too, uncompiled.
"""

import math
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from spanboost._jit import kernel

Array = NDArray[Any]


class Loss(Protocol):
    """What the boosters ask of a scalar loss; ``binary`` and ``margin`` may be left out (False)."""

    def value(self, label: float, y: float) -> float:
        """l(y*, y)."""

    def gradient(self, label: float, y: float) -> float:
        """A subgradient of l(y*, .) at y."""

    def L(self, b: float) -> float:
        """Lipschitz constant L_b."""

    def beta(self, b: float) -> float:
        """Smoothness beta_b."""

    def eps(self, b: float) -> float:
        """Projection loss eps_b."""


@kernel
class Linear(NamedTuple):
    """l(y*, y) = -y* y."""

    margin = True

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
    """l(y*, y) = (y* - y)^2, the p-norm loss with p = 2; no half."""

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

    def value(self, label: float, y: float) -> float:
        return math.pow(abs(label - y), self.p)

    def gradient(self, label: float, y: float) -> float:
        return math.copysign(self.p * math.pow(abs(y - label), self.p - 1), y - label)

    def L(self, b: float) -> float:
        return self.p * (b + 1) ** (self.p - 1)

    def beta(self, b: float) -> float:
        return self.p * (self.p - 1) * (b + 1) ** (self.p - 2)

    def eps(self, b: float) -> float:
        return self.p * max(1 - b, 0.0) ** (self.p - 1)


@kernel
class ModifiedLeastSquares(NamedTuple):
    """l(y*, y) = max{1 - y* y, 0}^2 / 2 for labels -1 and +1."""

    binary = margin = True

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

    binary = margin = True

    def value(self, label: float, y: float) -> float:
        m = label * y  # no exponential below can overflow
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

    def value(self, label: float, y: float) -> float:
        return abs(label - y)

    def gradient(self, label: float, y: float) -> float:
        return float(y > label) - float(y < label)  # 0 at the kink

    def L(self, b: float) -> float:
        return 1.0

    def beta(self, b: float) -> float:
        return math.inf

    def eps(self, b: float) -> float:
        return 1.0 if b < 1 else 0.0  # a label can lie outside the ball while b < 1


@kernel
class Quantile(NamedTuple):
    """The pinball loss, least at the tau-quantile of the label; not smooth."""

    tau: float = 0.5

    def value(self, label: float, y: float) -> float:
        return self.tau * max(label - y, 0.0) + (1 - self.tau) * max(y - label, 0.0)

    def gradient(self, label: float, y: float) -> float:
        return (1 - self.tau) * float(y > label) - self.tau * float(y < label)

    def L(self, b: float) -> float:
        return max(self.tau, 1 - self.tau)

    def beta(self, b: float) -> float:
        return math.inf

    def eps(self, b: float) -> float:
        return max(self.tau, 1 - self.tau) if b < 1 else 0.0


@kernel
class Hinge(NamedTuple):
    """l(y*, y) = max{1 - y* y, 0} for labels -1 and +1; not smooth."""

    binary = margin = True

    def value(self, label: float, y: float) -> float:
        return max(1 - label * y, 0.0)

    def gradient(self, label: float, y: float) -> float:
        return -label * float(label * y < 1)

    def L(self, b: float) -> float:
        return 1.0

    def beta(self, b: float) -> float:
        return math.inf

    def eps(self, b: float) -> float:
        return 1.0 if b < 1 else 0.0


@kernel
class Huber(NamedTuple):
    """Half the squared residual up to delta, then linear with slope delta."""

    delta: float = 0.1

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


# Losses on R^d. A booster's predictions are the columns of Y[output, copy]: one call serves all copies.


@kernel
class Scalar(NamedTuple):
    """A scalar loss, for a booster whose predictions are numbers (d = 1)."""

    loss: Loss

    d = 1

    def values(self, label: Array, Y: Array, out: Array) -> None:
        y_star, y = np.float64(label[0]), Y[0]
        for i in range(y.shape[0]):
            out[i] = self.loss.value(y_star, np.float64(y[i]))

    def gradients(self, label: Array, Y: Array, out: Array) -> None:
        # in double precision, rounded once: compiled and plain Python then agree to the last bit
        y_star, y, g = np.float64(label[0]), Y[0], out[0]
        for i in range(y.shape[0]):
            g[i] = self.loss.gradient(y_star, np.float64(y[i]))


@kernel
class SquaredEuclidean(NamedTuple):
    """l(y*, y) = ||y* - y||_2^2 in R^d, for labels with ||y*||_2 <= 1."""

    d: int

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
    """Cross-entropy ln sum_j exp(y_j) - y_c of class c, the label being the unit vector e_c.

    Norms are Euclidean. With d classes L_b <= sqrt(2) s(sqrt(2) b + ln(d - 1)), s the logistic
    function, is exact for d = 2; beta_b <= 1/2; eps_b is exact. A shift of all scores costs nothing,
    so the scores nearest the label's on the sphere of radius b may differ by any delta up to
    sqrt(d / (d - 1)), and eps_b = max_delta delta / (1 + exp(b delta) / (d - 1)). Without the upper
    end that maximum is W((d - 1) / e) / b with Lambert's W, where b delta = 1 + W.
    """

    d: int

    binary = margin = True  # every label coordinate is 0 or 1, and predictions are scores

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
        for i in range(Y.shape[1]):
            top = np.float64(Y[0, i])
            for k in range(1, Y.shape[0]):
                top = max(top, np.float64(Y[k, i]))
            total = np.float64(0)
            for k in range(Y.shape[0]):
                total += math.exp(np.float64(Y[k, i]) - top)
            for k in range(Y.shape[0]):
                p = math.exp(np.float64(Y[k, i]) - top) / total
                out[k, i] = p - np.float64(label[k])

    def L(self, b: float) -> float:
        return math.sqrt(2) / (1 + math.exp(-math.sqrt(2) * b) / (self.d - 1))

    def beta(self, b: float) -> float:
        return 0.5

    def eps(self, b: float) -> float:
        w = _lambert_w((self.d - 1) / math.e)
        delta = min((1 + w) / b, math.sqrt(self.d / (self.d - 1)))
        return delta / (1 + math.exp(b * delta) / (self.d - 1))


def _lambert_w(x: float) -> float:
    """The w >= 0 with w exp(w) = x, by Newton's method."""
    w = math.log1p(x)
    for _ in range(50):
        w -= (w - x * math.exp(-w)) / (1 + w)
    return w


class VectorLoss(Protocol):
    """What the compiled loop asks of a loss on R^d."""

    @property
    def d(self) -> int:
        """Dimension of the predictions."""

    def values(self, label: Array, Y: Array, out: Array) -> None:
        """out[i] = l(label, Y[:, i])."""

    def gradients(self, label: Array, Y: Array, out: Array) -> None:
        """out[:, i] = a subgradient of l(label, .) at Y[:, i]."""


NAMES = {
    "linear": Linear(),
    "squared": Squared(),
    "modified_least_squares": ModifiedLeastSquares(),
    "logistic": Logistic(),
    "absolute": Absolute(),
    "hinge": Hinge(),
}


def resolve(loss: Any) -> Any:
    """The loss object for a name or an object, with its parameters checked."""
    if isinstance(loss, str):
        if loss not in NAMES:
            raise ValueError(
                f"loss={loss!r} is not known; allowed are {', '.join(map(repr, NAMES))} or a loss "
                "object such as PNorm(4), Quantile(0.9), Huber(0.1), SquaredEuclidean(3), Softmax(3)"
            )
        return NAMES[loss]
    for field, allowed, good in (
        ("p", "p >= 2", lambda v: 2 <= v < math.inf),
        ("tau", "0 < tau < 1", lambda v: 0 < v < 1),
        ("delta", "delta > 0", lambda v: 0 < v < math.inf),
        ("d", "a whole number d >= 1", lambda v: v == int(v) and v >= 1),
    ):
        if hasattr(loss, field) and not good(getattr(loss, field)):
            raise ValueError(f"{loss!r}: {field} must satisfy {allowed}")
    return loss


def constant(loss: Any, name: str, b: float) -> float:
    """L_b, beta_b or eps_b of a loss; an error that names it where the loss does not define it."""
    method = getattr(loss, name, None)
    if method is None:
        meaning = {
            "L": "its Lipschitz constant L_b",
            "beta": "its smoothness beta_b",
            "eps": "its projection loss eps_b",
        }[name]
        raise ValueError(f"the loss {type(loss).__name__} has no method {name}(b), {meaning}")
    try:
        return float(method(b))
    except OverflowError:
        return math.inf


def radius(loss: Any, eta: float, N: int, D: float) -> float:
    """B = min{eta N D, inf{b >= D : eta beta_b b^2 >= eps_b D}} (Algorithm 1, line 1).

    Scaling the learner by lambda is D -> lambda D. Exact to the last float: beta_b b^2 grows with b
    and eps_b falls, by their definitions, so the infimum is found by bisection. A loss with a kink
    (beta_b infinite) asks eps_b = 0 instead, so that projecting never costs anything.

    >>> radius(Squared(), eta=0.1, N=100, D=1.0)
    1.0
    >>> radius(Logistic(), eta=0.1, N=100, D=1.0)  # the printed ln(4 / eta) = 3.69 is an upper bound
    2.0...
    """
    loss = resolve(loss)

    def enough(b: float) -> bool:
        beta, eps = constant(loss, "beta", b), constant(loss, "eps", b)
        return eps <= 0 if math.isinf(beta) else eta * beta * b * b >= eps * D

    low, high = D, max(eta * N * D, D)
    if enough(low):
        return low
    if not enough(high):
        return high
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
