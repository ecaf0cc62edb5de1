"""Blocks of rows as the loop reads them, and the active features of one row.

Learners of features see a row as its active features: numbered, with a value each, the constant
first. A feature is active when it is neither 0 nor missing (NaN, or a negative code). Numbers come
dense or sparse (CSR); a category code is a feature of its own with value 1, computed while the row
is read, never stored.

The constant is feature 0. Without codes, column j is feature 1 + j. With C code columns, column j
is 1 + 2 j and code c of code column j is 2 + 2 (c C + j): both kinds grow without end and never
meet. In a hashed table of 2^b rows the number is taken modulo 2^b.

Trees see a row as its cells, whatever is in them: see `Cells`.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel
from spanboost.errors import DataError
from spanboost.rows.validation import Sparse, parse_rows, refuse_first

_LARGEST = 2**40  # of columns and codes: no feature's number overflows


@dataclass(frozen=True)
class Rows:
    """Numbers, dense or sparse or None, with columns of category codes (negative: missing)."""

    numbers: Any
    codes: Any

    def __len__(self) -> int:
        given = self.numbers if self.codes is None else self.codes
        if not np.shape(given):
            raise ValueError(f"{given!r} is no block of rows")
        return int(np.shape(given)[0])

    def take(self, rows: Any) -> "Rows":
        """Some of them: their numbers, or which of all."""
        return Rows(None if self.numbers is None else self.numbers[rows], self.codes[rows])


class Row(NamedTuple):
    """The active features of one row."""

    feature: Array  # [active] their numbers
    x: Array  # [active] their values
    z: Array  # [active] room for what a bank makes of them


@kernel(counted=True)  # Numba asks it of a method that returns an array
class ArrayRows(NamedTuple):
    """Rows that are arrays, handed over as they are."""

    X: Array

    def row(self, t: int) -> Any:
        """Row t."""
        return self.X[t]


class ObjectRows:
    """Rows of any kind, handed over as they are; never compiled."""

    def __init__(self, X: Any) -> None:
        self.X = X

    def row(self, t: int) -> Any:
        """Row t."""
        return self.X[t]


@kernel
class Block(NamedTuple):
    """Dense or sparse numbers and category codes, read as active features."""

    X: Array  # [rows, columns]; no columns when sparse
    indptr: Array  # [rows + 1] where sparse rows begin; all 0 when dense
    indices: Array  # [entries]
    data: Array  # [entries]
    codes: Array  # [rows, C]
    mask: Any  # 2^b - 1 for a hashed table, all ones otherwise
    feature: Array  # scratch, wider than the widest row
    x: Array  # scratch
    z: Array  # scratch

    def row(self, t: int) -> Row:
        """The active features of row t."""
        C = self.codes.shape[1]
        stride = 2 if C > 0 else 1
        self.feature[0], self.x[0] = 0, 1
        active = 1
        dense = self.X[t]
        for j in range(dense.shape[0]):
            self.feature[active] = (1 + stride * j) & self.mask
            self.x[active] = dense[j]
            active += 1 if dense[j] < 0 or dense[j] > 0 else 0
        for e in range(self.indptr[t], self.indptr[t + 1]):
            self.feature[active] = (1 + stride * self.indices[e]) & self.mask
            self.x[active] = self.data[e]
            active += 1 if self.data[e] < 0 or self.data[e] > 0 else 0
        for j in range(C):
            code = self.codes[t, j]
            self.feature[active] = (2 + 2 * (code * C + j)) & self.mask
            self.x[active] = 1
            active += 1 if code >= 0 else 0
        return Row(self.feature[:active], self.x[:active], self.z[:active])

    @property
    def features(self) -> int:
        """How many rows a table needs for this block."""
        if self.mask >= 0:
            return int(self.mask) + 1
        C = int(self.codes.shape[1])
        return 1 + self.columns if C == 0 else 2 + 2 * max(self.columns, C * (self.largest + 1))

    @property
    def columns(self) -> int:
        """Columns of numbers, as far as the block shows."""
        return max(int(self.X.shape[1]), int(self.indices.max(initial=-1)) + 1)

    @property
    def largest(self) -> int:
        """Of the codes."""
        return int(self.codes.max(initial=0))


@kernel
class Cells(Block):
    """The same block read as it stands: zeros, missing values (NaN) and codes are cells too.

    Column j is feature 2 j, code column j is 2 j + 1. A code is its own value, modulo 2^24, which a
    float32 holds exactly; a missing one is -1. Sparse rows are the cells they store that are not 0,
    their columns taken modulo 2^b where they are hashed.
    """

    __slots__ = ()

    def row(self, t: int) -> Row:
        """The cells of row t."""
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
        """One more than the largest number of a cell."""
        columns = self.columns if self.mask < 0 else min(self.columns, int(self.mask) + 1)
        return 2 * max(columns, int(self.codes.shape[1]))


def as_rows(rows: Any) -> Any:
    """Encoded rows as the loop reads them."""
    return ArrayRows(rows) if isinstance(rows, np.ndarray) else rows


def shape_of(X: Any, rows: Any) -> tuple[Any, ...]:
    """What must be the same in every block, the number of features first; empty for any rows."""
    if isinstance(rows, Block):
        return rows.X.shape[1], rows.codes.shape[1]
    if isinstance(rows, np.ndarray):
        return np.shape(X)[1], rows.shape[1:]
    return ()


def block_of(X: Any, dtype: Any, bits: int | None) -> Block:
    """A block from an array, a CSR matrix, or `Rows` of one of those and codes.

    An encoded block of the same precision and hashing is taken as it is, with its own scratch.
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
        raise ValueError(f"the sparse matrix is in {form} form: use its tocsr()")
    if hasattr(numbers, "indptr"):
        dense = np.zeros((numbers.shape[0], 0), dtype)
        indptr, indices, data = _csr(numbers, dtype)
    else:
        given = parse_rows(numbers)
        dense = _cast(given, dtype)
        if given.dtype != dense.dtype:
            refuse_first(np.isinf(dense).any(axis=1), lambda t: "a feature is too large a number")
        indptr, indices = np.zeros(len(dense) + 1, np.int64), np.zeros(0, np.int64)
        data = np.zeros(0, dtype)
    rows = len(dense)
    codes = np.zeros((rows, 0), np.int64) if codes is None else _codes(codes, rows)
    # the constant before them, and behind them the place that `row` writes to and may not count
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


