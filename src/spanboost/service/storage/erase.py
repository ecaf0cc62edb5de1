"""Erase rows by their ids from a state folder that no server uses.

The journal and the files of pending rows are written again without the rows. Snapshots that have
learned them are deleted, and the next start replays the journal from an older one. Then the model
is the same as if the rows had never been there. If no snapshot is old enough, the model keeps what
it has learned from them.
"""

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from spanboost.errors import UsageError
from spanboost.service.storage.backup import pending_paths
from spanboost.service.storage.control import decode_control, is_control
from spanboost.service.storage.entry import Entry, decode_entry, decode_ids
from spanboost.service.storage.journal_swap import (
    delete_folder,
    erased_journal,
    new_journal,
    swap_journal,
)
from spanboost.service.storage.pending_erase import erase_pending, find_pending
from spanboost.service.storage.record_files import WAY_OUT, StateError
from spanboost.service.storage.repair import Report, Snapshot, write_journal
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
    """Find the rows of some ids; UsageError if there are none of an id."""
    folder, erased = report.folder, frozenset(ids)
    if report.problem is not None:
        problem = report.problem.removesuffix(f"; {WAY_OUT}")
        raise StateError(f"{problem}; repair the folder before rows are erased")
    records, models = _search_journal(report, erased)
    pending = find_pending(pending_paths(folder), erased)
    missing = erased.difference(*records.values(), *pending.values())
    if missing:
        raise UsageError(
            f"{folder}: no row with the id {min(missing)!r} in the journal or among the pending "
            "rows; it is unknown, or its journal file was deleted"
        )
    usable = _usable_snapshots(report)
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
    """Erase the rows. If this is interrupted, the folder is usable, and it can be repeated."""
    folder = plan.report.folder
    for path, ids in plan.pending.items():
        erase_pending(path, ids)
    if not plan.records:
        return
    # first: if the journal had lost the rows already, these snapshots would still be loaded
    for snapshot in plan.deleted:
        for path in snapshot.path.parent.glob(f"{snapshot.path.stem}.*"):
            path.unlink()
    snapshots = [one for one in plan.report.snapshots if one not in plan.deleted]
    delete_folder(new_journal(folder))  # left by a repair that was interrupted
    report = plan.report._replace(snapshots=snapshots)
    write_journal(
        report,
        new_journal(folder),
        report.last,
        lambda number, payload: (
            _erase(payload, plan.records[number]) if number in plan.records else payload
        ),
    )
    swap_journal(folder, erased_journal(folder))
    delete_folder(erased_journal(folder))


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


def _usable_snapshots(report: Report) -> Sequence[Snapshot]:
    """Return the snapshots from which the journal can be replayed, the newest first."""
    earliest = report.salvage.first - 1  # a pinned snapshot can be older than the journal
    return [one for one in report.snapshots if one.error is None and one.record >= earliest]


def _other_parts(folder: Path) -> list[Path]:
    """Return everything in a state folder that is not part of the state."""
    damaged: Iterable[Path] = (folder / "snapshots").glob("*.damaged")
    return sorted([*(path for path in folder.iterdir() if path.name not in _PARTS), *damaged])


def _erase(payload: bytes, ids: Collection[str]) -> bytes:
    """Return the payload of a record without the rows of some ids."""
    entry = decode_entry(memoryview(payload))
    kept = [k for k, id in enumerate(entry.ids) if id not in ids]
    if not kept:
        return b""
    weights = entry.weights
    return Entry(
        [entry.ids[k] for k in kept],
        [entry.rows[k] for k in kept],
        [entry.labels[k] for k in kept],
        None if weights is None else [weights[k] for k in kept],
    ).encode()
