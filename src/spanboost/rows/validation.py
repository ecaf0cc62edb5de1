"""Validation of rows."""

import math
from collections.abc import Callable
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.errors import DataError


class Sparse(NamedTuple):
    """The parts of a CSR matrix."""

    indptr: Array
    indices: Array
    data: Array
    shape: tuple[int]  # (number of rows,)


class FeatureError(DataError):
    """An invalid number: its row and column, and what is wrong with it. The encoder names it."""

    def __init__(self, row: int, column: int, problem: str) -> None:
        super().__init__(row, f"column {column} {problem}")
        self.column, self.problem = column, problem

    def __reduce__(self) -> Any:
        return FeatureError, (self.row, self.column, self.problem)


def parse_rows(X: Any, dimensions: int = 2) -> Array:
    """Return a block as an array of numbers, rows x features; raise if one is infinite."""
    if dimensions == 2:
        _refuse_block_as_row(X)
    try:
        block = to_numbers(X)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"rows must be numbers, all of the same length: {error}") from None
    if block.ndim != dimensions or block.size == 0:
        if isinstance(X, list):
            for t, x in enumerate(X):
                if x is None:
                    raise DataError(t, "the row is None")
        hint = "; each row is a list of values" if block.ndim == 1 else ""
        raise ValueError(f"rows must be an array, rows x features (got shape {block.shape}){hint}")
    refuse_feature(np.isinf(block), "is infinite")
    return block


def _refuse_block_as_row(X: Any) -> None:
    """Raise a ValueError if the only row of a list is itself an array or a frame of rows."""
    single = isinstance(X, list) and len(X) == 1
    shape: tuple[int, ...] = getattr(X[0], "shape", ()) if single else ()
    if len(shape) == 2:
        raise ValueError(
            f"expected one row (got {shape[0]} x {shape[1]} values); for several rows, use "
            "predict_many or learn_many"
        )


def refuse_feature(bad: Array, problem: str) -> None:
    """Raise a FeatureError for the first of the bad numbers [rows, ...], if there is one."""
    if bad.any():  # much faster than checking row by row
        rows = bad.reshape(len(bad), -1)
        row = int(rows.any(axis=1).argmax())
        raise FeatureError(row, int(rows[row].argmax()), problem)


def check_rows(X: Any) -> Any:
    """Return rows of any type unchanged; raise a DataError if one contains an infinite number."""
    for t, x in enumerate(X):
        if (feature := _infinite_feature(x)) is not None:
            raise DataError(t, f"{feature} is infinite")
    return X


def to_numbers(values: Any) -> Array:
    """Return an array of floats; raise a TypeError unless all values are real numbers."""
    if isinstance(values, np.ma.MaskedArray):
        values = np.ma.filled(values.astype(np.float64), np.nan)
    raw = np.asarray(values)
    if raw.dtype.kind not in "biufO" or not all(v is None or is_number(v) for v in _items(raw)):
        raise TypeError(f"{raw.dtype} is not a numeric type")
    return raw if raw.dtype.kind == "f" else raw.astype(np.float64)


def is_number(value: Any) -> bool:
    """Return whether a value is a real number; a time span is not."""
    return isinstance(value, Real | np.bool_) and not isinstance(value, np.timedelta64)


def refuse_first(bad: Any, what: Callable[[int], str]) -> None:
    """Raise a DataError for the first bad row, if there is one."""
    if bad.any():
        row = int(bad.argmax())
        raise DataError(row, what(row))


def _items(raw: Array) -> Any:
    """Return the items of an array of objects, which may be of any type."""
    return raw.flat if raw.dtype.kind == "O" else ()


def _infinite_feature(x: Any) -> str | None:
    """Return the key or column of an infinite number in a row; None if there is none."""
    if isinstance(x, np.ndarray):
        infinite = np.isinf(x).ravel() if x.dtype.kind == "f" else np.zeros(0, bool)
        return f"column {infinite.argmax()}" if infinite.any() else None
    if isinstance(x, dict):
        pairs = ((repr(key), value) for key, value in x.items())
    else:
        values = x if isinstance(x, list | tuple) else [x]
        pairs = ((f"column {j}", value) for j, value in enumerate(values))
    found = (name for name, v in pairs if isinstance(v, float | np.floating) and math.isinf(v))
    return next(found, None)
