"""What parameters are: numbers, whole ones, kinds of floating-point numbers."""

import math
from typing import Any

import numpy as np


def is_number(value: Any) -> bool:
    """Whether it is a real number, and not a truth value."""
    if not isinstance(value, int | float | np.floating | np.integer) or isinstance(value, bool):
        return False
    return not isinstance(value, int) or abs(value) < 2**1023  # one that a float can hold


def is_integer(value: Any) -> bool:
    """Whether it is a whole number, and not a truth value."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def float_type(dtype: Any) -> Any:
    """float32 or float64, by any of their names."""
    try:
        found = None if dtype is None else np.dtype(dtype)
    except TypeError:
        found = None
    if found is None or found not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise ValueError(f"dtype={dtype!r} is not allowed: float32 or float64")
    return found.type


def finite_or_none(value: float | None) -> float | None:
    """A number as JSON can have it: None for what is not finite."""
    return None if value is None or not math.isfinite(value) else float(value)
