"""Predicted rows that wait for their labels, limited in number and in time.

The rows are stored in a few record files (record_files.py). The oldest file is deleted when too
many rows wait, when its rows are too old, or when there are too many files, most of whose rows have
their labels. Rows are written before the prediction is returned, so they survive the end of the
process. They are not synced, so a power failure can lose the most recent ones.
"""

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

import orjson

from spanboost.service.record_files import LogFile, encode_record, file_number, read_records
from spanboost.service.request_rows import Row
from spanboost.service.row_codec import Layout, encode_rows, layout_from_json

SPREAD = 8  # number of files that hold the maximum number of rows if all of them wait
MAX_FILES = 8 * SPREAD  # a few rows without labels must not keep many files open


class RowGroup(NamedTuple):
    """Position of the rows of one record: the floats start at `start`, the rests follow them."""

    time: float
    layout: Layout
    start: int
    ends: list[int]  # where each rest ends, counted from the start of the first

    def read_row(self, k: int, file: LogFile) -> Row:
        """Read row k from the file."""
        width, begin = self.layout.width, self.ends[k - 1] if k else 0
        rests = self.start + width * len(self.ends)
        floats = file.read(self.start + k * width, width)
        return self.layout.decode(floats, file.read(rests + begin, self.ends[k] - begin))


class _Segment:
    """A file, and the rows in it that still wait."""

    def __init__(self, path: Path, began: float, end: int = 0) -> None:
        self.path, self.began = path, began
        self.file = LogFile(path, end)
        self.rows: dict[str, tuple[RowGroup, int]] = {}  # by id: its group, its index in the group
        self.written = 0  # number of rows in the file, including those that no longer wait

    def add(self, ids: Sequence[str], group: RowGroup) -> None:
        """Add the rows of a group that was written."""
        self.rows.update((id, (group, k)) for k, id in enumerate(ids))
        self.written += len(ids)


class PendingRows:
    """Rows by id. All threads may use it after `open`."""

    def __init__(
        self, folder: Path, limit: int, seconds: float, clock: Callable[[], float] = time.time
    ) -> None:
        self.folder, self.limit, self.seconds, self.clock = folder, limit, seconds, clock
        self.dropped = 0  # rows dropped without a label since the start
        self._segments: list[_Segment] = []
        self._number = 0
        self._layout = Layout(None, [])  # of the last group; most groups have the same
        self._lock = threading.Lock()
        folder.mkdir(exist_ok=True)

    def __len__(self) -> int:
        return sum(len(segment.rows) for segment in self._segments)

    def open(self, learned: Callable[[str], bool]) -> None:
        """Restore the rows that waited when the server stopped, except those learned since."""
        for path in sorted(self.folder.glob("*.log"), key=file_number):
            data = path.read_bytes()
            records = list(read_records(memoryview(data)))
            self._number = file_number(path)
            segment = _Segment(path, self.clock(), records[-1].end if records else 0)
            self._segments.append(segment)
            for record in records:
                self._restore(segment, bytes(record.payload), record.end - len(record.payload))
            for id in [id for id in segment.rows if learned(id)]:
                del segment.rows[id]
        self._expire()

    def add(self, rows: Mapping[str, Row]) -> None:
        """Store rows until their labels arrive; OSError if they cannot be written."""
        if not rows:
            return
        now = self.clock()
        layout, floats, rests = encode_rows(list(rows.values()))
        ids, ends = list(rows), [*accumulate(map(len, rests))]
        head = orjson.dumps([now, ids, [*layout], ends])
        payload = b"".join([head, b"\n", floats, *rests])
        with self._lock:
            segment = self._segment_for(len(rows))
            data = encode_record(self._number, payload)
            end = segment.file.write(data, sync=False) + len(data)
            start = end - len(floats) - ends[-1]
            segment.add(ids, RowGroup(now, self._share(layout), start, ends))
            self._expire()

    def get(self, id: str) -> Row | None:
        """Return the row with this id; None if there is none or it has expired."""
        with self._lock:
            for segment in reversed(self._segments):
                if id in segment.rows:
                    group, k = segment.rows[id]
                    expired = self.clock() - group.time > self.seconds
                    return None if expired else group.read_row(k, segment.file)
        return None

    def remove(self, ids: Iterable[str]) -> None:
        """Remove rows whose labels have arrived; OSError if the removal cannot be written."""
        with self._lock:
            removed = [id for id in ids if self._drop(id)]
            if removed and self._segments:
                payload = orjson.dumps([self.clock(), removed, None, None])
                self._segments[-1].file.write(encode_record(self._number, payload), sync=False)

    def close(self) -> None:
        """Close all files."""
        for segment in self._segments:
            segment.file.close()

    def _segment_for(self, rows: int) -> _Segment:
        """Return the file for this number of new rows: the last one, or a new one if it is full."""
        last = self._segments[-1] if self._segments else None
        full = last is not None and last.written + rows > max(self.limit // SPREAD, 1)
        old = last is not None and self.clock() - last.began > self.seconds / SPREAD
        if last is None or ((full or old) and last.written):
            self._number += 1
            last = _Segment(self.folder / f"{self._number:020}.log", self.clock())
            self._segments.append(last)
        return last

    def _drop(self, id: str) -> bool:
        """Remove a row from memory, and return whether it was there."""
        return sum(segment.rows.pop(id, None) is not None for segment in self._segments) > 0

    def _restore(self, segment: _Segment, payload: bytes, start: int) -> None:
        head = payload.partition(b"\n")[0]
        now, ids, layout, ends = orjson.loads(head)
        if layout is None:  # a record of `remove`
            for id in ids:
                self._drop(id)
            return
        layout = self._share(layout_from_json(layout))
        segment.add(ids, RowGroup(now, layout, start + len(head) + 1, ends))
        segment.began = min(segment.began, now)

    def _share(self, layout: Layout) -> Layout:
        """Return the layout of the previous group if it is equal, to save memory."""
        if layout != self._layout:
            self._layout = layout
        return self._layout

    def _expire(self) -> None:
        """Delete the oldest files while there are too many rows or files, or they are too old."""
        now = self.clock()
        while len(self._segments) > 1:
            oldest, second = self._segments[:2]
            too_many = len(self) > self.limit or len(self._segments) > MAX_FILES
            if not (too_many or not oldest.rows or now - second.began > self.seconds):
                return
            del self._segments[0]
            self.dropped += len(oldest.rows)
            oldest.file.close()
            oldest.path.unlink()
