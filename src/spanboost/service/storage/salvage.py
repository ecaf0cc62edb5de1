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
    MAX_REPLACED,
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
    marks: set[str]  # of all files that the journal names; empty if its headers are damaged
    names_all: bool  # whether `marks` has those of all snapshots, not only of the newest ones

    @property
    def last(self) -> int:
        """The number of the last record."""
        return max(self.records, default=self.first - 1)


def salvage_journal(folder: Path, marks: Iterable[str]) -> Salvage:
    """Find all records in the files of a journal.

    marks: of files that snapshots name. A file with a damaged header is tried with all marks that
    are known.
    """
    paths = journal_paths(folder)
    first = min(map(journal_number, paths), default=1)
    named, names_all = set[str](), True
    for path in paths:
        with suppress(StateError):
            file = open_file(path)
            named |= file.named_marks
            if file.header is not None:
                first = file.header.first
                names_all &= len(file.header.replaces) < MAX_REPLACED
    records, damages = dict[int, Place](), list[Damage]()
    for path in paths:
        found, bad, mark = _salvage_file(path, {*marks, *named})
        records = {number: place for number, place in found.items() if number >= first} | records
        damages += bad
        if named and mark is not None:
            named.add(mark)
    return Salvage(records, damages, first, named, names_all)


def read_payload(place: Place) -> bytes:
    """Return the payload of a record."""
    with place.path.open("rb") as file:
        file.seek(place.start)
        return file.read(place.payload_bytes)


def _salvage_file(
    path: Path, marks: Iterable[str]
) -> tuple[dict[int, Place], list[Damage], str | None]:
    """Return the records and damages of a file, and the mark that was found by trying."""
    data = path.read_bytes()
    header = decode_header(data)
    if header is not None:
        return *_salvage_records(path, data, MarkedRecords(header.file)), None
    if data.startswith(record_files.MARKER) or not data:
        return *_salvage_records(path, data, PlainRecords()), None
    found = [(*_salvage_records(path, data, MarkedRecords(one)), one) for one in sorted(marks)]
    plain = *_salvage_records(path, data, PlainRecords()), None
    records, damages, mark = max([plain, *found], key=lambda one: len(one[0]))
    damages = [Damage(path, 0, min(HEADER_BYTES, len(data))), *damages]
    return records, damages, mark if records else None


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
