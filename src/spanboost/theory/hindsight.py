"""The best fixed function of a stream in hindsight, under squared loss, in constant memory.

Rows are folded into a triangle R with R'R = A'A, where A has a row [label, 1, features] for every
row of the stream, times the root of its weight: whatever linear function loses on the stream, it
loses on the triangle. Orthogonal steps (Householder's, by LAPACK) rather than sums of products,
because those square what differs in size: with features like 1.7e9 +- 1e5, or a loss that is
1e-14 of the labels' squares, sums of products had one digit left and the triangle nine, in about
the same time.

Features are numbered as a learner numbers them (block.py), hashed if it hashes. A missing feature
is absent, which is 0; a category is a feature of its own.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.rows.block import Block, block_of
from spanboost.rows.feature_names import FeatureNames, are_named
from spanboost.theory.regret import best_linear

LIMIT = 1024  # features beside the constant: the triangle is square, a row costs their square
RANK = 1e-11  # directions this much shorter than the longest are rounding, of which rows have many
_ROWS = 2048  # spread out at a time
_LABEL, _ONE = 0, 1  # columns of the triangle


class Best(NamedTuple):
    """The least loss of a class of functions on the stream."""

    loss: float  # total, of the function with these weights
    W: Array  # [feature] in the order in which they came; the constant first where it has one
    gap: float = 0.0  # no function of the class loses less than loss - gap


class Hindsight:
    """What is known of the rows so far: enough to find their best linear functions.

    bits: of the learner's hashed table, if it has one.
    limit: the number of features up to which there is an answer; beyond it `too_many` is True.

    >>> rows = Hindsight()
    >>> rows.add(np.array([[1.0], [2.0], [3.0]]), np.array([5.0, 7.0, 9.5]))
    >>> best = rows.linear()
    >>> print(best.W.round(3), round(best.loss, 4))
    [2.667 2.25 ] 0.0417
    """

    def __init__(self, bits: int | None = None, limit: int = LIMIT) -> None:
        self.rows, self.weight, self.heaviest = 0, 0.0, 0.0
        self.limit, self.bits = limit, bits
        self.shift = 0.0  # the first label: distances from it keep digits that squares would lose
        self._names = FeatureNames(bits)
        self._columns = {-1: _ONE}  # by number; the constant shares its place with no hashed one
        self._sizes = np.zeros(2)  # largest |x|
        self._triangle = np.zeros((0, 2))
        self._pending: list[Array] = []

    @property
    def features(self) -> int:
        """How many there are beside the constant."""
        return len(self._columns) - 1

    @property
    def too_many(self) -> bool:
        """Whether there are more features than allowed, and hence no answers."""
        return self.features > self.limit

    def add(self, X: Any, y: Array, weights: Array | None = None) -> None:
        """More rows, of any kind that a learner of features reads."""
        if self.rows == 0:
            self.shift = float(y[0])
        self.rows += len(y)
        weights = np.ones(len(y)) if weights is None else np.asarray(weights, np.float64)
        self.weight += float(weights.sum())
        self.heaviest = max(self.heaviest, float(weights.max()))
        if self.too_many:
            return
        if are_named(X):
            X, new = self._names.read(X)
            self._names.add(new)
        block = block_of(X, np.float64, self.bits)
        for first in range(0, len(y), _ROWS):
            rows = slice(first, min(first + _ROWS, len(y)))
            self._spread(block, rows, np.asarray(y[rows], np.float64) - self.shift, weights[rows])
            if self.too_many:
                self._triangle, self._pending = np.zeros((0, 2)), []
                return

    def linear(self) -> Best:
        """Of all linear functions with a constant; the weights are least in normalised features."""
        best = _least(*self._parts(self.shift))
        best.W[0] += self.shift
        return best

    def in_ball(self, centre: float, radius: float = math.inf) -> Best:
        """Of the functions x -> centre + W x with ||W||_2 <= radius; of the best the shortest."""
        A, y = self._parts(centre)
        W = best_linear(A[:, 1:], y, radius=radius, rank=RANK)[0]
        return Best(_square(A[:, 1:] @ W - y), W)

    def in_hull(self, centre: float, reach: float) -> Best:
        """Of the functions x -> centre + sum_f W_f x_f / S_f with sum_f |W_f| <= reach.

        S_f is the largest |x_f| of the stream, and the constant is a feature: convex combinations
        of functions of a single feature that stay within `reach` of the centre.
        """
        A, y = self._parts(centre)
        sizes = self._sizes[1:]
        return best_in_cross(A / np.where(sizes > 0, sizes, 1.0), y, reach)

    def of_constant(self, centre: float) -> float:
        """The loss of predicting the same always."""
        return _square(self._parts(centre)[1])

    def _parts(self, centre: float) -> tuple[Array, Array]:
        """Features with the constant first, and distances of the labels from a centre."""
        if self.too_many:
            raise ValueError(f"there are more than {self.limit} features")
        self._fold()
        R = self._triangle
        return R[:, _ONE:], R[:, _LABEL] - (centre - self.shift) * R[:, _ONE]

    def _spread(self, block: Block, rows: slice, y: Array, weights: Array) -> None:
        """These rows of a block, a column to each feature."""
        dense = np.nan_to_num(block.X[rows], nan=0.0)
        used = np.flatnonzero(dense.any(axis=0))
        row, feature, value = _entries(block, rows)
        known, places = np.unique(feature, return_inverse=True)
        stride = 2 if block.codes.shape[1] else 1
        of_dense = self._numbered((1 + stride * used) & block.mask)
        of_known = self._numbered(known)
        if self.too_many:
            return
        width = 1 + len(self._columns)
        flat = row * width + of_known[places]
        sums = np.bincount(flat, value, len(y) * width)
        A = sums.astype(np.float64).reshape(len(y), width)
        for column, j in zip(of_dense, used, strict=True):
            A[:, column] += dense[:, j]  # features that share a place are summed
        A[:, _LABEL] = y
        A[:, _ONE] = 1
        sizes = np.abs(A[weights > 0]).max(axis=0, initial=0)
        sizes[: len(self._sizes)] = np.maximum(sizes[: len(self._sizes)], self._sizes)
        self._sizes = sizes
        self._pending.append(np.sqrt(weights)[:, None] * A)
        if sum(map(len, self._pending)) > 4 * width:
            self._fold()

    def _numbered(self, features: Array) -> Array:
        """The columns of features, of which new ones find room."""
        place = self._columns
        return np.array([place.setdefault(f, 1 + len(place)) for f in features.tolist()], np.int64)

    def _fold(self) -> None:
        """All rows into the triangle; a feature not met before was 0 in the rows before."""
        if self._pending:
            parts = [self._triangle, *self._pending]
            width = parts[-1].shape[1]
            wide = [np.pad(part, ((0, 0), (0, width - part.shape[1]))) for part in parts]
            self._triangle = np.asarray(np.linalg.qr(np.vstack(wide), mode="r"))
            self._pending = []


def best_in_cross(A: Array, y: Array, reach: float, tolerance: float = 1e-10) -> Best:
    """The w with the least ||A w - y||^2 and sum |w| <= reach, with a certified gap.

    Wolfe's nearest point of a polytope, here the one with the corners +-reach A_f: the point
    nearest in the affine hull of a few corners, as long as it lies between them; corners that
    hinder are dropped, the one that promises most is added. At any w convexity says that nothing
    loses less than loss - 2 r . (A w - c) for residuals r and the corner c farthest along -r;
    nor does anything lose less than the best w of any size.
    """
    least = _least(A, y)
    if np.abs(least.W).sum() <= reach:
        return least
    k = A.shape[1]
    corners, q, before = np.zeros(1, np.int64), np.ones(1), math.inf
    while True:
        residuals = _corners(A, corners, reach) @ q - y
        slopes = reach * (residuals @ A)
        ahead = np.concatenate([slopes, -slopes])
        toward = int(ahead.argmin())
        loss, promised = _square(residuals), 2 * float(ahead[corners] @ q - ahead[toward])
        gap = max(min(promised, loss - least.loss), 0.0)
        if gap <= tolerance * loss or toward in corners or not loss < before:
            break  # found, or as near as rounding lets it come
        before = loss
        corners, q = _nearest(A, y, reach, np.append(corners, toward), np.append(q, 0.0))
    signed = np.where(corners < k, reach * q, -reach * q)
    return Best(loss, np.bincount(corners % k, signed, k), gap)


def _least(A: Array, y: Array) -> Best:
    """The w with the least ||A w - y||^2; of equals the shortest, in columns of norm 1."""
    norms = np.linalg.norm(A, axis=0)
    norms[norms == 0] = 1
    w = best_linear(A / norms, y, rank=RANK)[0]
    return Best(_square(A / norms @ w - y), w / norms)


def _nearest(A: Array, y: Array, reach: float, corners: Array, q: Array) -> tuple[Array, Array]:
    """From q, the nearest point between these corners or fewer of them."""
    while True:
        V = _corners(A, corners, reach)
        shares = np.linalg.lstsq(V[:, 1:] - V[:, :1], y - V[:, 0], rcond=RANK)[0]
        target = np.append(1 - shares.sum(), shares)
        if (target > 0).all():
            return corners, target
        # as far as the first share that would fall below 0
        inward = np.flatnonzero(target <= 0)
        limits = q[inward] / np.maximum(q[inward] - target[inward], 1e-300)
        q = np.maximum(q + limits.min() * (target - q), 0.0)
        q[inward[limits.argmin()]] = 0.0
        corners, q = corners[q > 0], q[q > 0] / q.sum()


def _corners(A: Array, corners: Array, reach: float) -> Array:
    """Columns of A times reach; from the second half on, times -reach."""
    k = A.shape[1]
    return A[:, corners % k] * np.where(corners < k, reach, -reach)


def _entries(block: Block, rows: slice) -> tuple[Array, Array, Array]:
    """Active sparse numbers and codes: their rows, numbers as of `Block.row`, and values."""
    C = block.codes.shape[1]
    entries = slice(block.indptr[rows.start], block.indptr[rows.stop])
    lengths = np.diff(block.indptr[rows.start : rows.stop + 1])
    codes = block.codes[rows]
    code_row, j = np.nonzero(codes >= 0)
    row = np.concatenate([np.repeat(np.arange(len(codes)), lengths), code_row])
    of_numbers = 1 + (2 if C else 1) * block.indices[entries]
    feature = np.concatenate([of_numbers, 2 + 2 * (codes[code_row, j] * C + j)]) & block.mask
    value = np.concatenate([block.data[entries], np.ones(len(j))])
    active = (value < 0) | (value > 0)  # neither 0 nor missing
    return row[active], feature[active], value[active]


def _square(values: Array) -> float:
    return float(values @ values)
