"""Estimates of the constants of a convex scalar loss that does not define them.

They are computed from the gradient at many points of the ball of radius b, for many labels in
[-1, 1] (only -1 and 1 if ``binary`` is true):

- L_b is the largest slope. A convex loss has it at the ends of the ball, so this is exact.
- beta_b is the steepest rise of the slope between neighbouring points. It is infinite if the rise
  keeps growing as the points move closer together.
- eps_b is the most that a step out of the ball can gain, which is the slope at its ends.
"""

import math
from typing import Any

import numpy as np

LABELS, POINTS = 17, 129


def can_estimate(loss: Any) -> bool:
    """Return whether the loss is a scalar loss with a gradient."""
    return callable(getattr(loss, "gradient", None)) and callable(getattr(loss, "value", None))


def estimate(loss: Any, name: str, b: float) -> float:
    """Return an estimate of L_b, beta_b or eps_b.

    >>> from spanboost.losses import Squared
    >>> [round(estimate(Squared(), name, 0.5), 6) for name in ("L", "beta", "eps")]
    [3.0, 2.0, 1.0]
    """
    binary = getattr(loss, "binary", False) is True
    labels = [-1.0, 1.0] if binary else np.linspace(-1, 1, LABELS).tolist()
    if name == "beta":
        return max(_smoothness(loss, label, b) for label in labels)
    ends = [(loss.gradient(label, -b), loss.gradient(label, b)) for label in labels]
    if name == "L":
        return float(max(max(abs(low), abs(high)) for low, high in ends))
    return float(max(0.0, *(max(low, -high) for low, high in ends)))


def _smoothness(loss: Any, label: float, b: float) -> float:
    """Estimate the smoothness for one label; infinity if there is a kink."""
    low, high, rise = _steepest_interval(loss, label, -b, b)
    for _ in range(3):
        low, high, closer = _steepest_interval(loss, label, low, high)
        if closer > 2 * rise and closer > 0:
            return math.inf
    return rise


def _steepest_interval(
    loss: Any, label: float, low: float, high: float
) -> tuple[float, float, float]:
    """Return the subinterval of [low, high] where the slope rises most, and its rise."""
    points = np.linspace(low, high, POINTS)
    slopes = np.array([loss.gradient(label, y) for y in points.tolist()])
    rises = np.abs(np.diff(slopes)) / np.diff(points)
    k = int(rises.argmax())
    return float(points[k]), float(points[k + 1]), float(rises[k])
