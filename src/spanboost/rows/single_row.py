"""One row at a time, in a block made once.

To make a block, and to check it with NumPy, costs many times what it takes to learn one row. A row
of plain numbers is written into the block of the row before it instead, if that had the same names
or the same width. Everything else, and everything that is wrong, is left to the general way, which
says what is wrong.
"""

import struct
from typing import Any

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.rows.feature_names import canonical_order

_LIMIT = 3e38  # below what a float32 holds
PLAIN = frozenset([int, float, bool])


class SingleRow:
    """Room for the numbers of rows with these names, or of this width."""

    def __init__(self, key: Any, numbers: Array) -> None:
        self._key = key if isinstance(key, int) else frozenset(key)
        self._names = None if isinstance(key, int) else canonical_order(key)
        self._numbers: Any = numbers
        letter = "f" if numbers.dtype == np.float32 else "d"
        self._write = struct.Struct(f"{numbers.size}{letter}").pack_into

    def write(self, x: Any) -> bool:
        """Write the numbers of a row, if they are plain ones and have a place here.

        If they have not, what was written before may be lost.
        """
        if row_key(x) != self._key:
            return False
        values = x if self._names is None else [x[name] for name in self._names]
        if not are_plain(values):
            return False
        try:
            self._write(self._numbers, 0, *values)
        except (struct.error, OverflowError):
            return False
        return min(values) > -_LIMIT and max(values) < _LIMIT


def row_key(x: Any) -> Any:
    """The names of a row, in any order, or its width; None for a row of another kind."""
    if type(x) is dict:
        return x.keys()
    return len(x) if type(x) in (list, tuple) else None


def are_plain(values: Any) -> bool:
    """Whether these are Python's own numbers, which need no more than to be written."""
    return PLAIN.issuperset(map(type, values))