def features_of(block: Any) -> int:
    """How many features a bank needs room for, for this block; none for rows of another kind."""
    return block.features if isinstance(block, Block) else 0


def origin_of(feature: int, C: int) -> tuple[int, int | None]:
    """(column j, None), or (code column j, code), of a feature beside C code columns.

    The constant is (-1, None).
    """
    if feature == 0 or C == 0:
        return feature - 1, None
    if feature % 2:
        return (feature - 1) // 2, None
    code, j = divmod((feature - 2) // 2, C)
    return j, code


def _cast(values: Any, dtype: Any) -> Array:
    """An array as compiled code knows it: one that nobody may write to is another type there."""
    with np.errstate(over="ignore"):
        return np.require(values, dtype, ["C", "A", "W"])


def _csr(matrix: Any, dtype: Any) -> tuple[Array, Array, Array]:
    """The parts of a CSR matrix, checked."""
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
        raise ValueError("the sparse matrix is not in CSR form: its parts do not fit together")
    _refuse_entries(indptr, indices >= _LARGEST, "a column's number is too large")
    if data.dtype.kind not in "biuf":
        raise ValueError(f"rows must be numbers; {data.dtype} is no kind of number")
    data = _cast(data, dtype)
    _refuse_entries(indptr, np.isinf(data), "a feature is infinite, or too large a number")
    return indptr, indices, data


def _refuse_entries(indptr: Array, bad: Array, what: str) -> None:
    """Raise for the row of the first bad entry, if there is one."""
    if bad.any():
        raise DataError(int(np.searchsorted(indptr, bad.argmax(), side="right")) - 1, what)


def _codes(codes: Any, rows: int) -> Array:
    given = np.asarray(codes)
    if given.ndim != 2 or len(given) != rows or given.dtype.kind not in "iu":
        raise ValueError(
            f"codes are whole numbers, one row of them to each of {rows} rows; these are "
            f"{given.dtype} of shape {given.shape}"
        )
    refuse_first((given >= _LARGEST).any(axis=1), lambda t: "a code is too large a number")
    return _cast(given, np.int64)
