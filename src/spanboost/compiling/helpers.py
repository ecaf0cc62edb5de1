"""Helper processes: they compile at the same time as this one, and leave the code on disk.

Numba compiles one function at a time in a process, mostly in Python. When a model needs several
functions that are not on disk, this process and its helpers take them from one queue.
"""

import atexit
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from spanboost.compiling.compile_time import compiling
from spanboost.compiling.jobs import Job, run_job
from spanboost.compiling.threads import cpu_count

SETTING = "SPANBOOST_COMPILE_JOBS"
MOST = 8  # processes: a model has about as many functions that take long


class CompileQueue:
    """Jobs that wait for a process, and jobs that are being done."""

    def __init__(self) -> None:
        self._urgent: list[Job] = []
        self._later: list[Job] = []
        self._running: set[Job] = set()
        self._helpers = 0
        self._changed = threading.Condition()

    def add(self, urgent: Iterable[Job], later: Iterable[Job] = ()) -> None:
        """Add jobs, and start helpers for them. Helpers do `later` jobs if no other one waits."""
        if process_count() == 1:
            return
        with self._changed:
            self._urgent += [job for job in urgent if not (job.is_done or self._is_known(job))]
            self._later += [job for job in later if not (job.is_done or self._is_known(job))]
            # this process compiles too
            wanted = min(process_count() - 1, len(self._urgent) + len(self._later))
            for _ in range(wanted - self._helpers):
                self._helpers += 1
                threading.Thread(target=self._lead_helper, daemon=True).start()

    def hurry(self) -> None:
        """Let threads that wait do the `later` jobs too: what had to come first is done."""
        with self._changed:
            self._urgent, self._later = self._urgent + self._later, []

    def settle(self, job: Job) -> None:
        """Return when no other thread or process is doing this job, and it does not wait.

        Either its code is on disk now, or the caller compiles it. While a helper does the job, the
        caller does others.
        """
        with compiling:
            while (other := self._next_step(job)) is not None:
                if other != job:
                    self._run(other)

    def _is_known(self, job: Job) -> bool:
        return job in self._running or job in self._urgent or job in self._later

    def _next_step(self, job: Job) -> Job | None:
        """Return another job to do, or the job itself after waiting; None if it is settled."""
        with self._changed:
            if not self._is_known(job):
                return None
            for jobs in (self._urgent, self._later):
                if job in jobs:
                    jobs.remove(job)
                    return None
            other = self._take(self._urgent)
            if other is None:
                self._changed.wait()
            return other or job

    def _run(self, job: Job) -> None:
        """Do a job that was taken from the queue, in this process."""
        try:
            with suppress(Exception):  # the call that needs the code reports the error
                run_job(job)
        finally:
            self._finish(job)

    def _take(self, jobs: list[Job]) -> Job | None:
        if not jobs:
            return None
        job = jobs.pop(0)
        self._running.add(job)
        return job

    def _next_job(self) -> Job | None:
        """Take the next job for a helper; None if no job waits."""
        with self._changed:
            return self._take(self._urgent) or self._take(self._later)

    def _finish(self, job: Job) -> None:
        with self._changed:
            self._running.discard(job)
            self._changed.notify_all()

    def _lead_helper(self) -> None:
        """Pass jobs to a helper until none waits; if it fails, other processes do the rest."""
        try:
            # an OSError: the helper could not be started, or has ended
            with suppress(OSError), _helper() as helper:
                while (job := self._next_job()) is not None:
                    try:
                        _pass_on(helper, job)
                    finally:
                        self._finish(job)
        finally:
            with self._changed:
                self._helpers -= 1


def compile_jobs(jobs: list[Job]) -> Iterator[Job]:
    """Do all jobs, with helpers; yield each when its code is on disk."""
    queue.add(jobs)
    for job in jobs:
        queue.settle(job)
        if not job.is_done:
            run_job(job)
        yield job


queue = CompileQueue()
_live: set[subprocess.Popen[bytes]] = set()  # helpers


def process_count() -> int:
    """Return how many processes compile at the same time, this one included."""
    given = os.environ.get(SETTING, "")
    if given.isdecimal():
        return max(1, int(given))
    # an application that embeds Python would start itself
    is_python = Path(sys.executable or "").name.lower().startswith("python")
    return min(cpu_count(), MOST) if is_python else 1


@contextmanager
def _helper() -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "spanboost.compiling.helper_process"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    pipe, none = subprocess.PIPE, subprocess.DEVNULL
    helper = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=none, env=environment)
    _live.add(helper)
    try:
        yield helper
    finally:
        _live.discard(helper)
        helper.kill()
        helper.communicate()  # close its pipes, and wait for its end


def _pass_on(helper: subprocess.Popen[bytes], job: Job) -> None:
    """Let a helper do a job; raise an OSError if it ends instead."""
    assert helper.stdin is not None
    assert helper.stdout is not None
    helper.stdin.write(pickle.dumps(job))
    helper.stdin.flush()
    if not helper.stdout.read(1):
        raise BrokenPipeError("the helper has ended")


@atexit.register
def _stop_helpers() -> None:
    for helper in list(_live):
        helper.kill()


def _forget_helpers() -> None:
    """Start anew in a fork, which has neither the threads nor the helpers of its parent."""
    _live.clear()
    queue.__init__()  # type: ignore[misc]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_helpers)
