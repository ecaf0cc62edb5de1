"""Read the journal of a folder that another thread or process writes, for followers.

A follower names the last record that it has and the mark of the file that this record came from.
The mark must still be part of the chain, and the record must be the same. So a journal that was
repaired, shortened or replaced is noticed, and never continued with the records of another one.
"""

import struct
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from spanboost.service.storage.journal_chain import Chain, read_chain
from spanboost.service.storage.journal_files import JournalFile, MarkedRecords, PlainRecords
from spanboost.service.storage.record_files import WAY_OUT, Record, StateError

SHIPMENT_BYTES = 1 << 22  # approximate size of the records that are read at a time
BLOCK_BYTES = 1 << 20  # bytes of a file that are read at a time
NO_MARK = "0" * 16  # of files without a header, which earlier versions wrote
_ATTEMPTS, _PAUSE = 5, 0.05  # the writer may begin and delete files while the chain is read
_PLACES = 64  # positions in files to remember: one for each follower
_CHECKED = struct.Struct("<Qd")  # number, time


class DivergedError(Exception):
    """The journal does not continue the records that a follower has; the message says why."""


class Cursor(NamedTuple):
    """How far a follower has copied a journal."""

    record: int  # number of the last record that it has
    mark: str  # of the journal file from which it came
    check: int | None = None  # checksum of the record; None if the follower no longer stores it


class ShippedRecord(NamedTuple):
    """A record, and the mark of the journal file that contains it."""

    number: int
    payload: bytes
    time: float  # 0 if the file does not store it
    mark: str

    @property
    def check(self) -> int:
        """A checksum that does not depend on the file."""
        return zlib.crc32(self.payload, zlib.crc32(_CHECKED.pack(self.number, self.time)))

    def cursor(self) -> Cursor:
        """Return the position directly after this record."""
        return Cursor(self.number, self.mark, self.check)


class Shipment(NamedTuple):
    """Records of one file in order, and what is known about the journal that they come from."""

    records: list[ShippedRecord]
    last: int  # number of the last record of the journal
    mark: str  # of the file to which records are appended
    version: str  # of spanboost that wrote the records; of the last file if there are none


def encode_records(records: list[ShippedRecord]) -> bytes:
    """Return records as bytes, in the format of journal files."""
    return b"".join(
        MarkedRecords(one.mark).encode(one.number, one.payload, one.time) for one in records
    )


