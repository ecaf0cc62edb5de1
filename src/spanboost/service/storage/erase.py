"""Erase rows by their ids from a state folder that no server uses.

The journal and the files of pending rows are written again without the rows. Snapshots that have
learned them are deleted, and the next start replays the journal from an older one. Then the model
is the same as if the rows had never been there. If no snapshot is old enough, the model keeps what
it has learned from them.
"""

from collections.abc import Collection, Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from spanboost.errors import UsageError
from spanboost.service.storage.backup import pending_paths
from spanboost.service.storage.control import decode_control, is_control
from spanboost.service.storage.disk_errors import explain_disk_errors
from spanboost.service.storage.entry import decode_entry, decode_ids
from spanboost.service.storage.folder_check import Report, Snapshot
from spanboost.service.storage.journal_rewrite import write_journal
from spanboost.service.storage.journal_swap import (
    erased_journal,
    finish_swap,
    new_journal,
    remove_leftovers,
    set_aside,
)
from spanboost.service.storage.pending_erase import erase_pending, find_pending
from spanboost.service.storage.record_files import StateError
from spanboost.service.storage.salvage import read_payload

_PARTS = ("journal", "leader.json", "lock", "pending", "snapshots")


class Erasure(NamedTuple):
    """Where the rows of some ids are, and what happens when they are erased."""

    report: Report
    ids: frozenset[str]
    records: dict[int, set[str]]  # by number: those of the ids whose rows the record has
    pending: dict[Path, set[str]]  # the same for files of pending rows
    deleted: list[Snapshot]  # snapshots that are deleted, because they have learned the rows
    base: Snapshot | None  # the snapshot that the next start loads; None if it does not change
    learned: list[int]  # numbers of records that all snapshots have learned
    models: list[int]  # numbers of records with a model that may have learned the rows
    unsearched: list[Path]  # files and folders that may have the rows, and are not searched


def plan_erasure(report: Report, ids: Collection[str]) -> Erasure:
    """Find the rows of some ids; UsageError if there is an id without rows."""
    folder, erased = report.folder, frozenset(ids)
    if report.problem is not None:
        raise StateError(report.problem_before("repair the folder before rows are erased"))
    records, models = _search_journal(report, erased)
    pending = find_pending(pending_paths(folder), erased)
    missing = erased.difference(*records.values(), *pending.values())
    if missing:
        raise UsageError(
            f"{folder}: no row with the id {min(missing)!r} in the journal or among the pending "
            "rows; it is unknown, or its journal file was deleted"
        )
    usable = report.usable
    oldest = usable[-1].record
    learned = [number for number in records if number <= oldest]
    first = min((number for number in records if number > oldest), default=report.last + 1)
    deleted = [one for one in report.snapshots if one.record >= first]
    base = next(one for one in usable if one.record < first) if deleted else None
    kept = [number for number, last in models.items() if min(records, default=last + 1) <= last]
    return Erasure(
        report, erased, records, pending, deleted, base, learned, kept, _other_parts(folder)
    )


def erase_rows(plan: Erasure) -> None:
    """Erase the rows. If this fails, the folder is usable, and it can be repeated.

    The new journal is written first: on a full disk, this fails before anything has changed.
    """
    folder = plan.report.folder
    remove_leftovers(folder)
    left = "some of the rows may still be there"
    with explain_disk_errors(left), ExitStack() as undo:
        undo.callback(remove_leftovers, folder)
        if plan.records:
            _write_journal(plan)
        for path, ids in plan.pending.items():
            erase_pending(path, ids)
        if not plan.records:
            return
        # before the swap: if the journal had lost the rows already, these would still be loaded
        for snapshot in plan.deleted:
            for path in snapshot.path.parent.glob(f"{snapshot.path.stem}.*"):
                path.unlink()
        set_aside(folder, erased_journal(folder))
        undo.pop_all()
    with explain_disk_errors(left):
        finish_swap(folder)


def _write_journal(plan: Erasure) -> None:
    """Write the new journal without the rows."""

    def change(number: int, payload: bytes) -> bytes:
        return _erase(payload, plan.records[number]) if number in plan.records else payload

    kept = [one for one in plan.report.snapshots if one not in plan.deleted]
    report = plan.report._replace(snapshots=kept)
    write_journal(report, new_journal(report.folder), plan.report.last, change)


def _search_journal(
    report: Report, ids: Collection[str]
) -> tuple[dict[int, set[str]], dict[int, int]]:
    """Return the records with rows of the ids, and those with a model.

    The value of the latter is the last record that the model may have learned.
    """
    records, models = dict[int, set[str]](), dict[int, int]()
    for number, place in sorted(report.salvage.records.items()):
        payload = memoryview(read_payload(place))
        if is_control(payload):
            control = decode_control(payload)
            if control.data:  # a challenger may be a copy of the model from any earlier record
                models[number] = control.values.get("version", number - 1)
        elif own := {id for id in decode_ids(payload) if id is not None and id in ids}:
            records[number] = own
    return records, models


def _other_parts(folder: Path) -> list[Path]:
    """Return everything in a state folder that is not part of the state."""
    damaged: Iterable[Path] = (folder / "snapshots").glob("*.damaged")
    return sorted([*(path for path in folder.iterdir() if path.name not in _PARTS), *damaged])


def _erase(payload: bytes, ids: Collection[str]) -> bytes:
    """Return the payload of a record without the rows of some ids."""
    return decode_entry(memoryview(payload)).without(ids).encode()
