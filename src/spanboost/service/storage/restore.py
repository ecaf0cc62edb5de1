"""Restore the state of a service at an earlier record or time, in a new folder."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from shutil import copyfileobj, rmtree

from spanboost.atomic_files import atomic_write, create_folder
from spanboost.errors import UsageError
from spanboost.service.storage.folder_check import Report, Snapshot
from spanboost.service.storage.journal_rewrite import write_journal
from spanboost.service.storage.retention import SNAPSHOTS
from spanboost.service.storage.salvage import Place
from spanboost.service.storage.wording import name_records


def find_record(report: Report, to: str) -> int:
    """Return the record that a point in time names: its number, or a time in ISO 8601.

    A time names the last record before the first one that was written later. UsageError if that
    is the first record of the journal, because the state at that time is not known.
    """
    if to.isdecimal():
        return int(to)
    try:
        when = datetime.fromisoformat(to).astimezone().timestamp()
    except ValueError:
        raise UsageError(
            f"--to must be the number of a record or a time like 2026-01-31T12:00 (got {to!r})"
        ) from None
    places = report.salvage.records
    later = [number for number, one in places.items() if one.time is not None and one.time > when]
    if later and min(later) == min(places):
        first = describe_time(places[min(later)])
        raise UsageError(
            f"--to {to} is before the first record of the journal (record {min(later)}{first}); "
            "give a later time, or the number of a record"
        )
    return min(later, default=report.last + 1) - 1


def describe_time(place: Place | None) -> str:
    """Return when a record was written, as the end of a phrase; empty if that is unknown."""
    if place is None or not place.time:
        return ""
    return f", written {datetime.fromtimestamp(place.time, UTC):%Y-%m-%d %H:%M:%S} UTC"


def check_restore(report: Report, record: int) -> list[Snapshot]:
    """Return the snapshots to restore, newest first; UsageError if the record cannot be restored.

    The service starts from the newest one, and another version compares it with a replay from the
    one before (upgrade.py).
    """
    snapshots = [one for one in report.usable if one.record <= record][:SNAPSHOTS]
    if not snapshots or record > report.last:
        oldest = min((one.record for one in report.usable), default=None)
        what = "no snapshot can be used" if oldest is None else f"{oldest} to {report.last} can"
        raise UsageError(f"{report.folder}: record {record} cannot be restored; {what}")
    lost = [number for number in report.lost if number <= record]
    if lost:
        raise UsageError(
            f"{report.folder}: {name_records(lost)} cannot be read; see what `spanboost repair` "
            "would lose"
        )
    return snapshots


def check_new_folder(new: Path) -> None:
    """Raise UsageError if a folder exists and is not empty."""
    if new.exists() and not new.is_dir():
        raise UsageError(f"{new} is a file; expected a new or empty folder")
    if new.exists() and any(new.iterdir()):
        raise UsageError(f"{new} exists and is not an empty folder; choose another --dir")


def restore_folder(report: Report, record: int, new: Path, pending: Sequence[Path] = ()) -> None:
    """Write a state folder that ends at a record; the old one does not change.

    pending: files of predicted rows that still wait for their labels after this record.
    If this fails, the new folder is deleted again.
    """
    check_new_folder(new)
    snapshots = check_restore(report, record)
    created = not new.exists()
    create_folder(new, 0o700)
    try:
        _write_parts(report._replace(snapshots=snapshots), record, new, pending)
    except BaseException:
        for part in new.iterdir():
            rmtree(part)
        if created:
            new.rmdir()
        raise


def _write_parts(report: Report, record: int, new: Path, pending: Sequence[Path]) -> None:
    write_journal(report, new / "journal", record)
    (new / "pending").mkdir(mode=0o700)
    for path in pending:
        _copy(path, new / "pending" / path.name)
    (new / "snapshots").mkdir(mode=0o700)
    # last: a folder without a snapshot is refused, so an interrupted restore cannot be served
    for snapshot in report.snapshots:
        _copy(snapshot.path, new / "snapshots" / snapshot.path.name)


def _copy(source: Path, target: Path) -> None:
    with source.open("rb") as old, atomic_write(target, private=True) as new:
        copyfileobj(old, new)
