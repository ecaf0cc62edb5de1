"""Repair the journal of a state folder that no server uses.

A repair writes a new journal with all records that can be read. Records that are lost or put into
quarantine are replaced by empty ones, which teach the model nothing. A record in quarantine keeps
its positions in streams, so a worker does not read its rows again. The new journal replaces the
old one only if a service can start with it. The old journal is kept next to the new one, so a
repair can be undone by hand.
"""

import math
import time
from collections.abc import Collection
from contextlib import ExitStack
from pathlib import Path
from shutil import rmtree
from typing import Any

import orjson

from spanboost.atomic_files import atomic_write
from spanboost.errors import UsageError
from spanboost.models.model import Model
from spanboost.service.limits import StateLimits
from spanboost.service.storage.control import decode_control, is_control
from spanboost.service.storage.disk_errors import explain_disk_errors
from spanboost.service.storage.entry import decode_entry
from spanboost.service.storage.folder_check import Report, Snapshot
from spanboost.service.storage.journal_rewrite import write_journal
from spanboost.service.storage.journal_swap import (
    finish_swap,
    new_journal,
    remove_leftovers,
    set_aside,
    trial_folder,
)
from spanboost.service.storage.record_files import WAY_OUT, StateError
from spanboost.service.storage.salvage import read_payload
from spanboost.service.storage.state import State


def check_quarantine(report: Report, numbers: Collection[int]) -> None:
    """Raise UsageError if one of the records cannot be put into quarantine."""
    for number in numbers:
        if number not in report.salvage.records:
            raise UsageError(f"{report.folder}: the journal has no readable record {number}")
        payload = memoryview(read_payload(report.salvage.records[number]))
        if is_control(payload):
            raise UsageError(
                f"{report.folder}: record {number} is a control ({decode_control(payload).name}), "
                "not rows, and cannot be put into quarantine; restore an earlier record instead"
            )
        if not any(one.record < number for one in report.usable):
            raise UsageError(
                f"{report.folder}: record {number} cannot be put into quarantine: the model of "
                "every snapshot has learned it"
            )


def repair_folder(report: Report, quarantined: Collection[int] = ()) -> Path:
    """Write a new journal with all readable records but some; return where the old one is.

    If this fails, nothing has changed. StateError if a service could not start with the new one.
    """
    folder = report.folder
    aside = snapshots_with(report, quarantined)
    kept = report._replace(snapshots=[one for one in report.snapshots if one not in aside])
    old = folder / f"journal.before-repair-{time.time_ns()}"
    (folder / "journal").mkdir(exist_ok=True, mode=0o700)  # it may be missing altogether
    remove_leftovers(folder)
    with explain_disk_errors("nothing was changed"), ExitStack() as undo:
        undo.callback(remove_leftovers, folder)
        write_journal(
            kept,
            new_journal(folder),
            report.last,
            lambda number, payload: _empty(payload) if number in quarantined else payload,
        )
        _check_start(kept)
        _write_aside(report, quarantined, aside, undo)
        set_aside(folder, old)
        undo.pop_all()
    with explain_disk_errors("the next start completes the repair"):
        finish_swap(folder)
    return old


def snapshots_with(report: Report, quarantined: Collection[int]) -> list[Snapshot]:
    """Return the snapshots that have learned a record which is put into quarantine."""
    first = min(quarantined, default=math.inf)
    return [one for one in report.snapshots if one.record >= first]


def quarantine_path(folder: Path, number: int) -> Path:
    """Return the file for the rows of a record that is put into quarantine."""
    return folder / "quarantine" / f"{number:020}.jsonl"


def _check_start(report: Report) -> None:
    """Open the new journal with the snapshots, as a service would; StateError if that fails."""
    folder, trial = report.folder, trial_folder(report.folder)
    (trial / "snapshots").mkdir(parents=True, mode=0o700)
    (trial / "journal").symlink_to(new_journal(folder).resolve())
    for one in report.snapshots:
        if one.error is None:
            (trial / "snapshots" / one.path.name).symlink_to(one.path.resolve())
    try:
        # nothing is deleted; records of another version are left to the upgrade contract
        State(trial, _refuse_new, StateLimits(keep_seconds=math.inf), accept_upgrade=True).close()
    except OSError:
        raise
    except Exception as error:  # whatever stops the trial would stop a service
        why = str(error).removesuffix(f"; {WAY_OUT}").replace(str(trial), str(folder))
        raise StateError(
            f"{folder}: the service could not start with the repaired journal, so nothing was "
            f"changed ({type(error).__name__}: {why}); restore the folder from a backup"
        ) from None
    finally:
        rmtree(trial)


def _refuse_new() -> tuple[Model, Any]:
    raise StateError("there is no snapshot that can be read")


def _write_aside(
    report: Report, quarantined: Collection[int], snapshots: Collection[Snapshot], undo: ExitStack
) -> None:
    """Write the rows of records to files, and move the snapshots there that have learned them."""
    if not quarantined:
        return
    folder = quarantine_path(report.folder, 0).parent
    if not folder.exists():
        folder.mkdir(mode=0o700)
        undo.callback(folder.rmdir)
    for number in quarantined:
        path = quarantine_path(report.folder, number)
        if not path.exists():
            undo.callback(path.unlink, missing_ok=True)
        _write_rows(report, number, path)
    for snapshot in snapshots:
        target = folder / snapshot.path.name
        snapshot.path.rename(target)
        undo.callback(target.rename, snapshot.path)


def _empty(payload: bytes) -> bytes:
    return decode_entry(memoryview(payload)).without_rows().encode()


def _write_rows(report: Report, number: int, path: Path) -> None:
    """Write the rows of a record to a file."""
    entry = decode_entry(memoryview(read_payload(report.salvage.records[number])))
    weights = entry.weights or [1.0] * len(entry.rows)
    rows = zip(entry.ids, entry.labels, weights, entry.rows, strict=True)
    lines = [
        orjson.dumps({"id": id, "label": label, "weight": weight, "row": row})
        for id, label, weight, row in rows
    ]
    with atomic_write(path, private=True) as file:
        file.write(b"\n".join(lines) + b"\n")
