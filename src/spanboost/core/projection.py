"""How many outputs a prediction has, and its projection onto the Euclidean ball.

Two classes, so that the compiler knows: for numbers the loops over outputs vanish, and projecting
is clipping.
"""

from typing import NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel


@kernel
class ScalarOutput(NamedTuple):
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

    def face_in(self, raw: Array, cut: Array, slope: Array) -> None:
        """No slope where the prediction was cut and a step would lead it further out."""
        raw_0, cut_0, slope_0, zero = raw[0], cut[0], slope[0], slope.dtype.type(0)
        for i in range(slope_0.shape[0]):
            slope_0[i] = zero if (raw_0[i] - cut_0[i]) * slope_0[i] < 0 else slope_0[i]


@kernel
class VectorOutput(NamedTuple):
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

    def face_in(self, raw: Array, cut: Array, slope: Array) -> None:
        """Likewise: what is left of a slope is across, not outwards."""
        for i in range(slope.shape[1]):
            beyond, largest = False, slope.dtype.type(0)
            for k in range(self.d):
                beyond = beyond or raw[k, i] != cut[k, i]
                largest = max(largest, abs(cut[k, i]))
            if not beyond or not largest > 0:
                continue
            along, square = slope.dtype.type(0), slope.dtype.type(0)
            for k in range(self.d):
                out = cut[k, i] / largest  # no square of it vanishes
                along += slope[k, i] * out
                square += out * out
            if along < 0:
                for k in range(self.d):
                    slope[k, i] -= along / square * (cut[k, i] / largest)


Output = ScalarOutput | VectorOutput


def output_of(d: int) -> Output:
    """For predictions in R^d."""
    return ScalarOutput() if d == 1 else VectorOutput(d)
