"""Find all records of a journal that can still be read, whatever else is damaged or missing."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from spanboost.service.storage import record_files
from spanboost.service.storage.journal_chain import journal_paths
from spanboost.service.storage.journal_files import (
    END,
    HEADER_BYTES,
    MarkedRecords,
    PlainRecords,
    decode_header,
    journal_number,
    open_file,
)
from spanboost.service.storage.record_files import StateError


class Place(NamedTuple):
    """Where a record is."""

    path: Path
    start: int
    time: float | None
    payload_bytes: int


class Damage(NamedTuple):
    """Bytes of a file that cannot be read, from `start` to before `end`."""

    path: Path
    start: int
    end: int

    def __str__(self) -> str:
        return f"{self.path}: bytes {self.start} to {self.end} cannot be read"


class Salvage(NamedTuple):
    """What can be read of a journal."""

    records: dict[int, Place]  # by number
    damages: list[Damage]
    first: int  # number of the first record that must be there

    @property
    def last(self) -> int:
        """The number of the last record."""
        return max(self.records, default=self.first - 1)

    def missing(self, last: int) -> list[int]:
        """Return the numbers of records up to `last` that cannot be read."""
        return [number for number in range(self.first, last + 1) if number not in self.records]


def salvage_journal(folder: Path, marks: Iterable[str]) -> Salvage:
    """Find all records in the files of a journal.

    marks: of files that snapshots name. A file with a damaged header is tried with all marks that
    are known.
    """
    paths = journal_paths(folder)
    first = min(map(journal_number, paths), default=1)
    known = set[str | None](marks)
    for path in paths:
        with suppress(StateError):
            file = open_file(path)
            known |= {file.mark, file.next}
            if file.header is not None:
                first = file.header.first
                known.add(file.header.previous and file.header.previous.file)
    records, damages = dict[int, Place](), list[Damage]()
    for path in paths:
        found, bad = _salvage_file(path, [mark for mark in known if mark])
        records = {number: place for number, place in found.items() if number >= first} | records
        damages += bad
    return Salvage(records, damages, first)


def read_payload(place: Place) -> bytes:
    """Return the payload of a record."""
    with place.path.open("rb") as file:
        file.seek(place.start)
        return file.read(place.payload_bytes)


def number_ranges(numbers: Iterable[int]) -> str:
    """Return sorted numbers as text.

    >>> number_ranges([1, 2, 3, 7, 9, 10])
    '1 to 3, 7, 9 to 10'
    """
    ranges = list[list[int]]()
    for number in numbers:
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ", ".join(f"{a} to {b}" if a < b else str(a) for a, b in ranges)


def _salvage_file(path: Path, marks: Iterable[str]) -> tuple[dict[int, Place], list[Damage]]:
    data = path.read_bytes()
    header = decode_header(data)
    if header is not None:
        return _salvage_records(path, data, MarkedRecords(header.file))
    if data.startswith(record_files.MARKER) or not data:
        return _salvage_records(path, data, PlainRecords())
    candidates: list[MarkedRecords | PlainRecords] = [PlainRecords()]
    candidates += map(MarkedRecords, sorted(marks))
    found = [_salvage_records(path, data, records) for records in candidates]
    records, damages = max(found, key=lambda one: len(one[0]))
    return records, [Damage(path, 0, min(HEADER_BYTES, len(data))), *damages]


def _salvage_records(
    path: Path, data: bytes, records: MarkedRecords | PlainRecords
) -> tuple[dict[int, Place], list[Damage]]:
    view, start = memoryview(data), records.start
    found, damages = dict[int, Place](), list[Damage]()
    while start < len(data):
        record = records.record_at(view, start)
        if record is None:
            after = records.next_record(data, start)
            end = len(data) if after is None else after
            damages.append(Damage(path, start, end))
            start = end
            continue
        size = len(record.payload)
        if record.number != END:
            found.setdefault(record.number, Place(path, record.end - size, record.time, size))
        start = record.end
    return found, damages
