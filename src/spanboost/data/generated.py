"""Streams made on the spot, so that a demonstration needs no file."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def drifting(rows: int, seed: int = 0) -> tuple[NDArray[Any], NDArray[Any]]:
    """Rows of eight features in [-1, 1] and labels in [-1, 1]; the rule changes half-way.

    The label is a sum of two straight lines, two thresholds and noise. From row rows // 2 on the
    first line and the first threshold have the opposite sign.
    """
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (rows, 8))
    turn = np.where(np.arange(rows) < rows // 2, 1.0, -1.0)
    lines = 0.4 * turn * X[:, 0] - 0.4 * X[:, 1]
    steps = 0.3 * turn * np.sign(X[:, 2] - 0.2) + 0.3 * np.sign(X[:, 3] + 0.2)
    y = lines + steps + 0.05 * rng.standard_normal(rows)
    return X, np.clip(y, -1, 1)
