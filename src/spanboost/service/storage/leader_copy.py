"""The folder of a follower: a state folder, and a file that says which journal it copies.

    COPY/leader.json    address of the leader, and the mark of its journal file that was read last

The first copy takes all records of the leader's journal, because their ids are needed to detect
duplicates, and the last snapshot. The snapshot is moved to its place at the end, and a folder
without one is not served.
"""

import os
from pathlib import Path
from shutil import rmtree
from typing import Protocol

import orjson

from spanboost.atomic_files import atomic_write, sync_folder
from spanboost.errors import ModelFileError, UsageError
from spanboost.models.files import load_checkpoint
from spanboost.service.storage.folder_lock import lock_folder
from spanboost.service.storage.journal import Journal
from spanboost.service.storage.journal_tail import Cursor, JournalTail, Shipment
from spanboost.service.storage.versions import snapshot_path


def leader_file(folder: Path) -> Path:
    """Return the file that makes a state folder the copy of a leader."""
    return folder / "leader.json"


class LeaderError(Exception):
    """The leader cannot answer now; a later attempt may succeed."""


class Leader(Protocol):
    """The server or the folder that a follower copies."""

    @property
    def address(self) -> str:
        """The URL of the server, or the path of the folder."""

    def snapshot(self) -> bytes:
        """Return the file of the last snapshot; LeaderError if it is not available now."""

    def read(self, cursor: Cursor | None) -> Shipment:
        """Return records after a cursor, or wait for some; without a cursor, the first records.

        Raises LeaderError if the leader cannot answer now, DivergedError if its journal does not
        continue at the cursor.
        """


class LeaderCopy:
    """The copy of a leader's folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._file = leader_file(folder)

    def prepare(self, leader: Leader) -> None:
        """Copy the journal and the last snapshot of the leader, unless the folder has a copy.

        Raises LeaderError if the leader is not available, and UsageError if the folder has other
        content.
        """
        with lock_folder(self.folder):
            if not self._file.exists():
                self._check_empty()
                self._copy(leader)
            elif not any((self.folder / "snapshots").glob("*.sb")):
                self._copy(leader)

    def cursor(self, last: int) -> Cursor:
        """Return how far the copy is; `last` is the number of its last record."""
        mark = orjson.loads(self._file.read_bytes())["mark"]
        return JournalTail(self.folder / "journal").last_cursor(last, mark)

    def note(self, leader: str, mark: str) -> None:
        """Store from which journal file of the leader the last record came."""
        with atomic_write(self._file, private=True) as file:
            file.write(orjson.dumps({"leader": leader, "mark": mark}))

    def _check_empty(self) -> None:
        if any(path.name != "lock" for path in self.folder.iterdir()):
            raise UsageError(
                f"{self.folder} is not empty and not the copy of a follower; give another --dir"
            )

    def _copy(self, leader: Leader) -> None:
        path = self.folder / "snapshot.sb"
        with atomic_write(path, private=True) as file:
            file.write(leader.snapshot())
        try:
            _, run = load_checkpoint(path)
            record, mark = run["record"], run.get("journal")
        except (ModelFileError, TypeError, KeyError) as error:
            raise LeaderError(f"its last snapshot cannot be read ({error})") from None
        self._copy_journal(leader, record, mark)
        snapshots = self.folder / "snapshots"
        snapshots.mkdir(exist_ok=True, mode=0o700)
        os.replace(path, snapshot_path(snapshots, record))
        sync_folder(snapshots)

    def _copy_journal(self, leader: Leader, snapshot: int, mark: str | None) -> None:
        """Copy the records up to those of a snapshot; `mark` is the journal file that it names."""
        shipment = leader.read(None)
        self.note(leader.address, shipment.mark)
        first = shipment.records[0].number if shipment.records else snapshot + 1
        if first > snapshot + 1:
            raise LeaderError("it has written another snapshot in the meantime")
        rmtree(self.folder / "journal", ignore_errors=True)  # left by a copy that was interrupted
        replaces = [] if mark is None else [mark]
        journal = Journal(self.folder / "journal", first=first, replaces=replaces)
        list(journal.read())
        try:
            while journal.last < snapshot:  # the follower itself reads and learns later records
                records = [one for one in shipment.records if one.number <= snapshot]
                for record in records:
                    journal.append(record.payload, record.time, sync=False)
                if not records:
                    raise LeaderError(f"it does not send record {journal.last + 1}")
                cursor = records[-1].cursor()
                self.note(leader.address, cursor.mark)
                if journal.last < snapshot:
                    shipment = leader.read(cursor)
            journal.sync()
        finally:
            journal.close()
