"""What parameters are: numbers, and whole ones."""

from typing import Any

import numpy as np


def number(value: Any) -> bool:
    """Whether it is a real number, and not a truth value."""
    return isinstance(value, int | float | np.floating | np.integer) and not isinstance(value, bool)


def whole(value: Any) -> bool:
    """Whether it is a whole number, and not a truth value."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)
