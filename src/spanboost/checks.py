"""Type checks for parameters: numbers, integers, floating-point types."""

import math
from typing import Any

import numpy as np


def is_number(value: Any) -> bool:
    """Return whether a value is a real number, not a boolean."""
    if not isinstance(value, int | float | np.floating | np.integer) or isinstance(value, bool):
        return False
    return not isinstance(value, int) or abs(value) < 2**1023  # larger integers overflow a float


def is_integer(value: Any) -> bool:
    """Return whether a value is an integer, not a boolean."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def float_type(dtype: Any) -> Any:
    """Return the type float32 or float64 for any of its names; raise ValueError for others."""
    try:
        resolved = None if dtype is None else np.dtype(dtype)
    except TypeError:
        resolved = None
    if resolved is None or resolved not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise ValueError(f"dtype must be float32 or float64 (got {dtype!r})")
    return resolved.type


def finite_or_none(value: float | None) -> float | None:
    """Return a number that JSON can represent: None if the value is not finite."""
    return None if value is None or not math.isfinite(value) else float(value)
