"""The state folder of a service. A start loads the last snapshot and replays the journal.

    STATE/lock                process id of the one server that uses the folder (folder_lock.py)
    STATE/journal/N.v2.log    labelled rows in the order in which they are learned (journal.py)
    STATE/snapshots/N.sb      the model after record N; old ones are deleted (retention.py),
                              unless there is a file N.pin (versions.py)
    STATE/pending/N.log       predicted rows that wait for their labels (pending_rows.py)

The model after a crash depends only on the journal. Rows in blocks of any size give the same model,
bit for bit, so neither groups nor crashes change it.
"""

import errno
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from spanboost.atomic_files import PARTIAL
from spanboost.compiling.arrays import Array
from spanboost.errors import ModelFileError
from spanboost.models.files import load_checkpoint, save, to_bytes
from spanboost.models.health import count_nans
from spanboost.models.model import Model
from spanboost.service.limits import StateLimits
from spanboost.service.log import log_disk_error
from spanboost.service.storage.backup import Backup, snapshot_paths
from spanboost.service.storage.control import (
    CHALLENGE,
    PROMOTE,
    WITHDRAW,
    Control,
    ControlError,
    decode_control,
    is_control,
)
from spanboost.service.storage.entry import Entry, decode_entry, decode_labels
from spanboost.service.storage.file_views import close_views, open_views
from spanboost.service.storage.folder_lock import check_no_other_files, lock_folder
from spanboost.service.storage.journal import Journal
from spanboost.service.storage.journal_chain import read_chain
from spanboost.service.storage.journal_swap import finish_swap
from spanboost.service.storage.journal_tail import ShippedRecord
from spanboost.service.storage.learned_ids import LearnedIds
from spanboost.service.storage.model_state import ModelState
from spanboost.service.storage.pending_rows import PendingRows
from spanboost.service.storage.record_files import WAY_OUT, Record, StateError, file_number
from spanboost.service.storage.retention import oldest_kept, read_ages
from spanboost.service.storage.snapshot_place import find_misplacement
from spanboost.service.storage.upgrade import (
    Checkpoint,
    check_reproduced,
    other_versions,
    refuse_upgrade,
)
from spanboost.service.storage.versions import is_pinned, snapshot_path

DEFAULT_LIMITS = StateLimits()
UNREADABLE = (ModelFileError, OSError, TypeError, KeyError)  # errors of a damaged snapshot


