"""The files of pending rows: records of groups of rows, and the rows in them that still wait."""

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import NamedTuple

import orjson

from spanboost.service.storage.record_files import LogFile
from spanboost.service.storage.row_codec import Layout, layout_from_json

READ_SHARE = 4  # a group is read as a whole if at least 1 / READ_SHARE of its rows are needed


class EncodedRow(NamedTuple):
    """A row as bytes."""

    floats: bytes
    rest: bytes
    past: bytes


class GroupHead(NamedTuple):
    """The first line of a record of rows, as JSON."""

    time: float
    ids: list[str]
    layout: Layout
    ends: "array[int]"  # as in RowGroup
    record: int | None = None  # as in `PendingRows.add`
    past: int = 0  # number of past values of each row

    def encode(self) -> bytes:
        """Return the line, without its end."""
        record = [] if self.record is None and not self.past else [self.record]
        past = [self.past] if self.past else []
        return orjson.dumps([*self[:2], [*self.layout], self.ends.tolist(), *record, *past])


def decode_head(line: bytes) -> GroupHead | None:
    """Return the first line of a record; None if it is a record of removals."""
    now, ids, layout, ends, *more = orjson.loads(line)
    if layout is None:
        return None
    return GroupHead(now, ids, layout_from_json(layout), array("q", ends), *more)


class RowGroup(NamedTuple):
    """Position of the rows of one record: head, newline, floats, rests and past values follow."""

    time: float
    layout: int  # its number in the cache
    width: int  # number of bytes that the floats of one row take
    head: int  # where the record's payload begins
    start: int  # where the floats begin
    ends: "array[int]"  # where each rest ends, counted from the start of the first
    row_bytes: int  # size of the record for each row
    past: int  # number of bytes that the past of one row takes

    def read_row(self, k: int, file: LogFile) -> EncodedRow:
        """Read row k from the file."""
        begin = self.ends[k - 1] if k else 0
        rests = self.start + self.width * len(self.ends)
        return EncodedRow(
            file.read(self.start + k * self.width, self.width),
            file.read(rests + begin, self.ends[k] - begin),
            file.read(rests + self.ends[-1] + k * self.past, self.past) if self.past else b"",
        )

    def read_rows(self, chosen: Sequence[int], file: LogFile) -> list[EncodedRow]:
        """Read some rows without their past, all at once if they are many."""
        if READ_SHARE * len(chosen) < len(self.ends):
            return [self.read_row(k, file) for k in chosen]
        rests = self.width * len(self.ends)
        data = file.read(self.start, rests + self.ends[-1])
        begins = [0, *self.ends]
        return [
            EncodedRow(
                data[k * self.width : (k + 1) * self.width],
                data[rests + begins[k] : rests + self.ends[k]],
                b"",
            )
            for k in chosen
        ]

    def read_layout(self, file: LogFile) -> Layout:
        """Read the layout from the file."""
        head = file.read(self.head, self.start - 1 - self.head)
        return layout_from_json(orjson.loads(head)[2])


class PendingFile:
    """A file, and the rows in it that still wait."""

    def __init__(self, path: Path, began: float, end: int = 0) -> None:
        self.path, self.began, self.newest = path, began, 0.0
        self.file = LogFile(path, end)
        # numbers of rows in the file, by id: integers take little memory, and none of the time of
        # the garbage collector
        self.rows: dict[str, int] = {}
        self.written = 0  # number of rows in the file, including those that no longer wait
        self.waiting_bytes = 0
        self._groups: list[RowGroup] = []
        self._firsts: list[int] = []  # number of the first row of each group

    def add(self, ids: Sequence[str], group: RowGroup) -> None:
        """Add the rows of a group that was written."""
        self._groups.append(group)
        self._firsts.append(self.written)
        self.rows.update(zip(ids, count(self.written), strict=False))
        self.written += len(ids)
        self.waiting_bytes += len(ids) * group.row_bytes
        self.newest = max(self.newest, group.time)

    def locate(self, number: int) -> tuple[RowGroup, int]:
        """Return the group of a row, and its index in the group."""
        place = bisect_right(self._firsts, number) - 1
        return self._groups[place], number - self._firsts[place]

    def drop(self, id: str) -> bool:
        """Remove a row from memory, and return whether it was there."""
        number = self.rows.pop(id, None)
        if number is not None:
            self.waiting_bytes -= self.locate(number)[0].row_bytes
        return number is not None
