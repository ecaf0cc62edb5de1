"""Weights of normalised features, in lanes: what the learners that sum over features share.

The lanes of one feature lie side by side, so that all of them are one vector to the processor.
"""

from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel
from spanboost.learners.descent import Steps
from spanboost.rows.block import Row

LEAST = 1e-20  # of a sum of squared gradients: steps stay finite before the first one


@kernel
class FeatureWeights(NamedTuple):
    """A weight for each feature and lane, and what its steps are made of."""

    W: Array  # [feature, lane] weights of the normalised features
    G: Array  # [feature, lane] summed squared gradients; 0 while the feature has not been seen
    S: Array  # [feature] largest |x| seen
    seen: Array  # [2] rows learned, and the sum of z^2 in them
    scratch: Array  # [width, lane] how far each lane steps along its gradient

    @property
    def tables(self) -> tuple[str, ...]:
        """Fields with a row for each feature; S is 0 while it has not been seen."""
        return ("S", "W", "G")

    def grown(self, features: int, width: int) -> "FeatureWeights":
        """The same, with room for more features and wider rows."""
        return self._replace(
            W=more(self.W, features),
            G=more(self.G, features),
            S=more(self.S, features),
            scratch=more(self.scratch, width),
        )

    def sum_up(self, x: Row, out: Array) -> None:
        """out[lane] = sum_f W_f z_f."""
        normalise(self.S, x)
        for i in range(out.shape[0]):
            out[i] = 0
        for a in range(x.feature.shape[0]):
            z = x.z[a]
            if z != 0:  # known, so that it has a place
                W = self.W[x.feature[a]]
                for i in range(out.shape[0]):
                    out[i] += W[i] * z

    def measure(self, steps: Steps, x: Row, weight: float, slope: Array, reach: Array) -> float:
        """Learn scales and squared gradients: how far each lane will step, and its reach.

        Returns the pace of the steps.
        """
        for i in range(reach.shape[0]):
            reach[i] = 0
        self.seen[0] += weight
        for a in range(x.feature.shape[0]):
            G = self.G[x.feature[a]]
            widen(self.S, G, x, a)
            square = x.z[a] * x.z[a]
            self.seen[1] += weight * square
            steps.gather(G, slope, square, weight, self.seen[0], self.scratch[a], reach)
        return steps.pace(self.seen[0], self.seen[1])

    def move(self, x: Row, a: int, step: Array) -> None:
        """One step of the row's a-th feature."""
        z, W, rate = x.z[a], self.W[x.feature[a]], self.scratch[a]
        for i in range(step.shape[0]):
            W[i] -= step[i] * z * rate[i]


def new_feature_weights(lanes: int, dtype: Any) -> FeatureWeights:
    """Of no features yet."""
    table = np.zeros((0, lanes), dtype)
    return FeatureWeights(W=table, G=table, S=np.zeros(0, dtype), seen=np.zeros(2), scratch=table)


@kernel
def normalise(S: Array, x: Row) -> None:
    """x.z = x / S, in [-1, 1]; 0 for a feature never seen."""
    zero = S.dtype.type(0)
    for a in range(x.feature.shape[0]):
        f = x.feature[a]
        s = S[f] if f < S.shape[0] else zero
        x.z[a] = max(min(x.x[a], s), -s) / s if s > 0 else zero


@kernel
def widen(S: Array, G: Array, x: Row, a: int) -> None:
    """Learn the size of the row's a-th feature, which has the squared gradients G[lane]."""
    least = G.dtype.type(LEAST)
    f, size = x.feature[a], abs(x.x[a])
    if size > S[f]:
        shrink = S[f] / size
        for i in range(G.shape[0]):
            G[i] = max(G[i] * shrink * shrink, least)
        S[f] = size
    x.z[a] = x.x[a] / S[f]  # also if another feature of the row, in the same place, has grown


@kernel
def shorten(W: Array, D: float) -> None:
    """Shrink W[input, output, copy] of the copies where sum_j ||W_j|| exceeds D."""
    for i in range(W.shape[2]):
        size = np.float64(0)
        for j in range(W.shape[0]):
            square = np.float64(0)
            for k in range(W.shape[1]):
                square += np.float64(W[j, k, i]) * np.float64(W[j, k, i])
            size += np.sqrt(square)
        if size > D:
            shrink = W.dtype.type(D / size)
            for j in range(W.shape[0]):
                for k in range(W.shape[1]):
                    W[j, k, i] *= shrink


def more(table: Array, rows: int) -> Array:
    """A table of at least so many rows, doubled when it must grow; new rows hold 0."""
    if rows <= len(table):
        return table
    grown = np.zeros((max(rows, 2 * len(table)), *table.shape[1:]), table.dtype)
    grown[: len(table)] = table  # the rest takes no memory until a feature is seen there
    return grown


def rescale_squares(G: Array, factor: float, rows: Any = ...) -> None:
    """Squared gradients in wider units, of these rows."""
    G[rows] = np.maximum(G[rows] * factor, LEAST)
