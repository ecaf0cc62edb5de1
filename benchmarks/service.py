"""`python -m benchmarks.service`: measure the service and compare it with FastAPI + River."""

import asyncio
import http.client
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, NamedTuple

import numpy as np

from benchmarks import common
from benchmarks.environments import add_old, pythons
from benchmarks.measure import Row, publish
from benchmarks.paced_requests import Connection, Times, paced

ABOUT = """\
Start servers as separate processes on this machine and send requests over loopback. Rows have ten
numeric features. Bodies are JSON and prepared in advance. One client sends one batch after
another.

throughput: rows per second, predicted and learned in batches of 1,000, by `spanboost serve` (with
its journal and its pending rows) and by a plain FastAPI + River service (which stores nothing).
The two alternate. The labels come without ids, so all predicted rows stay pending.
latency: single predictions at 500 per second, while 5,000 rows per second are learned. Each is
timed from the moment it was due.
workers: rows per second, predicted with `keep=false` in batches of 1,000 on eight connections, by
`spanboost serve` with two processes and with one.
memory: resident memory 30 seconds after 16 large bodies were learned at the same time.
soak: mixed traffic for --minutes; reports errors, memory and times.

With --old, throughput and latency are also measured with another version of spanboost, in turn.
"""
ENDS = """\
examples:
  python -m benchmarks.service                             throughput and latency, some minutes
  python -m benchmarks.service --old ../old/.venv/bin/python   the same, and another version
  python -m benchmarks.service --only soak --minutes 10
"""
PENDING = ["--pending", "10000000", "--pending-bytes", "4096"]  # room for all rows
BATCH, NAMES = 1000, [f"x{j}" for j in range(10)]
PAIRS = {  # our options, and the model of the River service
    "one linear function": (["--learner", "linear", "-n", "1"], "linear"),
    "32 linear functions": (["--learner", "linear", "-n", "32"], "32 linear"),
    "100 boosted trees, against a forest of 10": (["--learner", "trees"], "10 trees"),
    "AutoBoost fast, against a forest of 10": (["--budget", "fast"], "10 trees"),
    "AutoBoost, against a forest of 10": ([], "10 trees"),
}


class Server(NamedTuple):
    """A server process that listens on a port."""

    port: int
    process: Any

    def memory(self) -> int:
        """Return the resident memory in bytes."""
        with open(f"/proc/{self.process.pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def running(
    command: Callable[[int], Sequence[str]], ready: str = "/healthz", python: str = sys.executable
) -> Iterator[Server]:
    """Start a server and wait until it answers requests to the path `ready` with status 200."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen([python, "-m", *command(port)], stderr=subprocess.PIPE)
    try:
        while True:
            with suppress(OSError):
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
                connection.request("GET", ready)
                if connection.getresponse().status == 200:
                    break
            if process.poll() is not None:
                raise SystemExit(process.stderr.read().decode())
            time.sleep(0.2)
        yield Server(port, process)
    finally:
        process.terminate()
        process.communicate(timeout=60)


@contextmanager
def ours(options: Sequence[str], python: str = sys.executable) -> Iterator[Server]:
    """Start `spanboost serve` with an empty folder."""
    with tempfile.TemporaryDirectory() as folder:
        start = ["spanboost", "serve", "--dir", folder, "--quiet", *options, "--port"]
        with running(lambda port: [*start, str(port)], "/readyz", python) as server:
            yield server


def ask(connection: Any, method: str, path: str, body: bytes | None = None) -> bytes:
    """Send one request and require status 200."""
    connection.request(method, path, body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    data = answer.read()
    if answer.status != 200:
        raise SystemExit(f"{path}: {answer.status}: {data[:300].decode()}")
    return data


def bodies(
    number: int, rows: int, seed: int = 0, names: Sequence[str] = NAMES
) -> list[tuple[bytes, bytes]]:
    """Return batches to predict, and the same batches to learn."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(number):
        X = rng.uniform(-1, 1, (rows, len(names)))
        y = 0.1 * X.sum(axis=1) * np.abs(X[:, 0])
        plain = [dict(zip(names, map(float, x), strict=True)) for x in X]
        labelled = [row | {"label": float(t)} for row, t in zip(plain, y, strict=True)]
        found.append((json.dumps(plain).encode(), json.dumps(labelled).encode()))
    return found


