"""Recognise a snapshot that is not one of its folder, so that no model continues another journal.

A snapshot contains the number of its last record, which is also its name, and the mark of the
journal file to which records were appended then. Earlier versions wrote no mark.
"""

from collections.abc import Collection
from pathlib import Path

from spanboost.service.storage.record_files import file_number


def find_misplacement(
    path: Path, record: int, mark: str | None, known: Collection[str]
) -> str | None:
    """Return why a snapshot does not belong to a folder, and what to do; None if it does.

    record, mark: the content of the snapshot.
    known: marks that the files of the journal name. Without marks, nothing is checked.
    """
    if file_number(path) != record:
        return (
            f"{path}: the snapshot is of record {record}, but its name is the number "
            f"{file_number(path)}; move it elsewhere, or give it back its name ({record:020}.sb)"
        )
    if mark is not None and known and mark not in known:
        return (
            f"{path}: the snapshot is from another folder, because the journal of this one has "
            "never had the file that the snapshot names; move it elsewhere"
        )
    return None
