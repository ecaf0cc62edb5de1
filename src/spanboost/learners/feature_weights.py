"""Tables of weights for normalised features, used by the linear and network learners.

A lane is one sum over features: one output of one copy, or one hidden unit of one copy. The lanes
of a feature are contiguous in memory, so that operations on all of them vectorise.
"""

from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel
from spanboost.learners.descent import Steps
from spanboost.learners.feature_scales import (
    DOUBTS,
    FAINT,
    YOUNG,
    is_in_doubt,
    lower_scale,
    revise_scale,
)
from spanboost.rows.block import Row

LEAST = 1e-20  # smallest sum of squared gradients, so that every step is finite


@kernel
class FeatureWeights(NamedTuple):
    """A weight for each feature and lane, with the statistics that determine its steps."""

    W: Array  # [feature, lane] weights of the normalised features
    G: Array  # [feature, lane] summed squared gradients; 0 until the feature is seen
    S: Array  # [feature] scale: the largest |x| seen, without strays (feature_scales.py)
    doubts: Array  # [feature, DOUBTS] doubts about the scale
    seen: Array  # [2] total weight of the rows learned, and the sum of z^2 in them
    scratch: Array  # [width, lane] how far each lane steps along its gradient

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the fields with a row per feature; S is 0 until the feature is seen."""
        return ("S", "W", "G", "doubts")

    @property
    def omitted_zeros(self) -> tuple[str, ...]:
        """Names of the fields that files leave out if they are 0; version 0.1.0 lacks them."""
        return ("doubts",)

    def grown(self, features: int, width: int) -> "FeatureWeights":
        """Return the same weights with room for more features and wider rows."""
        return self._replace(
            W=grow_table(self.W, features),
            G=grow_table(self.G, features),
            S=grow_table(self.S, features),
            doubts=grow_table(self.doubts, features),
            scratch=grow_table(self.scratch, width),
        )

    def sum_terms(self, x: Row, out: Array) -> None:
        """Set out[lane] to the sum of W_f z_f over the features f of the row."""
        normalise(self.S, x)
        for i in range(out.shape[0]):
            out[i] = 0
        for a in range(x.feature.shape[0]):
            z = x.z[a]
            if z != 0:  # then the feature is in the table
                W = self.W[x.feature[a]]
                for i in range(out.shape[0]):
                    out[i] += W[i] * z

    def prepare_steps(
        self, steps: Steps, x: Row, weight: float, slope: Array, reach: Array
    ) -> float:
        """Update scales and squared gradients, and set the step factors and the reach of each lane.

        Return the pace of the steps.
        """
        for i in range(reach.shape[0]):
            reach[i] = 0
        self.seen[0] += weight
        young = self.seen[0] <= YOUNG * weight
        for a in range(x.feature.shape[0]):
            G = self.G[x.feature[a]]
            update_scale(self.S, self.doubts, G, x, a, young)
            square = x.z[a] * x.z[a]
            self.seen[1] += weight * square
            steps.accumulate(G, slope, square, weight, self.seen[0], self.scratch[a], reach)
        return steps.pace(self.seen[0], self.seen[1])

    def move(self, x: Row, a: int, step: Array) -> None:
        """Move the weights of the row's a-th feature by one step; lower its scale if it is due."""
        z, W, rate = x.z[a], self.W[x.feature[a]], self.scratch[a]
        for i in range(step.shape[0]):
            W[i] -= step[i] * z * rate[i]
        if abs(z) < FAINT:
            self.lower_feature(x.feature[a])

    def lower_feature(self, f: int) -> None:
        """Lower the scale of feature f if it is due; the functions stay the same."""
        shrink, W = lower_scale(self.S, self.doubts, f), self.W[f]
        if shrink < 1:
            for i in range(W.shape[0]):
                W[i] *= shrink


def new_feature_weights(lanes: int, dtype: Any) -> FeatureWeights:
    """Return an empty table."""
    table = np.zeros((0, lanes), dtype)
    return FeatureWeights(
        W=table,
        G=table,
        S=np.zeros(0, dtype),
        doubts=np.zeros((0, DOUBTS), dtype),
        seen=np.zeros(2),
        scratch=table,
    )


@kernel
def normalise(S: Array, x: Row) -> None:
    """Set x.z to x / S, clipped to [-1, 1]; 0 for a feature never seen."""
    zero = S.dtype.type(0)
    for a in range(x.feature.shape[0]):
        f = x.feature[a]
        s = S[f] if f < S.shape[0] else zero
        x.z[a] = max(min(x.x[a], s), -s) / s if s > 0 else zero


@kernel
def update_scale(S: Array, doubts: Array, G: Array, x: Row, a: int, young: bool) -> None:
    """Raise the scale of the row's a-th feature if it is due, and update z.

    The squared gradients G[lane] are converted to the new scale. (They are not when a scale falls:
    those of values that were a mistake would stop the feature from learning.)
    """
    f, v = x.feature[a], x.x[a]
    if is_in_doubt(S, doubts, f, abs(v)):
        least, scale = G.dtype.type(LEAST), revise_scale(S, doubts, f, abs(v), young)
        if scale > S[f]:
            shrink = S[f] / scale
            for i in range(G.shape[0]):
                G[i] = max(G[i] * shrink * shrink, least)
            S[f] = scale
        v = max(min(v, scale), -scale)
    x.z[a] = v / S[f]  # always, because a feature hashed to the same number may have changed S


@kernel
def shrink_to_bound(W: Array, D: float) -> None:
    """Scale down W[input, output, copy] in the copies where sum_j ||W_j|| exceeds D."""
    if W.shape[0] == 1 and W.shape[1] == 1:  # stumps: this loop vectorises, with the same bits
        w = W[0, 0]
        for i in range(w.shape[0]):
            size = abs(np.float64(w[i]))
            w[i] *= w.dtype.type(D / size if size > D else np.float64(1))
        return
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


def grow_table(table: Array, rows: int) -> Array:
    """Return the table with at least `rows` rows, doubled if it has to grow; new rows are 0."""
    if rows <= len(table):
        return table
    grown = np.zeros((max(rows, 2 * len(table)), *table.shape[1:]), table.dtype)
    grown[: len(table)] = table  # the rest takes no memory until it is written to
    return grown


def rescale_squares(G: Array, factor: float, rows: Any = ...) -> None:
    """Multiply the squared gradients of these rows by a factor, after the units changed."""
    G[rows] = np.maximum(G[rows] * factor, LEAST)
