"""Fast paths for single rows, which reuse one block.

Creating a block and checking it with NumPy takes much longer than learning one row. So a row is
written into the block of an earlier one, if it has the same length, or if it is a dictionary whose
names are all known. All other rows, and all invalid ones, take the general path, which reports
errors.
"""

import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.rows.block import Block
from spanboost.rows.feature_names import LARGEST, PLAIN, FeatureNames

_ORDERS = 256  # sets of names whose order is remembered


class SequenceRow:
    """Writes rows of plain numbers, all of the same length, into one array."""

    def __init__(self, numbers: Array) -> None:
        self._numbers: Any = numbers
        self._write = _writer(numbers, numbers.size)

    def write(self, x: Any) -> bool:
        """Write the numbers of a row, and return whether that was possible.

        If it was not, the array may hold anything.
        """
        if type(x) not in (list, tuple) or len(x) != self._numbers.size or not are_plain(x):
            return False
        try:
            self._write(self._numbers, 0, *x)
        except (struct.error, OverflowError):
            return False
        return min(x) > -LARGEST and max(x) < LARGEST


class NamedRow:
    """Writes rows that are dictionaries into the entries of one sparse row.

    rows: the row; it has room for as many entries as it has now.
    """

    def __init__(self, names: FeatureNames, rows: Block) -> None:
        self._names, self._rows = names, rows
        self._room = len(rows.data)
        self._orders: dict[tuple[Any, ...], list[str]] = {}
        self._writers: dict[int, tuple[Callable[..., None], Callable[..., None]]] = {}
        # names whose columns are in the row now, in order, if all values were numbers
        self._keys: frozenset[str] | None = None
        self._order: list[str] = []

    def write(self, x: Any) -> bool:
        """Write a row, and return whether that was possible.

        If it was not, the entries may hold anything.
        """
        if type(x) is not dict:
            return False
        if x.keys() == self._keys:
            numbers = [x[name] for name in self._order]
            if are_plain(numbers) and min(numbers) > -LARGEST and max(numbers) < LARGEST:
                return self._write_numbers(numbers)
        return self._write_entries(x)

    def _write_numbers(self, numbers: list[float]) -> bool:
        """Write the values of the entries."""
        try:
            self._writers_of(len(numbers))[1](self._rows.data, 0, *numbers)
        except (struct.error, OverflowError):
            return False
        return True

    def _write_entries(self, x: dict[Any, Any]) -> bool:
        """Write all entries of a row."""
        self._keys = None
        order = self._order_of(x)
        entries = None if order is None else self._names.read_known(x, order)
        if entries is None and (expanded := self._names.expand([x])[0]) is not x:
            x = expanded
            order = self._order_of(x)
            entries = None if order is None else self._names.read_known(x, order)
        if order is None or entries is None or not 0 < len(entries.columns) <= self._room:
            return False
        number = len(entries.columns)
        if not self._write_numbers(entries.numbers):
            return False
        self._writers_of(number)[0](self._rows.indices, 0, *entries.columns)
        self._rows.indptr[1] = number
        if entries.plain:
            self._keys, self._order = frozenset(order), order
        return True

    def _order_of(self, x: dict[Any, Any]) -> list[str] | None:
        """Return the names of a row in their order; None if the general path must read it."""
        key = tuple(x)
        order = self._orders.get(key)
        if order is None:
            order = self._names.known_order(key)
            if order is None:
                return None
            if len(self._orders) == _ORDERS:
                self._orders.clear()
            self._orders[key] = order
        return order

    def _writers_of(self, number: int) -> tuple[Callable[..., None], Callable[..., None]]:
        """Return what writes this number of columns, and of values."""
        found = self._writers.get(number)
        if found is None:
            rows = self._rows
            found = _writer(rows.indices, number), _writer(rows.data, number)
            self._writers[number] = found
        return found


def _writer(like: Array, number: int) -> Callable[..., None]:
    """Return a function that writes this number of values into an array."""
    letter = {np.float32: "f", np.float64: "d", np.int64: "q"}[like.dtype.type]
    return struct.Struct(f"{number}{letter}").pack_into


def are_plain(values: Any) -> bool:
    """Return whether all values are of the types int, float and bool."""
    return PLAIN.issuperset(map(type, values))
