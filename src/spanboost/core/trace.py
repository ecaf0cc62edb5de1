"""The arrays of one round of the two algorithms.

They are indexed [output, copy]. Predictions are vectors in R^d, plain numbers when d = 1.
"""

from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel
from spanboost.core.projection import Output, output_of
from spanboost.losses import VectorLoss


@kernel
class Trace(NamedTuple):
    """The values of one round t."""

    output: Output

    h: Array  # [d, N] the weak predictions A^i(x_t)
    before: Array  # [d, N] the partial sums y_t^{i-1}
    kept: Array  # [d, N] the shrunken partial sums, to which A^i(x_t) is added
    y: Array  # [d] y_t^i during the loop over i; afterwards y_t^N, the answer
    slope: Array  # [d, N] the slopes of the linear losses of line 13 (Algorithm 2: line 11)
    point: Array  # [d, N] scratch space

    def only_one(self) -> "Trace":
        """Return the arrays of one copy, which share their memory with those of all others.

        They start where the tables start, so that the outputs of one copy are next to each other.
        """
        d = self.h.shape[0]
        return Trace(
            self.output,
            self.h.reshape(-1)[:d].reshape((d, 1)),
            self.before.reshape(-1)[:d].reshape((d, 1)),
            self.kept.reshape(-1)[:d].reshape((d, 1)),
            self.y,
            self.slope.reshape(-1)[:d].reshape((d, 1)),
            self.point.reshape(-1)[:d].reshape((d, 1)),
        )


def new_trace(d: int, N: int, dtype: Any) -> Trace:
    """Allocate the arrays of one round."""
    h, before, kept, slope, point = (np.zeros((d, N), dtype) for _ in range(5))
    return Trace(output_of(d), h, before, kept, np.zeros(d, dtype), slope, point)


@kernel
def gradients(loss: VectorLoss, label: Array, weight: float, at_final: bool, trace: Trace) -> None:
    """Set slope[:, i] to the gradient of w l_t at y_t^{i-1}, or at y_t^N (corollary 1)."""
    at = trace.before
    if at_final:
        at = trace.point
        for k in range(at.shape[0]):
            for i in range(at.shape[1]):
                at[k, i] = trace.y[k]
    loss.gradients(label, at, trace.slope)
    for k in range(at.shape[0]):
        slope = trace.slope[k]
        for i in range(slope.shape[0]):
            slope[i] *= weight
