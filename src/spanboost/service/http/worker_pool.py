"""The worker processes of a server, which starts them again when they end."""

import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from logging import WARNING
from typing import Any, NamedTuple

import orjson

from spanboost.service.log import write_log

PROGRAM = "spanboost.service.http.worker_process"
RESTART_SECONDS = 1.0  # pause before a worker is started again
SILENT_SECONDS = 5.0  # a worker without a report for this long is not ready
END_SECONDS = 15.0  # time for workers to end; then they are killed


class WorkerReport(NamedTuple):
    """The state of a worker."""

    ready: bool = False  # whether it answers predictions
    record: int | None = None  # last record that its model has learned; None: not known
    lag_seconds: float | None = None  # time since its model had all records; None: not known
    predicted: int = 0  # rows since it was started


class _Slot:
    """One worker: its thread, its process and its last report."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.thread: threading.Thread | None = None
        self.restarts = 0
        self._report, self._received = WorkerReport(), time.monotonic()

    @property
    def report(self) -> WorkerReport:
        report, age = self._report, time.monotonic() - self._received
        if report.lag_seconds is None:
            return report
        ready = report.ready and age < SILENT_SECONDS
        return report._replace(ready=ready, lag_seconds=report.lag_seconds + age)

    def receive(self, values: dict[str, Any]) -> None:
        self._report, self._received = WorkerReport(**values), time.monotonic()

    def forget(self) -> None:
        self._report = WorkerReport()


class WorkerPool:
    """Starts and stops the workers. A worker also ends when the leader does, however it ends."""

    def __init__(self, number: int, settings: bytes, listener: socket.socket, secret: str) -> None:
        """Create a pool; `settings` is the first line that each worker reads."""
        self.secret = secret
        self._settings, self._listener = settings, listener
        self._slots = [_Slot() for _ in range(number)]
        self._lock = threading.Lock()  # no process is started after `stop`
        self._stopping = threading.Event()

    def start(self) -> None:
        """Start all workers; the state folder must have a snapshot."""
        for number, slot in enumerate(self._slots, 1):
            slot.thread = threading.Thread(
                target=self._supervise,
                args=(number, slot),
                name=f"spanboost-worker-{number}",
                daemon=True,
            )
            slot.thread.start()

    def stop(self) -> None:
        """Let the workers answer their open requests and end."""
        with self._lock:
            self._stopping.set()
            for slot in self._slots:
                if slot.process is not None and slot.process.stdin is not None:
                    with suppress(OSError):
                        slot.process.stdin.close()

    def wait(self) -> None:
        """Wait for the end of all workers after `stop`; kill those that take too long."""
        end = time.monotonic() + END_SECONDS
        for slot in self._slots:
            if slot.thread is None:
                continue
            slot.thread.join(max(0.0, end - time.monotonic()))
            if slot.thread.is_alive() and slot.process is not None:
                slot.process.kill()
                slot.thread.join()

    def reports(self) -> list[WorkerReport]:
        """Return the state of each worker."""
        return [slot.report for slot in self._slots]

    @property
    def restarts(self) -> int:
        """Number of times that a worker had to be started again."""
        return sum(slot.restarts for slot in self._slots)

    def _supervise(self, number: int, slot: _Slot) -> None:
        while (process := self._launch(slot)) is not None:
            status = _follow(process, slot)
            slot.forget()
            if self._stopping.is_set():
                return
            write_log(WARNING, f"worker {number} ended with status {status}; starting it again")
            self._stopping.wait(RESTART_SECONDS)
            slot.restarts += 1

    def _launch(self, slot: _Slot) -> subprocess.Popen[bytes] | None:
        """Start a process; return None after `stop`."""
        with self._lock:
            if self._stopping.is_set():
                return None
            process = slot.process = subprocess.Popen(
                [sys.executable, "-P", "-m", PROGRAM],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                pass_fds=[self._listener.fileno()],
                start_new_session=True,  # Ctrl-C is for the leader, which ends the workers
            )
            assert process.stdin is not None
            with suppress(OSError):  # it has ended already
                process.stdin.write(self._settings)
                process.stdin.flush()
            return process


def _follow(process: subprocess.Popen[bytes], slot: _Slot) -> int:
    """Receive the reports of a process until it ends, and return its status."""
    assert process.stdout is not None
    with process.stdout:
        for line in process.stdout:
            with suppress(ValueError, TypeError):  # the last line may be incomplete
                values = orjson.loads(line)
                slot.receive(values)
    return process.wait()


def describe_workers(pool: WorkerPool, last_record: int) -> dict[str, Any]:
    """Return the number of workers, how many are ready, and how far each is behind, for JSON.

    last_record: number of the last record in the journal of the leader.
    """
    reports = pool.reports()
    return {
        "workers": len(reports),
        "ready": sum(one.ready for one in reports),
        "lag_records": [
            None if one.record is None else max(last_record - one.record, 0) for one in reports
        ],
        "lag_seconds": [one.lag_seconds for one in reports],
    }
