"""Check a state folder that no server uses, and repair its journal.

A repair writes a new journal with all records that can be read. Records that are lost or put into
quarantine are replaced by empty ones, which teach the model nothing. The old journal is kept next
to the new one, so a repair can be undone by hand.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import orjson

from spanboost import __version__
from spanboost.atomic_files import atomic_write
from spanboost.errors import ModelFileError, UsageError
from spanboost.models.files import load_checkpoint
from spanboost.service.storage.backup import snapshot_paths
from spanboost.service.storage.control import decode_control, is_control
from spanboost.service.storage.entry import decode_entry
from spanboost.service.storage.journal import Journal
from spanboost.service.storage.journal_files import open_file
from spanboost.service.storage.journal_swap import (
    delete_folder,
    finish_swap,
    new_journal,
    swap_journal,
)
from spanboost.service.storage.record_files import StateError, file_number
from spanboost.service.storage.salvage import Salvage, read_payload, salvage_journal
from spanboost.service.storage.upgrade import WITHOUT_HEADER

MAX_REPLACED = 8  # marks that fit into the header of a file; they are those of the newest snapshots
LARGEST = 3  # number of records that a report lists by size


class Snapshot(NamedTuple):
    """A snapshot file: the number of its last record, and why it cannot be read, if so."""

    path: Path
    record: int
    mark: str | None  # of the journal file that it names
    error: str | None


class Report(NamedTuple):
    """The condition of a state folder."""

    folder: Path
    snapshots: list[Snapshot]  # the newest first
    problem: str | None  # why a server cannot start; None if it can
    salvage: Salvage
    removed_bytes: int  # size of an interrupted write, which the next start removes

    @property
    def snapshot(self) -> Snapshot | None:
        """The snapshot that the next start loads; None if there is none that can be read."""
        return next((one for one in self.snapshots if one.error is None), None)

    @property
    def last(self) -> int:
        """The number of the last record after a repair."""
        learned = 0 if self.snapshot is None else self.snapshot.record
        return max(self.salvage.last, learned)

    @property
    def lost(self) -> list[int]:
        """The numbers of records that cannot be read."""
        return self.salvage.missing(self.last)

    @property
    def largest(self) -> list[tuple[int, int]]:
        """Numbers and sizes of the largest records that the next start learns."""
        learned = 0 if self.snapshot is None else self.snapshot.record
        sizes = [
            (place.payload_bytes, number)
            for number, place in self.salvage.records.items()
            if number > learned
        ]
        return [(number, size) for size, number in sorted(sizes, reverse=True)[:LARGEST]]


def check_folder(folder: Path) -> Report:
    """Return the condition of a state folder, whose lock the caller holds."""
    finish_swap(folder)
    snapshots = [_check_snapshot(path) for path in reversed(snapshot_paths(folder))]
    marks = [one.mark for one in snapshots if one.mark is not None]
    salvage = salvage_journal(folder / "journal", marks)
    journal = Journal(folder / "journal")
    snapshot = next((one for one in snapshots if one.error is None), None)
    return Report(
        folder, snapshots, _find_problem(journal, snapshot), salvage, journal.removed_bytes
    )


def _find_problem(journal: Journal, snapshot: Snapshot | None) -> str | None:
    """Return why a server cannot start; None if it can."""
    if snapshot is None:
        return f"{journal.folder.parent}: there is no snapshot that can be read"
    try:
        journal.verify(snapshot.mark)
    except StateError as error:
        return str(error)
    first = min(journal.first_numbers(), default=1)
    if not first - 1 <= snapshot.record <= journal.last:
        return (
            f"{journal.folder}: the journal has the records {first} to {journal.last}, but the "
            f"snapshot ends at record {snapshot.record}"
        )
    return None


def _check_snapshot(path: Path) -> Snapshot:
    try:
        _, run = load_checkpoint(path)
        return Snapshot(path, run["record"], run.get("journal"), None)
    except (ModelFileError, OSError, TypeError, KeyError) as error:
        return Snapshot(path, file_number(path), None, str(error))


def check_quarantine(report: Report, number: int) -> None:
    """Raise UsageError if a record cannot be put into quarantine."""
    if number not in report.salvage.records:
        raise UsageError(f"{report.folder}: the journal has no readable record {number}")
    payload = memoryview(read_payload(report.salvage.records[number]))
    if is_control(payload):
        raise UsageError(
            f"{report.folder}: record {number} is a control ({decode_control(payload).name}), not "
            "rows, and cannot be put into quarantine; restore an earlier record instead"
        )
    if _snapshot_before(report, number) is None:
        raise UsageError(
            f"{report.folder}: record {number} cannot be put into quarantine: the model of every "
            "snapshot has learned it"
        )


def _snapshot_before(report: Report, number: int) -> Snapshot | None:
    """Return the newest snapshot that has not learned a record."""
    readable = [one for one in report.snapshots if one.error is None]
    return next((one for one in readable if one.record < number), None)


def repair_folder(report: Report, quarantined: int | None = None) -> Path:
    """Write a new journal with all readable records, except one; return where the old one is."""
    folder = report.folder
    if quarantined is not None:
        _write_aside(report, quarantined)
    new, old = new_journal(folder), folder / f"journal.before-repair-{time.time_ns()}"
    delete_folder(new)  # left by a repair that was interrupted
    write_journal(
        report, new, report.last, lambda number, payload: b"" if number == quarantined else payload
    )
    swap_journal(folder, old)
    return old


def write_journal(
    report: Report,
    folder: Path,
    last: int,
    change: Callable[[int, bytes], bytes] = lambda number, payload: payload,
) -> None:
    """Write the readable records up to `last` to a new journal; the others become empty ones.

    change: returns the new payload for the number and the payload of a record.
    """
    records, snapshot = report.salvage.records, report.snapshot
    learned = 0 if snapshot is None else snapshot.record
    first = min(report.salvage.first, learned + 1)
    marks = [one.mark for one in report.snapshots if one.mark is not None and one.record <= last]
    version = _other_version(report, learned + 1, last)
    journal = Journal(folder, first=first, replaces=marks[:MAX_REPLACED], version=version)
    list(journal.read())
    for number in range(first, last + 1):
        place = records.get(number)
        payload = b"" if place is None else change(number, read_payload(place))
        journal.append(payload, None if place is None else place.time, sync=False)
    journal.sync()
    journal.close()


def _other_version(report: Report, first: int, last: int) -> str | None:
    """Return another version that wrote some of these records; None if this one wrote all.

    The next start learns these records, so it must know who wrote them (upgrade.py). If records are
    lost, no version could reproduce the snapshots after them, so there is nothing to compare.
    """
    if report.lost:
        return None
    places = report.salvage.records.items()
    paths = {place.path for number, place in places if first <= number <= last}
    return min(filter(None, map(_written_by, paths)), default=None)


def _written_by(path: Path) -> str | None:
    """Return the version that wrote a journal file; None if it is this one or unknown."""
    try:
        header = open_file(path).header
    except StateError:  # the header is damaged
        return None
    version = WITHOUT_HEADER if header is None else header.version
    return None if version == __version__ else version


def _write_aside(report: Report, number: int) -> None:
    """Write the rows of a record to a file, and set the snapshots aside that have learned it."""
    entry = decode_entry(memoryview(read_payload(report.salvage.records[number])))
    weights = entry.weights or [1.0] * len(entry.rows)
    rows = zip(entry.ids, entry.labels, weights, entry.rows, strict=True)
    lines = [
        orjson.dumps({"id": id, "label": label, "weight": weight, "row": row})
        for id, label, weight, row in rows
    ]
    path = quarantine_path(report.folder, number)
    path.parent.mkdir(exist_ok=True, mode=0o700)
    with atomic_write(path, private=True) as file:
        file.write(b"\n".join(lines) + b"\n")
    for snapshot in report.snapshots:
        if snapshot.record >= number:
            snapshot.path.rename(path.parent / snapshot.path.name)


def quarantine_path(folder: Path, number: int) -> Path:
    """Return the file for the rows of a record that is put into quarantine."""
    return folder / "quarantine" / f"{number:020}.jsonl"
