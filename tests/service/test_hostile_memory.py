"""The memory of the service under hostile requests, while honest clients are served.

SPANBOOST_HOSTILE_SECONDS sets the duration. SPANBOOST_HOSTILE_CGROUP names the folder of a memory
cgroup for the server, which then gets no --max-memory (docs/service-reliability.md).
"""

import io
import itertools
import json
import os
import threading
import time

import httpx
import pyarrow as pa
import pytest
from serving import serving, wait_until

from spanboost.client import Client

pytestmark = [pytest.mark.process, pytest.mark.slow]

SECONDS = float(os.environ.get("SPANBOOST_HOSTILE_SECONDS", "20"))
MAX_MEMORY = 1024  # MiB
ATTACKERS = 16
BODY = 16 << 20
OPTIONS = ("--learner", "linear", "-n", "4", "--replay", "1")
CGROUP = os.environ.get("SPANBOOST_HOSTILE_CGROUP")
JOIN_CGROUP = """
import runpy
with open({!r}, "w") as file:
    file.write("0")
runpy.run_module("spanboost", run_name="__main__")
"""

JSON, LINES = "application/json", "application/x-ndjson"
ARROW = "application/vnd.apache.arrow.stream"


def hostile_service(folder):
    """Serve a folder with limited memory: in a cgroup if there is one, or by an option."""
    if CGROUP is None:
        return serving(folder, *OPTIONS, "--max-memory", str(MAX_MEMORY))
    program = ("-c", JOIN_CGROUP.format(os.path.join(CGROUP, "cgroup.procs")))
    return serving(folder, *OPTIONS, program=program)


def most_memory():
    """Return the memory that the server may use, in bytes."""
    if CGROUP is None:
        return MAX_MEMORY << 20
    for name in ("memory.max", "memory.limit_in_bytes"):
        path = os.path.join(CGROUP, name)
        if os.path.exists(path):
            with open(path) as file:
                return int(file.read())
    raise RuntimeError(f"{CGROUP} is not the folder of a memory cgroup")


def repeat(part, size=BODY):
    return part * (size // len(part))


def new_names(number):
    """Return a body of rows whose names nobody has used before."""
    rows = ({f"n{number}_{row}_{k}": 1 for k in range(9000)} | {"label": 1.0} for row in range(25))
    return "[" + ",".join(map(json.dumps, rows)) + "]"


def null_columns():
    """Return a small Arrow stream with millions of values that take no space in it."""
    columns = {f"c{k}": pa.nulls(10_000) for k in range(400)}
    table, sink = pa.table(columns), io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def wide_rows(number):
    """Return rows of half a megabyte with ids."""
    cells = {f"k{k}": "x" * 50 for k in range(8000)}
    return json.dumps([{"id": f"wide {number} {row}"} | cells for row in range(25)])


def predicted_rows():
    """Return a body that takes 50 times its size while it is parsed and predicted."""
    rows = [{f"k{k}": k + 0.5 for k in range(20)}] * 10_000
    return json.dumps(rows)


FIXED_BODIES = [
    ("/learn?on_error=skip", JSON, "[" + repeat("{},", BODY - 100) + "{}]"),
    ("/learn?on_error=skip", JSON, "[" + repeat("[],", BODY - 100) + "[]]"),
    ("/predict?keep=false", JSON, "[" + repeat('{"a":1},', BODY - 100) + '{"a":1}]'),
    ("/predict?keep=false", LINES, repeat("\n")),
    ("/predict?keep=false", LINES, repeat("1\n")),
    ("/predict?keep=false", JSON, '["😀' + repeat('","', BODY - 100) + '"]'),
    ("/predict?keep=false", JSON, "[" * 1_000_000),
    ("/predict?keep=false", ARROW, null_columns()),
    ("/learn", JSON, '{"' + "n" * (BODY - 100) + '": 1, "label": 1}'),
]


class Attacker(threading.Thread):
    """Sends hostile bodies until it is stopped."""

    def __init__(self, address, numbers, stop):
        super().__init__(daemon=True)
        self.address, self.numbers, self.stop = address, numbers, stop
        self.statuses = set()

    def run(self):
        with httpx.Client(base_url=self.address, timeout=150, trust_env=False) as client:
            while not self.stop.is_set():
                number = next(self.numbers)
                for path, kind, body in self.bodies(number):
                    self.send(client, path, kind, body)

    def bodies(self, number):
        choice = number % (len(FIXED_BODIES) + 2)
        if choice < len(FIXED_BODIES):
            return [FIXED_BODIES[choice]]
        if choice == len(FIXED_BODIES):
            return [("/learn?on_error=skip", JSON, new_names(number))]
        labels = [{"id": f"wide {number} {row}", "label": 1} for row in range(25)]
        return [("/predict", JSON, wide_rows(number)), ("/learn", JSON, json.dumps(labels))]

    def send(self, client, path, kind, body):
        try:
            response = client.post(path, content=body, headers={"Content-Type": kind})
            self.statuses.add(response.status_code)
        except httpx.TransportError:  # the server may close the connection before the body ends
            pass


def peak_memory(server):
    """Return the largest resident memory of the process so far, in bytes."""
    with open(f"/proc/{server.process.pid}/status") as file:
        line = next(line for line in file if line.startswith("VmHWM"))
    return int(line.split()[1]) << 10


def serve_honestly(client, number):
    """Predict a row and send its label, as an honest client does."""
    row = {"size": number % 7, "city": "Ulm" if number % 2 else "Bonn"}
    id = client.predict(row | {"id": f"honest {number}"}).id
    assert client.label(id, 2.0 * row["size"]).learned == 1


def test_hostile_bodies_do_not_take_the_memory_nor_the_service(tmp_path):
    stop, numbers = threading.Event(), itertools.count()
    with hostile_service(tmp_path / "state") as server:
        attackers = [Attacker(server.address, numbers, stop) for _ in range(ATTACKERS)]
        with Client(server.address, timeout=120) as client:
            serve_honestly(client, 0)
            for attacker in attackers:
                attacker.start()
            end = time.monotonic() + SECONDS
            served = 0
            while time.monotonic() < end:
                served += 1
                serve_honestly(client, served)
            stop.set()
            for attacker in attackers:
                attacker.join(150)
            serve_honestly(client, served + 1)
            learned = client.metrics()["spanboost_learned_rows_total"]
        statuses = set().union(*(attacker.statuses for attacker in attackers))
        assert statuses <= {200, 400, 408, 409, 410, 413, 422, 429, 503}
        assert 200 in statuses
        assert CGROUP is not None or 413 in statuses  # a cgroup may have room for all bodies
        assert peak_memory(server) < most_memory()
    with hostile_service(tmp_path / "state") as server, Client(server.address) as client:
        assert client.metrics()["spanboost_learned_rows_total"] >= learned
        assert peak_memory(server) < most_memory()


def test_memory_is_returned_after_large_requests(tmp_path):
    body, statuses = predicted_rows(), []
    with hostile_service(tmp_path / "state") as server:
        before = server.memory()

        def send():
            with httpx.Client(base_url=server.address, timeout=150, trust_env=False) as client:
                response = client.post(
                    "/predict?keep=false", content=body, headers={"Content-Type": JSON}
                )
                statuses.append(response.status_code)

        threads = [threading.Thread(target=send) for _ in range(ATTACKERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(150)
        assert set(statuses) <= {200, 429, 503}
        assert 200 in statuses
        assert before + (50 << 20) < peak_memory(server) < most_memory()
        growth = peak_memory(server) - before
        wait_until(lambda: server.memory() < before + 2 * growth / 3)
