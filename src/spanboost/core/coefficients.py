"""The weights of the copies in the answer of either algorithm."""

from typing import Any

import numpy as np

from spanboost.compiling.arrays import Array


def coefficients(steps: Array, sigma: Array | None, shrink: Any = 1.0) -> Array:
    """Return the weight of each copy's prediction, times lambda, in the last partial sum, [N].

    sigma: the shrinkage of Algorithm 1; None for Algorithm 2.
    shrink: [N] the factors of the projections of the partial sums; 1 without a projection.
    """
    kept = 1 - steps * (1.0 if sigma is None else sigma)
    shrink = np.broadcast_to(shrink, steps.shape)
    after = np.append(np.cumprod((kept * shrink)[:0:-1])[::-1], 1.0)  # over all later copies
    return np.asarray(steps * shrink * after)
