"""The format of journal files: a header, records, and an end record that names the next file.

    header   magic (4 bytes)  CRC-32 (4)  JSON, filled up with spaces to 512 bytes
    record   mark (8)  length (4)  number (8)  time (8)  CRC-32 of all before, and the payload (4)
             payload

The mark is a random number that is different in each file. So rows, which clients choose, cannot
contain the bytes of a record. Files written before this format have no header, and the records of
record_files.py.
"""

import secrets
import struct
import time
import zlib
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from spanboost import __version__
from spanboost.service.storage import record_files
from spanboost.service.storage.record_files import WAY_OUT, Record, StateError, file_number

SUFFIX = ".v2.log"  # a name that versions without headers refuse; they would empty the file
HEADER_BYTES = 512
SECTOR = 512  # smallest number of bytes that a disk writes completely or not at all
MAX_REPLACED = 8  # marks of replaced files that fit into a header; of the newest snapshots
END = 0  # number of the last record of a complete file; its payload is the mark of the next file
_MAGIC = b"\xf5sb2"
_MARK_BYTES = 8
_CHECKSUM = struct.Struct("<I")
_FIELDS = struct.Struct("<8sIQd")  # mark, length, number, time
_RECORD_BYTES = _FIELDS.size + _CHECKSUM.size
_END_BYTES = _RECORD_BYTES + _MARK_BYTES


class Position(NamedTuple):
    """The end of a file: its mark, the number of its last record, its size without end record."""

    file: str
    record: int
    bytes: int


class FileHeader(NamedTuple):
    """The header of a journal file."""

    file: str  # the mark, in hexadecimal
    first: int  # number of the first record that the journal kept when this file was begun
    previous: Position | None  # None: this is the first file
    version: str  # of spanboost
    time: float
    replaces: list[str]  # marks of files that a repair has replaced, and that snapshots name

    def encode(self) -> bytes:
        """Return the bytes of the header."""
        fields = self._asdict() | {"previous": self.previous and [*self.previous]}
        text = orjson.dumps(fields).ljust(HEADER_BYTES - len(_MAGIC) - _CHECKSUM.size)
        return _MAGIC + _CHECKSUM.pack(zlib.crc32(text)) + text


def new_header(
    first: int, previous: Position | None, replaces: list[str], version: str | None = None
) -> FileHeader:
    """Return the header of a file that is begun now; `version` wrote its records, if given."""
    mark = secrets.token_hex(_MARK_BYTES)
    return FileHeader(mark, first, previous, version or __version__, time.time(), replaces)


def decode_header(data: bytes) -> FileHeader | None:
    """Return the header at the start of a file; None if there is none, or it is damaged."""
    begin = len(_MAGIC) + _CHECKSUM.size
    text = data[begin:HEADER_BYTES]
    if len(data) < HEADER_BYTES or data[: len(_MAGIC)] != _MAGIC:
        return None
    if _CHECKSUM.unpack_from(data, len(_MAGIC))[0] != zlib.crc32(text):
        return None
    content: dict[str, Any] = orjson.loads(text)
    header = FileHeader(*(content[name] for name in FileHeader._fields))
    return header._replace(previous=header.previous and Position(*header.previous))


class MarkedRecords:
    """The records of a file with a header."""

    overhead = _RECORD_BYTES
    start = HEADER_BYTES  # where the first record begins

    def __init__(self, file: str) -> None:
        self.mark = bytes.fromhex(file)

    def encode(self, number: int, payload: bytes, when: float = 0.0) -> bytes:
        """Return the bytes of a record."""
        fields = _FIELDS.pack(self.mark, len(payload), number, when)
        return b"".join([fields, _CHECKSUM.pack(_checksum(fields, payload)), payload])

    def record_at(self, data: memoryview, start: int) -> Record | None:
        """Return the record that begins at `start`; None if it is incomplete or damaged."""
        body = start + _RECORD_BYTES
        if body > len(data) or data[start : start + _MARK_BYTES] != self.mark:
            return None
        _, length, number, when = _FIELDS.unpack_from(data, start)
        payload = data[body : body + length]
        fields = data[start : start + _FIELDS.size]
        (checksum,) = _CHECKSUM.unpack_from(data, start + _FIELDS.size)
        if len(payload) != length or _checksum(fields, payload) != checksum:
            return None
        return Record(number, payload, body + length, when)

    def next_record(self, data: bytes, start: int) -> int | None:
        """Return where the first complete record after `start` begins; None if there is none."""
        offset = data.find(self.mark, start + 1)
        while offset >= 0:
            if self.record_at(memoryview(data), offset) is not None:
                return offset
            offset = data.find(self.mark, offset + 1)
        return None

    def is_torn(self, data: bytes, end: int) -> bool:
        """Return whether the bytes from `end` can be one record whose write was interrupted.

        Such a record begins at `end`, is the only one, and is not longer than its header says.
        Sectors that did not reach the disk contain zeros. If they contain the header of the record,
        its length is unknown. A complete record without such a sector was damaged later.
        """
        tail = data[end:]
        if tail.find(self.mark, 1) >= 0:
            return False
        head = tail[:_RECORD_BYTES]
        if _lacks_sector(head, end):
            return True
        if head[:_MARK_BYTES] != self.mark[: len(head)]:
            return False
        if len(head) < _RECORD_BYTES:
            return True
        _, length, _, _ = _FIELDS.unpack_from(head)
        size = _RECORD_BYTES + int(length)
        return len(tail) < size or (len(tail) == size and _lacks_sector(tail, end))


