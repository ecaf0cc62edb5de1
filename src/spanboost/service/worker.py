"""A thread that does jobs in groups: all that came while it was busy with the group before."""

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import numpy as np


class BusyError(Exception):
    """There is too much to do already: try again later."""


class ClosedError(Exception):
    """There is nobody to do it any more; the message says why."""


class Job(Future[Any]):
    """Something to do, of a size counted in rows."""

    def __init__(self, rows: int) -> None:
        super().__init__()
        self.rows = rows


class Worker:
    """Does jobs of one kind, in the order in which they come."""

    def __init__(
        self, name: str, work: Callable[[list[Any]], None], room: int, group: int = 10_000
    ) -> None:
        """room: rows that may wait. group: rows that are taken up together, about."""
        self.room, self.waiting = room, 0
        self.failure: str | None = None  # why it does nothing any more
        self._work, self._group = work, group
        self._jobs: deque[Job] = deque()
        self._change = threading.Condition()
        self._open = True
        self._thread = threading.Thread(target=self._run, name=f"spanboost-{name}", daemon=True)
        self._thread.start()

    def submit(self, job: Job) -> None:
        """Have a job done: it is a future of its result."""
        with self._change:
            if not self._open:
                raise ClosedError(self.failure or "the server is stopping")
            if self.waiting and self.waiting + job.rows > self.room:
                raise BusyError
            self.waiting += job.rows
            self._jobs.append(job)
            self._change.notify()

    def close(self) -> None:
        """Do what has been asked for, and no more."""
        with self._change:
            self._open = False
            self._change.notify()
        self._thread.join()

    def _run(self) -> None:
        with np.errstate(over="ignore", invalid="ignore"):  # of labels like 1e300 there is no loss
            while jobs := self._take():
                try:
                    self._work(jobs)
                except BaseException as error:  # nobody may wait for ever
                    self._fail(jobs, f"{type(error).__name__} while working: see the log")
                    raise
                finally:
                    with self._change:
                        self.waiting -= sum(job.rows for job in jobs)

    def _take(self) -> list[Job]:
        """The next jobs, when there are some; none when there will be no more."""
        with self._change:
            jobs = self._wanted()
            while not jobs and self._open:
                self._change.wait()
                jobs = self._wanted()
        return jobs

    def _wanted(self) -> list[Job]:
        """As many as are taken up together, of those that somebody waits for."""
        jobs, rows = list[Job](), 0
        while self._jobs and (not jobs or rows + self._jobs[0].rows <= self._group):
            job = self._jobs.popleft()
            if job.set_running_or_notify_cancel():
                jobs.append(job)
                rows += job.rows
            else:  # whoever asked has gone
                self.waiting -= job.rows
        return jobs

    def _fail(self, jobs: list[Job], why: str) -> None:
        with self._change:
            self.failure, self._open = why, False
            jobs = [*jobs, *self._jobs]
            self._jobs.clear()
        for job in jobs:
            if not job.done():
                job.set_exception(ClosedError(why))