class State(ModelState):
    """An open state folder. Only the writer thread calls methods; all threads read attributes."""

    snapshot_record: int  # number of the last record in the last snapshot
    # NaN in the model at the start or the last snapshot; counting takes too long for requests
    nans: int | None

    def __init__(
        self,
        folder: Path,
        new_model: Callable[[], tuple[Model, Any]],
        limits: StateLimits = DEFAULT_LIMITS,
        check: Callable[[Any], None] = lambda identity: None,
        on_progress: Callable[[int, int], None] = lambda done, size: None,
        *,
        accept_upgrade: bool = False,
    ) -> None:
        """Open a folder, or create one.

        new_model: returns the model of a new folder, and its identity as JSON values.
        check: receives the identity of the folder's model, and raises an error to refuse it.
        on_progress: receives the bytes of the journal read so far, and its size.
        accept_upgrade: learn the records of another version without a comparison (upgrade.py).
        """
        self.folder, self.limits = folder, limits
        self.snapshots = folder / "snapshots"
        self.ids = LearnedIds(limits.remembered_ids)
        self.damaged: list[str] = []  # errors of snapshots that could not be read
        self.upgraded_from: list[str] = []  # other versions, whose records are replayed
        self._expected: Checkpoint | None = None  # the snapshot that the replay must reproduce
        self._unsaved = 0  # rows learned since the last attempt to write a snapshot
        with ExitStack() as opened:
            check_no_other_files(folder)
            opened.enter_context(lock_folder(folder))
            self.snapshots.mkdir(exist_ok=True)
            finish_swap(folder)
            self.journal = Journal(folder / "journal")
            opened.callback(self.journal.close)
            self.pending = PendingRows(folder / "pending", limits)
            opened.callback(self.pending.close)
            self._load_snapshot(new_model)
            check(self.identity)
            self.upgraded_from = other_versions(self.journal.folder, self.snapshot_record)
            if self.upgraded_from and not accept_upgrade:
                self._begin_earlier()
            self._replay(on_progress)
            if self.upgraded_from:  # the next start must not learn these records again
                self.save()
            self.nans = count_nans(self.model)
            self.pending.open(self.ids.__contains__, self.journal.last)
            self._opened = opened.pop_all()

    @property
    def snapshot_path(self) -> Path:
        """The path of the last snapshot."""
        return self._path(self.snapshot_record)

    @property
    def snapshot_due(self) -> bool:
        """Whether enough rows were learned for the next snapshot."""
        return self._unsaved >= self.limits.snapshot_rows

    @property
    def challenger_nans(self) -> int:
        """Number of NaN in the model of the challenger, which cannot be saved then."""
        return 0 if self.challenger is None else count_nans(self.challenger.model) or 0

    def commit(self, entry: Entry) -> None:
        """Append rows to the journal, so that they are learned even after a crash.

        Rows that a stream worker has predicted are synced before the position after them, because
        it will not read them again. Raises OSError if they could not be written.
        """
        if entry.positions:
            self.pending.sync()
        number = self.journal.append(entry.encode())
        self.ids.add(entry.ids, entry.labels, number)
        try:
            self.pending.remove(id for id in entry.ids if id is not None)
        except OSError as error:  # after a restart, their ids show that they were learned
            log_disk_error("removing pending rows", error)

    def commit_control(self, control: Control) -> None:
        """Append a control to the journal; OSError if it could not be written.

        Raises ControlError if it cannot be obeyed.
        """
        if control.name == CHALLENGE and self.challenger is not None:
            raise ControlError("there is a challenger already; promote or withdraw it first")
        if control.name in (PROMOTE, WITHDRAW) and self.challenger is None:
            raise ControlError("there is no challenger")
        self.ids.add([], [], self.journal.append(control.encode()))

    def apply_control(self, control: Control) -> None:
        """Append a control to the journal, obey it, and write a snapshot.

        Raises ControlError if it cannot be obeyed, OSError if it could not be written.
        """
        self.commit_control(control)
        self.obey(control)
        self.save()

    def receive(self, record: ShippedRecord) -> None:
        """Append a record of the leader to the journal of a follower; OSError if that fails."""
        if record.number != self.journal.last + 1:
            raise StateError(
                f"{self.journal.folder}: the leader sent record {record.number}, but the next one "
                f"is {self.journal.last + 1}"
            )
        self.journal.append(record.payload, record.time)
        self.ids.add(*decode_labels(memoryview(record.payload)), record.number)

    def learn(self, entry: Entry, first: int, last: int) -> Array:
        """Learn rows of the next entry, and count them for the next snapshot.

        An entry without rows counts as one: many of them would make the journal grow.
        """
        self._unsaved += max(last - first, 1)
        return super().learn(entry, first, last)

    def save(self) -> None:
        """Write a snapshot, then delete old snapshots and journal files.

        A model whose state contains NaN is not saved, because such a file is refused on loading.
        Raises OSError if it cannot be written. The next attempt is due after the usual number of
        rows.
        """
        if self.snapshot_record == self.learned_record and self.snapshot_path.exists():
            return
        self._unsaved = 0
        self.nans = count_nans(self.model)
        if self.nans or self.challenger_nans:
            return  # the file could not be loaded; the last snapshot and the journal still can
        run = {
            "record": self.learned_record,
            "identity": self.identity,
            "progress": self.progress.state(),
            "metrics": self.metrics.state(),
            "left_out": self.left_out,
            "journal": self.journal.mark,
        }
        if self.intervals.rows:
            run["intervals"] = self.intervals.state()
        if self.positions:
            run["positions"] = self.positions
        if self.challenger is not None:
            run["challenger"] = self.challenger.state()
        data = b"" if self.challenger is None else to_bytes(self.challenger.model)
        path = self._path(self.learned_record)
        save(self.model, path, run=run, private=True, attachment=data)
        self.snapshot_record = self.learned_record
        numbers = self._snapshot_numbers()
        oldest = oldest_kept(read_ages([*map(self._path, numbers)]), self.limits, time.time())
        for number in numbers:
            if number < oldest and not is_pinned(self.snapshots, number):
                self._path(number).unlink()
        needed = oldest + 1
        self.journal.rotate(min(needed, self.ids.first_record or needed))

    def open_backup(self) -> Backup:
        """Open all files as they are now; OSError if that fails."""
        snapshots = [(path, path.stat().st_size) for path in snapshot_paths(self.folder)]
        views = open_views([*snapshots, *self.journal.sizes()])
        try:
            views += self.pending.open_files()
        except OSError:
            close_views(views)
            raise
        return Backup(self.journal.last, views)

    def close(self) -> None:
        """Close all files and release the lock of the folder."""
        self._opened.close()

    def _load_snapshot(self, new_model: Callable[[], tuple[Model, Any]]) -> None:
        """Load the newest readable snapshot; write a first one in a new folder.

        A damaged snapshot is skipped and renamed if the journal reaches back to an older one.
        """
        for partial in self.snapshots.glob(f"*{PARTIAL}"):  # left by a server that was killed
            partial.unlink()
        numbers, first_numbers = self._snapshot_numbers(), self.journal.first_numbers()
        if not numbers and first_numbers in ([], [1]) and not any(self.journal.read()):
            model, identity = new_model()
            run = {"record": 0, "identity": identity, "progress": None, "left_out": 0}
            self._use(model, run)
            self.save()  # after `read` has begun the journal, whose first file it names
            return
        errors = dict[int, str]()
        for number in reversed(numbers):
            if first_numbers and number + 1 < first_numbers[0]:
                break
            try:
                self._use(*load_checkpoint(self._path(number)))
            except UNREADABLE as error:
                if isinstance(error, OSError) and error.errno != errno.EIO:
                    raise  # too few file descriptors, for example: the file may be intact
                errors[number] = str(error)
                continue
            self._check_place(self._path(number))
            for damaged in errors:
                self._path(damaged).rename(self._path(damaged).with_suffix(".damaged"))
            self.damaged = list(errors.values())
            return
        raise StateError(
            f"{self.snapshots}: no readable snapshot from which the journal can be replayed"
            f"{''.join(f' ({what})' for what in errors.values())}; restore the folder from a "
            "backup"
        )

    def _check_place(self, path: Path) -> None:
        """Raise StateError if the snapshot that was loaded is not one of this folder."""
        marks = (file.named_marks for file in read_chain(self.journal.folder).files)
        known = set[str]().union(*marks)
        misplaced = find_misplacement(path, self.snapshot_record, self._journal_mark, known)
        if misplaced is not None:
            raise StateError(misplaced)

    def _begin_earlier(self) -> None:
        """Go back to an earlier snapshot, so that the replay passes the last one again."""
        first = min(self.journal.first_numbers(), default=1)
        last = Checkpoint(*load_checkpoint(self.snapshot_path))
        for number in reversed(self._snapshot_numbers()):
            if first - 1 <= number < last.record:
                with suppress(*UNREADABLE):
                    self._use(*load_checkpoint(self._path(number)))
                    self._expected, self._journal_mark = last, last.run.get("journal")
                    return
        why = "there is no earlier snapshot from which a replay could be compared"
        raise refuse_upgrade(self.folder, last.record, why)

    def _compare(self, expected: Checkpoint) -> None:
        """Check that the replay has reproduced a snapshot, and continue from the snapshot."""
        check_reproduced(self.folder, self.model, expected)
        self._use(*expected)  # its loss curve has the times at which rows were first learned
        self._expected, self._unsaved = None, 0

    def _use(self, model: Model, run: dict[str, Any]) -> None:
        """Use a snapshot: a model and the run that was saved with it."""
        self.restore(model, run)
        self.snapshot_record = self.learned_record
        self._journal_mark = run.get("journal")  # None in snapshots of earlier versions

    def _replay(self, on_progress: Callable[[int, int], None]) -> None:
        """Learn the records of the journal that came after the snapshot."""
        size, done = self.journal.size, 0
        for record in self.journal.read(self._journal_mark):
            self.ids.add(*decode_labels(record.payload), record.number)
            if record.number > self.snapshot_record:
                self._learn_record(record)
            if self._expected is not None and self._expected.record == self.learned_record:
                self._compare(self._expected)
            done += len(record.payload)
            on_progress(done, size)
        last = self.snapshot_record if self._expected is None else self._expected.record
        if self.journal.last < last:
            raise StateError(
                f"{self.journal.folder}: the journal ends at record {self.journal.last}, before "
                f"the last snapshot (record {last}); {WAY_OUT}"
            )

    def _learn_record(self, record: Record) -> None:
        if record.number != self.learned_record + 1:
            raise StateError(
                f"{self.journal.folder}: the journal begins at record {record.number}, but the "
                f"snapshot ends at record {self.learned_record}; {WAY_OUT}"
            )
        try:
            if is_control(record.payload):
                self.obey(decode_control(record.payload))
                return
            entry = decode_entry(record.payload)
            losses = self.learn(entry, 0, len(entry.rows))
            self.learn_challenger(entry, 0, len(entry.rows), losses)
        except MemoryError:
            raise StateError(
                f"{self.journal.folder}: not enough memory to learn record {record.number}; allow "
                "the process more memory, or see what `spanboost repair --quarantine "
                f"{record.number}` would lose"
            ) from None

    def _snapshot_numbers(self) -> list[int]:
        return [*map(file_number, snapshot_paths(self.folder))]

    def _path(self, number: int) -> Path:
        return snapshot_path(self.snapshots, number)
