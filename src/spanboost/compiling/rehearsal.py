"""Find out which code a model needs, before it needs it.

A model calls one compiled function after the other, and the first call of each compiles it. So that
several processes can compile at the same time, the first call whose code is missing lets a copy of
the model learn and predict one row as plain Python, and records all functions that it calls.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

from spanboost.compiling.helpers import queue
from spanboost.compiling.jobs import Job


class Need(NamedTuple):
    """The code that a model needs."""

    now: list[Job]
    later: list[Job]


class Rehearsal:
    """Runs a rehearsal once, in whichever thread needs it first."""

    def __init__(self, rehearse: Callable[[], Need]) -> None:
        self._rehearse: Callable[[], Need] | None = rehearse
        self._lock = threading.Lock()

    def __call__(self, own: Job) -> None:
        """Add the jobs of the model to the queue of the helpers, except the caller's own one."""
        with self._lock:
            if self._rehearse is not None:
                rehearse, self._rehearse = self._rehearse, None
                queue.add(*([job for job in jobs if job != own] for jobs in rehearse()))

    @property
    def was_run(self) -> bool:
        """Whether code was missing."""
        return self._rehearse is None


_current: ContextVar[Rehearsal | None] = ContextVar("_current", default=None)
_recorded: ContextVar[list[Job] | None] = ContextVar("_recorded", default=None)


@contextmanager
def rehearsed(rehearse: Callable[[], Need]) -> Iterator[None]:
    """Run `rehearse` if code is missing inside this block, unless a block around it does so."""
    if _current.get() is not None:
        yield
        return
    rehearsal = Rehearsal(rehearse)
    token = _current.set(rehearsal)
    try:
        yield
    finally:
        _current.reset(token)
        if rehearsal.was_run:
            queue.hurry()


def obtain(job: Job) -> None:
    """Let helpers compile what the model needs besides this job; wait if they do this job too."""
    rehearsal = _current.get()
    if rehearsal is not None:
        rehearsal(job)
    queue.settle(job)


@contextmanager
def recorded_jobs(jobs: list[Job]) -> Iterator[None]:
    """Run compiled functions as plain Python inside this block, and list them."""
    token = _recorded.set(jobs)
    try:
        yield
    finally:
        _recorded.reset(token)


def is_recording() -> bool:
    """Return whether loops run as plain Python, and jobs are recorded."""
    return _recorded.get() is not None


def record(job: Job) -> None:
    """Add a job to the list of `recorded_jobs`."""
    jobs = _recorded.get()
    if jobs is not None and job not in jobs:
        jobs.append(job)