def speed(server: Server, batches: Sequence[tuple[bytes, bytes]], seconds: float) -> float:
    """Return rows per second, predicted and then learned, until all rows are learned."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=600)
    for body in batches[0]:
        ask(connection, "POST", "/predict" if body is batches[0][0] else "/learn", body)
    began, done = time.perf_counter(), 0
    while time.perf_counter() - began < seconds:
        predict, learn = batches[done % len(batches)]
        ask(connection, "POST", "/predict", predict)
        ask(connection, "POST", "/learn", learn)
        done += 1
    settle(connection)
    return done * BATCH / (time.perf_counter() - began)


def settle(connection: Any) -> None:
    """Wait until our queue is empty; the River service learns before it answers."""
    connection.request("GET", "/metrics")
    answer = connection.getresponse()
    text = answer.read().decode()
    if answer.status == 200 and "\nspanboost_waiting_rows 0\n" not in text:
        time.sleep(0.01)
        settle(connection)


def throughput(args: Any) -> Iterator[Row]:
    """Compare with River, for each pair of models."""
    seconds = 2.0 if args.quick else 10.0
    batches = bodies(10, BATCH)
    for name, (options, rival) in PAIRS.items():
        with ExitStack() as opened:
            servers = {
                version: opened.enter_context(ours([*options, *PENDING], python))
                for version, python in pythons(args.old).items()
            }
            start = ["benchmarks.river_service", rival]
            servers["River"] = opened.enter_context(running(lambda port, s=start: [*s, str(port)]))
            best = dict.fromkeys(servers, 0.0)
            for _ in range(1 if args.quick else 2):
                for version, server in servers.items():
                    best[version] = max(best[version], speed(server, batches, seconds))
        target = ">= 5" if rival == "linear" else ">= 50"
        old = "" if args.old is None else f"old: {best['old']:,.0f} rows/s"
        yield Row(f"predict and learn, {name}", "rows/s", best["new"], best["River"], target, old)


def latency(args: Any) -> Iterator[Row]:
    """Measure single predictions while the service learns."""
    seconds = 3.0 if args.quick else 20.0
    single = [predict for predict, _ in bodies(200, 1)]
    batches = [learn for _, learn in bodies(50, 100, 1)]
    for options in (["--learner", "linear"], ["--budget", "fast"], ["--budget", "default"]):
        found = dict[str, tuple[Times, dict[int, int]]]()
        for version, python in pythons(args.old).items():
            with ours([*options, *PENDING], python) as server:
                speed(server, bodies(2, BATCH), 1.0)
                found[version] = asyncio.run(while_learning(server.port, single, batches, seconds))
        name = f"single predictions, 500/s, while learning 5,000 rows/s, {' '.join(options)}: p99"
        words = "; ".join(f"{one}: {times.words()}; {seen}" for one, (times, seen) in found.items())
        yield Row(name, "ms", found["new"][0].quantile(0.99), None, "<= 10", words)


async def while_learning(
    port: int, single: Sequence[bytes], batches: Sequence[bytes], seconds: float
) -> tuple[Times, dict[int, int]]:
    """Return the durations of single predictions and the counts of all statuses."""
    times, seen = Times(), dict[int, int]()
    await asyncio.gather(
        paced(port, "/predict", single, 500, seconds, times, seen),
        paced(port, "/learn", batches, 50, seconds, Times(), seen),
    )
    return times, seen


def workers(args: Any) -> Iterator[Row]:
    """Compare the predictions of two processes with those of one."""
    seconds, batches = 2.0 if args.quick else 10.0, bodies(10, BATCH)
    for options in (["--learner", "linear"], ["--budget", "default"]):
        speeds = list[float]()
        for number in (1, 2):
            with ours([*options, "--workers", str(number)]) as server:
                wait_for_workers(server.port, number - 1)
                speed(server, batches, 1.0)
                some = [predict for predict, _ in batches]
                speeds.append(asyncio.run(predictions(server.port, some, seconds)))
        name = f"predictions with 2 processes, against 1, {' '.join(options)}"
        yield Row(name, "rows/s", speeds[1], speeds[0], ">= 1.5")


def wait_for_workers(port: int, number: int) -> None:
    """Wait until this many worker processes are ready."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    while json.loads(ask(connection, "GET", "/readyz")).get("workers", {}).get("ready", 0) < number:
        time.sleep(0.2)


