"""Projection onto the Euclidean ball."""

import numpy as np

from spanboost._jit import kernel
from spanboost.arrays import Array


@kernel
def project_columns(h: Array, radius: float) -> None:
    """Pi_radius of every column of h[output, copy], in place."""
    if h.shape[0] == 1:
        row = h[0]
        for i in range(row.shape[0]):
            row[i] = max(min(row[i], radius), -radius)
    else:
        for i in range(h.shape[1]):
            project(h[:, i], h.shape[0], radius)


@kernel
def project(y: Array, d: int, radius: float) -> None:
    """Pi_radius: the nearest point of the Euclidean ball of R^d, in place."""
    if d == 1:
        y[0] = max(min(y[0], radius), -radius)
        return
    square = y[0] * y[0]
    for k in range(1, d):
        square += y[k] * y[k]
    if square > radius * radius:
        shrink = radius / np.sqrt(square)
        for k in range(d):
            y[k] *= shrink
