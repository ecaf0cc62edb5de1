"""Entries: the journal records that contain rows with their labels."""

from typing import NamedTuple

import numpy as np
import orjson

from spanboost.compiling.arrays import Array
from spanboost.service.request_rows import Row
from spanboost.service.storage.control import decode_control, is_control
from spanboost.service.storage.record_files import StateError
from spanboost.service.storage.row_codec import decode_rows, encode_rows, layout_from_json


class Entry(NamedTuple):
    """The content of a journal record: rows with their labels."""

    ids: list[str | None]
    rows: list[Row]
    labels: list[float | str]
    weights: list[float] | None  # None if the schema has no weights: all are 1

    def slice(self, first: int, last: int) -> tuple[list[Row], list[float | str], Array | None]:
        """Return some of the rows, with their labels and weights."""
        weights = None if self.weights is None else np.array(self.weights[first:last])
        return self.rows[first:last], self.labels[first:last], weights

    def encode(self) -> bytes:
        """Return the payload: a line of ids, a line of layout and labels, the floats, the rests."""
        layout, floats, rests = encode_rows(self.rows)
        head = [[*layout], len(self.rows), self.labels, self.weights]
        lines = [orjson.dumps(self.ids), orjson.dumps(head), floats + b"\n".join(rests)]
        return b"\n".join(lines)


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
    layout, number, labels, weights = orjson.loads(head)
    layout = layout_from_json(layout)
    end = layout.width * number
    rows = decode_rows(layout, rest[:end], rest[end:].split(b"\n"))
    return Entry(orjson.loads(ids), rows, labels, weights)