async def predictions(port: int, some: Sequence[bytes], seconds: float) -> float:
    """Return rows per second, predicted on eight connections that are opened one by one."""
    done, connections = 0, [Connection(port) for _ in range(8)]
    for connection in connections:
        await connection.post("/predict?keep=false", some[0])
    began = time.perf_counter()

    async def repeat(connection: Connection) -> None:
        nonlocal done
        while time.perf_counter() - began < seconds:
            if await connection.post("/predict?keep=false", some[done % len(some)]) != 200:
                raise SystemExit("a prediction failed")
            done += 1

    await asyncio.gather(*map(repeat, connections))
    return done * BATCH / (time.perf_counter() - began)


def soak(args: Any) -> Iterator[Row]:
    """Send mixed traffic for a long time."""
    seconds = 5.0 if args.quick else 60 * args.minutes
    rng = random.Random(0)
    single = [predict for predict, _ in bodies(500, 1)]
    many = [predict for predict, _ in bodies(20, 100)]
    learn = [learn for _, learn in bodies(50, 50, 1)]
    rng.shuffle(learn)
    with ours(["--learner", "linear", "--snapshot-every", "20000"]) as server:
        times, seen, memory = Times(), dict[int, int](), list[int]()

        async def watch() -> None:
            while True:
                memory.append(server.memory())
                await asyncio.sleep(seconds / 60)

        async def all_of_it() -> None:
            watching = asyncio.create_task(watch())
            await asyncio.gather(
                paced(server.port, "/predict", single, 100, seconds, times, seen),
                paced(server.port, "/predict", many, 5, seconds, Times(), seen),
                paced(server.port, "/learn", learn, 20, seconds, Times(), seen),
            )
            watching.cancel()

        asyncio.run(all_of_it())
    third = len(memory) // 3
    growth = (max(memory[-third:]) - max(memory[third : 2 * third])) / (1 << 20)
    errors = sum(count for status, count in seen.items() if status != 200)
    words = f"RSS {memory[third] >> 20} MiB after one third, {memory[-1] >> 20} MiB at the end"
    yield Row(f"soak, {seconds:.0f} s: errors", "", errors, None, "<= 0", times.words())
    yield Row(
        "soak: growth of memory, last third minus middle third", "MiB", growth, None, "<= 8", words
    )


def memory(args: Any) -> Iterator[Row]:
    """Learn large bodies at the same time, and look at the memory before, during and after."""
    rounds, several = (1, 2) if args.quick else (2, 16)
    large = [learn for _, learn in bodies(several, 10_000, names=[f"x{j}" for j in range(50)])]
    with ours(["--learner", "linear"]) as server:
        ask(http.client.HTTPConnection("127.0.0.1", server.port), "POST", "/learn", b'{"label": 1}')
        time.sleep(5)
        before, sizes = server.memory(), list[int]()

        async def send(body: bytes) -> None:
            connection = Connection(server.port)
            while await connection.post("/learn", body) != 200:  # too many rows wait, for example
                await asyncio.sleep(1)

        async def send_all() -> None:
            sending = asyncio.gather(*map(send, large))
            while not sending.done():
                sizes.append(server.memory())
                await asyncio.sleep(0.05)
            await sending

        for number in range(1, rounds + 1):
            sizes.clear()
            asyncio.run(send_all())
            time.sleep(5 if args.quick else 30)
            after = (server.memory() - before) / (1 << 20)
            words = f"RSS {before >> 20} MiB before, {max(sizes) >> 20} MiB at the peak"
            name = (
                f"memory 30 s after {several} bodies of {len(large[0]) >> 20} MiB, round {number}"
            )
            yield Row(name, "MiB more", after, note=words)


SECTIONS = {
    "throughput": throughput,
    "latency": latency,
    "workers": workers,
    "memory": memory,
    "soak": soak,
}


def main() -> None:
    """Measure the chosen parts and print the table."""
    parser = common.parser("service", ABOUT, ENDS)
    parser.add_argument(
        "--only",
        nargs="+",
        choices=SECTIONS,
        default=["throughput", "latency"],
        metavar="NAME",
        help="Parts: throughput, latency, workers, memory, soak (default: throughput latency)",
    )
    parser.add_argument(
        "--minutes",
        type=float,
        default=10.0,
        help="Duration of the soak test in minutes (default: 10)",
    )
    add_old(parser)
    args = parser.parse_args()
    load = os.getloadavg()[0]
    rows: list[Row] = []
    for name in args.only:
        for row in SECTIONS[name](args):
            common.say(f"{row.measure}: {row.ours:.1f} {row.unit}; {row.note}")
            rows.append(row)
    publish(args, rows, load, busy="the times are too long")


if __name__ == "__main__":
    main()
