"""The constants of a convex scalar loss that does not say them, from its gradient at many points.

Inside the ball of radius b, with labels from -1 to 1 (or just the two, where ``binary`` is true):
the largest slope, which convex losses have at the ends, and is exact; the steepest rise of the
slope between neighbours, infinite if it goes on growing between points that lie closer; and what a
step beyond the ball can gain at most, which is the slope at its ends.
"""

import math
from typing import Any

import numpy as np

LABELS, POINTS = 17, 129


def can_estimate(loss: Any) -> bool:
    """Whether it is a scalar loss with a gradient."""
    return callable(getattr(loss, "gradient", None)) and callable(getattr(loss, "value", None))


def estimate(loss: Any, name: str, b: float) -> float:
    """L_b, beta_b or eps_b.

    >>> from spanboost.losses import Squared
    >>> [round(estimate(Squared(), name, 0.5), 6) for name in ("L", "beta", "eps")]
    [3.0, 2.0, 1.0]
    """
    binary = getattr(loss, "binary", False) is True
    labels = [-1.0, 1.0] if binary else np.linspace(-1, 1, LABELS).tolist()
    if name == "beta":
        return max(_steepest(loss, label, b) for label in labels)
    ends = [(loss.gradient(label, -b), loss.gradient(label, b)) for label in labels]
    if name == "L":
        return float(max(max(abs(low), abs(high)) for low, high in ends))
    return float(max(0.0, *(max(low, -high) for low, high in ends)))


def _steepest(loss: Any, label: float, b: float) -> float:
    """The smoothness for one label: infinite at a kink."""
    low, high, rise = _steepest_part(loss, label, -b, b)
    for _ in range(3):
        low, high, closer = _steepest_part(loss, label, low, high)
        if closer > 2 * rise and closer > 0:
            return math.inf
    return rise


def _steepest_part(loss: Any, label: float, low: float, high: float) -> tuple[float, float, float]:
    """Where between two points the slope rises most, and how steeply."""
    points = np.linspace(low, high, POINTS)
    slopes = np.array([loss.gradient(label, y) for y in points.tolist()])
    rises = np.abs(np.diff(slopes)) / np.diff(points)
    k = int(rises.argmax())
    return float(points[k]), float(points[k + 1]), float(rises[k])
