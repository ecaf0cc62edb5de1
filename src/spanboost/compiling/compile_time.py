"""The time that this process has spent compiling."""

import functools
from typing import Any


def compile_seconds() -> float:
    """Return the seconds spent compiling since `measure_compiling` was first called."""
    timer = measure_compiling() if measure_compiling.cache_info().currsize else None
    return float(timer.duration) if timer is not None and timer.done else 0.0


@functools.cache
def measure_compiling() -> Any:
    """Start to add up the time of every compilation; return Numba's timer.

    Numba compiles one function at a time, so the times of threads do not overlap. Loading compiled
    code from disk does not count.
    """
    from numba.core import event

    timer = event.TimingListener()
    event.register("numba:compile", timer)
    return timer
