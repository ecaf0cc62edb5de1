"""Erase rows from the files of pending rows, also those whose labels have arrived."""

from array import array
from collections.abc import Collection, Iterable
from itertools import accumulate, pairwise
from pathlib import Path

import orjson

from spanboost.atomic_files import atomic_write
from spanboost.service.storage.pending_files import GroupHead
from spanboost.service.storage.record_files import Record, encode_record, read_records
from spanboost.service.storage.row_codec import layout_from_json
from spanboost.service.storage.row_past import PAST_FLOAT


def find_pending(paths: Iterable[Path], ids: Collection[str]) -> dict[Path, set[str]]:
    """Return which of the ids each file contains, for the files that contain any."""
    found = dict[Path, set[str]]()
    for path in paths:
        own = {id for record in _read(path) for id in _decode_ids(record) if id in ids}
        if own:
            found[path] = own
    return found


def erase_pending(path: Path, ids: Collection[str]) -> None:
    """Write a file again without the rows of some ids."""
    records = [(record.number, _erase(bytes(record.payload), ids)) for record in _read(path)]
    with atomic_write(path, private=True) as file:
        for number, payload in records:
            if payload is not None:
                file.write(encode_record(number, payload))


def _read(path: Path) -> list[Record]:
    return list(read_records(memoryview(path.read_bytes())))


def _decode_ids(record: Record) -> list[str]:
    ids: list[str] = orjson.loads(bytes(record.payload).partition(b"\n")[0])[1]
    return ids


def _erase(payload: bytes, erased: Collection[str]) -> bytes | None:
    """Return the payload of a record without some ids; None if no other ids are left."""
    head, _, body = payload.partition(b"\n")
    now, ids, layout_state, ends, *more = orjson.loads(head)
    kept = [k for k, id in enumerate(ids) if id not in erased]
    if len(kept) == len(ids):
        return payload
    names = [ids[k] for k in kept]
    if not kept:
        return None
    if layout_state is None:  # a record of removals
        return orjson.dumps([now, names, None, None])
    layout = layout_from_json(layout_state)
    width, rests = layout.width, body[layout.width * len(ids) :]
    floats = [body[k * width : (k + 1) * width] for k in kept]
    parts = [rests[first:last] for first, last in pairwise([0, *ends])]
    others = [parts[k] for k in kept]
    new_ends = array("q", accumulate(map(len, others)))
    kept_head = GroupHead(now, names, layout, new_ends, *more)
    size, pasts = PAST_FLOAT.itemsize * kept_head.past, rests[ends[-1] :]
    past = [pasts[k * size : (k + 1) * size] for k in kept]
    return b"".join([kept_head.encode(), b"\n", *floats, *others, *past])