def _lacks_sector(data: bytes, begin: int) -> bool:
    """Return whether the part of `data` in some sector is 0; `begin` is its place in the file."""
    edges = [0, *range(SECTOR - begin % SECTOR, len(data), SECTOR), len(data)]
    return any(first < last and not any(data[first:last]) for first, last in pairwise(edges))


def _checksum(fields: bytes | memoryview, payload: bytes | memoryview) -> int:
    return zlib.crc32(payload, zlib.crc32(fields))


class PlainRecords:
    """The records of a file without a header, as earlier versions wrote them."""

    overhead = record_files.OVERHEAD
    start = 0

    def encode(self, number: int, payload: bytes, when: float = 0.0) -> bytes:
        """Return the bytes of a record; its time is not stored."""
        return record_files.encode_record(number, payload)

    def record_at(self, data: memoryview, start: int) -> Record | None:
        """Return the record that begins at `start`; None if it is incomplete or damaged."""
        return record_files.record_at(data, start)

    def next_record(self, data: bytes, start: int) -> int | None:
        """Return where the first complete record after `start` begins; None if there is none."""
        return record_files.next_record(data, start)

    def is_torn(self, data: bytes, end: int) -> bool:
        """Return whether the bytes from `end` can be one record whose write was interrupted."""
        return record_files.next_record(data, end) is None


class JournalFile(NamedTuple):
    """A journal file: its name, its header and its end, without its records."""

    path: Path
    number: int  # of its first record
    size: int
    header: FileHeader | None  # None: it has no header
    next: str | None  # mark of the file that follows, in hexadecimal; None: it has no end record

    @property
    def mark(self) -> str | None:
        """The mark in hexadecimal; None if the file has no header."""
        return None if self.header is None else self.header.file

    @property
    def first_record(self) -> int:
        """The number of its first record, from its header; from its name if it has none."""
        if self.header is None:
            return self.number
        previous = self.header.previous
        return self.header.first if previous is None else previous.record + 1

    @property
    def named_marks(self) -> set[str]:
        """The marks of the files that it names: itself, its neighbours, and those it replaced."""
        names = {self.mark, self.next}
        if self.header is not None:
            names |= {*self.header.replaces, self.header.previous and self.header.previous.file}
        return {name for name in names if name}

    @property
    def records(self) -> MarkedRecords | PlainRecords:
        """The format of its records."""
        return PlainRecords() if self.header is None else MarkedRecords(self.header.file)

    @property
    def has_records(self) -> bool:
        """Whether there are any bytes after the header."""
        return self.size > self.records.start

    @property
    def end(self) -> int:
        """The size without the end record."""
        return self.size if self.next is None else self.size - _END_BYTES


def journal_number(path: Path) -> int:
    """Return the number of the first record of a journal file, from its name."""
    return file_number(path.parent / path.name.replace(SUFFIX, ".log"))


def open_file(path: Path) -> JournalFile:
    """Read the header and the end of a journal file; StateError if its header is damaged."""
    number = journal_number(path)
    with path.open("rb") as file:
        head = file.read(HEADER_BYTES)
        size = file.seek(0, 2)
        file.seek(max(size - _END_BYTES, 0))
        tail = file.read()
    if head[:4] == record_files.MARKER[: len(head)]:
        return JournalFile(path, number, size, None, None)
    header = decode_header(head)
    if header is None:
        raise StateError(f"{path}: the header of the file is damaged; {WAY_OUT}")
    record = MarkedRecords(header.file).record_at(memoryview(tail), 0)
    is_end = record is not None and record.number == END
    return JournalFile(path, number, size, header, tail[-_MARK_BYTES:].hex() if is_end else None)
