"""Replace the journal of a state folder by a new one, even if the process ends in between."""

from pathlib import Path

from spanboost.atomic_files import sync_folder


def new_journal(folder: Path) -> Path:
    """Return the folder in which a new journal is written before it replaces the old one."""
    return folder / "journal.repaired"


def erased_journal(folder: Path) -> Path:
    """Return the folder of an old journal that must not be kept: it has rows that were erased."""
    return folder / "journal.erased"


def swap_journal(folder: Path, old: Path) -> None:
    """Move the journal to `old`, and the new journal to its place."""
    (folder / "journal").rename(old)
    new_journal(folder).rename(folder / "journal")
    sync_folder(folder)


def finish_swap(folder: Path) -> None:
    """Finish a replacement that was interrupted after it moved the old journal."""
    if not (folder / "journal").exists() and new_journal(folder).exists():
        new_journal(folder).rename(folder / "journal")
    delete_folder(erased_journal(folder))


def delete_folder(folder: Path) -> None:
    """Delete a folder of files, if it exists."""
    if folder.exists():
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
