"""The state folder: everything a service knows. A start is the last snapshot, and a replay.

    STATE/lock                one server at a time: the number of its process
    STATE/journal/N.log       labelled rows in the order in which they were learned (journal.py)
    STATE/snapshots/N.sb      the model after record N; the last two are kept
    STATE/pending/N.log       rows that were predicted and wait for their labels (pending.py)

Which model there is after a crash depends on the journal alone. Rows in blocks of any size give the
same model, bit for bit, so that neither groups nor crashes leave a trace.
"""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import orjson

from spanboost.atomic_files import PARTIAL
from spanboost.compiling.arrays import Array
from spanboost.data.batch import Batch
from spanboost.errors import DataError, ModelFileError
from spanboost.models.files import load_checkpoint, save
from spanboost.models.model import Model
from spanboost.service.journal import Journal
from spanboost.service.learned_ids import LearnedIds
from spanboost.service.pending_rows import PendingRows
from spanboost.service.record_files import StateError, number_of
from spanboost.service.request_rows import Row, batches
from spanboost.service.row_codec import layout_of, pack_rows, unpack_rows
from spanboost.service.running_loss import RunningLoss

SNAPSHOTS = 2


class Entry(NamedTuple):
    """What one record of the journal holds: rows with their labels."""

    ids: list[str | None]
    rows: list[Row]
    labels: list[float | str]
    weights: list[float] | None  # None: all 1, where the schema knows of no weights

    def part(self, first: int, last: int) -> tuple[list[Row], list[float | str], Array | None]:
        """Some of the rows, their labels and weights."""
        weights = None if self.weights is None else np.array(self.weights[first:last])
        return self.rows[first:last], self.labels[first:last], weights

    def packed(self) -> bytes:
        """As bytes: a line of ids, one of what the rows have in common, their floats, the rest."""
        layout, floats, rests = pack_rows(self.rows)
        head = [[*layout], len(self.rows), self.labels, self.weights]
        lines = [orjson.dumps(self.ids), orjson.dumps(head), floats + b"\n".join(rests)]
        return b"\n".join(lines)


def ids_in(payload: memoryview) -> list[str | None]:
    """The ids of a record, without reading its rows."""
    ids: list[str | None] = orjson.loads(bytes(payload).partition(b"\n")[0])
    return ids


def entry_of(payload: memoryview) -> Entry:
    """The rows of a record."""
    ids, _, rest = bytes(payload).partition(b"\n")
    head, _, rest = rest.partition(b"\n")
    layout, number, labels, weights = orjson.loads(head)
    layout = layout_of(layout)
    end = layout.width * number
    rows = unpack_rows(layout, rest[:end], rest[end:].split(b"\n"))
    return Entry(orjson.loads(ids), rows, labels, weights)


class Bounds(NamedTuple):
    """How much is kept."""

    pending: int = 100_000  # rows
    pending_seconds: float = 7 * 24 * 3600.0
    ids: int = 500_000
    snapshot_rows: int = 100_000


BOUNDS = Bounds()