def decode_records(data: bytes) -> list[ShippedRecord]:
    """Return the records that `encode_records` has encoded; ValueError if they are damaged."""
    view, start, records = memoryview(data), 0, list[ShippedRecord]()
    while start < len(data):
        mark = data[start : start + len(NO_MARK) // 2].hex()
        record = MarkedRecords(mark).record_at(view, start)
        if record is None:
            raise ValueError("the records are damaged or incomplete")
        records.append(_shipped(record, mark))
        start = record.end
    return records


class JournalTail:
    """Reads the records of a journal after any position."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._places: dict[int, tuple[Path, int]] = {}  # where records begin, by their numbers

    def read(self, cursor: Cursor | None, last: int | None = None) -> Shipment:
        """Return the records after the cursor, as many as fit into a shipment.

        cursor: None for all records.
        last: number of the last record that may be returned; by default, the last complete one.
        Raises DivergedError if the journal does not continue at the cursor.
        """
        for attempt in range(_ATTEMPTS):
            try:
                chain = read_chain(self.folder)
                return self._read(chain, cursor, last)
            except (StateError, FileNotFoundError) as error:
                if attempt + 1 == _ATTEMPTS:
                    raise StateError(str(error)) from None
                time.sleep(_PAUSE)
        raise AssertionError

    def last_cursor(self, record: int, mark: str) -> Cursor:
        """Return the cursor directly after a record of this journal.

        mark: of the file of another journal from which the record was copied.
        """
        files = [file for file in read_chain(self.folder).files if file.number <= record]
        found = self._find(files[-1], record) if files else None
        return Cursor(record, mark, None if found is None else found.check)

    def _read(self, chain: Chain, cursor: Cursor | None, last: int | None) -> Shipment:
        if not chain.files:
            raise StateError(f"{self.folder}: there is no journal")
        mark, first = chain.files[-1].mark or NO_MARK, chain.files[0].number
        if cursor is None:
            cursor = Cursor(first - 1, mark)
        if cursor.record + 1 < first:
            raise DivergedError(
                f"record {cursor.record + 1} is no longer in the journal, which begins at record "
                f"{first}"
            )
        self._check_mark(chain, cursor)
        records, size, number = list[ShippedRecord](), 0, cursor.record
        end: tuple[Path, int] | None = None
        for place, record in self._records_from(chain, cursor):
            if size > SHIPMENT_BYTES or (last is not None and record.number > last):
                break
            if records and record.mark != records[0].mark:
                break
            records.append(record)
            number, size, end = record.number, size + len(record.payload), place
        if end is not None:
            self._remember(number, end)
        if not records and last is not None and number < last:
            raise StateError(f"{self.folder}: record {number + 1} cannot be read; {WAY_OUT}")
        known, wanted = number if last is None else last, records[0].mark if records else mark
        return Shipment(records, known, mark, _find_version(chain, wanted))

    def _check_mark(self, chain: Chain, cursor: Cursor) -> None:
        """Raise DivergedError if the file that the cursor names is not part of the journal."""
        marks = {file.mark or NO_MARK for file in chain.files}
        header = chain.files[0].header
        if header is not None and header.previous is not None:  # deleted, but part of the chain
            marks.add(header.previous.file or NO_MARK)
        if cursor.mark not in marks:
            raise DivergedError(
                f"the journal was replaced after record {cursor.record} was copied: it was "
                "repaired, restored from a backup or created again, or rows were erased"
            )

    def _records_from(
        self, chain: Chain, cursor: Cursor
    ) -> Iterator[tuple[tuple[Path, int], ShippedRecord]]:
        """Yield the records after the cursor, with the places at which they begin."""
        number, files = cursor.record, list(chain.files)
        while len(files) > 1 and files[1].number <= number:
            del files[0]
        if files[0].number <= number:
            self._check_record(files[0], cursor)
        for file in files:
            for start, record in self._scan(file, number):
                if record.number > number:
                    if record.number != number + 1:
                        raise StateError(
                            f"{file.path}: expected record {number + 1}, got record "
                            f"{record.number}; {WAY_OUT}"
                        )
                    number = record.number
                    yield (file.path, start), record

    def _check_record(self, file: JournalFile, cursor: Cursor) -> None:
        """Raise DivergedError if the record of the cursor is missing or another one."""
        record = self._find(file, cursor.record)
        if record is None:
            raise DivergedError(
                f"the journal ends before record {cursor.record}, which the copy has"
            )
        if cursor.check is not None and cursor.check != record.check:
            raise DivergedError(f"record {cursor.record} is not the one that the copy has")

    def _find(self, file: JournalFile, number: int) -> ShippedRecord | None:
        for start, record in self._scan(file, number):
            if record.number == number:
                self._remember(number, (file.path, start))
                return record
        return None

    def _scan(self, file: JournalFile, number: int) -> Iterator[tuple[int, ShippedRecord]]:
        """Yield records of a file up to its end, from record `number` on if its place is known."""
        path, start = self._places.get(number, (file.path, file.records.start))
        if path != file.path:
            start = file.records.start
        mark = file.mark or NO_MARK
        for begin, record in _scan_file(file.path, start, file.records):
            if record.number:  # the number of an end record is 0
                yield begin, _shipped(record, mark)

    def _remember(self, number: int, place: tuple[Path, int]) -> None:
        self._places.pop(number, None)
        self._places[number] = place
        if len(self._places) > _PLACES:
            del self._places[next(iter(self._places))]


def _scan_file(
    path: Path, start: int, records: MarkedRecords | PlainRecords
) -> Iterator[tuple[int, Record]]:
    """Yield the complete records of a file from `start` on, with the offsets of their begins."""
    with path.open("rb") as file:
        file.seek(start)
        data, more = b"", file.read(BLOCK_BYTES)
        while more:
            data, end = data + more, 0
            view = memoryview(data)
            while (record := records.record_at(view, end)) is not None:
                yield start + end, record
                end = record.end
            data, start = data[end:], start + end
            more = file.read(max(BLOCK_BYTES, len(data)))  # a record may be long


def _find_version(chain: Chain, mark: str) -> str:
    headers = [file.header for file in chain.files if file.mark == mark]
    return headers[0].version if headers and headers[0] is not None else ""


def _shipped(record: Record, mark: str) -> ShippedRecord:
    return ShippedRecord(record.number, bytes(record.payload), record.time or 0.0, mark)
