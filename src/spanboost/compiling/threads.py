"""Work that shares nothing, in threads: compiled code lets other threads run."""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, TypeVar

Result = TypeVar("Result")


def run_in_threads(
    task: Callable[[Any], Result], items: Iterable[Any], threads: int
) -> list[Result]:
    """The task of every item; all of them are done, whatever happens to the caller meanwhile."""
    with ThreadPoolExecutor(threads) as pool:
        # each in a copy of this thread's context: NumPy keeps there what it is told to ignore
        running = [pool.submit(copy_context().run, task, item) for item in items]
        return [done.result() for done in running]


def cpu_count() -> int:
    """How many threads there is use for."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
