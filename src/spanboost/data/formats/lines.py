"""Read text in chunks of complete lines, with bounded memory."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.data.problems import Problems
from spanboost.data.sniffing import refuse_binary
from spanboost.data.source import Source

LIMIT = 1 << 24  # maximum length of a line or record in bytes, without the newline
HEAD = 8  # bytes that tell binary files from text
MANY = 1 << 16  # number of empty lines from which on a chunk is skipped
_BOM = b"\xef\xbb\xbf"
_CONVERT_LATIN = "; if the file is in Latin-1, convert it with iconv -f LATIN1 -t UTF-8"
_NEWLINE, _QUOTE = b'\n"'


class Chunk(NamedTuple):
    """Some consecutive lines of a file, in UTF-8."""

    data: Any  # bytes or a memoryview; only the last line of a file may lack its newline
    first: int  # number of the first line, from 1


def read_chunks(
    source: Source, problems: Problems, *, quoted: bool = False, size: int = 1 << 20
) -> Iterator[Chunk]:
    """Yield the lines of a file, about `size` bytes at a time, without a byte order mark.

    Lines that are not UTF-8, or longer than 16 MiB, are reported as bad rows and skipped. Long
    lines are never held in memory. Large chunks of empty lines are skipped, because a small
    compressed file can contain billions of them.

    With `quoted`, a newline between double quotes does not end a record, and chunks consist of
    complete records. If a record does not end within 16 MiB, or before the file ends, it has an
    unclosed quote: its first line is a bad row, and the next line begins a record.

    If reading from a pipe would block, the lines that are available are yielded. The data of a
    chunk are valid only until the next chunk is requested, because the buffer is reused.
    """
    with source.open() as file:
        for chunk in _RecordBuffer(source, file, quoted, size).read_chunks(problems):
            yield from _drop_invalid_utf8(chunk, quoted, source.name, problems)


class _RecordBuffer:
    """Splits a file into records. `pending` holds bytes from the start of a record on."""

    def __init__(self, source: Source, file: Any, quoted: bool, size: int) -> None:
        self.source, self.file, self.quoted, self.size = source, file, quoted, size
        self.ended = False
        self.buffer = bytearray(len(_BOM) + 2 * size)
        self.start = self.stop = 0  # bounds of the pending bytes in the buffer
        self.line = 1  # number of the first pending line
        self.scanned = 0  # pending bytes already scanned; no record ends in them
        self.in_quotes = False  # whether the scanned bytes end inside quotes

    @property
    def pending(self) -> memoryview:
        return memoryview(self.buffer)[self.start : self.stop].toreadonly()

    def read_chunks(self, problems: Problems) -> Iterator[Chunk]:
        """Yield complete records that are not too overlong; report the others, in order."""
        while self.stop < len(_BOM) and not self.ended:
            self._read(len(_BOM) - self.stop)
        if self.pending == _BOM:
            self.start = self.stop
        while self.start < self.stop or not self.ended:
            self._read(self.size)
            if self.line == 1:
                refuse_binary(self.source.name, bytes(self.pending[:HEAD]))
            while self.start < self.stop:
                end = self._end(self.ended)
                if end:
                    yield self._take(end)
                left = self.stop - self.start
                if left <= LIMIT and not (self.ended and left):
                    break  # the rest may still become a good record
                problems.report(self.source.name, self.line, self._error_message())
                self._drop_line()

    def _read(self, size: int) -> None:
        """Read `size` more bytes; fewer if the file ends or reading would block."""
        left = self.stop - self.start
        if left + size > len(self.buffer):
            pending, self.buffer = self.pending, bytearray(left + left // 2 + 2 * size)
            memoryview(self.buffer)[:left] = pending  # slicing bytearrays would copy twice
        elif self.start:
            self.buffer[:left] = self.buffer[self.start : self.stop]
        self.start, self.stop = 0, left
        space = memoryview(self.buffer)[: left + size]
        while self.stop < len(space) and not self.ended:
            count = self.file.readinto(space[self.stop :])
            self.stop += count
            self.ended = count == 0
            if self.source.would_block():
                break

    def _end(self, last: bool) -> int:
        """Return the end of the last complete record that no overlong record precedes."""
        left = self.stop - self.start
        if left > LIMIT:
            return self._end_before_overlong(last)
        newline = self._last_newline()
        self.scanned = left
        return left if last and not self.in_quotes else newline + 1

    def _last_newline(self) -> int:
        """Return the newline of the last complete record in the unscanned bytes; -1 if none."""
        newline = self._relative(self.buffer.rfind(b"\n", self.start + self.scanned, self.stop))
        if not self.quoted:
            return newline
        unscanned = np.frombuffer(self.pending, np.uint8)[self.scanned :]
        was_in_quotes, self.in_quotes = self.in_quotes, self.in_quotes ^ _odd_quotes(unscanned)
        if newline < 0 or self.in_quotes == _odd_quotes(unscanned[newline + 1 - self.scanned :]):
            return newline
        ends = _unquoted_newlines(unscanned, was_in_quotes)  # the last newline is inside quotes
        return int(ends[-1]) + self.scanned if len(ends) else -1

    def _end_before_overlong(self, last: bool) -> int:
        data = np.frombuffer(self.pending, np.uint8)
        ends = _unquoted_newlines(data) if self.quoted else np.flatnonzero(data == _NEWLINE)
        self.in_quotes = self.quoted and _odd_quotes(data)
        if last and not self.in_quotes:
            ends = np.append(ends, len(data))  # the last line may lack its newline
        self.scanned = len(data)
        overlong = np.flatnonzero(np.diff(ends, prepend=-1) - 1 > LIMIT)
        ends = ends[: overlong[0]] if len(overlong) else ends
        return min(int(ends[-1]) + 1, len(data)) if len(ends) else 0

    def _take(self, end: int) -> Chunk:
        chunk = Chunk(self.pending[:end], self.line)
        self.line += _count_lines(chunk.data)
        self.start += end
        self.scanned -= end
        return chunk

    def _error_message(self) -> str:
        newline = self._first_newline()
        if (self.stop - self.start if newline < 0 else newline) > LIMIT:
            return f"the line is longer than {LIMIT >> 20} MiB"
        return f"unclosed double quote (records are limited to {LIMIT >> 20} MiB)"

    def _drop_line(self) -> None:
        """Skip the first line, without holding it in memory."""
        newline = self._first_newline()
        while newline < 0 and not self.ended:
            self.start = self.stop
            self._read(self.size)
            newline = self._first_newline()
        self.start = self.start + newline + 1 if newline >= 0 else self.stop
        self.line += 1
        self.scanned, self.in_quotes = 0, False

    def _first_newline(self) -> int:
        return self._relative(self.buffer.find(b"\n", self.start, self.stop))

    def _relative(self, position: int) -> int:
        """Convert a position in the buffer to one in the pending bytes; -1 stays -1."""
        return position - self.start if position >= 0 else -1


def _drop_invalid_utf8(
    chunk: Chunk, quoted: bool, name: str, problems: Problems
) -> Iterator[Chunk]:
    """Yield a chunk in parts, without the records that are not UTF-8."""
    octets = np.frombuffer(chunk.data, np.uint8)
    if octets.max() < 128:
        if len(octets) < MANY or octets.max() != _NEWLINE or octets.min() != _NEWLINE:
            yield chunk
        return
    data, first = bytes(chunk.data), chunk.first
    if not _invalid_utf8(data):
        yield chunk
        return
    newlines = _unquoted_newlines(octets) if quoted else np.flatnonzero(octets == _NEWLINE)
    good = start = 0  # start of the good records, and of the current record
    line = first
    for end in [*(newlines + 1).tolist(), len(data)]:
        record = data[start:end]
        after = line + record.count(b"\n")
        if invalid := _invalid_utf8(record):
            if good < start:
                yield Chunk(data[good:start], first)
            problems.report(name, line, f"{invalid!r} is not UTF-8{_CONVERT_LATIN}")
            good, first = end, after
        start, line = end, after
    if good < start:
        yield Chunk(data[good:], first)


def _invalid_utf8(data: bytes) -> bytes:
    """Return up to eight bytes from the first error in UTF-8; empty if there is no error."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return data[error.start : error.start + 8]
    return b""


def _unquoted_newlines(data: Array, in_quotes: bool = False) -> Array:
    """Return the positions of newlines outside quotes; `in_quotes`: the data begin inside."""
    newlines, quotes = np.flatnonzero(data == _NEWLINE), np.flatnonzero(data == _QUOTE)
    return newlines[(np.searchsorted(quotes, newlines) + in_quotes) % 2 == 0]


def _odd_quotes(data: Array) -> bool:
    return bool(np.count_nonzero(data == _QUOTE) % 2)


def _count_lines(data: memoryview) -> int:
    # 5 times faster than data.count
    return int(np.count_nonzero(np.frombuffer(data, np.uint8) == _NEWLINE))
