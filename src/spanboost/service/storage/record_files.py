"""Files of records. Each record has a marker, a length, a number and a checksum.

    marker (4 bytes)  length (4)  number (8)  CRC-32 of number and payload (4)  payload

A record is written and synced before the next one is started. So an incomplete record can only be
the last one, from an interrupted write. If a complete record follows, the file is damaged.
"""

import os
import struct
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from spanboost.errors import UserError
from spanboost.service.histogram import Histogram

MARKER = b"\xf5sb1"
_HEADER = struct.Struct("<4sIQI")
OVERHEAD = _HEADER.size  # size of a record without its payload
WAY_OUT = "restore the folder from a backup, or see what `spanboost repair` would lose"
_sync = getattr(os, "fdatasync", os.fsync)
SYNC_SECONDS = Histogram()  # durations of all syncs of this process


class StateError(UserError):
    """A state folder that cannot be used. The message says why, and what to do."""


class Record(NamedTuple):
    """A record, and the offset in the file at which it ends."""

    number: int
    payload: memoryview
    end: int
    time: float | None = None  # when it was written; None if the format does not store it


def encode_record(number: int, payload: bytes) -> bytes:
    """Return the bytes of a record."""
    return _HEADER.pack(MARKER, len(payload), number, _checksum(number, payload)) + payload


def read_records(data: memoryview, start: int = 0) -> Iterator[Record]:
    """Yield the records from `start` up to the first incomplete or damaged one."""
    while (record := record_at(data, start)) is not None:
        yield record
        start = record.end


def next_record(data: bytes, start: int) -> int | None:
    """Return where the first complete record after `start` begins; None if there is none."""
    view, offset = memoryview(data), data.find(MARKER, start + 1)
    while offset >= 0:
        if record_at(view, offset) is not None:
            return offset
        offset = data.find(MARKER, offset + 1)
    return None


def record_at(data: memoryview, start: int) -> Record | None:
    """Return the record that begins at `start`; None if it is incomplete or damaged."""
    body = start + _HEADER.size
    if body > len(data):
        return None
    marker, length, number, checksum = _HEADER.unpack_from(data, start)
    payload = data[body : body + length]
    if marker != MARKER or len(payload) != length or _checksum(number, payload) != checksum:
        return None
    return Record(number, payload, body + length)


def _checksum(number: int, payload: bytes | memoryview) -> int:
    return zlib.crc32(payload, zlib.crc32(number.to_bytes(8, "little")))


def file_number(path: Path) -> int:
    """Return the number in the name of a file of the state folder."""
    try:
        return int(path.stem)
    except ValueError:
        raise StateError(f"{path} does not belong to a state folder; move it elsewhere") from None


def close_quietly(file: int) -> None:
    """Close a file descriptor; an error loses nothing, because what must last was synced."""
    with suppress(OSError):
        os.close(file)


class LogFile:
    """A file to which records are appended; `end` is the offset at which the last one ends."""

    def __init__(self, path: Path, end: int = 0) -> None:
        self.path, self.end = path, end
        self.failure: str | None = None  # why the file can no longer be written
        self._file = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
        try:
            os.ftruncate(self._file, end)
        except OSError:
            self.close()
            raise

    def write(self, data: bytes, *, sync: bool) -> int:
        """Append all of the bytes and return the offset at which they begin.

        Raises OSError if that fails; then none of the bytes are in the file.
        """
        if self.failure is not None:
            raise OSError(0, self.failure, str(self.path))
        try:
            done = 0
            while done < len(data):
                done += os.pwrite(self._file, data[done:], self.end + done)
            if sync:
                self.sync()
        except OSError as error:
            error.filename = str(self.path)
            self._truncate()
            raise
        begin, self.end = self.end, self.end + len(data)
        return begin

    def read(self, start: int, length: int) -> bytes:
        """Return some of the bytes that were written."""
        return os.pread(self._file, length, start)

    def close(self) -> None:
        """Close the file."""
        file, self._file = self._file, -1
        if file >= 0:
            close_quietly(file)

    def sync(self) -> None:
        """Flush the file to disk; after an OSError, it can no longer be written."""
        try:
            with SYNC_SECONDS.measure():
                _sync(self._file)
        except OSError as error:  # the content on the disk is unknown until it is read again
            error.filename = str(self.path)
            self._fail(error)
            raise

    def _truncate(self) -> None:
        """Remove a partial write, for example on a full disk, so that it can be retried."""
        try:
            os.ftruncate(self._file, self.end)
        except OSError as error:
            self._fail(error)

    def _fail(self, error: OSError) -> None:
        self.failure = f"the disk failed ({error.strerror}); restart the server"
