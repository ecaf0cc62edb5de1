"""Checks of the arguments of the bounds."""

import math


def check(**values: tuple[float, str, bool]) -> None:
    """Raise a ValueError for the first value that is not allowed: (value, allowed, test)."""
    for name, (value, allowed, good) in values.items():
        if not good:
            raise ValueError(f"{name} must be {allowed} (got {value:g})")


def count(value: int) -> tuple[float, str, bool]:
    """Check a whole number of at least 1."""
    return value, "a whole number of at least 1", value >= 1 and value % 1 == 0


def positive(value: float) -> tuple[float, str, bool]:
    """Check a positive number."""
    return value, "a number above 0", 0 < value < math.inf


def not_negative(value: float) -> tuple[float, str, bool]:
    """Check a number of at least 0."""
    return value, "a number of at least 0", 0 <= value < math.inf


def finite(value: float) -> tuple[float, str, bool]:
    """Check a finite number."""
    return value, "a finite number", math.isfinite(value)


def norm(value: float) -> tuple[float, str, bool]:
    """Check a number of at least 1."""
    return value, "a number of at least 1", 1 <= value < math.inf
