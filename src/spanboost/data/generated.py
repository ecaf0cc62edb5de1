"""Synthetic data for demonstrations."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def make_drifting_stream(rows: int, seed: int = 0) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return rows of eight features and their labels, all in [-1, 1], with a change halfway.

    The label is the sum of two linear terms, two step functions and noise. From row rows // 2 on,
    the first linear term and the first step have the opposite sign.
    """
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (rows, 8))
    sign = np.where(np.arange(rows) < rows // 2, 1.0, -1.0)
    linear = 0.4 * sign * X[:, 0] - 0.4 * X[:, 1]
    steps = 0.3 * sign * np.sign(X[:, 2] - 0.2) + 0.3 * np.sign(X[:, 3] + 0.2)
    y = linear + steps + 0.05 * rng.standard_normal(rows)
    return X, np.clip(y, -1, 1)
