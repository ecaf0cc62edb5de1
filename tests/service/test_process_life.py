"""The life of a server process: its start, its fatal failures and its end."""

import random
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager

import httpx
import pytest
from serving import OPTIONS, Server, serving, wait_until

from spanboost.client import Client, ServiceError

pytestmark = pytest.mark.process

# Programs that fail when the file that TRIGGER names exists.
BROKEN = """
import os, sys
def triggered(*_):
    return os.path.exists(os.environ["TRIGGER"])
def break_function(owner, name, error, when=triggered):
    real = getattr(owner, name)
    def broken(*args, **options):
        if when(*args):
            raise error
        return real(*args, **options)
    setattr(owner, name, broken)
{fault}
from spanboost.cli.main import program
program()
"""
IO_ERROR = "OSError(5, 'Input/output error')"
FAULTS = {
    "sync": f"break_function(os, 'fdatasync', {IO_ERROR})",
    "memory": """
from spanboost.service.storage.state import State
break_function(State, 'learn', MemoryError())
""",
    "pending": f"break_function(os, 'pread', {IO_ERROR})",
    "store": f"""
break_function(os, 'pwrite', {IO_ERROR})
break_function(os, 'ftruncate', {IO_ERROR})
""",
    "predictor": """
from spanboost.service.learning import shared_model
break_function(shared_model, 'predict_rows', RuntimeError())
""",
}
REASONS = {
    "sync": "the disk failed (Input/output error)",
    "memory": "the writer failed: out of memory",
    "pending": "the writer failed: a disk error (Input/output error)",
    "store": "the disk failed (Input/output error)",
    "predictor": "the predictor failed: internal error (RuntimeError)",
}
PREDICTING = {"store", "predictor"}  # faults that a prediction meets


@pytest.fixture
def start_broken(tmp_path, monkeypatch):
    """Start a server with a fault, which `trigger` activates."""
    trigger = tmp_path / "trigger"
    monkeypatch.setenv("TRIGGER", str(trigger))

    def start(fault, *options):
        code = BROKEN.format(fault=fault)
        return Server(tmp_path / "state", *(options or OPTIONS), program=("-c", code))

    return start, trigger.touch


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fatal_failure_ends_the_process_and_loses_nothing(tmp_path, start_broken, fault):
    start, trigger = start_broken
    server = start(FAULTS[fault])
    with Client(server.address, retries=0, timeout=30) as client:
        assert client.learn([{"x": k, "label": k} for k in range(30)], wait=True).learned == 30
        id = client.predict({"x": 1}).id
        trigger()
        acknowledged = 30
        if fault == "memory":  # the label is in the journal, and fails when it is learned
            acknowledged += client.label(id, 1.0).learned
        else:
            with pytest.raises(ServiceError) as caught:
                client.predict({"x": 2}) if fault in PREDICTING else client.label(id, 1.0)
            assert caught.value.status == 503
    assert server.process.wait(60) == 1
    server.wait()
    assert f"critical: the server ends: {REASONS[fault]}" in "".join(server.log)
    with serving(tmp_path / "state") as server, Client(server.address) as client:
        assert client.metrics()["spanboost_learned_rows_total"] >= acknowledged
        assert client.label(id, 1.0).problems == []  # learned before, or now


def test_a_failed_last_snapshot_is_reported(tmp_path, start_broken):
    start, trigger = start_broken
    fault = """
from spanboost.service.storage.state import State
break_function(State, 'save', OSError(28, 'No space left on device'))
"""
    server = start(fault)
    with Client(server.address) as client:
        client.learn([{"x": k, "label": k} for k in range(30)], wait=True)
    trigger()
    assert server.stop() == 1
    log = "".join(server.log)
    assert "writing a snapshot failed (No space left on device)" in log
    assert "the last snapshot could not be written" in log
    with serving(tmp_path / "state") as server, Client(server.address) as client:
        assert client.metrics()["spanboost_learned_rows_total"] == 30


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as sock:
        return sock.getsockname()[1]


