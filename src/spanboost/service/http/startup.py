"""The start of the service: a thread opens the state folder while health checks are answered."""

import threading
import time
from collections.abc import Callable
from logging import INFO

from spanboost.service.histogram import Histogram
from spanboost.service.log import write_log

OPENING, REPLAYING, COMPILING = "opening the folder", "replaying the journal", "compiling"
COPYING = "copying the folder of the leader"
LOG_SECONDS = 10.0  # time between two lines about the progress of a replay


class CancelledError(Exception):
    """The server was stopped before it had started."""


class StartProgress:
    """How far the start is. One thread changes it; all threads may read it."""

    def __init__(self) -> None:
        self.phase = OPENING
        self.done = self.size = 0  # bytes of the journal: replayed, in total
        self.replay_seconds = Histogram()
        self._cancelled = False
        self._logged = self._began = time.monotonic()

    def update(self, done: int, size: int) -> None:
        """Note how many bytes of the journal have been replayed, of how many."""
        if self._cancelled:
            raise CancelledError
        now = time.monotonic()
        if self.phase in (OPENING, COPYING):
            self.phase, self._began = REPLAYING, now
        self.done, self.size = done, size
        if now - self._logged > LOG_SECONDS:
            self._logged = now
            write_log(INFO, f"{REPLAYING}: {done:,} of {size:,} bytes")

    def begin_copying(self) -> None:
        """Note that a follower copies the folder of its leader, or tries to."""
        if self._cancelled:
            raise CancelledError
        self.phase = COPYING

    def begin_compiling(self) -> None:
        """Note that the replay has ended and that code is compiled or loaded."""
        if self.phase == REPLAYING:
            self.replay_seconds.add(time.monotonic() - self._began)
        self.phase = COMPILING

    def cancel(self) -> None:
        """Let the replay end with an error at its next record."""
        self._cancelled = True

    def __str__(self) -> str:
        replayed = f" ({self.done:,} of {self.size:,} bytes)" if self.phase == REPLAYING else ""
        return f"{self.phase}{replayed}"


class StartThread:
    """Runs `start` in a thread, and calls `on_error` if it fails; `error` is the reason."""

    def __init__(self, start: Callable[[], None], on_error: Callable[[], None]) -> None:
        self.error: BaseException | None = None
        self._start, self._on_error = start, on_error
        self._thread = threading.Thread(target=self._run, name="spanboost-start", daemon=True)
        self._thread.start()

    def wait(self, seconds: float) -> None:
        """Wait for the end of the thread; raise the error of a start that failed."""
        self._thread.join(seconds)
        if self.error is not None:
            raise self.error

    def _run(self) -> None:
        try:
            self._start()
        except CancelledError:
            pass
        except BaseException as error:  # the main thread raises it again
            self.error = error
            self._on_error()
