"""The methods of a loss.

``value`` and ``gradient`` take a label y* and a prediction y. ``L``, ``beta`` and ``eps`` return
constants of the loss on the ball of radius b > 0 (the paper's "Loss function classes"):

- ``L(b)``: the largest norm of a (sub)gradient inside the ball,
- ``beta(b)``: the smoothness inside the ball, infinity for a loss with a kink,
- ``eps(b)``: the most that projecting a prediction onto the ball can cost, per unit of distance.

Upper bounds are enough. Constants that a scalar loss does not define are estimated, with a warning
(estimates.py).

To write your own loss, define a NamedTuple with these methods; names of helper methods must not
begin with an underscore. An ordinary class works too, but is not compiled. Optional properties
describe the labels:

- ``binary``: true if the labels are -1 and +1; a prediction is then a score whose sign is the
  predicted label,
- ``margin``: true if predictions are scores although the labels are not binary,
- ``degree``: the p for which l(a y*, a y) = a^p l(y*, y) (default: 2),
- ``log_link``: true for the losses of log_link.py: y is the logarithm of a mean, which is what the
  model predicts. They also have ``takes_zero`` (whether the label 0 is allowed), ``power`` (the
  variance is proportional to this power of the mean) and the method ``curvature``, by which greedy
  feedback divides a slope to get a step.
"""

from typing import Protocol

from spanboost.compiling.arrays import Array


class Loss(Protocol):
    """A scalar loss, optionally with ``binary``, ``margin`` or ``degree``."""

    def value(self, label: float, y: float) -> float:
        """Return l(y*, y)."""

    def gradient(self, label: float, y: float) -> float:
        """Return a subgradient of l(y*, .) at y."""

    def L(self, b: float) -> float:
        """Return the Lipschitz constant L_b."""

    def beta(self, b: float) -> float:
        """Return the smoothness beta_b."""

    def eps(self, b: float) -> float:
        """Return the projection loss eps_b."""


class VectorLoss(Protocol):
    """A loss on R^d, as the compiled loop calls it."""

    @property
    def d(self) -> int:
        """The dimension of the predictions."""

    def values(self, label: Array, Y: Array, out: Array) -> None:
        """Set out[i] to l(label, Y[:, i])."""

    def gradients(self, label: Array, Y: Array, out: Array) -> None:
        """Set out[:, i] to a subgradient of l(label, .) at Y[:, i]."""


def require(good: bool, loss: object, field: str, allowed: str) -> None:
    """Raise a ValueError unless the parameter is `good`."""
    if not good:
        raise ValueError(f"{loss!r}: {field} must satisfy {allowed}")
