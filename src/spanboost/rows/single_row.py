"""A fast path for single rows, which reuses one block.

Creating a block and checking it with NumPy takes much longer than learning one row. So a row of
plain numbers is written into the block of the previous row, if both have the same names or the same
length. All other rows, and all invalid ones, take the general path, which reports errors.
"""

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.rows.feature_names import canonical_order

_LIMIT = 3e38  # slightly less than the largest float32
PLAIN = frozenset([int, float, bool])


class SingleRow:
    """Writes rows with these names, or of this length, into one array.

    blank: names that have been missing in all rows; a row with a number there cannot be written.
    """

    def __init__(self, key: Any, numbers: Array, blank: Sequence[str] = ()) -> None:
        self._key, self._blank = key if isinstance(key, int) else frozenset(key), blank
        self._names = None if isinstance(key, int) else canonical_order(key)
        self._numbers: Any = numbers
        letter = "f" if numbers.dtype == np.float32 else "d"
        self._write = struct.Struct(f"{numbers.size}{letter}").pack_into

    def write(self, x: Any) -> bool:
        """Write the numbers of a row, and return whether that was possible.

        If it was not, the array may hold anything.
        """
        if row_key(x) != self._key:
            return False
        values = x if self._names is None else [x[name] for name in self._names]
        if not are_plain(values) or any(x[name] == x[name] for name in self._blank):  # not NaN
            return False
        try:
            self._write(self._numbers, 0, *values)
        except (struct.error, OverflowError):
            return False
        return min(values) > -_LIMIT and max(values) < _LIMIT


def row_key(x: Any) -> Any:
    """Return the names of a row, in any order, or its length; None for other types of rows."""
    if type(x) is dict:
        return x.keys()
    return len(x) if type(x) in (list, tuple) else None


def are_plain(values: Any) -> bool:
    """Return whether all values are of the types int, float and bool."""
    return PLAIN.issuperset(map(type, values))
