"""Text in pieces of whole lines, as large as one likes and never larger than memory allows."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.data.problems import Problems
from spanboost.data.source import Source

LIMIT = 1 << 24  # bytes of the longest line or record, without its newline
_BOM = b"\xef\xbb\xbf"
_NEWLINE, _QUOTE = b'\n"'


class Chunk(NamedTuple):
    """Some lines of a file, one after another; UTF-8."""

    data: Any  # bytes, or a view of them; only the last line of a file may lack its newline
    first: int  # the number of the first line, from 1


def chunks(
    source: Source, problems: Problems, *, quoted: bool = False, size: int = 1 << 20
) -> Iterator[Chunk]:
    """The lines of a file, about `size` bytes at a time; no byte order mark, no other change.

    Left out as bad rows are lines that are not UTF-8 and lines over 16 MiB, which are never held
    in memory. `quoted`: a newline between double quotes does not end a record, and records are
    what is whole and good or bad. A record that does not end within 16 MiB or with the file has a
    quote too many: its first line is a bad row, and the next line begins a record.

    From a pipe come the lines that are there, however few, when to read on would be to wait. The
    data of a chunk are there until the next one is asked for: bytes are not moved in vain.
    """
    with source.open() as file:
        for chunk in _Records(source, file, quoted, size).chunks(problems):
            yield from _utf8(chunk, quoted, source.name, problems)


class _Records:
    """A file as records; `pending` is what was read and not handed on, from the start of one."""

    def __init__(self, source: Source, file: Any, quoted: bool, size: int) -> None:
        self.source, self.file, self.quoted, self.size = source, file, quoted, size
        self.ended = False
        self.buffer = bytearray(len(_BOM) + 2 * size)
        self.start = self.stop = 0  # of what is pending in the buffer
        self.line = 1  # at which it begins
        self.seen = 0  # bytes of it that were looked at: no record ends in them
        self.odd = False  # the number of quotes in these

    @property
    def pending(self) -> memoryview:
        return memoryview(self.buffer)[self.start : self.stop].toreadonly()

    def chunks(self, problems: Problems) -> Iterator[Chunk]:
        """Whole records, none of them too long; bad ones are reported in their turn."""
        while self.stop < len(_BOM) and not self.ended:
            self._read(len(_BOM) - self.stop)
        if self.pending == _BOM:
            self.start = self.stop
        while self.start < self.stop or not self.ended:
            self._read(self.size)
            while self.start < self.stop:
                end = self._end(self.ended)
                if end:
                    yield self._take(end)
                left = self.stop - self.start
                if left <= LIMIT and not (self.ended and left):
                    break  # what is left may become a good record yet
                problems.bad(self.source.name, self.line, self._complaint())
                self._drop_line()

    def _read(self, size: int) -> None:
        """More of the file behind what is pending: as much, unless it ends or keeps us waiting."""
        left = self.stop - self.start
        if left + size > len(self.buffer):
            pending, self.buffer = self.pending, bytearray(left + left // 2 + 2 * size)
            memoryview(self.buffer)[:left] = pending  # bytearrays would copy it twice
        elif self.start:
            self.buffer[:left] = self.buffer[self.start : self.stop]
        self.start, self.stop = 0, left
        room = memoryview(self.buffer)[: left + size]
        while self.stop < len(room) and not self.ended:
            count = self.file.readinto(room[self.stop :])
            self.stop += count
            self.ended = count == 0
            if self.source.waits():
                break

    def _end(self, last: bool) -> int:
        """The end of the last whole record, or of the last before one that is too long."""
        left = self.stop - self.start
        if left > LIMIT:
            return self._end_of_short(last)
        newline = self._last_newline()
        self.seen = left
        return left if last and not self.odd else newline + 1

    def _last_newline(self) -> int:
        """Where the last whole record has its newline, if that was not seen before; else -1."""
        newline = self._found(self.buffer.rfind(b"\n", self.start + self.seen, self.stop))
        if not self.quoted:
            return newline
        fresh = np.frombuffer(self.pending, np.uint8)[self.seen :]
        odd_before, self.odd = self.odd, self.odd ^ _odd_quotes(fresh)
        if newline < 0 or self.odd == _odd_quotes(fresh[newline + 1 - self.seen :]):
            return newline
        ends = _newlines(fresh, odd_before)  # the last newline stands between quotes
        return int(ends[-1]) + self.seen if len(ends) else -1

    def _end_of_short(self, last: bool) -> int:
        data = np.frombuffer(self.pending, np.uint8)
        ends = _newlines(data) if self.quoted else np.flatnonzero(data == _NEWLINE)
        self.odd = self.quoted and _odd_quotes(data)
        if last and not self.odd:
            ends = np.append(ends, len(data))  # as if a newline stood there
        self.seen = len(data)
        long = np.flatnonzero(np.diff(ends, prepend=-1) - 1 > LIMIT)
        ends = ends[: long[0]] if len(long) else ends
        return min(int(ends[-1]) + 1, len(data)) if len(ends) else 0

    def _take(self, end: int) -> Chunk:
        chunk = Chunk(self.pending[:end], self.line)
        self.line += _count_lines(chunk.data)
        self.start += end
        self.seen -= end
        return chunk

    def _complaint(self) -> str:
        newline = self._first_newline()
        if (self.stop - self.start if newline < 0 else newline) > LIMIT:
            return f"the line is longer than {LIMIT >> 20} MiB"
        return f"a double quote is not closed within {LIMIT >> 20} MiB"

    def _drop_line(self) -> None:
        """Go on after the first line, which need not be held in memory."""
        newline = self._first_newline()
        while newline < 0 and not self.ended:
            self.start = self.stop
            self._read(self.size)
            newline = self._first_newline()
        self.start = self.start + newline + 1 if newline >= 0 else self.stop
        self.line += 1
        self.seen, self.odd = 0, False

    def _first_newline(self) -> int:
        return self._found(self.buffer.find(b"\n", self.start, self.stop))

    def _found(self, place: int) -> int:
        """A place in the buffer as one in what is pending; -1 if there is none."""
        return place - self.start if place >= 0 else -1


def _utf8(chunk: Chunk, quoted: bool, name: str, problems: Problems) -> Iterator[Chunk]:
    """A chunk without the records that are not UTF-8, in as many parts as that takes."""
    marks = np.frombuffer(chunk.data, np.uint8)
    if marks.max() < 128:
        yield chunk
        return
    data, first = bytes(chunk.data), chunk.first
    if not _strange(data):
        yield chunk
        return
    newlines = _newlines(marks) if quoted else np.flatnonzero(marks == _NEWLINE)
    good = start = 0  # where the good records not handed on begin, and the one looked at
    line = first
    for end in [*(newlines + 1).tolist(), len(data)]:
        record = data[start:end]
        after = line + record.count(b"\n")
        if strange := _strange(record):
            if good < start:
                yield Chunk(data[good:start], first)
            problems.bad(name, line, f"{strange!r} is not UTF-8")
            good, first = end, after
        start, line = end, after
    if good < start:
        yield Chunk(data[good:], first)


def _strange(data: bytes) -> bytes:
    """Where it stops being UTF-8, some bytes; none if it never does."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return data[error.start : error.start + 8]
    return b""


def _newlines(data: Array, odd: bool = False) -> Array:
    """Where newlines stand outside quotes; `odd`: it begins inside."""
    newlines, quotes = np.flatnonzero(data == _NEWLINE), np.flatnonzero(data == _QUOTE)
    return newlines[(np.searchsorted(quotes, newlines) + odd) % 2 == 0]


def _odd_quotes(data: Array) -> bool:
    return bool(np.count_nonzero(data == _QUOTE) % 2)


def _count_lines(data: memoryview) -> int:
    return int(np.count_nonzero(np.frombuffer(data, np.uint8) == _NEWLINE))  # 5 times data.count
