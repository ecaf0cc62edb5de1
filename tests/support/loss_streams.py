"""Random and adversarial streams for every loss that the theorems cover."""

import math

import numpy as np
from hypothesis import strategies as st

from spanboost.losses import (
    Absolute,
    Hinge,
    Huber,
    Linear,
    Logistic,
    ModifiedLeastSquares,
    PNorm,
    Quantile,
    Softmax,
    Squared,
    SquaredEuclidean,
)

SMOOTH = [
    Linear(),
    Squared(),
    PNorm(3.0),
    ModifiedLeastSquares(),
    Logistic(),
    Huber(0.5),
    SquaredEuclidean(2),
    Softmax(3),
]
KINKED = [Absolute(), Quantile(0.8), Hinge()]


def no_more(left, right):
    """Return whether left <= right, up to rounding."""
    return left <= right + 1e-9 * (1 + abs(left) + abs(right))


def in_ball(values, radius):
    """Return rows of values clipped to Euclidean norm <= radius."""
    norms = np.linalg.norm(values, axis=-1, keepdims=True)
    return values * np.minimum(1, radius / np.maximum(norms, 1e-300))


@st.composite
def streams(draw, losses):
    """A loss, labels, predictions of N copies and a comparator, all clipped to norm <= D."""
    loss = draw(st.sampled_from(losses))
    d = getattr(loss, "d", 1)
    T, N = draw(st.integers(1, 8)), draw(st.integers(1, 5))
    D = draw(st.sampled_from([0.5, 1.0, 2.0]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    # draw extremes often, because the proofs are tight there
    corners = draw(st.booleans())
    predictions = rng.choice([-2.0, 2.0], (T, N, d)) if corners else rng.uniform(-2, 2, (T, N, d))
    f = rng.choice([-2.0, 0.0, 2.0], (T, d)) if corners else rng.uniform(-2, 2, (T, d))
    if isinstance(loss, Softmax):
        labels = rng.integers(0, d, T)
    elif getattr(loss, "binary", False) or corners:
        labels = rng.choice([-1.0, 1.0], (T, d)) / math.sqrt(d)
    else:
        labels = in_ball(rng.uniform(-1, 1, (T, d)), 1)
    weights = rng.choice([0.25, 0.5, 1.0], T) if draw(st.booleans()) else np.ones(T)
    return loss, D, N, in_ball(predictions * D / 2, D), in_ball(f * D / 2, D), labels, weights


def rows(predictions):
    """Return predictions in the form that Scripted expects: [T, outputs x copies]."""
    return predictions.transpose(0, 2, 1).reshape(len(predictions), -1)
