"""Rows that were predicted and wait for their labels, up to a bound in number and in time.

They lie in files of records (log.py), several at a time; the oldest file goes when there are too
many or they are too old. They are written before a prediction is answered, so that they outlive the
process, but not synced: after a loss of power the last ones may be gone.
"""

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from spanboost.service.log import LogFile, record, records
from spanboost.service.packing import Layout, encode, layout_of, packed

PARTS = 8  # files that rows are spread over


class Place(NamedTuple):
    """Where a row stands: its floats, and the rest."""

    layout: Layout
    floats: int
    rest: int
    length: int  # of the rest
    time: float


class _Part:
    """One file, and where the rows in it are that still wait."""

    def __init__(self, path: Path, began: float, end: int = 0) -> None:
        self.path, self.began = path, began
        self.file = LogFile(path, end)
        self.rows: dict[str, Place] = {}
        self.written = 0  # rows, also those that wait no more


class Pending:
    """Rows by their ids; methods are for one thread at a time."""

    def __init__(
        self, folder: Path, limit: int, seconds: float, clock: Callable[[], float] = time.time
    ) -> None:
        self.folder, self.limit, self.seconds, self.clock = folder, limit, seconds, clock
        self.dropped = 0  # rows given up since the start, unlabelled
        self._parts: list[_Part] = []
        self._number = 0
        folder.mkdir(exist_ok=True)

    def __len__(self) -> int:
        return sum(len(part.rows) for part in self._parts)

    def open(self, learned: Callable[[str], bool]) -> None:
        """Find the rows that waited when the server stopped; those since learned do not."""
        for path in sorted(self.folder.glob("*.log"), key=lambda path: int(path.stem)):
            data = path.read_bytes()
            found = list(records(memoryview(data)))
            self._number = int(path.stem)
            part = _Part(path, self.clock(), found[-1].end if found else 0)
            self._parts.append(part)
            for one in found:
                self._restore(part, bytes(one.payload), one.end - len(one.payload))
            for id in [id for id in part.rows if learned(id)]:
                del part.rows[id]
        self._expire()

    def put(self, rows: Mapping[str, dict[str, Any]]) -> None:
        """These rows wait for their labels from now on; an OSError if they cannot be kept."""
        if not rows:
            return
        part, now = self._current(len(rows)), self.clock()
        layout, floats, rests = packed(list(rows.values()))
        ids, lengths = list(rows), [len(rest) for rest in rests]
        head = encode([now, ids, layout, lengths]).encode()
        whole = record(self._number, b"".join([head, b"\n", floats, *rests]))
        start = part.file.write(whole, sync=False) + len(whole) - len(floats) - sum(lengths)
        self._add(part, start, now, ids, layout, lengths)
        self._expire()

    def get(self, id: str) -> dict[str, Any] | None:
        """The row that waits under this id, if there is one."""
        for part in reversed(self._parts):
            place = part.rows.get(id)
            if place is not None:
                if self.clock() - place.time > self.seconds:
                    return None
                floats = part.file.read(place.floats, place.layout.width)
                return place.layout.row(floats, part.file.read(place.rest, place.length))
        return None

    def done(self, ids: Iterable[str]) -> None:
        """The labels of these have come; noted as soon as the disk takes it."""
        taken = [id for id in ids if any(part.rows.pop(id, None) for part in self._parts)]
        if taken and self._parts:
            payload = encode([self.clock(), taken, None, None]).encode()
            self._parts[-1].file.write(record(self._number, payload), sync=False)

    def close(self) -> None:
        """Nothing more waits."""
        for part in self._parts:
            part.file.close()

    def _current(self, more: int) -> _Part:
        """The file to write to; a new one where the last has its share."""
        last = self._parts[-1] if self._parts else None
        full = last is not None and last.written + more > max(self.limit // PARTS, 1)
        old = last is not None and self.clock() - last.began > self.seconds / PARTS
        if last is None or ((full or old) and last.written):
            self._number += 1
            last = _Part(self.folder / f"{self._number:020}.log", self.clock())
            self._parts.append(last)
        return last

    def _add(
        self,
        part: _Part,
        start: int,
        now: float,
        ids: Sequence[str],
        layout: Layout,
        lengths: Sequence[int],
    ) -> None:
        """Note where the rows of a record stand, whose floats begin at `start`."""
        rest = start + layout.width * len(ids)
        for k, (id, length) in enumerate(zip(ids, lengths, strict=True)):
            part.rows[id] = Place(layout, start + k * layout.width, rest, length, now)
            rest += length
        part.written += len(ids)

    def _restore(self, part: _Part, payload: bytes, start: int) -> None:
        head = payload.partition(b"\n")[0]
        now, ids, layout, lengths = json.loads(head)
        if layout is None:  # these have had their labels
            for id in ids:
                for one in self._parts:
                    one.rows.pop(id, None)
            return
        self._add(part, start + len(head) + 1, now, ids, layout_of(layout), lengths)
        part.began = min(part.began, now)

    def _expire(self) -> None:
        """Drop the oldest files while there are too many rows, or theirs are all too old."""
        now = self.clock()
        while self._parts:
            oldest = self._parts[0]
            too_many = len(self) > self.limit and len(self._parts) > 1
            latest = self._parts[1].began if len(self._parts) > 1 else now
            empty = not oldest.rows and len(self._parts) > 1
            if not (too_many or empty or now - latest > self.seconds):
                return
            self.dropped += len(oldest.rows)
            oldest.file.close()
            oldest.path.unlink()
            del self._parts[0]
