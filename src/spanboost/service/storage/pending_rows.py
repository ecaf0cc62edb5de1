"""Predicted rows that wait for their labels, limited in number, in size and in time.

A row waits until its label arrives or its time is over. If too many rows wait, new ones are
refused: clients that predict must not be able to drop the rows of others.

The rows are stored in a few record files (record_files.py). Rows are written before the prediction
is returned, so they survive the end of the process. They are not synced, so a power failure can
lose the most recent ones, unless `sync` is called. Files are deleted in order, the oldest first,
because a file may hold the removals of rows in earlier ones. If there are too many files, the rows
in the oldest one that still wait are written again at the end of the newest one.
"""

import threading
import time
from array import array
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, count
from pathlib import Path

import numpy as np
import orjson

from spanboost.atomic_files import sync_folder
from spanboost.compiling.arrays import Array
from spanboost.rows.column_rows import join_rows, take_rows
from spanboost.service.limits import StateLimits
from spanboost.service.request_rows import Row
from spanboost.service.storage.file_views import FileView, open_views
from spanboost.service.storage.layout_cache import LayoutCache
from spanboost.service.storage.pending_files import GroupHead, PendingFile, RowGroup, decode_head
from spanboost.service.storage.record_files import encode_record, file_number, read_records
from spanboost.service.storage.row_codec import Layout, decode_rows, encode_rows
from spanboost.service.storage.row_past import PAST_FLOAT

SPREAD = 8  # number of files that hold the maximum number of rows if all of them wait
MAX_FILES = 2 * SPREAD  # so the files are at most about twice as large as the rows that wait
DEFAULT_LIMITS = StateLimits()


class PendingFullError(Exception):
    """Too many rows wait for their labels; the message says what to do."""


