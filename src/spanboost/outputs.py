"""How many outputs a prediction has, and its projection onto the Euclidean ball.

Two classes, so that the compiler knows: for numbers the loops over outputs vanish, and projecting
is clipping.
"""

from typing import NamedTuple

import numpy as np

from spanboost._jit import kernel
from spanboost.arrays import Array


@kernel
class One(NamedTuple):
    """Predictions are numbers."""

    def number(self) -> int:
        """d."""
        return 1

    def project(self, y: Array, radius: float) -> None:
        """Pi_radius of y[output], in place."""
        y[0] = max(min(y[0], radius), -radius)

    def project_columns(self, h: Array, radius: float) -> None:
        """Pi_radius of every column of h[output, copy], in place."""
        row = h[0]
        for i in range(row.shape[0]):
            row[i] = max(min(row[i], radius), -radius)


@kernel
class Many(NamedTuple):
    """Predictions are vectors of R^d."""

    d: int

    def number(self) -> int:
        """d."""
        return self.d

    def project(self, y: Array, radius: float) -> None:
        """Pi_radius of y[output], in place."""
        square = y[0] * y[0]
        for k in range(1, self.d):
            square += y[k] * y[k]
        if square > radius * radius:
            shrink = radius / np.sqrt(square)
            for k in range(self.d):
                y[k] *= shrink

    def project_columns(self, h: Array, radius: float) -> None:
        """Pi_radius of every column of h[output, copy], in place."""
        for i in range(h.shape[1]):
            self.project(h[:, i], radius)


Outputs = One | Many


def outputs(d: int) -> Outputs:
    """For predictions in R^d."""
    return One() if d == 1 else Many(d)
