"""What a loss must offer.

``value`` and ``gradient`` take a label y* and a prediction y; ``L``, ``beta`` and ``eps`` give, for
the ball of radius b > 0 (the paper's "Loss function classes"),

- ``L(b)``: the largest norm of a (sub)gradient inside the ball,
- ``beta(b)``: the smoothness inside the ball, infinity for a loss with a kink,
- ``eps(b)``: what projecting a prediction onto the ball can cost, per unit of distance.

Upper bounds will do; what a scalar loss leaves out is estimated, with a warning (estimates.py). A
loss of your own is a NamedTuple with these methods, and plain helper
methods whose names do not begin with an underscore; an ordinary class works too, uncompiled. Where
``binary`` is true the labels are -1 and +1; there, and where ``margin`` is true, a prediction is a
score whose sign is the answer, not a number in label units. ``degree`` is the p of a loss with
l(a y*, a y) = a^p l(y*, y), 2 unless it is given.
"""

from typing import Protocol

from spanboost.compiling.arrays import Array


class Loss(Protocol):
    """What boosters ask of a scalar loss; it may also have ``binary``, ``margin`` or ``degree``."""

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


class VectorLoss(Protocol):
    """What the compiled loop asks of a loss on R^d."""

    @property
    def d(self) -> int:
        """Dimension of the predictions."""

    def values(self, label: Array, Y: Array, out: Array) -> None:
        """out[i] = l(label, Y[:, i])."""

    def gradients(self, label: Array, Y: Array, out: Array) -> None:
        """out[:, i] = a subgradient of l(label, .) at Y[:, i]."""


def require(good: bool, loss: object, field: str, allowed: str) -> None:
    """Refuse a parameter outside its range."""
    if not good:
        raise ValueError(f"{loss!r}: {field} must satisfy {allowed}")
