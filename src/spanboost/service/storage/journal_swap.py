"""Replace the journal of a state folder by a new one, even if the process ends in between."""

from pathlib import Path
from shutil import rmtree

from spanboost.atomic_files import sync_folder
from spanboost.service.storage.leader_copy import leader_file


def new_journal(folder: Path) -> Path:
    """Return the folder in which a new journal is written before it replaces the old one."""
    return folder / "journal.repaired"


def trial_folder(folder: Path) -> Path:
    """Return the folder in which a repaired journal is tried before it replaces the old one."""
    return folder / "repair.trial"


def erased_journal(folder: Path) -> Path:
    """Return the folder of an old journal that must not be kept: it has rows that were erased."""
    return folder / "journal.erased"


def set_aside(folder: Path, old: Path) -> None:
    """Move the journal to `old`; from now on, `finish_swap` completes the replacement."""
    # the records may differ from those of the leader, so they must not be continued with its own
    leader_file(folder).unlink(missing_ok=True)
    (folder / "journal").rename(old)


def finish_swap(folder: Path) -> None:
    """Complete a replacement, also one that was interrupted after it moved the old journal."""
    if not (folder / "journal").exists() and new_journal(folder).exists():
        new_journal(folder).rename(folder / "journal")
        sync_folder(folder)
    _delete(erased_journal(folder))


def find_leftovers(folder: Path) -> list[Path]:
    """Return what a repair or an erasure has left that ended before it replaced the journal."""
    return [path for path in (new_journal(folder), trial_folder(folder)) if path.exists()]


def remove_leftovers(folder: Path) -> None:
    """Delete what a repair or an erasure has left that ended before it replaced the journal."""
    if (folder / "journal").exists():  # otherwise the new journal is the only one
        for path in find_leftovers(folder):
            rmtree(path)


def _delete(folder: Path) -> None:
    """Delete a folder of files, if it exists."""
    if folder.exists():
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
