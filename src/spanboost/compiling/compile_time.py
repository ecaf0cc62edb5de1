"""The time that this process has spent compiling, or waiting for a process that compiles for it."""

import functools
import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

PAUSE = 3.0  # seconds between stretches that count as apart


class Stopwatch:
    """Adds up the time in which at least one thread is inside its `with` block."""

    def __init__(self) -> None:
        self._seconds, self._began, self._inside = 0.0, 0.0, 0
        self._ended = self._resumed = -math.inf
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._began = time.perf_counter()
                if self._began - self._ended > PAUSE:
                    self._resumed = self._began
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._ended = time.perf_counter()
                self._seconds += self._ended - self._began

    @property
    def seconds(self) -> float:
        """The time so far."""
        with self._lock:
            running = time.perf_counter() - self._began if self._inside else 0.0
            return self._seconds + running

    @property
    def resumed(self) -> float:
        """When the last pause of at least `PAUSE` seconds ended; now if it has not."""
        with self._lock:
            now = time.perf_counter()
            paused = self._inside == 0 and now - self._ended > PAUSE
            return now if paused else self._resumed


compiling = Stopwatch()
_commands: list[float] = []  # when the commands that are running began


@contextmanager
def announce_once() -> Iterator[None]:
    """Announce compiling at most once inside the block; elsewhere, it is after each pause."""
    _commands.append(time.perf_counter())
    try:
        yield
    finally:
        _commands.pop()


def is_announced(watch: Stopwatch, announced: float) -> bool:
    """Return whether the last announcement, at this time, stands for what is compiled now."""
    return announced >= (_commands[-1] if _commands else watch.resumed)


def compile_seconds() -> float:
    """Return the seconds spent compiling since `measure_compiling` was first called.

    Loading compiled code from disk does not count. Threads that compile at the same time count
    once, so the result is never more than the time that has passed.
    """
    return compiling.seconds


@functools.cache
def measure_compiling() -> Any:
    """Start to add up the time of every compilation by Numba in this process."""
    from numba.core import event

    class Listener(event.Listener):  # type: ignore[misc]
        def on_start(self, _: Any) -> None:
            compiling.__enter__()

        def on_end(self, _: Any) -> None:
            compiling.__exit__()

    event.register("numba:compile", Listener())
