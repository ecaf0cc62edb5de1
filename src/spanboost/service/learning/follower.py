"""A follower: a thread that copies the journal of a leader, and lets the engine learn the records.

The copy has the same records in the same order, so its model is the same, bit for bit, as that of
the leader at the same record.
"""

import threading
import time
from collections.abc import Callable
from logging import INFO, WARNING

from spanboost import __version__
from spanboost.errors import UserError
from spanboost.service.learning.engine import Engine
from spanboost.service.learning.jobs import ShipmentJob, StorageError
from spanboost.service.learning.worker import ClosedError
from spanboost.service.log import write_log
from spanboost.service.storage.journal_tail import Cursor, DivergedError, Shipment
from spanboost.service.storage.leader_copy import Leader, LeaderCopy, LeaderError

RETRY_SECONDS = 1.0  # time between two attempts to reach the leader


class Follower:
    """The thread, and how far it is behind the leader."""

    def __init__(
        self,
        engine: Engine,
        leader: Leader,
        copy: LeaderCopy,
        on_failure: Callable[[str], None] = lambda why: None,
    ) -> None:
        """Start the thread.

        on_failure: receives the reason if the journal of the leader does not continue the copy.
        """
        self.address = leader.address
        self.problem: str | None = None  # why the leader did not answer the last time
        self._engine, self._leader, self._copy, self._on_failure = engine, leader, copy, on_failure
        self._leader_record: int | None = None  # last record of the leader; None: not known yet
        self._equal_at = time.monotonic()  # when the copy had all records of the leader
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="spanboost-follower", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread soon; a request to the leader that is open is not waited for."""
        self._stop.set()

    @property
    def lag_records(self) -> int | None:
        """Number of records that the leader has and the model has not learned; None: unknown."""
        if self._leader_record is None:
            return None
        return max(self._leader_record - self._engine.state.learned_record, 0)

    @property
    def lag_seconds(self) -> float | None:
        """Time since the model had learned all records of the leader; None: unknown."""
        if self._leader_record is None:
            return None
        if self.problem is None and self.lag_records == 0:
            return 0.0
        return time.monotonic() - self._equal_at

    def _run(self) -> None:
        try:
            cursor = self._copy.cursor(self._engine.state.journal.last)
            while not self._stop.is_set():
                cursor = self._step(cursor)
        except ClosedError:
            pass
        except DivergedError as error:
            self._on_failure(describe_divergence(self.address, self._copy, error))
        except UserError as error:
            self._on_failure(str(error))
        except BaseException as error:  # otherwise the copy would silently stay behind
            self._on_failure(f"the follower failed: {type(error).__name__}: {error}")

    def _step(self, cursor: Cursor) -> Cursor:
        """Ask the leader once, learn the records that it sends, and return the new cursor."""
        try:
            shipment = self._leader.read(cursor)
        except LeaderError as error:
            self._note_problem(str(error))
            self._stop.wait(RETRY_SECONDS)
            return cursor
        self._note_contact()
        self._leader_record = shipment.last
        if shipment.records:
            cursor = self._learn(shipment, cursor)
        if self.lag_records == 0:
            self._equal_at = time.monotonic()
        return cursor

    def _learn(self, shipment: Shipment, cursor: Cursor) -> Cursor:
        if shipment.version != __version__:  # another version may learn other bits
            raise UserError(
                f"version {shipment.version} of spanboost wrote record {cursor.record + 1} of the "
                f"leader {self.address}, and this follower has version {__version__}; use the same "
                f"version, or delete {self._copy.folder} and start again after the next snapshot "
                "of the leader"
            )
        job = ShipmentJob(shipment.records)
        self._engine.writer.submit(job)
        try:
            job.result()
        except StorageError:  # it is in the log; records before the failure are stored
            self._stop.wait(RETRY_SECONDS)
        stored = self._engine.state.journal.last - cursor.record
        if stored == 0:
            return cursor
        last = shipment.records[stored - 1]
        if last.mark != cursor.mark:
            self._copy.note(self.address, last.mark)
        return last.cursor()

    def _note_problem(self, why: str) -> None:
        if self.problem is None:
            write_log(WARNING, f"cannot read the journal of the leader {self.address}: {why}")
        self.problem = why

    def _note_contact(self) -> None:
        if self.problem is not None:
            write_log(INFO, f"reading the journal of the leader {self.address} again")
        self.problem = None


def describe_divergence(address: str, copy: LeaderCopy, error: DivergedError) -> str:
    """Return why a copy cannot be continued, and what to do."""
    return (
        f"{copy.folder} does not match its leader {address}: {error}. To follow this leader, "
        f"delete {copy.folder} and start again; to make the copy the leader, start it without "
        "--follow"
    )
