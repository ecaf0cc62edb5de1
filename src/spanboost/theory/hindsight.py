"""The best fixed function of a stream in hindsight, under squared loss, in constant memory.

Rows are folded into a triangle R with R'R = A'A, where A has a row [label, 1, features] for every
row of the stream, times the root of its weight. A linear function has the same loss on the triangle
as on the stream. The triangle is computed by Householder steps (LAPACK) and not from sums of
products, which square the differences in size: with features like 1.7e9 +- 1e5, or a loss that is
1e-14 of the squared labels, sums of products had one correct digit and the triangle nine, in about
the same time.

Features have the numbers that the learner gives them (rows/block.py), hashed if it hashes. A
missing feature counts as 0; a category is a feature of its own.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.rows.block import Block, block_of
from spanboost.rows.feature_names import FeatureNames, are_named
from spanboost.theory.regret import best_linear

LIMIT = 1024  # features without the constant; time and memory grow with their square
RANK = 1e-11  # directions shorter than the longest by this factor are rounding errors
_ROWS = 2048  # rows in a dense block
_LABEL, _ONE = 0, 1  # columns of the triangle


class Best(NamedTuple):
    """The least loss of a class of functions on the stream."""

    loss: float  # total loss of the function with the weights W
    W: Array  # [feature] in order of appearance; the constant first if there is one
    gap: float = 0.0  # no function of the class loses less than loss - gap
    affine: Array | None = None  # [1 + features] the function: its constant, then its weights


class Hindsight:
    """A summary of the rows so far, from which their best linear functions can be computed.

    bits: the number of bits of the learner's hashed features, or None.
    limit: the largest number of features; beyond it, `too_many` is True and there are no answers.
    slopes: the number of slopes of a row, for `along`.

    >>> rows = Hindsight()
    >>> rows.add(np.array([[1.0], [2.0], [3.0]]), np.array([5.0, 7.0, 9.5]))
    >>> best = rows.linear()
    >>> print(best.W.round(3), round(best.loss, 4))
    [2.667 2.25 ] 0.0417
    """

    def __init__(self, bits: int | None = None, limit: int = LIMIT, slopes: int = 0) -> None:
        self.rows, self.weight, self.heaviest = 0, 0.0, 0.0
        self.limit, self.bits = limit, bits
        self.shift = 0.0  # the first label; subtracting it keeps digits that squares would lose
        self._names = FeatureNames(bits, warn=False)
        self._columns = {
            -1: _ONE
        }  # column of each feature number; -1 is the constant, which is not hashed
        self._sizes = np.zeros(2)  # [column] largest |x|
        self._triangle = np.zeros((0, 2))
        self._pending: list[Array] = []
        self._products = np.zeros((2, slopes))  # [column, slope] sum of the column times the slope

    @property
    def features(self) -> int:
        """The number of features without the constant."""
        return len(self._columns) - 1

    @property
    def too_many(self) -> bool:
        """Whether there are more features than `limit`, and hence no answers."""
        return self.features > self.limit

    def add(
        self, X: Any, y: Array, weights: Array | None = None, slopes: Array | None = None
    ) -> None:
        """Add rows, in any form that learners read, and their slopes [rows, slopes]."""
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
        slopes = np.zeros((len(y), 0)) if slopes is None else slopes
        for first in range(0, len(y), _ROWS):
            rows = slice(first, min(first + _ROWS, len(y)))
            A = self._spread(block, rows)
            if A is not None:
                self._fill(A, np.asarray(y[rows], np.float64) - self.shift, weights[rows])
                self._multiply(A, slopes[rows])
            if self.too_many:
                self._triangle, self._pending = np.zeros((0, 2)), []
                return

    def linear(self) -> Best:
        """Return the best linear function with a constant; among ties, the one of least norm."""
        best = _least(*self._parts(self.shift))
        best.W[0] += self.shift
        return best._replace(affine=best.W)

    def in_ball(self, centre: float, radius: float = math.inf) -> Best:
        """Return the best x -> centre + W x with ||W||_2 <= radius; among ties, the shortest W."""
        A, y = self._parts(centre)
        W = best_linear(A[:, 1:], y, radius=radius, rank=RANK)[0]
        return Best(_square(A[:, 1:] @ W - y), W, affine=np.append(centre, W))

    def in_hull(self, centre: float, reach: float) -> Best:
        """Return the best x -> centre + sum_f W_f x_f / S_f with sum_f |W_f| <= reach.

        S_f is the largest |x_f| of the stream, and the constant is a feature. These are the convex
        combinations of functions of a single feature that stay within `reach` of the centre.
        """
        A, y = self._parts(centre)
        sizes = np.where(self._sizes[1:] > 0, self._sizes[1:], 1.0)
        best = best_in_cross(A / sizes, y, reach)
        affine = best.W / sizes
        affine[0] += centre
        return best._replace(affine=affine)

    def along(self, affine: Array) -> Array:
        """Return the sum over all rows of f(x) times the slopes [slopes], for a function f.

        affine: its constant and its weights, as in `Best`.
        """
        return np.asarray(affine @ self._products[_ONE:])

    def constant_loss(self, centre: float) -> float:
        """Return the loss of always predicting `centre`."""
        return _square(self._parts(centre)[1])

    def _parts(self, centre: float) -> tuple[Array, Array]:
        """Return the features, constant first, and the labels minus a centre."""
        if self.too_many:
            raise ValueError(f"the stream has more than {self.limit} features")
        self._fold()
        R = self._triangle
        return R[:, _ONE:], R[:, _LABEL] - (centre - self.shift) * R[:, _ONE]

    def _spread(self, block: Block, rows: slice) -> Array | None:
        """Return rows of a block as a dense matrix with a column for each feature.

        None if there are too many features.
        """
        dense = np.nan_to_num(block.X[rows], nan=0.0)
        used = np.flatnonzero(dense.any(axis=0))
        row, feature, value = _entries(block, rows)
        known, places = np.unique(feature, return_inverse=True)
        stride = 2 if block.codes.shape[1] else 1
        of_dense = self._columns_of((1 + stride * used) & block.mask)
        of_known = self._columns_of(known)
        if self.too_many:
            return None
        width = 1 + len(self._columns)
        flat = row * width + of_known[places]
        sums = np.bincount(flat, value, len(dense) * width)
        A: Array = sums.astype(np.float64).reshape(len(dense), width)
        for column, j in zip(of_dense, used, strict=True):
            A[:, column] += dense[:, j]  # hashed features that collide are summed
        A[:, _ONE] = 1
        return A

    def _fill(self, A: Array, y: Array, weights: Array) -> None:
        """Add rows to those that wait to be folded into the triangle."""
        A[:, _LABEL] = y
        sizes = np.abs(A[weights > 0]).max(axis=0, initial=0)
        sizes[: len(self._sizes)] = np.maximum(sizes[: len(self._sizes)], self._sizes)
        self._sizes = sizes
        self._pending.append(np.sqrt(weights)[:, None] * A)
        if sum(map(len, self._pending)) > 4 * A.shape[1]:
            self._fold()

    def _multiply(self, A: Array, slopes: Array) -> None:
        """Add the products of the columns and the slopes; a new column was 0 in earlier rows."""
        known = self._products
        self._products = np.pad(known, ((0, A.shape[1] - len(known)), (0, 0)))
        if slopes.shape[1]:
            self._products += A.T @ slopes

    def _columns_of(self, features: Array) -> Array:
        """Return the columns of features; a new feature gets a new column."""
        known = self._columns
        return np.array([known.setdefault(f, 1 + len(known)) for f in features.tolist()], np.int64)

    def _fold(self) -> None:
        """Fold the pending rows into the triangle; a new feature is 0 in all earlier rows."""
        if self._pending:
            parts = [self._triangle, *self._pending]
            width = parts[-1].shape[1]
            wide = [np.pad(part, ((0, 0), (0, width - part.shape[1]))) for part in parts]
            self._triangle = np.asarray(np.linalg.qr(np.vstack(wide), mode="r"))
            self._pending = []


def best_in_cross(A: Array, y: Array, reach: float, tolerance: float = 1e-10) -> Best:
    """Return the w with the least ||A w - y||^2 and sum |w| <= reach, with a certified gap.

    This is Wolfe's algorithm for the nearest point of a polytope, here with the corners +-reach
    A_f. It takes the nearest point in the affine hull of a few corners while that point lies
    between them, drops corners that do not help, and adds the corner that promises most. By
    convexity, no w has a loss below loss - 2 r . (A w - c), for residuals r and the corner c
    farthest along -r. The least loss of any w without the constraint is a lower bound too.
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
            break  # found, or as close as rounding allows
        before = loss
        corners, q = _nearest(A, y, reach, np.append(corners, toward), np.append(q, 0.0))
    signed = np.where(corners < k, reach * q, -reach * q)
    return Best(loss, np.bincount(corners % k, signed, k), gap)


