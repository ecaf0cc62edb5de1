"""Memory for the rows of requests: reserved before a body is parsed, returned after the work.

Requests that need much memory wait for it, in order. They never take all of it, so that small
requests are served at once.
"""

import asyncio
import threading
from collections import deque
from concurrent.futures import Future
from typing import Self

from spanboost.service.learning.worker import BusyError
from spanboost.service.memory import release_unused, resident_memory

SMALL = 1 << 21  # bytes; such a request does not wait behind larger ones
LARGE_SHARE = 7 / 8  # of the memory, which larger requests may take

TRIM_SECONDS, TRIM_BYTES = 2.0, 1 << 24  # how often to return memory, and after which growth


class TooLargeError(Exception):
    """A request needs more memory than any request may take."""


class MemoryPool:
    """A number of bytes that requests share. All threads may use it."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.reserved = 0
        self._waiting: deque[tuple[int, Future[None]]] = deque()
        self._lock = threading.Lock()

    @property
    def most(self) -> int:
        """The largest number of bytes that one request may take."""
        return max(int(LARGE_SHARE * self.limit), SMALL)

    def ask(self, size: int) -> "Future[None]":
        """Return a future that is done when the bytes are reserved."""
        self.check(size)
        future: Future[None] = Future()
        with self._lock:
            if size <= SMALL:
                self._waiting.appendleft((size, future))
            else:
                self._waiting.append((size, future))
            self._grant()
        return future

    def take(self, size: int) -> None:
        """Reserve bytes now; raises BusyError if others have them."""
        self.check(size)
        with self._lock:
            if not self._has_room(size):
                raise BusyError
            self.reserved += size

    def give_back(self, size: int) -> None:
        """Return bytes, and reserve them for requests that wait."""
        with self._lock:
            self.reserved -= size
            self._grant()

    def check(self, size: int) -> None:
        """Raise TooLargeError if no request may take this many bytes."""
        if size > self.most:
            raise TooLargeError(
                f"the request needs about {size:,} bytes of memory (maximum: {self.most:,}); "
                "send fewer rows in a request, or start the service with more --max-memory"
            )

    def _has_room(self, size: int) -> bool:
        return self.reserved + size <= (self.limit if size <= SMALL else self.most)

    def _grant(self) -> None:
        while self._waiting and self._has_room(self._waiting[0][0]):
            size, future = self._waiting.popleft()
            if future.set_running_or_notify_cancel():
                self.reserved += size
                future.set_result(None)


class IdleTrimmer:
    """A thread that returns memory to the operating system after large requests."""

    def __init__(self, pool: MemoryPool) -> None:
        self._pool, self._stop = pool, threading.Event()
        self._thread = threading.Thread(target=self._run, name="spanboost-memory", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        after = resident_memory()  # after memory was returned for the last time
        while not self._stop.wait(TRIM_SECONDS):
            if self._pool.reserved <= SMALL and resident_memory() > after + TRIM_BYTES:
                release_unused()
                after = resident_memory()


class Reservation:
    """Memory that a request has reserved. It is returned when no holder needs it any more."""

    def __init__(self, pool: MemoryPool) -> None:
        self.pool, self.size = pool, 0
        self._holders = 1
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    async def grow(self, size: int) -> None:
        """Reserve more memory; wait for it if necessary."""
        future = self.pool.ask(size)
        try:
            await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():  # granted at the same moment
                self.pool.give_back(size)
            raise
        self.size += size

    async def enlarge(self, size: int) -> None:
        """Reserve more memory besides what is reserved.

        Two requests that hold memory and wait for more would wait for each other. So a small
        request returns its memory while it waits, and a large one gets a BusyError.
        """
        self.pool.check(self.size + size)
        if self.size > SMALL:
            self.pool.take(size)
            self.size += size
            return
        total, self.size = self.size + size, 0
        self.pool.give_back(total - size)
        await self.grow(total)

    def share(self) -> None:
        """Add a holder, who must call `release` as well."""
        with self._lock:
            self._holders += 1

    def release(self) -> None:
        """Remove a holder; the last one returns the memory."""
        with self._lock:
            self._holders -= 1
            last = self._holders == 0
        if last:
            self.pool.give_back(self.size)