class PendingRows:
    """Rows by id. All threads may use it after `open`."""

    def __init__(
        self,
        folder: Path,
        limits: StateLimits = DEFAULT_LIMITS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.folder, self.limits, self.clock = folder, limits, clock
        self.dropped = 0  # rows that expired without a label since the start
        self._segments: list[PendingFile] = []
        self._number = 0
        self._unsynced: list[PendingFile] = []  # files with rows that may not be on the disk yet
        self._layouts = LayoutCache()
        self._lock = threading.Lock()
        folder.mkdir(exist_ok=True)

    def __len__(self) -> int:
        return sum(len(segment.rows) for segment in self._segments)

    @property
    def waiting_bytes(self) -> int:
        """Size on disk of the rows that wait."""
        return sum(segment.waiting_bytes for segment in self._segments)

    def open(self, learned: Callable[[str], bool], last_record: int = 0) -> None:
        """Restore the rows that waited when the server stopped, except those learned since.

        last_record: of the journal. Rows that should have been added with a later one are left out.
        """
        for path in sorted(self.folder.glob("*.log"), key=file_number):
            data = path.read_bytes()
            records = list(read_records(memoryview(data)))
            self._number = file_number(path)
            segment = PendingFile(path, self.clock(), records[-1].end if records else 0)
            self._segments.append(segment)
            for record in records:
                begin = record.end - len(record.payload)
                self._restore(segment, bytes(record.payload), begin, last_record)
            for id in [id for id in segment.rows if learned(id)]:
                segment.drop(id)
        self._delete_files()

    def add(
        self,
        ids: Sequence[str],
        rows: Sequence[Row],
        record: int | None = None,
        past: Array | None = None,
    ) -> None:
        """Store rows until their labels arrive; a row that already waits is left as it is.

        Rows with the same id must be equal.

        record: the number of the record of the journal that will contain the position after these
            rows, if they come from a stream. Without this record, they will be read again.
        past: [rows, columns] what was known about past labels when the rows were predicted.
        Raises PendingFullError if there is no space for all of them, OSError if they cannot be
        written. Then none of them is stored.
        """
        with self._lock:
            new = self._select_new(ids)
            if not new:
                return
            if len(new) < len(ids):
                ids, rows = [ids[t] for t in new], take_rows(rows, new)
                past = None if past is None else past[new]
            layout, floats, rests = encode_rows(rows)
            ends = array("q", accumulate(map(len, rests)))
            known = b"" if past is None else past.astype(PAST_FLOAT).tobytes()
            columns = 0 if past is None else past.shape[1]
            head = GroupHead(self.clock(), [*ids], layout, ends, record, columns)
            line, body = head.encode(), b"".join([floats, *rests, known])
            size = len(line) + 1 + len(body)
            self._check_space(len(ids), size)
            self._write_group(self._segment_for(len(ids), size), head, line, body)
            self._delete_files()

    def get(self, id: str) -> Row | None:
        """Return the row with this id; None if there is none or it has expired."""
        with self._lock:
            found = self._find(id)
            if found is None:
                return None
            segment, group, k = found
            floats, rest, _ = group.read_row(k, segment.file)
            return self._layout(segment, group).decode(floats, rest)

    def get_rows(self, ids: Iterable[str]) -> tuple[dict[str, int], Sequence[Row]]:
        """Return the rows that wait under some ids, and the position of each id among them."""
        groups = dict[tuple[Path, int], tuple[PendingFile, RowGroup, dict[str, int]]]()
        places, parts = dict[str, int](), list[Sequence[Row]]()
        with self._lock:
            for id in ids:
                found = self._find(id)
                if found is not None:
                    segment, group, k = found
                    key = segment.path, group.head
                    groups.setdefault(key, (segment, group, {}))[2][id] = k
            for segment, group, members in groups.values():
                rows = group.read_rows([*members.values()], segment.file)
                floats = b"".join(row.floats for row in rows)
                layout = self._layout(segment, group)
                parts.append(decode_rows(layout, floats, [row.rest for row in rows]))
                places.update(zip(members, count(len(places)), strict=False))
        return places, join_rows(parts) if parts else []

    def get_past(self, id: str) -> Array | None:
        """Return the past of the row with this id, or None if no past is stored."""
        with self._lock:
            found = self._find(id)
            if found is None or not found[1].past:
                return None
            segment, group, k = found
            past = np.frombuffer(group.read_row(k, segment.file).past, PAST_FLOAT)
            return past.astype(np.float64)

    def row_bytes(self, id: str) -> int:
        """Return the size on disk of the row with this id; 0 if there is none."""
        with self._lock:
            found = self._find(id)
            return 0 if found is None else found[1].row_bytes

    def remove(self, ids: Iterable[str]) -> None:
        """Remove rows whose labels have arrived; OSError if the removal cannot be written."""
        with self._lock:
            removed = [id for id in ids if self._drop(id)]
            if removed and self._segments:
                payload = orjson.dumps([self.clock(), removed, None, None])
                self._segments[-1].file.write(encode_record(self._number, payload), sync=False)

    def sync(self) -> None:
        """Sync all rows to the disk; OSError if that fails."""
        with self._lock:
            self._sync()

    def open_files(self) -> list[FileView]:
        """Open all files as they are now; OSError if that fails."""
        with self._lock:
            return open_views((one.path, one.file.end) for one in self._segments)

    @property
    def oldest_seconds(self) -> float:
        """How long the oldest row has waited; 0 if no row waits."""
        with self._lock:  # the rows of a file are in the order in which they were added
            oldest = [
                one.locate(next(iter(one.rows.values())))[0].time
                for one in self._segments
                if one.rows
            ]
            return max(0.0, self.clock() - min(oldest)) if oldest else 0.0

    @property
    def failure(self) -> str | None:
        """Why rows can no longer be stored; None if they can."""
        return self._segments[-1].file.failure if self._segments else None

    def close(self) -> None:
        """Close all files."""
        for segment in self._segments:
            segment.file.close()

    def _select_new(self, ids: Sequence[str]) -> Sequence[int]:
        """Return the positions of the rows that do not wait yet, each id once."""
        known = any(not one.rows.keys().isdisjoint(ids) for one in self._segments)
        if not known and len({*ids}) == len(ids):  # true for ids that the service makes
            return range(len(ids))
        return [*{id: t for t, id in enumerate(ids) if self._find(id) is None}.values()]

    def _find(self, id: str) -> tuple[PendingFile, RowGroup, int] | None:
        """Return the position of a row; None if there is none. An expired one is dropped."""
        for segment in self._segments:
            if id in segment.rows:
                group, k = segment.locate(segment.rows[id])
                if self.clock() - group.time <= self.limits.pending_seconds:
                    return segment, group, k
                segment.drop(id)
                self.dropped += 1
        return None

    def _drop(self, id: str) -> bool:
        """Remove a row from memory, and return whether it was there."""
        return sum(segment.drop(id) for segment in self._segments) > 0

    def _check_space(self, rows: int, size: int) -> None:
        if self._has_space(rows, size):
            return
        self._drop_expired()
        if not self._has_space(rows, size):
            limits = self.limits
            raise PendingFullError(
                f"too many predicted rows wait for their labels (maximum: {limits.pending_rows:,} "
                f"rows, --pending, and {limits.pending_bytes:,} bytes, --pending-bytes); send "
                "labels, or predict with keep=false"
            )

    def _has_space(self, rows: int, size: int) -> bool:
        limits = self.limits
        return (
            len(self) + rows <= limits.pending_rows
            and self.waiting_bytes + size <= limits.pending_bytes
        )

    def _drop_expired(self) -> None:
        """Drop the rows whose time is over, also those in files that hold newer rows."""
        oldest = self.clock() - self.limits.pending_seconds
        for segment in self._segments:
            for id in [id for id, n in segment.rows.items() if segment.locate(n)[0].time < oldest]:
                segment.drop(id)
                self.dropped += 1

    def _write_group(self, segment: PendingFile, head: GroupHead, line: bytes, body: bytes) -> None:
        """Append a record of rows to a file; `line`: the head as JSON."""
        payload = b"".join([line, b"\n", body])
        data = encode_record(self._number, payload)
        end = segment.file.write(data, sync=False) + len(data)
        if segment not in self._unsynced:
            self._unsynced.append(segment)
        self._add_group(segment, head, end - len(payload), len(line), len(payload))

    def _add_group(
        self, segment: PendingFile, head: GroupHead, begin: int, line: int, size: int
    ) -> None:
        """Add the rows of a record.

        begin, size: position of its payload in the file; line: length of its first line.
        """
        group = RowGroup(
            head.time,
            self._layouts.add(head.layout),
            head.layout.width,
            begin,
            begin + line + 1,
            head.ends,
            size // len(head.ids),
            PAST_FLOAT.itemsize * head.past,
        )
        segment.add(head.ids, group)

    def _sync(self) -> None:
        for segment in self._unsynced:
            segment.file.sync()
        if self._unsynced:
            sync_folder(self.folder)  # one of the files may be new
        self._unsynced = []

    def _layout(self, segment: PendingFile, group: RowGroup) -> Layout:
        layout = self._layouts.get(group.layout)
        if layout is None:
            layout = group.read_layout(segment.file)
            self._layouts.restore(group.layout, layout)
        return layout

    def _segment_for(self, rows: int, size: int) -> PendingFile:
        """Return the file for new rows: the last one, or a new one if it is full or old."""
        if self._segments and not self._is_complete(self._segments[-1], rows, size):
            return self._segments[-1]
        self._number += 1
        segment = PendingFile(self.folder / f"{self._number:020}.log", self.clock())
        self._segments.append(segment)
        while len(self._segments) > MAX_FILES:
            self._move_oldest()
        return segment

    def _is_complete(self, segment: PendingFile, rows: int, size: int) -> bool:
        """Return whether new rows need another file than this one."""
        limits = self.limits
        full = segment.written + rows > max(limits.pending_rows // SPREAD, 1)
        large = segment.file.end + size > limits.pending_bytes // SPREAD
        old = self.clock() - segment.began > limits.pending_seconds / SPREAD
        return segment.written > 0 and (full or large or old)

    def _move_oldest(self) -> None:
        """Write the rows of the oldest file that wait to the newest one; delete the file."""
        self._drop_expired()
        oldest, newest = self._segments[0], self._segments[-1]
        groups = dict[int, list[tuple[str, RowGroup, int]]]()
        for id, number in oldest.rows.items():
            group, k = oldest.locate(number)
            groups.setdefault(group.head, []).append((id, group, k))
        for members in groups.values():
            ids, group = [id for id, _, _ in members], members[0][1]
            rows = [group.read_row(k, oldest.file) for _, _, k in members]
            ends = array("q", accumulate(len(row.rest) for row in rows))
            layout, columns = self._layout(oldest, group), group.past // PAST_FLOAT.itemsize
            head = GroupHead(group.time, ids, layout, ends, None, columns)
            body = b"".join(part for parts in zip(*rows, strict=True) for part in parts)
            self._write_group(newest, head, head.encode(), body)
            for id in ids:
                oldest.drop(id)
        self._sync()  # the rows that were moved may have been synced before
        self._delete_oldest()

    def _restore(self, segment: PendingFile, payload: bytes, begin: int, last_record: int) -> None:
        line = payload.partition(b"\n")[0]
        head = decode_head(line)
        if head is not None and (head.record or 0) > last_record:
            return
        for id in orjson.loads(line)[1]:  # removed, or rows of an earlier file written again
            self._drop(id)
        if head is not None:
            self._add_group(segment, head, begin, len(line), len(payload))
            segment.began = min(segment.began, head.time)

    def _delete_files(self) -> None:
        """Delete the oldest files while their rows have labels or have expired."""
        oldest = self.clock() - self.limits.pending_seconds
        while len(self._segments) > 1:
            segment = self._segments[0]
            if segment.rows and segment.newest >= oldest:
                return
            self._delete_oldest()

    def _delete_oldest(self) -> None:
        segment = self._segments.pop(0)
        self._unsynced = [one for one in self._unsynced if one is not segment]
        self.dropped += len(segment.rows)
        segment.file.close()
        segment.path.unlink()
