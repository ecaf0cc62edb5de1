"""Check a state folder that no server uses: which records and snapshots can be read."""

import errno
from pathlib import Path
from typing import NamedTuple

from spanboost.errors import ModelFileError
from spanboost.models.files import load_checkpoint
from spanboost.service.storage.backup import snapshot_paths
from spanboost.service.storage.journal import Journal
from spanboost.service.storage.journal_swap import find_leftovers, finish_swap
from spanboost.service.storage.record_files import WAY_OUT, StateError, file_number
from spanboost.service.storage.salvage import Salvage, salvage_journal
from spanboost.service.storage.snapshot_place import find_misplacement

LARGEST = 3  # number of records that a report lists by size


class Snapshot(NamedTuple):
    """A snapshot file: the number of its last record, and why it cannot be used, if so."""

    path: Path
    record: int
    mark: str | None  # of the journal file that it names
    error: str | None
    misplaced: bool = False  # it can be read, but is not a snapshot of this journal


class Report(NamedTuple):
    """The condition of a state folder."""

    folder: Path
    snapshots: list[Snapshot]  # the newest first
    problem: str | None  # why a server cannot start, and what to do; None if it can
    salvage: Salvage
    removed_bytes: int  # size of an interrupted write, which the next start removes
    leftovers: list[Path]  # of a repair or an erasure that was interrupted

    @property
    def snapshot(self) -> Snapshot | None:
        """The newest snapshot that can be read; None if all are damaged or missing."""
        return next((one for one in self.snapshots if one.error is None), None)

    @property
    def usable(self) -> list[Snapshot]:
        """The snapshots from which the journal can be replayed, the newest first."""
        earliest = self.salvage.first - 1  # a pinned snapshot can be older than the journal
        return [one for one in self.snapshots if one.error is None and one.record >= earliest]

    @property
    def learned(self) -> int:
        """The number of the last record in the newest snapshot."""
        return 0 if self.snapshot is None else self.snapshot.record

    @property
    def first(self) -> int:
        """The number of the first record after a repair."""
        return min(self.salvage.first, self.learned + 1)

    @property
    def last(self) -> int:
        """The number of the last record after a repair."""
        return max(self.salvage.last, self.learned)

    @property
    def lost(self) -> list[int]:
        """The numbers of records that cannot be read."""
        numbers = range(self.first, self.last + 1)
        return [number for number in numbers if number not in self.salvage.records]

    @property
    def largest(self) -> list[tuple[int, int]]:
        """Numbers and sizes of the largest records that the next start learns."""
        sizes = [
            (place.payload_bytes, number)
            for number, place in self.salvage.records.items()
            if number > self.learned
        ]
        return [(number, size) for size, number in sorted(sizes, reverse=True)[:LARGEST]]

    def problem_before(self, advice: str) -> str:
        """Return the problem with other advice, if a repair can solve it."""
        assert self.problem is not None
        if not self.problem.endswith(WAY_OUT):
            return self.problem
        return self.problem.removesuffix(WAY_OUT) + advice


def check_folder(folder: Path) -> Report:
    """Return the condition of a state folder, whose lock the caller holds."""
    finish_swap(folder)
    readable = [_check_snapshot(path) for path in reversed(snapshot_paths(folder))]
    marks = [one.mark for one in readable if one.mark is not None]
    salvage = salvage_journal(folder / "journal", marks)
    snapshots = [_check_place(one, salvage, newest=k == 0) for k, one in enumerate(readable)]
    journal = Journal(folder / "journal")
    problem = _find_problem(journal, snapshots)
    return Report(
        folder, snapshots, problem, salvage, journal.removed_bytes, find_leftovers(folder)
    )


def _find_problem(journal: Journal, snapshots: list[Snapshot]) -> str | None:
    """Return why a server cannot start, and what to do; None if it can."""
    snapshot = next((one for one in snapshots if one.error is None or one.misplaced), None)
    if snapshot is None:
        return (
            f"{journal.folder.parent}: there is no snapshot that can be read; restore the folder "
            "from a backup"
        )
    if snapshot.misplaced:
        return snapshot.error
    try:
        journal.verify(snapshot.mark)
    except StateError as error:
        return str(error)
    first = min(journal.first_numbers(), default=1)
    if not first - 1 <= snapshot.record <= journal.last:
        return (
            f"{journal.folder}: the journal has the records {first} to {journal.last}, but the "
            f"snapshot ends at record {snapshot.record}; {WAY_OUT}"
        )
    return None


def _check_snapshot(path: Path) -> Snapshot:
    try:
        _, run = load_checkpoint(path)
        return Snapshot(path, run["record"], run.get("journal"), None)
    except (ModelFileError, OSError, TypeError, KeyError) as error:
        if isinstance(error, OSError) and error.errno != errno.EIO:
            raise  # too few file descriptors, for example: the file may be intact
        return Snapshot(path, file_number(path), None, str(error))


def _check_place(snapshot: Snapshot, salvage: Salvage, *, newest: bool) -> Snapshot:
    """Return a snapshot with an error if it does not belong to the journal."""
    if snapshot.error is not None:
        return snapshot
    # a repair names only some of the snapshots, but always the newest one
    known = salvage.marks if newest or salvage.names_all else set[str]()
    if snapshot.record < salvage.first - 1:  # pinned, and older than the journal
        known = set()
    error = find_misplacement(snapshot.path, snapshot.record, snapshot.mark, known)
    return snapshot._replace(error=error, misplaced=error is not None)
