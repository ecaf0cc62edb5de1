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


def parse_rows(X: Any, dimensions: int = 2) -> Array:
    """Return a block as an array of numbers, rows x features; raise if one is infinite."""
    try:
        block = to_numbers(X)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"rows must be numbers, all of the same length: {error}") from None
    if block.ndim != dimensions or block.size == 0:
        raise ValueError(f"a block must be rows x features (got shape {block.shape})")
    infinite = np.isinf(block)
    if infinite.any():  # much faster than checking row by row
        refuse_first(
            infinite.reshape(len(block), -1).any(axis=1), lambda t: "a feature is infinite"
        )
    return block


def check_rows(X: Any) -> Any:
    """Return rows of any type unchanged; raise a DataError if one contains an infinite number."""
    for t, x in enumerate(X):
        if _has_infinity(x):
            raise DataError(t, "a feature is infinite")
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


def _has_infinity(x: Any) -> bool:
    if isinstance(x, np.ndarray):
        return x.dtype.kind == "f" and bool(np.isinf(x).any())
    if isinstance(x, dict):
        x = x.values()
    elif not isinstance(x, list | tuple):
        x = [x]
    return any(isinstance(v, float | np.floating) and math.isinf(v) for v in x)
