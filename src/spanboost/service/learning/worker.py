"""A thread that runs jobs in groups: each group is what arrived while it ran the one before."""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from logging import ERROR
from typing import Any, Protocol

import numpy as np

from spanboost.service.log import write_log


class BusyError(Exception):
    """Too many rows are waiting; retry later."""


class ClosedError(Exception):
    """The worker has stopped; the message says why."""


class Holder(Protocol):
    """Memory that several holders share; the last one to release it returns it."""

    def share(self) -> None:
        """Add a holder."""

    def release(self) -> None:
        """Remove a holder."""


class Job(Future[Any]):
    """A task and the future of its result; its size is a number of rows."""

    def __init__(self, rows: int, memory: Holder | None = None) -> None:
        """Create a job; `memory` is held from `submit` until the job is done."""
        super().__init__()
        self.rows, self.memory = rows, memory
        self.created = time.monotonic()


class Worker:
    """Runs jobs of one kind, in the order in which they are submitted."""

    def __init__(
        self,
        name: str,
        work: Callable[[list[Any]], None],
        max_waiting: int,
        group_rows: int = 10_000,
        on_failure: Callable[[str], None] = lambda why: None,
    ) -> None:
        """Start the thread.

        max_waiting: number of rows that may wait; `submit` refuses more.
        group_rows: number of rows that are passed to `work` together, unless one job has more.
        on_failure: receives the reason if the thread ends because of an error.
        """
        self.max_waiting, self.waiting = max_waiting, 0
        self.failure: str | None = None  # why the thread has ended
        self._name, self._work, self._group_rows = name, work, group_rows
        self._on_failure = on_failure
        self._jobs: deque[Job] = deque()
        self._running: list[Job] = []
        self._change = threading.Condition()
        self._open = True
        self._thread = threading.Thread(target=self._run, name=f"spanboost-{name}", daemon=True)
        self._thread.start()

    def submit(self, job: Job) -> None:
        """Queue a job; raises BusyError if too many rows wait, ClosedError after `close`."""
        with self._change:
            if not self._open:
                raise ClosedError(self.failure or "the server is stopping")
            if self.waiting and self.waiting + job.rows > self.max_waiting:
                raise BusyError
            self.waiting += job.rows
            if job.memory is not None:
                job.memory.share()
            self._jobs.append(job)
            self._change.notify()

    async def run(self, job: Job) -> Any:
        """Queue a job, and return its result; raises the errors of `submit` and of the job."""
        self.submit(job)
        return await asyncio.wrap_future(job)

    def close(self) -> None:
        """Run the jobs that are queued, accept no more, and end the thread."""
        with self._change:
            self._open = False
            self._change.notify()
        self._thread.join()

    @property
    def jobs(self) -> int:
        """Number of jobs that wait or run."""
        return len(self._running) + len(self._jobs)

    @property
    def oldest_seconds(self) -> float:
        """Age of the oldest job that waits or runs; 0 if there are no jobs."""
        with self._change:
            jobs = [*self._running, *self._jobs]
        return time.monotonic() - min(job.created for job in jobs) if jobs else 0.0

    def _run(self) -> None:
        # the loss of labels like 1e300 overflows
        with np.errstate(over="ignore", invalid="ignore"):
            while self.failure is None and self._run_group():
                pass

    def _run_group(self) -> bool:
        """Wait for jobs and run a group; return False after `close`.

        This is a function of its own so that the jobs are not held in memory until the next ones.
        """
        jobs = self._wait_for_group()
        try:
            if jobs:
                self._work(jobs)
        except BaseException as error:  # otherwise callers would wait for ever
            write_log(ERROR, f"the {self._name} thread failed", traceback=True)
            self._fail(jobs, f"the {self._name} failed: {describe_failure(error)}")
        finally:
            with self._change:
                self.waiting -= sum(job.rows for job in jobs)
                self._running = []
            _release_memory(jobs)
        return bool(jobs)

    def _wait_for_group(self) -> list[Job]:
        """Wait for jobs and return the next group; an empty list after `close`."""
        with self._change:
            jobs = self._next_group()
            while not jobs and self._open:
                self._change.wait()
                jobs = self._next_group()
            self._running = jobs
        return jobs

    def _next_group(self) -> list[Job]:
        """Take the next group of jobs from the queue, without cancelled ones."""
        jobs, rows = list[Job](), 0
        while self._jobs and (not jobs or rows + self._jobs[0].rows <= self._group_rows):
            job = self._jobs.popleft()
            if job.set_running_or_notify_cancel():
                jobs.append(job)
                rows += job.rows
            else:
                self.waiting -= job.rows
                _release_memory([job])
        return jobs

    def _fail(self, jobs: list[Job], why: str) -> None:
        with self._change:
            self.failure, self._open = why, False
            rest = list(self._jobs)
            self._jobs.clear()
        self._on_failure(why)
        _release_memory(rest)
        for job in [*jobs, *rest]:
            if not job.done():
                job.set_exception(ClosedError(why))


def describe_failure(error: BaseException) -> str:
    """Return why a thread cannot continue, for clients and the log."""
    if isinstance(error, MemoryError):
        return "out of memory"
    if isinstance(error, OSError):
        return f"a disk error ({error.strerror or error})"
    return f"internal error ({type(error).__name__}); see the log"


def _release_memory(jobs: list[Job]) -> None:
    for job in jobs:
        if job.memory is not None:
            job.memory.release()