class State:
    """A folder in use; methods are for the one thread that writes, figures for any."""

    model: Model
    snapshot: int  # number of the last record in the last snapshot
    learned: int  # number of the last record that was learned

    def __init__(
        self,
        folder: Path,
        fresh: Callable[[], tuple[Model, Any]],
        bounds: Bounds = BOUNDS,
        check: Callable[[Any], None] = lambda identity: None,
        show: Callable[[int, int], None] = lambda done, size: None,
    ) -> None:
        """Open a folder, or begin one with a fresh model and what tells it from others.

        check: is told what tells the model in the folder from others, and may refuse it.
        show: is told how many bytes of the journal have been read, of how many.
        """
        self.folder, self.bounds = folder, bounds
        self._lock = _locked(folder)
        self.snapshots = folder / "snapshots"
        self.snapshots.mkdir(exist_ok=True)
        self.journal = Journal(folder / "journal")
        self.ids = LearnedIds(bounds.ids)
        self.damaged: list[str] = []  # snapshots that could not be read
        self._unsaved = 0  # rows learned since the last snapshot was tried
        self.pending = PendingRows(folder / "pending", bounds.pending, bounds.pending_seconds)
        try:
            self._open(fresh)
            check(self.identity)
            self._replay(show)
            self.pending.open(self.ids.__contains__)
        except BaseException:
            self.close()
            raise

    @property
    def snapshot_path(self) -> Path:
        """The last snapshot."""
        return self._path(self.snapshot)

    @property
    def due(self) -> bool:
        """Whether it is time for a snapshot."""
        return self._unsaved >= self.bounds.snapshot_rows

    def commit(self, entry: Entry) -> None:
        """Put rows into the journal: from now on they will be learned, whatever happens.

        An OSError if they are not in it.
        """
        number = self.journal.append(entry.packed())
        self.ids.add(entry.ids, number)
        with suppress(OSError):  # they are known to be learned, also after a restart
            self.pending.done(id for id in entry.ids if id is not None)

    def learn(self, entry: Entry, first: int, last: int) -> None:
        """The rows from `first` to before `last` of the entry that comes next in the journal."""
        rows, labels, weights = entry.part(first, last)
        for batch in batches(self.model.schema, rows, labels, weights):
            self._learn(batch)
        if last == len(entry.rows):
            self.learned += 1
        self._unsaved += len(rows)

    def save(self) -> None:
        """A snapshot of what was learned so far; then what is older than is needed goes.

        An OSError if the disk does not take it: it is due again after as many rows as ever.
        """
        if self.snapshot == self.learned and self._path(self.snapshot).exists():
            return
        self._unsaved = 0
        run = {
            "record": self.learned,
            "identity": self.identity,
            "progress": self.progress.state(),
            "left_out": self.left_out,
        }
        save(self.model, self._path(self.learned), run=run)
        self.snapshot = self.learned
        self.journal.rotate()
        numbers = self._numbers()
        for number in numbers[:-SNAPSHOTS]:
            self._path(number).unlink()
        needed = numbers[-SNAPSHOTS:][0] + 1
        self.journal.forget(min(needed, self.ids.since or needed))

    def close(self) -> None:
        """Let go of the folder."""
        self.journal.close()
        self.pending.close()
        self._lock.close()

    def _learn(self, batch: Batch) -> None:
        """Learn a batch; a row no model takes is left out, by this rule whenever it is met."""
        try:
            answers = self.model.learn_many(batch.X, batch.y, batch.weights)
        except DataError as error:
            self._learn_around(batch, error.row)
            return
        assert batch.y is not None
        weights = np.ones(batch.rows) if batch.weights is None else batch.weights
        self.progress.add(self.model, batch.y, weights, answers, time.time())

    def _learn_around(self, batch: Batch, bad: int) -> None:
        self.left_out += 1
        for first, last in ((0, bad), (bad + 1, batch.rows)):
            if first < last:
                self._learn(batch.part(first, last))

    def _open(self, fresh: Callable[[], tuple[Model, Any]]) -> None:
        """The newest snapshot that can be read; a fresh one where there is nothing yet.

        One that cannot be read is passed over and renamed, as long as the journal goes back to one
        that can.
        """
        for half in self.snapshots.glob(f"*{PARTIAL}"):  # of a server that was killed
            half.unlink()
        numbers, firsts = self._numbers(), self.journal.firsts()
        if not numbers and not firsts:
            model, identity = fresh()
            self._take(model, {"record": 0, "identity": identity, "progress": None, "left_out": 0})
            self.save()
            return
        problems = dict[int, str]()
        for number in reversed(numbers):
            if firsts and number + 1 < firsts[0]:
                break
            try:
                self._take(*load_checkpoint(self._path(number)))
            except (ModelFileError, OSError, TypeError, KeyError) as error:
                problems[number] = str(error)
                continue
            for bad in problems:
                self._path(bad).rename(self._path(bad).with_suffix(".damaged"))
            self.damaged = list(problems.values())
            return
        raise StateError(
            f"{self.snapshots}: there is no snapshot that can be read and the journal goes on from"
            f"{''.join(f' ({what})' for what in problems.values())}; restore the folder from a "
            "backup"
        )

    def _take(self, model: Model, run: dict[str, Any]) -> None:
        """A model, and all that goes with it."""
        self.left_out, self.identity = run["left_out"], run["identity"]
        self.progress = RunningLoss(run["progress"])
        self.snapshot = self.learned = run["record"]
        self.model = model

    def _replay(self, show: Callable[[int, int], None]) -> None:
        """Learn what came after the snapshot."""
        size, done = self.journal.bytes, 0
        for record in self.journal.read():
            self.ids.add(ids_in(record.payload), record.number)
            if record.number > self.snapshot:
                entry = entry_of(record.payload)
                self.learn(entry, 0, len(entry.rows))
            done += len(record.payload)
            show(done, size)
        if self.journal.last < self.snapshot:
            raise StateError(
                f"{self.journal.folder}: the journal ends at record {self.journal.last}, before "
                f"the last snapshot, {self.snapshot}; restore the folder from a backup"
            )

    def _numbers(self) -> list[int]:
        return sorted(map(number_of, self.snapshots.glob("*.sb")))

    def _path(self, number: int) -> Path:
        return self.snapshots / f"{number:020}.sb"


def _locked(folder: Path) -> BinaryIO:
    """The folder, made if need be, and no other server's as long as the file is open."""
    import fcntl

    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    file = (folder / "lock").open("a+b")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise StateError(f"{folder} is in use by another server: one folder, one server") from None
    file.truncate(0)
    file.write(f"{os.getpid()}\n".encode())
    file.flush()
    return file
