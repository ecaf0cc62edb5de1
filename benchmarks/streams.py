"""`python -m benchmarks.streams`: measure the worker that reads Kafka topics and Redis streams."""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from benchmarks import common

ABOUT = """\
Fill a topic or a stream with rows of ten numeric features, and run `spanboost work --drain` until
it has processed them. Redis is a real server. Kafka is the mock cluster of librdkafka, in a process
of its own: it says what the worker costs, not what a broker costs.

learned: rows with labels. predicted: rows without labels, whose predictions are written back.
The times are those of a run minus those of a run without rows, which is the start of the process.
Rows per processor second count the worker's own time, and not that of the message system.
"""
ENDS = """\
examples:
  python -m benchmarks.streams
  python -m benchmarks.streams --system redis
"""
MOCK = """
import logging, sys
from confluent_kafka import Producer
quiet = logging.getLogger("mock")
quiet.disabled = True
producer = Producer({"bootstrap.servers": "unused:1", "test.mock.num.brokers": 1}, logger=quiet)
(broker,) = producer.list_topics(timeout=10).brokers.values()
print(f"{broker.host}:{broker.port}", flush=True)
sys.stdin.read()
"""
PARTITIONS = 4  # of every topic of the mock cluster, which keeps 5 MB of each
FORMS = {"JSON, 1 row": 1, "JSON, 100 rows": 100, "Arrow, 1,000 rows": 1000}
MODELS = {"32 linear functions": ["--learner", "linear", "-n", "32"], "AutoBoost": []}


class System(Protocol):
    """A message system."""

    def url(self, name: str, reading: bool = False) -> str:
        """Return the address of a topic or stream, to read it or to write to it."""

    def send(self, name: str, payloads: Sequence[bytes]) -> None:
        """Create a topic or stream, and write messages to it."""


class Times(NamedTuple):
    """The times of a run of the worker."""

    seconds: float
    processor: float


class Redis:
    """A real server."""

    def __init__(self, port: int) -> None:
        import redis

        self.port, self.client = port, redis.Redis(port=port)

    def url(self, name: str, reading: bool = False) -> str:
        """Return the address of a stream."""
        return f"redis://127.0.0.1:{self.port}/{name}"

    def send(self, name: str, payloads: Sequence[bytes]) -> None:
        """Create a stream, and write messages to it."""
        self.client.xadd(name, {"data": b""})  # an empty message is ignored
        pipeline = self.client.pipeline(transaction=False)
        for payload in payloads:
            pipeline.xadd(name, {"data": payload})
        pipeline.execute()


class Kafka:
    """The mock cluster."""

    def __init__(self, address: str) -> None:
        from confluent_kafka import Producer

        self.address, self.producer = address, Producer({"bootstrap.servers": address})

    def url(self, name: str, reading: bool = False) -> str:
        """Return the address of a topic; it is read without a group, which takes time to begin."""
        partitions = ",".join(map(str, range(PARTITIONS)))
        return f"kafka://{self.address}/{name}" + (f"?partitions={partitions}" if reading else "")

    def send(self, name: str, payloads: Sequence[bytes]) -> None:
        """Create a topic, and write messages to it."""
        self.producer.list_topics(name, timeout=10)
        for k, payload in enumerate(payloads):
            self.producer.produce(name, payload, partition=k % PARTITIONS)
            self.producer.poll(0)
        if self.producer.flush(60):
            raise SystemExit("the mock cluster did not take all messages")


@contextmanager
def redis_server() -> Iterator[System]:
    """Run a Redis server."""
    if shutil.which("redis-server") is None:
        raise SystemExit("redis-server is not installed; use --system kafka")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        words = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
        process = subprocess.Popen(words, cwd=folder, stdout=subprocess.DEVNULL)
        try:
            time.sleep(1.0)
            yield Redis(port)
        finally:
            process.kill()
            process.wait()


@contextmanager
def mock_kafka() -> Iterator[System]:
    """Run a mock cluster."""
    words, pipe = [sys.executable, "-c", MOCK], subprocess.PIPE
    process = subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True)
    assert process.stdout is not None
    try:
        yield Kafka(process.stdout.readline().strip())
    finally:
        process.kill()
        process.communicate()


