"""Run independent tasks in threads, which compiled code allows by releasing the GIL."""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, TypeVar

Result = TypeVar("Result")


def run_in_threads(
    task: Callable[[Any], Result], items: Iterable[Any], threads: int
) -> list[Result]:
    """Return the result of the task for every item; all tasks finish, even if the caller fails."""
    with ThreadPoolExecutor(threads) as pool:
        # each in a copy of this thread's context, which holds NumPy's error settings
        running = [pool.submit(copy_context().run, task, item) for item in items]
        return [done.result() for done in running]


def cpu_count() -> int:
    """Return the number of processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