@contextmanager
def start_process(folder):
    """Start a server, and return it with a client before it is ready."""
    port = free_port()
    command = [sys.executable, "-m", "spanboost", "serve", "--dir", str(folder), *OPTIONS]
    process = subprocess.Popen([*command, "--port", str(port)], stderr=subprocess.PIPE, text=True)
    address = f"http://127.0.0.1:{port}"
    with httpx.Client(base_url=address, timeout=30, trust_env=False) as client:
        try:
            yield process, client
        finally:
            process.terminate()
            process.communicate(timeout=60)


def first_answer(client, path):
    """Return the first answer of a server that may not listen yet."""
    answers = []

    def responds():
        try:
            answers.append(client.get(path))
        except httpx.TransportError:
            return False
        return True

    wait_until(responds)
    return answers[0]


def test_health_checks_are_answered_during_the_start(tmp_path):
    with start_process(tmp_path) as (process, client):
        first = first_answer(client, "/readyz")
        assert first.status_code == 503
        assert first.json()["status"] == "starting"
        assert client.get("/healthz").status_code == 200
        assert "spanboost_memory_bytes" in client.get("/metrics").text
        wait_until(lambda: client.get("/readyz").status_code == 200, 120)
        assert set(client.get("/readyz").json()["checks"].values()) == {"ok"}
        process.terminate()
        assert process.wait(60) == 0


def test_a_signal_during_the_start_ends_it(tmp_path):
    with start_process(tmp_path) as (process, client):
        first_answer(client, "/healthz")
        process.terminate()
        assert process.wait(60) == 0
    with serving(tmp_path) as server, Client(server.address) as client:
        assert client.learn([{"x": 1, "label": 1}]).learned == 1


class Sender(threading.Thread):
    """Sends batches until `stop` is set, with the default number of retries."""

    def __init__(self, number, address, stop):
        super().__init__(daemon=True)
        self.rng, self.address, self.stop = random.Random(number), address, stop
        self.sent, self.errors = 0, []

    def run(self):
        with Client(self.address) as client:
            while not self.stop.is_set():
                rows = [{"x": self.rng.random(), "label": 1.0} for _ in range(50)]
                try:
                    outcome = client.learn(rows)
                    self.sent += outcome.learned + outcome.duplicates
                except Exception as error:
                    self.errors.append(error)


def test_a_restart_under_load_fails_no_batch(tmp_path):
    server = Server(tmp_path, *OPTIONS)
    port, stop = server.port, threading.Event()
    senders = [Sender(k, server.address, stop) for k in range(8)]
    for sender in senders:
        sender.start()
    for _ in range(2):
        before = sum(sender.sent for sender in senders)
        wait_until(lambda before=before: sum(sender.sent for sender in senders) > before + 1000, 60)
        assert server.stop() == 0
        server = Server(tmp_path, *OPTIONS, port=port)
    stop.set()
    for sender in senders:
        sender.join(120)
    assert [error for sender in senders for error in sender.errors] == []
    assert server.stop() == 0
    with serving(tmp_path) as server, Client(server.address) as client:
        learned = client.metrics()["spanboost_learned_rows_total"]
    assert learned == sum(sender.sent for sender in senders)


def test_1100_idle_connections_do_not_shut_out_health_checks(tmp_path):
    resource = pytest.importorskip("resource")
    before, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= most < 2000:
        pytest.skip("the system does not allow 2,000 open files")
    with serving(tmp_path) as server:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(before, 2000), most))
        idle = [socket.create_connection(("127.0.0.1", server.port), 30) for _ in range(1100)]
        try:
            for path in ("/healthz", "/readyz", "/metrics"):
                assert httpx.get(f"{server.address}{path}", trust_env=False).status_code == 200
        finally:
            for sock in idle:
                sock.close()
            resource.setrlimit(resource.RLIMIT_NOFILE, (before, most))
