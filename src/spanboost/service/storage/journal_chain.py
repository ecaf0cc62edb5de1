"""The chain of journal files: each file names the one before it, and a complete one the next.

A missing, emptied or foreign file contradicts its neighbours. The oldest file that must be there is
named by the header of the newest one.
"""

import math
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from spanboost.service.storage.journal_files import JournalFile, journal_number, open_file
from spanboost.service.storage.record_files import WAY_OUT, StateError


class Chain(NamedTuple):
    """The files of a journal in order, and files that are not needed, which `read` deletes."""

    files: list[JournalFile]
    unused: list[Path]

    def contains(self, mark: str) -> bool:
        """Return whether a file is in the chain, was deleted last, or was replaced by a repair."""
        headers = [file.header for file in self.files if file.header is not None]
        known = {name for header in headers for name in (header.file, *header.replaces)}
        first = self.files[0].header if self.files else None
        deleted = None if first is None or first.previous is None else first.previous.file
        return mark == deleted or mark in known

    def versions_after(self, record: int) -> set[str | None]:
        """Return the versions that wrote records after this one; None for files without header."""
        ends = [*(file.number for file in self.files[1:]), math.inf]
        return {
            None if file.header is None else file.header.version
            for file, end in zip(self.files, ends, strict=False)
            if file.has_records and end > record + 1
        }


def journal_paths(folder: Path) -> list[Path]:
    """Return the paths of all files of a journal, in the order of their numbers."""
    return sorted(sorted(folder.glob("*.log")), key=journal_number)


def read_chain(folder: Path) -> Chain:
    """Return the chain of files in a folder; StateError if a file is missing or contradicts it."""
    files, unused = list[JournalFile](), list[Path]()
    for path in journal_paths(folder):
        file = open_file(path)
        named = bool(files) and files[-1].next is not None and files[-1].next == file.mark
        if files and not file.has_records and not named:
            unused.append(path)  # a record is written only to a file that the one before names
        else:
            files.append(file)
    last = files[-1].header if files else None
    if last is not None:  # older files were about to be deleted
        unused += [file.path for file in files if file.number < last.first]
        files = [file for file in files if file.number >= last.first]
    _check(files)
    return Chain(files, unused)


def _check(files: list[JournalFile]) -> None:
    _check_names(files)
    for before, after in pairwise(files):
        _check_pair(before, after)
    if not files:
        return
    first, last = files[0], files[-1]
    if last.next is not None:
        raise StateError(
            f"{last.path}: the journal file after this one is missing or empty; {WAY_OUT}"
        )
    if last.header is not None and first.number > last.header.first:
        raise StateError(
            f"{first.path}: the journal files before this one are missing (from record "
            f"{last.header.first}); {WAY_OUT}"
        )


def _check_names(files: list[JournalFile]) -> None:
    """Raise StateError if files have the names of others, for example because two were swapped."""
    wrong = [file for file in files if file.number != file.first_record]
    if wrong:
        names = ", ".join(f"{one.path.name} begins with record {one.first_record}" for one in wrong)
        raise StateError(
            f"{wrong[0].path.parent}: the name of a journal file is not the number of its first "
            f"record: {names}; rename the files, or {WAY_OUT}"
        )


def _check_pair(before: JournalFile, after: JournalFile) -> None:
    """Raise StateError if a file does not continue the one before it."""
    if after.header is None and before.header is None:
        return  # their records are numbered, which is checked when they are read
    previous = None if after.header is None else after.header.previous
    if (
        previous is None
        or previous.file != (before.mark or "")
        or before.next not in (None, after.mark)
    ):
        raise StateError(
            f"{after.path}: a journal file between {before.path.name} and this one is missing or "
            f"empty, or one of the two is from another folder; {WAY_OUT}"
        )
    if before.end != previous.bytes:
        raise StateError(
            f"{before.path}: the file has {before.end} bytes of records, but the next file states "
            f"{previous.bytes}; {WAY_OUT}"
        )
