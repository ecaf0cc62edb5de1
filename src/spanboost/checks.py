"""Checks of parameter values. Nothing heavy is imported: the command line's parser uses them."""

import math
from numbers import Integral, Real
from typing import Any

BREATHING = ("auto", "auto-zero")  # label ranges that follow the labels
MOST_CLASSES = 1000  # of a model that adds classes: a wrong number must not use up the memory
GROWING = ("growing", "growing-zero")  # label ranges that only grow with the labels
LABEL_RANGES = (*BREATHING, *GROWING)
STEP_TOLERANCE = 1e-12  # 1/n need not be exact in floating point


def is_number(value: Any) -> bool:
    """Return whether the value is a real number that a float can hold (and not a bool)."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    return not isinstance(value, int) or abs(value) < 2**1023


def is_integer(value: Any) -> bool:
    """Return whether the value is an integer (and not a bool)."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_positive(value: Any) -> bool:
    """Return whether the value is a finite number above 0."""
    return is_number(value) and 0 < value < math.inf


def is_label_range(limits: Any) -> bool:
    """Return whether the value is (low, high) with low < high, or the name of a rule."""
    if isinstance(limits, str):
        return limits in LABEL_RANGES
    return (
        isinstance(limits, tuple | list)
        and len(limits) == 2
        and all(map(is_number, limits))
        and 0 < (limits[1] - limits[0]) / 2 < math.inf
    )


def is_step(eta: Any, n: int) -> bool:
    """Return whether eta is a step that Algorithm 1 can take with n copies."""
    return is_number(eta) and eta * n >= 1 - STEP_TOLERANCE and eta <= 1


def float_type(dtype: Any) -> Any:
    """Return np.float32 or np.float64 for any of their names; anything else is a ValueError."""
    import numpy as np

    try:
        found = None if dtype is None else np.dtype(dtype)
    except TypeError:
        found = None
    if found is None or found not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise ValueError(f"dtype must be float32 or float64 (got {dtype!r})")
    return found.type


def finite_or_none(value: float | None) -> float | None:
    """Return the number as JSON can hold it: None if it is not finite."""
    return None if value is None or not math.isfinite(value) else float(value)