SYSTEMS = {"redis": redis_server, "kafka": mock_kafka}


def payloads(rows: int, form: str, labelled: bool) -> list[bytes]:
    """Return messages with rows of ten features, some of them with labels."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (rows, 10)).round(4)
    columns = {f"x{j}": X[:, j] for j in range(10)}
    if labelled:
        columns["label"] = (X[:, 0] - X[:, 1]).round(4)
    each, starts = FORMS[form], range(0, rows, FORMS[form])
    if form.startswith("Arrow"):
        return [_arrow({k: v[t : t + each] for k, v in columns.items()}) for t in starts]
    numbers = np.column_stack([*columns.values()]).tolist()
    values = [dict(zip(columns, row, strict=True)) for row in numbers]
    if each == 1:
        return [json.dumps(value).encode() for value in values]
    return [json.dumps(values[t : t + each]).encode() for t in starts]


def _arrow(columns: dict[str, Any]) -> bytes:
    import pyarrow as pa

    table, sink = pa.table(columns), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def drain(system: System, name: str, options: Sequence[str]) -> Times:
    """Run a worker until it has processed a stream."""
    with tempfile.TemporaryDirectory() as folder:
        words = [
            "work",
            "--from",
            system.url(name, reading=True),
            "--to",
            system.url(f"{name}-answers"),
        ]
        words += ["--dir", str(Path(folder) / "state"), "--port", "0", "--drain", *options]
        words += ["--pending", "1000000"]
        began = time.perf_counter()
        with open(Path(folder) / "log", "w+") as log:
            process = subprocess.Popen([sys.executable, "-m", "spanboost", *words], stderr=log)
            _, status, used = os.wait4(process.pid, 0)
            if status:
                log.seek(0)
                raise SystemExit(log.read())
        return Times(time.perf_counter() - began, used.ru_utime + used.ru_stime)


def measure(kind: str, rows: int, repeats: int) -> Iterator[dict[str, Any]]:
    """Measure one message system."""
    with SYSTEMS[kind]() as system:
        system.send("none", [b""])
        system.send("none-answers", [])
        for model, options in MODELS.items():
            drain(system, "none", options)  # compiles the code
            start = [drain(system, "none", ["--group", f"g{k}", *options]) for k in range(repeats)]
            for task in ("learned", "predicted"):
                for number, form in enumerate(FORMS):
                    name = f"{task}-{number}"
                    if model == next(iter(MODELS)):
                        system.send(name, payloads(rows, form, task == "learned"))
                        system.send(f"{name}-answers", [])
                    groups = [["--group", f"{len(model)}-{k}"] for k in range(repeats)]
                    runs = [drain(system, name, [*group, *options]) for group in groups]
                    wall, processor = (
                        rows / max(min(one[k] for one in runs) - min(one[k] for one in start), 1e-3)
                        for k in range(2)
                    )
                    common.say(f"{kind}, {model}, {task}, {form}")
                    yield {
                        "system": kind,
                        "model": model,
                        "task": task,
                        "message": form,
                        "rows_per_second": wall,
                        "rows_per_processor_second": processor,
                    }


def main() -> None:
    """Measure the chosen systems and print the table."""
    parser = common.parser("streams", ABOUT, ENDS)
    common.add_choice(parser, "--system", SYSTEMS, "Message systems")
    args = parser.parse_args()
    rows, repeats = (2000, 1) if args.quick else (20_000, 2)
    load = os.getloadavg()[0]
    found = [row for kind in args.system for row in measure(kind, rows, repeats)]
    head = ["system", "model", "task", "message", "rows/s", "rows/processor second"]
    lines = [
        [*list(row.values())[:4], *(f"{value:,.0f}" for value in list(row.values())[4:])]
        for row in found
    ]
    common.show(head, lines)
    if load > 0.5:
        print(f"\nThe machine was busy (load {load:.1f}), so rows/s are too low.")
    common.save(args.json, found, size=rows, load_before=load)


if __name__ == "__main__":
    main()
