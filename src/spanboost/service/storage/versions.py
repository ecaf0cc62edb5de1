"""The versions of the model: one for each snapshot, with the loss up to it; some are pinned.

A version has the number of the last record that it learned. An empty file N.pin next to a snapshot
protects it from being deleted.
"""

from pathlib import Path
from typing import NamedTuple

from spanboost.atomic_files import atomic_write
from spanboost.errors import ModelFileError, UserError
from spanboost.models.files import load_checkpoint, read_run
from spanboost.service.storage.control import ROLLBACK, Control, control_with_model
from spanboost.service.storage.record_files import file_number
from spanboost.service.storage.running_loss import RunningLoss


class UnknownVersionError(UserError):
    """There is no snapshot with this number."""


class Version(NamedTuple):
    """A snapshot: its number, and the loss of the rows that were learned up to it."""

    version: int  # number of its last record
    time: float  # when it was written
    rows: int  # rows learned since the folder was created
    loss: float | None  # average over all rows; None if there are no rows
    recent_loss: float | None  # average over the rows since the version before, in the same way
    pinned: bool


def snapshot_path(folder: Path, number: int) -> Path:
    """Return the path of a snapshot in the folder of snapshots."""
    return folder / f"{number:020}.sb"


def is_pinned(folder: Path, number: int) -> bool:
    """Return whether a version must not be deleted."""
    return _pin_path(folder, number).exists()


def list_versions(folder: Path) -> list[Version]:
    """Return all versions whose header can be read, the oldest first."""
    versions, before = list[Version](), RunningLoss()
    for path in sorted(folder.glob("*.sb"), key=file_number):
        try:
            run, time = read_run(path), path.stat().st_mtime
            progress, number = RunningLoss(run["progress"]), run["record"]
        except (ModelFileError, OSError, TypeError, KeyError, ValueError):
            continue  # damaged, or deleted by the server in the meantime
        losses = progress.loss, progress.loss_since(before)
        versions.append(Version(number, time, progress.rows, *losses, is_pinned(folder, number)))
        before = progress
    return versions


def pin_version(folder: Path, number: int) -> None:
    """Keep a version until it is unpinned."""
    _check_exists(folder, number)
    with atomic_write(_pin_path(folder, number), private=True):
        pass
    _check_exists(folder, number)  # the server may have deleted it just before


def unpin_version(folder: Path, number: int) -> None:
    """Let a version be deleted when it is old enough."""
    _check_exists(folder, number)
    _pin_path(folder, number).unlink(missing_ok=True)


def roll_back_to(folder: Path, number: int) -> Control:
    """Return the control that replaces the model by the one of a version."""
    _check_exists(folder, number)
    try:
        model, _ = load_checkpoint(snapshot_path(folder, number))
    except FileNotFoundError:
        raise _unknown(number) from None
    return control_with_model(ROLLBACK, {"version": number}, model)


def _pin_path(folder: Path, number: int) -> Path:
    return snapshot_path(folder, number).with_suffix(".pin")


def _check_exists(folder: Path, number: int) -> None:
    if not snapshot_path(folder, number).exists():
        raise _unknown(number)


def _unknown(number: int) -> UnknownVersionError:
    return UnknownVersionError(f"there is no version {number}; list them with `spanboost versions`")
