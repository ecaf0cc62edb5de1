"""The commands `check`, `repair` and `restore`, for state folders that no server uses."""

from argparse import Namespace
from collections.abc import Collection, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from spanboost.atomic_files import PARTIAL, create_folder
from spanboost.cli.offline import existing_folder
from spanboost.service.storage.backup import extract_backup, pending_paths
from spanboost.service.storage.disk_errors import explain_disk_errors
from spanboost.service.storage.folder_check import Report, check_folder
from spanboost.service.storage.folder_lock import lock_folder
from spanboost.service.storage.journal_swap import remove_leftovers
from spanboost.service.storage.record_files import WAY_OUT, StateError
from spanboost.service.storage.repair import (
    check_quarantine,
    quarantine_path,
    repair_folder,
    snapshots_with,
)
from spanboost.service.storage.restore import (
    check_new_folder,
    describe_time,
    find_record,
    restore_folder,
)
from spanboost.service.storage.upgrade import other_versions
from spanboost.service.storage.wording import count, name_records


def check(args: Namespace) -> int:
    """Print the condition of a state folder; return 1 if it has problems, else 0."""
    folder = existing_folder(args.folder)
    with lock_folder(folder):
        report = check_folder(folder)
    for line in _describe(report):
        print(line)
    damaged = any(snapshot.error is not None for snapshot in report.snapshots)
    return 1 if damaged or report.problem is not None else 0


def repair(args: Namespace) -> int:
    """Print what a repair loses, and repair the folder with --yes."""
    folder, quarantined = existing_folder(args.folder), sorted({*(args.quarantine or ())})
    with lock_folder(folder):
        report = check_folder(folder)
        if report.problem is not None and not report.problem.endswith(WAY_OUT):
            raise StateError(report.problem)
        if report.problem is None and not quarantined and not report.leftovers:
            print(f"{folder}: nothing to repair")
            return 0
        for line in _describe_repair(report, quarantined):
            print(line)
        if not args.yes:
            print("Nothing was changed. To repair the folder, add --yes.")
            return 1
        if report.problem is None and not quarantined:
            remove_leftovers(folder)
            print("Repaired.")
            return 0
        print(f"Repaired. The old journal is in {repair_folder(report, quarantined)}.")
        for line in _describe_versions(report):
            print(line)
    return 0


def restore(args: Namespace) -> int:
    """Write a new state folder from a backup or another folder, up to a record."""
    source, new = Path(args.source), Path(args.dir)
    check_new_folder(new)
    with explain_disk_errors(f"{new} was not written"):
        if not source.is_file():
            _restore(args, existing_folder(args.source))
            return 0
        create_folder(new.parent)
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
    when = describe_time(report.salvage.records.get(record))
    print(f"{new} ends at record {record}{when}; start it with `spanboost serve --dir {new}`")


def _describe(report: Report) -> Iterator[str]:
    for snapshot in report.snapshots:
        yield f"snapshot at record {snapshot.record}: {snapshot.error or 'ok'}"
    salvage = report.salvage
    last = f", the last is {salvage.last}" if salvage.records else ""
    yield f"journal: {count(salvage.records, 'record')}{last}"
    for number, size in report.largest:
        yield f"record {number}: {count(size, 'byte')}, not in a snapshot yet"
    if report.removed_bytes:
        torn = count(report.removed_bytes, "byte")
        yield f"interrupted write of {torn}, which the next start removes"
    yield from _describe_leftovers(report)
    if report.problem is None:
        yield from _describe_versions(report)
        yield from _describe_start(report)
        return
    yield from map(str, salvage.damages)
    if report.lost:
        yield f"missing or damaged: {name_records(report.lost)}"
    yield f"The service cannot start. {report.problem}"


def _describe_start(report: Report) -> Iterator[str]:
    """Yield that the service can start, and what it does about snapshots that it cannot use."""
    bad = [one.path.name for one in report.snapshots if one.error is not None]
    if not bad:
        yield "The service can start."
        return
    assert report.snapshot is not None
    yield (
        f"The service can start from the snapshot at record {report.snapshot.record}. It does not "
        f"use {', '.join(bad)}, which can be deleted."
    )


def _describe_leftovers(report: Report) -> Iterator[str]:
    for path in report.leftovers:
        yield (
            f"{path}: left by a repair or an erasure that was interrupted; `spanboost repair "
            f"{report.folder} --yes` deletes it"
        )


def _describe_versions(report: Report) -> Iterator[str]:
    versions = other_versions(report.folder / "journal", report.learned)
    if versions:
        yield (
            f"version {' and '.join(versions)} wrote records that are not in a snapshot; a start "
            "of this version continues only if a replay reproduces the last snapshot"
        )


def _describe_repair(report: Report, quarantined: Collection[int]) -> Iterator[str]:
    for path in report.leftovers:
        yield f"Deleted: {path}, left by a repair or an erasure that was interrupted."
    if report.problem is not None:
        yield report.problem.removesuffix(f"; {WAY_OUT}")
        learned = [number for number in report.lost if number <= report.learned]
        others = [number for number in report.lost if number > report.learned]
        if others:
            yield f"Lost: the labels in {name_records(others)}."
        if learned:
            yield (
                f"Lost: the ids in {name_records(learned)}. The model has learned their rows, and "
                "learns them again if they are sent again."
            )
        yield f"Lost: all records after {report.last}, if there were any."
    check_quarantine(report, quarantined)
    for number in quarantined:
        yield from _describe_quarantine(report, number)
    for snapshot in snapshots_with(report, quarantined):
        yield (
            f"The snapshot at record {snapshot.record} has learned it, and is moved to the folder "
            "quarantine. The next start replays the journal from an older one."
        )


def _describe_quarantine(report: Report, number: int) -> Iterator[str]:
    place = report.salvage.records[number]
    size = count(place.payload_bytes, "byte")
    yield f"Quarantine: record {number} ({size}{describe_time(place)})."
    yield (
        f"The model does not learn its rows, and their ids are forgotten. The rows are written to "
        f"{quarantine_path(report.folder, number)}."
    )
