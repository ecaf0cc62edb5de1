"""Rows as bytes, exactly: floats as they are, all else as JSON.

To spell a float takes Python longer than to learn it. So rows with the same names, most of whose
values are floats, are a table of these and, row by row, the JSON of the rest.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import orjson

from spanboost.service.request_rows import Row

_FLOAT = np.dtype("<f8")


class Layout(NamedTuple):
    """What rows have in common: their names, and which of these hold floats in every row.

    Rows that do not have the same names have none in common: each is JSON as a whole.
    """

    names: list[str] | None
    floats: list[int]

    @property
    def width(self) -> int:
        """Bytes of a row's floats."""
        return _FLOAT.itemsize * len(self.floats)

    def row(self, floats: bytes, rest: bytes) -> Row:
        """A row, of its floats and its rest."""
        if self.names is None:
            whole: Row = orjson.loads(rest)
            return whole
        others = orjson.loads(rest) if rest else []
        values = dict(zip(self.floats, np.frombuffer(floats, _FLOAT).tolist(), strict=True))
        more = iter(others)
        return {name: values[j] if j in values else next(more) for j, name in enumerate(self.names)}


class Packed(NamedTuple):
    """Rows as bytes."""

    layout: Layout
    floats: bytes  # of one row after the other
    rests: list[bytes]  # of each row; empty where there is nothing but floats


def pack_rows(rows: Sequence[Row]) -> Packed:
    """Rows as bytes."""
    names = list(rows[0])
    if any(list(row) != names for row in rows):
        return Packed(Layout(None, []), b"", [orjson.dumps(row) for row in rows])
    columns = list(zip(*(row.values() for row in rows), strict=True))
    floats = [j for j, values in enumerate(columns) if {*map(type, values)} == {float}]
    table = np.array([columns[j] for j in floats], _FLOAT).reshape(len(floats), len(rows))
    others = [columns[j] for j in range(len(names)) if j not in set(floats)]
    rests = [orjson.dumps(values) for values in zip(*others, strict=True)]
    layout = Layout(names, floats)
    return Packed(layout, table.T.tobytes(), rests or [b""] * len(rows))


def unpack_rows(layout: Layout, floats: bytes, rests: Sequence[bytes]) -> list[Row]:
    """Rows, of their bytes."""
    size = layout.width
    return [layout.row(floats[k * size : (k + 1) * size], rest) for k, rest in enumerate(rests)]


def layout_of(state: Any) -> Layout:
    """The layout that JSON tells of."""
    return Layout(*state)
