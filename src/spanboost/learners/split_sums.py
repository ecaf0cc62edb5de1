"""What the candidate splits of trees sum up, and where the children of a split start.

A candidate sums up the distances of targets from the mean of its leaf, one sum for each output.
With many classes, these sums would take most of the time and memory. A `Sketch` sums up a few
random projections of the distances instead: every output has a code, a vector of S random numbers.
The gain of a split in the projections is, on average, its gain in all outputs, so a split costs the
same for any number of classes. Every tree has codes of its own.

SketchBoost (L. Iosipoi and A. Vakhrushev, NeurIPS 2022) finds the splits of batch boosting in this
way.
"""

from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel
from spanboost.compiling.random_numbers import hash_integers
from spanboost.compiling.vectors import dot

PRIOR = 24.0  # the mean of a parent counts as much as this many rows in its children


@kernel
class AllOutputs(NamedTuple):
    """Candidates sum up all outputs, and children start with the rows of their side."""

    def measure(self, i: int, distance: Array, out: Array) -> None:
        """Set `out` to the numbers that candidates of tree i sum up for a row."""
        for k in range(out.shape[0]):
            out[k] = distance[k]

    def child_weight(self, weight: float, unit: float) -> float:
        """Return the weight that a child starts with.

        weight: of the rows on its side.
        unit: the mean weight of a row.
        """
        return weight

    def set_means(self, mean: Array, v: int, first: int, left: Array, total: Array) -> None:
        """Set the means of the children of node v, the nodes `first` and `first` + 1.

        left, total: [1 + d] the weight and the sums on the left side, and on both sides.
        """
        n, m = total[0], left[0]
        for k in range(mean.shape[1]):
            middle = mean[v, k] - total[1 + k] / n
            mean[first, k] = middle + left[1 + k] / m
            mean[first + 1, k] = middle + (total[1 + k] - left[1 + k]) / (n - m)

    def only(self, copies: Array) -> "AllOutputs":
        """Return the same for some of the trees."""
        return self


@kernel
class Sketch(NamedTuple):
    """Candidates sum up projections, and children start at the mean of their parent.

    The projections do not determine the means of the outputs on either side, so children learn
    them from the rows that follow.
    """

    codes: Array  # [N, S, d]

    def measure(self, i: int, distance: Array, out: Array) -> None:
        """Set `out` to the numbers that candidates of tree i sum up for a row."""
        for s in range(out.shape[0]):
            out[s] = dot(self.codes[i, s], distance)

    def child_weight(self, weight: float, unit: float) -> float:
        """Return the weight that a child starts with."""
        return min(weight, self.codes.dtype.type(PRIOR) * unit)

    def set_means(self, mean: Array, v: int, first: int, left: Array, total: Array) -> None:
        """Set the means of the children of node v, the nodes `first` and `first` + 1."""
        for k in range(mean.shape[1]):
            mean[first, k] = mean[v, k]
            mean[first + 1, k] = mean[v, k]

    def only(self, copies: Array) -> "Sketch":
        """Return the same for some of the trees."""
        return Sketch(self.codes[copies])


def new_sketch(copy: Array, S: int, d: int, *, seed: int, dtype: Any) -> Sketch:
    """Return the codes of d outputs for trees with these numbers.

    The code of an output does not depend on d, so outputs can be added later.
    """
    parts = copy[:, None, None], np.arange(S)[:, None], np.arange(d)
    tree, projection, output = (part.astype(np.uint64) for part in parts)
    place = (tree << np.uint64(40)) | (projection << np.uint64(32)) | output
    bits = hash_integers(hash_integers(np.uint64(seed % 2**64)) ^ place)
    uniform = (bits >> np.uint64(11)) * 2.0**-53
    return Sketch(((2 * uniform - 1) * np.sqrt(3 / S)).astype(dtype))  # variance 1 / S
