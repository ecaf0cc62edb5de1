"""Requests at a fixed rate, each timed from when it was due."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

IDLE = 5.0  # seconds after which an idle connection is not reused


class Times:
    """The durations of requests, in seconds."""

    def __init__(self) -> None:
        self.each: list[float] = []

    def quantile(self, q: float) -> float:
        """Return a quantile in milliseconds."""
        return 1000 * float(np.quantile(self.each, q))

    def words(self) -> str:
        """Return the main quantiles as text."""
        most = ", ".join(f"p{100 * q:g} {self.quantile(q):.1f} ms" for q in (0.5, 0.9, 0.99, 0.999))
        return f"{len(self.each):,} requests: {most}"


class Connection:
    """A keep-alive connection for asyncio."""

    def __init__(self, port: int) -> None:
        self.port, self.used = port, time.perf_counter()
        self._streams: Any = None

    async def post(self, path: str, body: bytes) -> int:
        """Send a request and return the status."""
        if time.perf_counter() - self.used > IDLE and self._streams is not None:
            self._streams[1].close()  # the server may be about to close it
            self._streams = None
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self.port)
        reader, writer = self._streams
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        answer = await reader.readuntil(b"\r\n\r\n")
        length = int(answer.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        await reader.readexactly(length)
        self.used = time.perf_counter()
        return int(answer.split()[1])


async def paced(
    port: int,
    path: str,
    some: Sequence[bytes],
    rate: float,
    seconds: float,
    times: Times,
    seen: dict[int, int],
) -> None:
    """Send requests at a fixed rate, each timed from when it was due, on many connections."""
    free: list[Connection] = []
    begin, running = time.perf_counter(), set[asyncio.Task[None]]()

    async def one(due: float, body: bytes) -> None:
        connection = free.pop() if free else Connection(port)
        status = await connection.post(path, body)
        times.each.append(time.perf_counter() - due)
        seen[status] = seen.get(status, 0) + 1
        free.append(connection)

    for k in range(int(rate * seconds)):
        due = begin + k / rate
        if (early := due - time.perf_counter()) > 0:
            await asyncio.sleep(early)
        task = asyncio.create_task(one(due, some[k % len(some)]))
        running.add(task)
        task.add_done_callback(running.discard)
    await asyncio.gather(*running)
