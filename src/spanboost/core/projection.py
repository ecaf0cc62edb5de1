"""The number of outputs of a prediction, and the projection onto the Euclidean ball.

Scalars have a class of their own, so that the compiler knows that d = 1: it removes the loops over
outputs, and projection is clipping.
"""

from typing import NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel
from spanboost.compiling.vectors import dot


@kernel
class ScalarOutput(NamedTuple):
    """Predictions that are numbers."""

    def number(self) -> int:
        """Return d, the number of outputs."""
        return 1

    def project(self, y: Array, radius: float) -> None:
        """Project y[output] onto the ball of this radius, in place."""
        y[0] = max(min(y[0], radius), -radius)

    def project_columns(self, h: Array, radius: float) -> None:
        """Project every column of h[output, copy] onto the ball, in place."""
        row = h[0]
        for i in range(row.shape[0]):
            row[i] = max(min(row[i], radius), -radius)

    def remove_outward(self, raw: Array, cut: Array, slope: Array) -> None:
        """Remove the part of the slope that would move a projected prediction further out.

        `raw` is the prediction before the projection, `cut` the one after it. A descent step moves
        against the slope, so it leads outwards where raw - cut and the slope have opposite signs.
        """
        raw_0, cut_0, slope_0, zero = raw[0], cut[0], slope[0], slope.dtype.type(0)
        for i in range(slope_0.shape[0]):
            slope_0[i] = zero if (raw_0[i] - cut_0[i]) * slope_0[i] < 0 else slope_0[i]


@kernel
class VectorOutput(NamedTuple):
    """Predictions that are vectors in R^d."""

    d: int

    def number(self) -> int:
        """Return d, the number of outputs."""
        return self.d

    def project(self, y: Array, radius: float) -> None:
        """Project y[output] onto the ball of this radius, in place."""
        square = dot(y, y)
        if square > radius * radius:
            shrink = radius / np.sqrt(square)
            for k in range(self.d):
                y[k] *= shrink

    def project_columns(self, h: Array, radius: float) -> None:
        """Project every column of h[output, copy] onto the ball, in place."""
        for i in range(h.shape[1]):
            self.project(h[:, i], radius)

    def remove_outward(self, raw: Array, cut: Array, slope: Array) -> None:
        """As for scalars: of an outward slope, keep the part orthogonal to the prediction."""
        for i in range(slope.shape[1]):
            beyond, largest = False, slope.dtype.type(0)
            for k in range(self.d):
                beyond = beyond or raw[k, i] != cut[k, i]
                largest = max(largest, abs(cut[k, i]))
            if not beyond or not largest > 0:
                continue
            along, square = slope.dtype.type(0), slope.dtype.type(0)
            for k in range(self.d):
                out = cut[k, i] / largest  # divided, so that its square does not underflow
                along += slope[k, i] * out
                square += out * out
            if along < 0:
                for k in range(self.d):
                    slope[k, i] -= along / square * (cut[k, i] / largest)


Output = ScalarOutput | VectorOutput


def output_of(d: int) -> Output:
    """Return the output class for predictions in R^d."""
    return ScalarOutput() if d == 1 else VectorOutput(d)
