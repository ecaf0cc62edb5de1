"""An exact encoding of rows as bytes: floats in binary, everything else as JSON.

Writing a float as text takes Python longer than learning from it. So a group of rows with the same
keys is stored as a table of its float columns and, for each row, the JSON of the other values.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import orjson

from spanboost.rows.column_rows import ColumnRows
from spanboost.service.request_rows import Row

_FLOAT = np.dtype("<f8")


class Layout(NamedTuple):
    """The keys that the rows of a group share, and the positions of those that are always floats.

    If the rows have different keys, `names` is None and each row is stored as one JSON object.
    """

    names: list[str] | None
    floats: list[int]

    @property
    def width(self) -> int:
        """Number of bytes that the floats of one row take."""
        return _FLOAT.itemsize * len(self.floats)

    def decode(self, floats: bytes, rest: bytes) -> Row:
        """Return a row from the bytes of its floats and the JSON of its other values."""
        if self.names is None:
            row: Row = orjson.loads(rest)
            return row
        others = iter(orjson.loads(rest) if rest else [])
        values = dict(zip(self.floats, np.frombuffer(floats, _FLOAT).tolist(), strict=True))
        return {
            name: values[j] if j in values else next(others) for j, name in enumerate(self.names)
        }


class EncodedRows(NamedTuple):
    """A group of rows as bytes."""

    layout: Layout
    floats: bytes  # row after row
    rests: list[bytes]  # one for each row; empty if all of its values are floats


def encode_rows(rows: Sequence[Row]) -> EncodedRows:
    """Encode a group of rows."""
    if isinstance(rows, ColumnRows):
        return _encode_columns(rows)
    names = list(rows[0])
    if any(list(row) != names for row in rows):
        return EncodedRows(Layout(None, []), b"", [orjson.dumps(row) for row in rows])
    columns = list(zip(*(row.values() for row in rows), strict=True))
    floats = [j for j, values in enumerate(columns) if {*map(type, values)} == {float}]
    table = np.array([columns[j] for j in floats], _FLOAT).reshape(len(floats), len(rows))
    others = [columns[j] for j in range(len(names)) if j not in set(floats)]
    rests = [orjson.dumps(values) for values in zip(*others, strict=True)]
    layout = Layout(names, floats)
    return EncodedRows(layout, table.T.tobytes(), rests or [b""] * len(rows))


def _encode_columns(rows: ColumnRows) -> EncodedRows:
    floats = [j for j, name in enumerate(rows.names) if name not in rows.texts]
    texts = [rows.texts[name] for name in rows.names if name in rows.texts]
    rests = [orjson.dumps(values) for values in zip(*texts, strict=True)]
    layout = Layout([*rows.names], floats)
    return EncodedRows(layout, rows.numbers.astype(_FLOAT).tobytes(), rests or [b""] * len(rows))


def decode_rows(layout: Layout, floats: bytes, rests: Sequence[bytes]) -> Sequence[Row]:
    """Decode a group of rows."""
    if layout.names:
        others = [*zip(*(orjson.loads(rest) for rest in rests if rest), strict=True)]
        if all({*map(type, values)} == {str} for values in others):
            return _decode_columns(layout, floats, others, len(rests))
    size = layout.width
    return [layout.decode(floats[k * size : (k + 1) * size], rest) for k, rest in enumerate(rests)]


def _decode_columns(
    layout: Layout, floats: bytes, texts: Sequence[Sequence[str]], rows: int
) -> ColumnRows:
    names, shape = layout.names or [], (rows, len(layout.floats))
    numbers = np.frombuffer(floats, _FLOAT).astype(np.float64).reshape(shape)
    text_names = [name for j, name in enumerate(names) if j not in set(layout.floats)]
    return ColumnRows(names, numbers, dict(zip(text_names, texts, strict=True)))


def layout_from_json(state: Any) -> Layout:
    """Return the layout that was written as a JSON list."""
    return Layout(*state)
