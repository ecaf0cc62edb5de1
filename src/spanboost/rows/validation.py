"""Rows as users give them, checked."""

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
    shape: tuple[int]  # the number of rows


def parse_rows(X: Any, dimensions: int = 2) -> Array:
    """A block of rows x features, all numbers and none infinite."""
    try:
        block = to_numbers(X)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"rows must be numbers, all of one width: {error}") from None
    if block.ndim != dimensions or block.size == 0:
        raise ValueError(f"a block is rows x features; this one has shape {block.shape}")
    infinite = np.isinf(block)
    if infinite.any():  # far quicker than row by row
        refuse_first(
            infinite.reshape(len(block), -1).any(axis=1), lambda t: "a feature is infinite"
        )
    return block


def any_rows(X: Any) -> Any:
    """Rows of any kind, as they are; infinite numbers are refused where a glance shows them."""
    for t, x in enumerate(X):
        if _infinite(x):
            raise DataError(t, "a feature is infinite")
    return X


def to_numbers(values: Any) -> Array:
    """An array of floats, of real numbers only: no text that looks like one, nothing complex."""
    if isinstance(values, np.ma.MaskedArray):
        values = np.ma.filled(values.astype(np.float64), np.nan)
    raw = np.asarray(values)
    if raw.dtype.kind not in "biufO" or not all(v is None or is_number(v) for v in _objects(raw)):
        raise TypeError(f"{raw.dtype} is no kind of number")
    return raw if raw.dtype.kind == "f" else raw.astype(np.float64)


def is_number(value: Any) -> bool:
    """Whether a value is a real number; a span of time is none."""
    return isinstance(value, Real | np.bool_) and not isinstance(value, np.timedelta64)


def refuse_first(bad: Any, what: Callable[[int], str]) -> None:
    """Raise for the first bad row, if there is one."""
    if bad.any():
        row = int(bad.argmax())
        raise DataError(row, what(row))


def _objects(raw: Array) -> Any:
    return raw.flat if raw.dtype.kind == "O" else ()


def _infinite(x: Any) -> bool:
    if isinstance(x, np.ndarray):
        return x.dtype.kind == "f" and bool(np.isinf(x).any())
    if isinstance(x, dict):
        x = x.values()
    elif not isinstance(x, list | tuple):
        x = [x]
    return any(isinstance(v, float | np.floating) and math.isinf(v) for v in x)
