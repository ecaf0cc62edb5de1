"""Blocks of rows as the loop reads them.

The linear, stump and network learners see a row as a list of its active features, each with a
number and a value; the constant comes first. A feature is active if it is neither 0 nor missing
(NaN, or a negative code). Numbers are dense or sparse (CSR). Each code of a category is a feature
of its own with value 1; it is computed when the row is read and never stored.

The constant is feature 0. Without codes, column j is feature 1 + j. With C code columns, column j
is feature 1 + 2 j, and code c of code column j is feature 2 + 2 (c C + j): both ranges are
unbounded and do not overlap. In a hashed table of 2^b rows, feature numbers are taken modulo 2^b.

Ridge sees missing numbers too: see `BlockWithMissing`. Trees see a row as its cells, including
zeros and missing values: see `Cells`.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel
from spanboost.errors import DataError
from spanboost.rows.validation import (
    FeatureError,
    Sparse,
    parse_rows,
    refuse_feature,
    refuse_first,
)

_LIMIT = 2**40  # of column numbers and codes, so that no feature number overflows


@dataclass(frozen=True)
class Rows:
    """Rows with category codes: numbers (dense, sparse or None), and columns of codes.

    A negative code is a missing category.
    """

    numbers: Any
    codes: Any

    def __len__(self) -> int:
        given = self.numbers if self.codes is None else self.codes
        if not np.shape(given):
            raise ValueError(f"Rows needs arrays of several rows (got {given!r:.60})")
        return int(np.shape(given)[0])

    def take(self, rows: Any) -> "Rows":
        """Return some of the rows, given by a NumPy index."""
        return Rows(None if self.numbers is None else self.numbers[rows], self.codes[rows])


class Row(NamedTuple):
    """The active features of one row."""

    feature: Array  # [active] feature numbers
    x: Array  # [active] values
    z: Array  # [active] scratch space for the bank


@kernel(counted=True)  # Numba needs it for a method that returns an array
class ArrayRows(NamedTuple):
    """Rows that are arrays, passed on unchanged."""

    X: Array

    def row(self, t: int) -> Any:
        """Row t."""
        return self.X[t]


class ObjectRows:
    """Rows of any type, passed on as they are; never compiled."""

    def __init__(self, X: Any) -> None:
        self.X = X

    def row(self, t: int) -> Any:
        """Row t; a copy, if a learner could change it."""
        x = self.X[t]
        return x.copy() if isinstance(x, dict | list | np.ndarray) else x


@kernel
class Block(NamedTuple):
    """Dense or sparse numbers and category codes, read as active features."""

    X: Array  # [rows, columns]; no columns for sparse rows
    indptr: Array  # [rows + 1] where sparse rows begin; all 0 for dense rows
    indices: Array  # [entries] their columns
    data: Array  # [entries] their values
    codes: Array  # [rows, C] category codes
    mask: Any  # 2^b - 1 for a hashed table, -1 (all ones) otherwise
    feature: Array  # scratch, wider than the widest row
    x: Array  # scratch
    z: Array  # scratch

    def row(self, t: int) -> Row:
        """Return the active features of row t."""
        C = self.codes.shape[1]
        stride = 2 if C > 0 else 1
        self.feature[0], self.x[0] = 0, 1
        active = 1
        dense = self.X[t]
        for j in range(dense.shape[0]):
            self.feature[active] = (1 + stride * j) & self.mask
            self.x[active] = dense[j]
            active += 1 if self.is_active(dense[j]) else 0
        for e in range(self.indptr[t], self.indptr[t + 1]):
            self.feature[active] = (1 + stride * self.indices[e]) & self.mask
            self.x[active] = self.data[e]
            active += 1 if self.is_active(self.data[e]) else 0
        for j in range(C):
            code = self.codes[t, j]
            self.feature[active] = (2 + 2 * (code * C + j)) & self.mask
            self.x[active] = 1
            active += 1 if code >= 0 else 0
        return Row(self.feature[:active], self.x[:active], self.z[:active])

    def is_active(self, value: float) -> bool:
        """Return whether a number makes its feature active; a missing one, NaN, does not."""
        return value < 0 or value > 0

    @property
    def features(self) -> int:
        """The number of features: the rows that a table needs for this block."""
        if self.mask >= 0:
            return int(self.mask) + 1
        C = int(self.codes.shape[1])
        return 1 + self.columns if C == 0 else 2 + 2 * max(self.columns, C * (self.largest + 1))

    @property
    def columns(self) -> int:
        """The number of columns of numbers that occur in the block."""
        return max(int(self.X.shape[1]), int(self.indices.max(initial=-1)) + 1)

    @property
    def largest(self) -> int:
        """The largest code."""
        return int(self.codes.max(initial=0))


@kernel
class BlockWithMissing(Block):
    """The same block, read as active features and missing ones: a missing number is NaN.

    Missing categories are left out, as in `Block`: every code of the column is 0 in such a row.
    """

    __slots__ = ()

    def is_active(self, value: float) -> bool:
        """Return whether a number makes its feature active."""
        return value != 0


@kernel
class Cells(Block):
    """The same block, read as cells: zeros, missing values (NaN) and codes are cells too.

    Column j is feature 2 j, code column j is feature 2 j + 1. The value of a code cell is the code
    modulo 2^24, which a float32 represents exactly; a missing code is -1. The cells of a sparse row
    are its stored entries that are not 0; hashed columns are taken modulo 2^b.
    """

    __slots__ = ()

    def row(self, t: int) -> Row:
        """Return the cells of row t."""
        cells = 0
        dense = self.X[t]
        for j in range(dense.shape[0]):
            self.feature[cells], self.x[cells] = 2 * j, dense[j]
            cells += 1
        for e in range(self.indptr[t], self.indptr[t + 1]):
            self.feature[cells] = 2 * (self.indices[e] & self.mask)
            self.x[cells] = self.data[e]
            cells += 1 if self.data[e] != 0 else 0
        for j in range(self.codes.shape[1]):
            code = self.codes[t, j]
            self.feature[cells] = 2 * j + 1
            self.x[cells] = code & 0xFFFFFF if code >= 0 else -1
            cells += 1
        return Row(self.feature[:cells], self.x[:cells], self.z[:cells])

    @property
    def features(self) -> int:
        """The number of features: one more than the largest that occurs."""
        columns = self.columns if self.mask < 0 else min(self.columns, int(self.mask) + 1)
        return 2 * max(columns, int(self.codes.shape[1]))


def as_rows(rows: Any) -> Any:
    """Return encoded rows in the form that the loop reads."""
    return ArrayRows(rows) if isinstance(rows, np.ndarray) else rows


def shape_of(X: Any, rows: Any) -> tuple[Any, ...]:
    """Return the shape that every block must share, the number of features first.

    It is empty for rows of any type.
    """
    if isinstance(rows, Block):
        return rows.X.shape[1], rows.codes.shape[1]
    if isinstance(rows, np.ndarray):
        return np.shape(X)[1], rows.shape[1:]
    return ()


def block_of(X: Any, dtype: Any, bits: int | None) -> Block:
    """Return a block for an array, a CSR matrix, `Rows`, or an encoded block.

    An encoded block of the same precision and hashing is reused, with new scratch space.
    """
    mask = np.int64(-1 if bits is None else 2**bits - 1)
    if isinstance(X, Block):
        if (X.x.dtype, X.mask) == (dtype, mask):
            return Block(*X[:6], *map(np.zeros_like, X[6:]))
        sparse = Sparse(X.indptr, X.indices, X.data, (len(X.X),))
        X = Rows(X.X if X.X.shape[1] else sparse, X.codes)
    numbers, codes = (X.numbers, X.codes) if isinstance(X, Rows) else (X, None)
    if numbers is None:
        none = np.zeros(0, np.int64)
        numbers = Sparse(np.zeros(len(X) + 1, np.int64), none, none, (len(X),))
    form = getattr(numbers, "format", "csr")
    if isinstance(form, str) and form != "csr":
        raise ValueError(f"the sparse matrix is in {form} format: convert it with tocsr()")
    if hasattr(numbers, "indptr"):
        dense = np.zeros((numbers.shape[0], 0), dtype)
        indptr, indices, data = _parse_csr(numbers, dtype)
    else:
        given = parse_rows(numbers)
        dense = _cast(given, dtype)
        if given.dtype != dense.dtype:
            refuse_feature(np.isinf(dense), f"is too large for {dense.dtype}")
        indptr, indices = np.zeros(len(dense) + 1, np.int64), np.zeros(0, np.int64)
        data = np.zeros(0, dtype)
    rows = len(dense)
    codes = np.zeros((rows, 0), np.int64) if codes is None else _parse_codes(codes, rows)
    # one more for the constant, and one because `row` writes an entry before it skips it
    width = 2 + dense.shape[1] + int(np.diff(indptr).max(initial=0)) + codes.shape[1]
    return Block(
        X=dense,
        indptr=indptr,
        indices=indices,
        data=data,
        codes=codes,
        mask=mask,
        feature=np.zeros(width, np.int64),
        x=np.zeros(width, dtype),
        z=np.zeros(width, dtype),
    )


def prepend_columns(columns: Array, block: Block | None = None) -> Block:
    """Return a block whose first columns are these; the numbers of its own columns grow by as many.

    Without a block, there are no other columns.
    """
    more = columns.shape[1]
    if block is None:
        return block_of(columns, columns.dtype, None)
    room = len(block.x) + more
    return Block(
        X=np.hstack([columns, block.X]),
        indptr=block.indptr,
        indices=block.indices + more,
        data=block.data,
        codes=block.codes,
        mask=block.mask,
        feature=np.zeros(room, np.int64),
        x=np.zeros(room, columns.dtype),
        z=np.zeros(room, columns.dtype),
    )


def slice_block(block: Block, first: int, last: int) -> Block:
    """Return the rows first <= t < last of a block; they share its arrays."""
    a, b = block.indptr[first], block.indptr[last]
    if (first, last) == (0, len(block.X)) and b == len(block.data):
        return block
    return block._replace(
        X=block.X[first:last],
        indptr=block.indptr[first : last + 1] - a,
        indices=block.indices[a:b],
        data=block.data[a:b],
        codes=block.codes[first:last],
    )


def features_of(block: Any) -> int:
    """Return the number of features of a block; 0 for rows of another type."""
    return block.features if isinstance(block, Block) else 0


def origin_of(feature: int, C: int) -> tuple[int, int | None]:
    """Return (column, None) or (code column, code) for a feature number, with C code columns.

    The constant is (-1, None).
    """
    if feature == 0 or C == 0:
        return feature - 1, None
    if feature % 2:
        return (feature - 1) // 2, None
    code, j = divmod((feature - 2) // 2, C)
    return j, code


def _cast(values: Any, dtype: Any) -> Array:
    """Return the values as a writable, contiguous array: to Numba, read-only is another type."""
    with np.errstate(over="ignore"):
        return np.require(values, dtype, ["C", "A", "W"])


def _parse_csr(matrix: Any, dtype: Any) -> tuple[Array, Array, Array]:
    """Check the parts of a CSR matrix and return them."""
    indptr, indices = _cast(matrix.indptr, np.int64), _cast(matrix.indices, np.int64)
    data = np.asarray(matrix.data)
    rows = matrix.shape[0]
    entries = len(indices)
    if (
        len(indptr) != rows + 1
        or len(data) != entries
        or indptr[0] != 0
        or indptr[-1] != entries
        or (np.diff(indptr) < 0).any()
        or (entries and indices.min() < 0)
    ):
        raise ValueError("the CSR matrix is invalid: indptr, indices and data do not match")
    _refuse_entries(indptr, indices >= _LIMIT, "a column number is too large")
    if data.dtype.kind not in "biuf":
        raise ValueError(f"rows must be numbers ({data.dtype} is not a numeric type)")
    data = _cast(data, dtype)
    infinite = np.isinf(data)
    if infinite.any():
        place = int(infinite.argmax())
        problem = f"is infinite or too large for {data.dtype}"
        raise FeatureError(_row_of(indptr, place), int(indices[place]), problem)
    return indptr, indices, data


def _refuse_entries(indptr: Array, bad: Array, what: str) -> None:
    """Raise a DataError for the row of the first bad entry, if there is one."""
    if bad.any():
        raise DataError(_row_of(indptr, int(bad.argmax())), what)


def _row_of(indptr: Array, entry: int) -> int:
    return int(np.searchsorted(indptr, entry, side="right")) - 1


def _parse_codes(codes: Any, rows: int) -> Array:
    given = np.asarray(codes)
    if given.ndim != 2 or len(given) != rows or given.dtype.kind not in "iu":
        raise ValueError(
            f"codes must be integers, with one row for each of the {rows} rows "
            f"(got {given.dtype} of shape {given.shape})"
        )
    refuse_first((given >= _LIMIT).any(axis=1), lambda t: "a code is too large")
    return _cast(given, np.int64)