def _least(A: Array, y: Array) -> Best:
    """Return the w with the least ||A w - y||^2; among ties the shortest, in normalised columns."""
    norms = np.linalg.norm(A, axis=0)
    norms[norms == 0] = 1
    w = best_linear(A / norms, y, rank=RANK)[0]
    return Best(_square(A / norms @ w - y), w / norms)


def _nearest(A: Array, y: Array, reach: float, corners: Array, q: Array) -> tuple[Array, Array]:
    """Return the nearest point in the hull of these corners or a subset, starting from q."""
    while True:
        V = _corners(A, corners, reach)
        shares = np.linalg.lstsq(V[:, 1:] - V[:, :1], y - V[:, 0], rcond=RANK)[0]
        target = np.append(1 - shares.sum(), shares)
        if (target > 0).all():
            return corners, target
        # move until the first share reaches 0
        inward = np.flatnonzero(target <= 0)
        limits = q[inward] / np.maximum(q[inward] - target[inward], 1e-300)
        q = np.maximum(q + limits.min() * (target - q), 0.0)
        q[inward[limits.argmin()]] = 0.0
        corners, q = corners[q > 0], q[q > 0] / q.sum()


def _corners(A: Array, corners: Array, reach: float) -> Array:
    """Return corners of the polytope: reach A_f, or -reach A_f for numbers from k on."""
    k = A.shape[1]
    return A[:, corners % k] * np.where(corners < k, reach, -reach)


def _entries(block: Block, rows: slice) -> tuple[Array, Array, Array]:
    """Return rows, feature numbers (as in `Block.row`) and values of active entries and codes."""
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
