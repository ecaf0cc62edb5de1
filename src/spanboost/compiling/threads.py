"""Threads for independent tasks; compiled code releases the interpreter lock."""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, TypeVar

Result = TypeVar("Result")


def run_in_threads(
    task: Callable[[Any], Result], items: Iterable[Any], threads: int
) -> list[Result]:
    """Run the task for every item and return the results in order.

    If the caller is interrupted, it still waits until all tasks are finished.
    """
    with ThreadPoolExecutor(threads) as pool:
        # each in a copy of this thread's context, which holds NumPy's errstate
        running = [pool.submit(copy_context().run, task, item) for item in items]
        return [done.result() for done in running]


def cpu_count() -> int:
    """Return the number of CPUs that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
