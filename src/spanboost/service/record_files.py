"""Records in files: each with a mark, its number and a checksum, so that half a one is seen to be.

    mark (4 bytes)  length (4)  number (8)  CRC-32 of number and payload (4)  payload

A record is written at once and synced before the next one is begun. So a record that is not whole
is the last one, of a write that was cut off; if a whole one follows, the file has been damaged.
"""

import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from spanboost.errors import UserError

MARK = b"\xf5sb1"
_HEAD = struct.Struct("<4sIQI")
_sync = getattr(os, "fdatasync", os.fsync)


class StateError(UserError):
    """A state folder that cannot be used; one sentence says why, and what to do."""


class Record(NamedTuple):
    """One record, and where in the file it ends."""

    number: int
    payload: memoryview
    end: int


def record(number: int, payload: bytes) -> bytes:
    """A record as it stands in a file."""
    return _HEAD.pack(MARK, len(payload), number, _checksum(number, payload)) + payload


def records(data: memoryview, start: int = 0) -> Iterator[Record]:
    """The records from `start` on, up to the first that is not whole."""
    while (found := _record_at(data, start)) is not None:
        yield found
        start = found.end


def find_whole_record(data: bytes, start: int) -> bool:
    """Whether any whole record begins behind `start`."""
    view, place = memoryview(data), data.find(MARK, start + 1)
    while place >= 0:
        if _record_at(view, place) is not None:
            return True
        place = data.find(MARK, place + 1)
    return False


def _record_at(data: memoryview, start: int) -> Record | None:
    body = start + _HEAD.size
    if body > len(data):
        return None
    mark, length, number, checksum = _HEAD.unpack_from(data, start)
    payload = data[body : body + length]
    if mark != MARK or len(payload) != length or _checksum(number, payload) != checksum:
        return None
    return Record(number, payload, body + length)


def _checksum(number: int, payload: bytes | memoryview) -> int:
    return zlib.crc32(payload, zlib.crc32(number.to_bytes(8, "little")))


def number_of(path: Path) -> int:
    """The number that names a file of the folder."""
    try:
        return int(path.stem)
    except ValueError:
        raise StateError(f"{path} is no file of a state folder: move it elsewhere") from None


class LogFile:
    """A file that records are added to; `end` is where the last good one ends."""

    def __init__(self, path: Path, end: int = 0) -> None:
        self.path, self.end = path, end
        self.broken: str | None = None  # why nothing can be written any more
        self._file = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
        os.ftruncate(self._file, end)

    def write(self, data: bytes, *, sync: bool) -> int:
        """Add bytes, all or none of them, synced if asked; where they begin. OSError if not."""
        if self.broken is not None:
            raise OSError(0, self.broken)
        try:
            done = 0
            while done < len(data):
                done += os.pwrite(self._file, data[done:], self.end + done)
            if sync:
                self._synced()
        except OSError:
            self._undo()
            raise
        begin, self.end = self.end, self.end + len(data)
        return begin

    def read(self, start: int, length: int) -> bytes:
        """Some of what was written."""
        return os.pread(self._file, length, start)

    def close(self) -> None:
        """Nothing more will be written."""
        os.close(self._file)

    def _synced(self) -> None:
        try:
            _sync(self._file)
        except OSError as error:  # what is on the disk now nobody knows, until it is read again
            self.broken = f"the disk failed ({error.strerror}): start the server again"
            raise

    def _undo(self) -> None:
        """A full disk: what was half written goes, so that it can be tried again."""
        try:
            os.ftruncate(self._file, self.end)
        except OSError as error:
            self.broken = f"the disk failed ({error.strerror}): start the server again"
