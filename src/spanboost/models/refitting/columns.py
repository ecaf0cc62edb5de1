"""Rows as the matrix that estimators of other libraries read.

Rows that are arrays keep their columns; code columns follow them. In rows that are dictionaries, a
key whose values are strings is one column again: the number of the string, from 1, or 0 if the row
does not have the key. The columns are those that were known at the time of the fit; keys and
strings that appear later are left out until the next fit.
"""

from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.errors import ModelFileError
from spanboost.rows.block import Block

WIDE = 1000  # columns of a matrix that is stored as a sparse one


class Columns(NamedTuple):
    """Where the entries of sparse rows are in the matrix. Without them, all arrays are empty."""

    column: Array  # [entries' columns] column of the matrix
    code: Array  # [entries' columns] number of the string; 0 for numbers
    width: int  # number of columns, without code columns

    @property
    def categories(self) -> list[int]:
        """The columns that hold numbers of strings."""
        found: list[int] = np.unique(self.column[self.code > 0]).tolist()
        return found


def columns_of(rows: Block, names: dict[str, int]) -> Columns:
    """Return the columns of the matrix for rows like these.

    names: the columns of sparse rows by name; empty if they have no names.
    """
    if rows.X.shape[1]:
        return Columns(np.zeros(0, np.int64), np.zeros(0, np.int64), rows.X.shape[1])
    entries = rows.indices & rows.mask
    seen = max(int(entries.max(initial=-1)) + 1, *(1 + c for c in names.values()), 0, 0)
    ones = np.ones(seen, bool)
    ones[entries[rows.data != 1]] = False  # numbers, whose names may look like strings
    column, code = np.arange(seen), np.zeros(seen, np.int64)
    keys: dict[str, list[int]] = {}
    for name, place in sorted(names.items(), key=lambda item: item[1]):
        key, equals, _ = name.partition("=")
        if equals and ones[place] and key not in names:
            keys.setdefault(key, []).append(place)
    for places in keys.values():
        column[places] = places[0]
        code[places] = 1 + np.arange(len(places))
    used, column = np.unique(column, return_inverse=True)
    return Columns(column, code, len(used))


def to_matrix(rows: Block, columns: Columns) -> Any:
    """Return rows as a dense matrix, or as a sparse one if it is wide."""
    codes = np.where(rows.codes >= 0, rows.codes, np.nan).astype(np.float32)
    if rows.X.shape[1]:
        return np.hstack([rows.X, codes]) if codes.shape[1] else rows.X
    entries = rows.indices & rows.mask
    known = entries < len(columns.column)
    row = np.repeat(np.arange(len(codes)), np.diff(rows.indptr))[known]
    entries, data = entries[known], rows.data[known].astype(np.float32)
    place, code = columns.column[entries], columns.code[entries]
    values = np.where(code > 0, code, data).astype(np.float32)
    shape = len(codes), columns.width
    if columns.width <= WIDE:
        matrix = np.zeros(shape, np.float32)
        matrix[row, place] = values
        return np.hstack([matrix, codes])
    from scipy import sparse

    matrix = sparse.csr_matrix((values, (row, place)), shape)
    return sparse.hstack([matrix, sparse.csr_matrix(codes)]).tocsr() if codes.shape[1] else matrix


def category_columns(rows: Block, columns: Columns) -> list[int]:
    """Return the columns of the matrix that hold categories."""
    C = rows.codes.shape[1]
    return columns.categories + list(range(columns.width, columns.width + C))


def restore_columns(column: Array, code: Array, width: Any) -> Columns:
    """Return the columns that a file holds; a ModelFileError if they are invalid."""
    columns = Columns(column, code, width)
    whole = column.dtype == code.dtype == np.int64 and column.shape == code.shape == (len(column),)
    inside = whole and bool(((column >= 0) & (column < width) & (code >= 0)).all())
    if not inside or not isinstance(width, int) or not 0 <= width <= 2**40:
        raise ModelFileError("the columns of a fit are invalid")
    return columns
