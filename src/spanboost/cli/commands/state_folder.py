"""The commands `check`, `repair` and `restore`, for state folders that no server uses."""

from argparse import Namespace
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from spanboost.atomic_files import PARTIAL
from spanboost.errors import UsageError
from spanboost.service.storage.backup import extract_backup, pending_paths
from spanboost.service.storage.folder_lock import lock_folder
from spanboost.service.storage.record_files import WAY_OUT, StateError
from spanboost.service.storage.repair import (
    Report,
    check_folder,
    check_quarantine,
    quarantine_path,
    repair_folder,
)
from spanboost.service.storage.restore import check_new_folder, find_record, restore_folder
from spanboost.service.storage.salvage import Place, number_ranges
from spanboost.service.storage.upgrade import other_versions


def check(args: Namespace) -> int:
    """Print the condition of a state folder; return 0 if a server can start with it."""
    folder = existing_folder(args.folder)
    with lock_folder(folder):
        report = check_folder(folder)
    for line in _describe(report):
        print(line)
    return 0 if report.problem is None else 1


def repair(args: Namespace) -> int:
    """Print what a repair loses, and repair the folder with --yes."""
    folder = existing_folder(args.folder)
    with lock_folder(folder):
        report = check_folder(folder)
        if report.snapshot is None:
            raise StateError(f"{report.problem}; restore the folder from a backup")
        if report.problem is None and args.quarantine is None:
            print(f"{folder}: nothing to repair")
            return 0
        for line in _describe_losses(report, args.quarantine):
            print(line)
        if not args.yes:
            print("Nothing was changed. To repair the folder, add --yes.")
            return 1
        print(f"Repaired. The old journal is in {repair_folder(report, args.quarantine)}.")
    return 0


def restore(args: Namespace) -> int:
    """Write a new state folder from a backup or another folder, up to a record."""
    source, new = Path(args.source), Path(args.dir)
    check_new_folder(new)
    if not source.is_file():
        _restore(args, existing_folder(args.source))
        return 0
    new.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(PARTIAL, f"{new.name}.", new.parent) as extracted:
        extract_backup(source, Path(extracted))
        _restore(args, Path(extracted))
    return 0


def _restore(args: Namespace, folder: Path) -> None:
    """Restore from a folder: the source itself, or the files of the backup."""
    new = Path(args.dir)
    with lock_folder(folder):
        report = check_folder(folder)._replace(folder=Path(args.source))  # errors name the backup
        if args.to is None:
            record, pending = report.last, pending_paths(folder)
        else:  # the rows that waited then are not known
            record, pending = find_record(report, args.to), []
        restore_folder(report, record, new, pending)
    when = _describe_time(report.salvage.records.get(record))
    print(f"{new} ends at record {record}{when}; start it with `spanboost serve --dir {new}`")


def existing_folder(name: str) -> Path:
    """Return a state folder; UsageError if it is not one."""
    folder = Path(name)
    if not (folder / "snapshots").is_dir():
        raise UsageError(f"{folder} is not a state folder: it has no folder of snapshots")
    return folder


def _describe(report: Report) -> Iterator[str]:
    for snapshot in report.snapshots:
        yield f"snapshot at record {snapshot.record}: {snapshot.error or 'ok'}"
    salvage = report.salvage
    yield f"journal: {len(salvage.records)} records, the last is {salvage.last}"
    for number, size in report.largest:
        yield f"record {number}: {size} bytes, not in a snapshot yet"
    if report.removed_bytes:
        yield f"interrupted write of {report.removed_bytes} bytes, which the next start removes"
    if report.problem is None:
        yield from _describe_versions(report)
        yield "The service can start."
        return
    yield from map(str, salvage.damages)
    if report.lost:
        yield f"missing or damaged records: {number_ranges(report.lost)}"
    yield f"The service cannot start. {report.problem}"


def _describe_versions(report: Report) -> Iterator[str]:
    assert report.snapshot is not None
    versions = other_versions(report.folder / "journal", report.snapshot.record)
    if versions:
        yield (
            f"version {' and '.join(versions)} wrote records that are not in a snapshot; a start "
            "of this version continues only if a replay reproduces the last snapshot"
        )


def _describe_losses(report: Report, quarantined: int | None) -> Iterator[str]:
    assert report.snapshot is not None
    if report.problem is not None:
        yield report.problem.removesuffix(f"; {WAY_OUT}")
        learned = [number for number in report.lost if number <= report.snapshot.record]
        others = [number for number in report.lost if number > report.snapshot.record]
        if others:
            yield f"Lost: the labels in records {number_ranges(others)}."
        if learned:
            yield (
                f"Lost: the ids in records {number_ranges(learned)}. The model has learned their "
                "rows, and learns them again if they are sent again."
            )
        yield f"Lost: all records after {report.last}, if there were any."
    if quarantined is not None:
        check_quarantine(report, quarantined)
        yield from _describe_quarantine(report, quarantined)


def _describe_time(place: Place | None) -> str:
    if place is None or place.time is None:
        return ""
    return f", written {datetime.fromtimestamp(place.time, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _describe_quarantine(report: Report, number: int) -> Iterator[str]:
    place = report.salvage.records[number]
    yield f"Quarantine: record {number} ({place.payload_bytes} bytes{_describe_time(place)})."
    yield (
        f"The model does not learn its rows, and their ids are forgotten. The rows are written to "
        f"{quarantine_path(report.folder, number)}."
    )
    for snapshot in report.snapshots:
        if snapshot.record >= number:
            yield (
                f"The snapshot at record {snapshot.record} has learned it, and is moved to the "
                "folder quarantine. The next start replays the journal from an older one."
            )
