"""Entries: the journal records that contain rows with their labels.

An entry that a stream worker writes also contains its positions in the streams after these rows.
What was learned and how far the streams were read are in one record, so a crash cannot separate
them.
"""

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import orjson

from spanboost.compiling.arrays import Array
from spanboost.rows.column_rows import take_rows
from spanboost.service.request_rows import Row
from spanboost.service.storage.control import decode_control, is_control
from spanboost.service.storage.record_files import StateError
from spanboost.service.storage.row_codec import decode_rows, encode_rows, layout_from_json
from spanboost.service.storage.row_past import RowPast, past_from_json


class Entry(NamedTuple):
    """The content of a journal record: rows with their labels."""

    ids: Sequence[str | None]
    rows: Sequence[Row]
    labels: Sequence[float | str]
    weights: Sequence[float] | None  # None if the schema has no weights: all are 1
    positions: Mapping[str, Any] = MappingProxyType({})  # JSON values, by the place in a stream
    past: RowPast | None = None  # of rows that were predicted before, if the model uses past labels

    def slice(
        self, first: int, last: int
    ) -> tuple[Sequence[Row], Sequence[float | str], Array | None]:
        """Return some of the rows, with their labels and weights."""
        weights = None if self.weights is None else np.array(self.weights[first:last])
        return self.rows[first:last], self.labels[first:last], weights

    def encode(self) -> bytes:
        """Return the payload: a line of ids, a line of layout and labels, the floats, the rests.

        It is empty if there is nothing in the entry.
        """
        if not self.rows and not self.positions:
            return b""
        layout, floats, rests = encode_rows(self.rows) if self.rows else (None, b"", [])
        head: list[Any] = [layout and [*layout], len(self.rows), self.labels, self.weights]
        head += [dict(self.positions)] if self.positions or self.past is not None else []
        head += [] if self.past is None else [self.past.state()]
        lines = [orjson.dumps(self.ids), orjson.dumps(head), floats + b"\n".join(rests)]
        return b"\n".join(lines)

    def without(self, ids: Collection[str]) -> "Entry":
        """Return the entry without the rows of some ids; it keeps its positions."""
        return self._keep([k for k, id in enumerate(self.ids) if id not in ids])

    def without_rows(self) -> "Entry":
        """Return the entry without rows; it keeps its positions."""
        return self._keep([])

    def _keep(self, rows: list[int]) -> "Entry":
        return self._replace(
            ids=[self.ids[k] for k in rows],
            rows=take_rows(self.rows, rows),
            labels=[self.labels[k] for k in rows],
            weights=None if self.weights is None else [self.weights[k] for k in rows],
            past=None if self.past is None or not rows else self.past.take(rows),
        )


def decode_ids(payload: memoryview) -> list[str | None]:
    """Return the ids of a journal record without reading its rows; a control has none."""
    if not payload or is_control(payload):
        return []
    ids: list[str | None] = orjson.loads(bytes(payload).partition(b"\n")[0])
    return ids


def decode_labels(payload: memoryview) -> tuple[list[str | None], list[float | str]]:
    """Return the ids and labels of a journal record without reading its rows."""
    if not payload or is_control(payload):
        return [], []
    ids, _, rest = bytes(payload).partition(b"\n")
    return orjson.loads(ids), orjson.loads(rest.partition(b"\n")[0])[2]


def decode_entry(payload: memoryview) -> Entry:
    """Return the rows of a journal record; a repair replaces lost records by empty ones.

    Raises StateError if it is a control record.
    """
    if is_control(payload):
        raise StateError(f"a control record ({decode_control(payload).name}) has no rows")
    if not payload:
        return Entry([], [], [], None)
    ids, _, rest = bytes(payload).partition(b"\n")
    head, _, rest = rest.partition(b"\n")
    layout, number, labels, weights, *more = orjson.loads(head)
    positions, past = more[:1], [past_from_json(state, number) for state in more[1:]]
    if not number:
        return Entry([], [], [], None, *positions)
    layout = layout_from_json(layout)
    end = layout.width * number
    rows = decode_rows(layout, rest[:end], rest[end:].split(b"\n"))
    return Entry(orjson.loads(ids), rows, labels, weights, *positions, *past)
