"""Rows that were predicted and wait for their labels, up to a bound in number and in time.

They lie in files of records (log.py), several at a time; the oldest file goes when too many rows
wait, when they are too old, or when there are too many files, most of whose rows wait no more. They
are written before a prediction is answered, so that they outlive the process, but not synced: after
a loss of power the last ones may be gone.
"""

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

import orjson

from spanboost.service.record_files import LogFile, number_of, record, records
from spanboost.service.request_rows import Row
from spanboost.service.row_codec import Layout, layout_of, pack_rows

PARTS = 8  # files that the rows are spread over if all of them wait
FILES = 8 * PARTS  # at most, so that labels that never come do not add up to open files


class Group(NamedTuple):
    """Where the rows of a record stand: their floats from `start` on, behind them the rests."""

    time: float
    layout: Layout
    start: int
    ends: list[int]  # of the rests, counted from where the first begins

    def row(self, k: int, file: LogFile) -> Row:
        """Row k."""
        width, begin = self.layout.width, self.ends[k - 1] if k else 0
        rests = self.start + width * len(self.ends)
        floats = file.read(self.start + k * width, width)
        return self.layout.row(floats, file.read(rests + begin, self.ends[k] - begin))


class _Part:
    """One file, and which of the rows in it still wait."""

    def __init__(self, path: Path, began: float, end: int = 0) -> None:
        self.path, self.began = path, began
        self.file = LogFile(path, end)
        self.rows: dict[str, tuple[Group, int]] = {}  # which of its group each is
        self.written = 0  # rows, also those that wait no more

    def add(self, ids: Sequence[str], group: Group) -> None:
        """A group was written; its rows wait."""
        self.rows.update((id, (group, k)) for k, id in enumerate(ids))
        self.written += len(ids)


class PendingRows:
    """Rows by their ids, for any thread once it is open."""

    def __init__(
        self, folder: Path, limit: int, seconds: float, clock: Callable[[], float] = time.time
    ) -> None:
        self.folder, self.limit, self.seconds, self.clock = folder, limit, seconds, clock
        self.dropped = 0  # rows given up since the start, unlabelled
        self._parts: list[_Part] = []
        self._number = 0
        self._layout = Layout(None, [])  # of the last group: most have the same
        self._lock = threading.Lock()
        folder.mkdir(exist_ok=True)

    def __len__(self) -> int:
        return sum(len(part.rows) for part in self._parts)

    def open(self, learned: Callable[[str], bool]) -> None:
        """Find the rows that waited when the server stopped; those since learned do not."""
        for path in sorted(self.folder.glob("*.log"), key=number_of):
            data = path.read_bytes()
            found = list(records(memoryview(data)))
            self._number = number_of(path)
            part = _Part(path, self.clock(), found[-1].end if found else 0)
            self._parts.append(part)
            for one in found:
                self._restore(part, bytes(one.payload), one.end - len(one.payload))
            for id in [id for id in part.rows if learned(id)]:
                del part.rows[id]
        self._expire()

    def put(self, rows: Mapping[str, Row]) -> None:
        """These rows wait for their labels from now on; an OSError if they cannot be kept."""
        if not rows:
            return
        now = self.clock()
        layout, floats, rests = pack_rows(list(rows.values()))
        ids, ends = list(rows), [*accumulate(map(len, rests))]
        head = orjson.dumps([now, ids, [*layout], ends])
        payload = b"".join([head, b"\n", floats, *rests])
        with self._lock:
            part = self._current(len(rows))
            whole = record(self._number, payload)
            end = part.file.write(whole, sync=False) + len(whole)
            start = end - len(floats) - ends[-1]
            part.add(ids, Group(now, self._shared(layout), start, ends))
            self._expire()

    def get(self, id: str) -> Row | None:
        """The row that waits under this id, if there is one."""
        with self._lock:
            for part in reversed(self._parts):
                if id in part.rows:
                    group, k = part.rows[id]
                    late = self.clock() - group.time > self.seconds
                    return None if late else group.row(k, part.file)
        return None

    def done(self, ids: Iterable[str]) -> None:
        """The labels of these have come; noted as soon as the disk takes it."""
        with self._lock:
            taken = [id for id in ids if self._drop(id)]
            if taken and self._parts:
                payload = orjson.dumps([self.clock(), taken, None, None])
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

    def _drop(self, id: str) -> bool:
        """Nothing waits under this id any more; whether it did."""
        return sum(part.rows.pop(id, None) is not None for part in self._parts) > 0

    def _restore(self, part: _Part, payload: bytes, start: int) -> None:
        head = payload.partition(b"\n")[0]
        now, ids, layout, ends = orjson.loads(head)
        if layout is None:  # these have had their labels
            for id in ids:
                self._drop(id)
            return
        group = Group(now, self._shared(layout_of(layout)), start + len(head) + 1, ends)
        part.add(ids, group)
        part.began = min(part.began, now)

    def _shared(self, layout: Layout) -> Layout:
        """The same layout: that of the group before, if it is equal."""
        if layout != self._layout:
            self._layout = layout
        return self._layout

    def _expire(self) -> None:
        """Drop the oldest files while there are too many rows or files, or all are too old."""
        now = self.clock()
        while len(self._parts) > 1:
            oldest, second = self._parts[:2]
            too_many = len(self) > self.limit or len(self._parts) > FILES
            if not (too_many or not oldest.rows or now - second.began > self.seconds):
                return
            del self._parts[0]
            self.dropped += len(oldest.rows)
            oldest.file.close()
            oldest.path.unlink()
