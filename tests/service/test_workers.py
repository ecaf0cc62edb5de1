"""Several processes on one port: `spanboost serve --workers N`."""

import contextlib
import os
import signal
import socket
import time
from pathlib import Path

import httpx
import pytest
from serving import OPTIONS, Server, serving, wait_until

from spanboost.client import Client

pytestmark = pytest.mark.process
TOKENS = {"predict": "p" * 16, "learn": "l" * 16, "admin": "a" * 16}
ROW = {"x": 1.0, "z": 2.0}


def children(pid):
    """Return the ids of the worker processes of a server."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    return [int(one) for thread in threads for one in (thread / "children").read_text().split()]


def is_running(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0] != "Z"
    return False


def metrics(server, token=None):
    with Client(server.address, admin_token=token) as client:
        return client.metrics()


def ready_workers(server):
    reply = httpx.get(f"{server.address}/readyz", trust_env=False)
    return reply.json()["workers"]["ready"]


def predicted_by_workers(server, token=None):
    named = metrics(server, token)
    return sum(v for k, v in named.items() if k.startswith("spanboost_worker_predicted_rows"))


def new_connection(server):
    return httpx.Client(base_url=server.address, timeout=60, trust_env=False)


@contextlib.contextmanager
def only_workers(server):
    """Stop the leader from accepting connections: workers answer, and nothing is passed on."""
    os.kill(server.process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(server.process.pid, signal.SIGCONT)


@contextlib.contextmanager
def worker_client(server):
    """Return a client whose connection the worker has accepted."""
    with new_connection(server) as client:
        with only_workers(server):
            assert client.get("/healthz").json() == {"status": "alive"}
        yield client


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("workers") / "state"
    with serving(folder, *OPTIONS, "--workers", "2") as one:
        wait_until(lambda: ready_workers(one) == 1, 120)
        yield one


def test_a_worker_predicts_what_the_leader_predicts_and_passes_the_rest_on(server):
    with Client(server.address) as client:
        client.learn([{"x": k / 100, "z": 1.0, "label": k / 50} for k in range(100)], wait=True)
        wait_until(lambda: metrics(server)['spanboost_worker_lag_records{worker="1"}'] == 0, 60)
        want = client.predict(ROW).value
        model = client.model()
    with only_workers(server), new_connection(server) as worker:
        reply = worker.post("/predict?keep=false", json=ROW)
        assert reply.json() == {"prediction": want}
    with worker_client(server) as one:
        assert one.get("/model").content == model
        assert one.head("/model").headers["content-length"] == str(len(model))
        kept = one.post("/predict", json=ROW).json()
        assert kept["prediction"] == want
        reply = one.post("/learn", json={"id": kept["id"], "label": 1})
        assert (reply.status_code, reply.json()["learned"]) == (200, 1)
        chunks = iter([b'[{"x": 1, "label"', b": 1}]"])
        kind = {"Content-Type": "application/json"}
        assert one.post("/learn", content=chunks, headers=kind).json()["learned"] == 1
        reply = one.get("/nowhere", headers={"X-Request-ID": "mine"})
        assert (reply.status_code, reply.headers["x-request-id"]) == (404, "mine")
        assert reply.headers.get_list("x-frame-options") == ["DENY"]
        assert len(reply.headers.get_list("date")) == 1


def test_a_worker_streams_events_until_the_client_disconnects(server):
    with worker_client(server) as client, client.stream("GET", "/events") as events:
        lines = events.iter_lines()
        assert next(line for line in lines if line.startswith("data: "))
        assert next(line for line in lines if line.startswith("data: "))
    name = 'spanboost_requests_total{path="/events",status="200"}'
    wait_until(lambda: metrics(server).get(name) == 1, 60)  # counted when it has ended


def test_a_body_that_the_leader_refuses_ends_the_connection_to_the_worker(server):
    with contextlib.ExitStack() as stack:
        with only_workers(server):  # the leader must not accept the connection
            client = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), 60))
            client.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            reply = b""
            while b"alive" not in reply:
                reply += client.recv(1 << 16)
        head = b"POST /learn HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        client.sendall(head + b"Content-Length: 1000000000\r\n\r\n[")
        reply = b"".join(iter(lambda: client.recv(1 << 16), b""))
    assert reply.startswith(b"HTTP/1.1 413 ")
    assert reply.lower().count(b"connection: close") == 1


def test_a_killed_worker_is_started_again_and_catches_up(server):
    (worker,) = children(server.process.pid)
    with Client(server.address) as client:
        client.learn([{"x": 1, "label": 1}] * 10, wait=True)
        os.kill(worker, signal.SIGKILL)
        client.learn([{"x": 1, "label": 3}] * 10, wait=True)
    wait_until(lambda: metrics(server)["spanboost_worker_restarts_total"] == 1, 60)
    wait_until(lambda: ready_workers(server) == 1, 120)
    assert children(server.process.pid) != [worker]
    assert metrics(server)['spanboost_worker_lag_records{worker="1"}'] == 0


def test_workers_end_with_the_leader(tmp_path):
    for end in (signal.SIGTERM, signal.SIGKILL):
        server = Server(tmp_path / "state", *OPTIONS, "--workers", "3")
        wait_until(lambda server=server: ready_workers(server) == 2, 120)
        workers = children(server.process.pid)
        assert len(workers) == 2
        os.kill(server.process.pid, end)
        server.process.wait(60)
        wait_until(lambda workers=workers: not any(map(is_running, workers)), 60)
        server.wait()
        assert server.process.returncode == (0 if end == signal.SIGTERM else -end)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", server.port), 5)


def test_open_requests_are_answered_when_the_server_stops(tmp_path):
    server = Server(tmp_path / "state", *OPTIONS, "--workers", "2")
    wait_until(lambda: ready_workers(server) == 1, 120)

    def body():
        yield b'[{"x": 1, "label": 1}'
        time.sleep(2)  # until the worker has passed it on: a later request would be refused
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        yield b"]"

    with worker_client(server) as client:
        kind = {"Content-Type": "application/json"}
        assert client.post("/learn", content=body(), headers=kind).json()["learned"] == 1
    server.wait()
    assert server.process.returncode == 0


def test_the_leader_counts_wrong_tokens_for_all_processes(tmp_path):
    with serving(tmp_path / "state", *OPTIONS, "--workers", "2", tokens=TOKENS) as server:
        wait_until(lambda: ready_workers(server) == 1, 120)
        right, wrong = ({"Authorization": f"Bearer {t}"} for t in (TOKENS["predict"], "w" * 16))
        path = "/predict?keep=false"
        with new_connection(server) as one, worker_client(server) as other:
            replies = [c.post(path, json=ROW, headers=wrong) for c in [one, other] * 12]
            statuses = [reply.status_code for reply in replies]
            assert statuses == [401] * 20 + [429] * 4
            # the worker does not tell that the token is right
            assert other.post(path, json=ROW, headers=right).status_code == 429


def test_a_worker_answers_itself_after_the_leader_has_accepted_the_token(tmp_path):
    with serving(tmp_path / "state", *OPTIONS, "--workers", "2", tokens=TOKENS) as server:
        wait_until(lambda: ready_workers(server) == 1, 120)
        right = {"Authorization": f"Bearer {TOKENS['predict']}"}
        with worker_client(server) as client:
            assert client.post("/predict?keep=false", json=ROW, headers=right).status_code == 200
            assert predicted_by_workers(server, TOKENS["admin"]) == 0
            assert client.post("/predict?keep=false", json=ROW, headers=right).status_code == 200
            wait_until(lambda: predicted_by_workers(server, TOKENS["admin"]) == 1, 60)
            forged = right | {"X-Spanboost-Client": "guess 10.0.0.1 80"}
            assert client.post("/predict", json=ROW, headers=forged).status_code == 200
            assert client.post("/learn", json=ROW, headers=right).status_code == 401


def test_options_that_workers_do_not_have(shell, tmp_path):
    config = tmp_path / "service.toml"
    config.write_text('[models.one]\ndir = "state"')
    places = {"--follow": ["--dir", tmp_path / "copy", "--follow", tmp_path]}
    for option, words in (places | {"--config": ["--config", config]}).items():
        printed = shell("serve", *words, "--workers", 2, status=2)
        assert f"--workers cannot be used with {option}" in printed.err
    config.write_text('[models.one]\ndir = "state"\nworkers = 2')
    printed = shell("serve", "--config", config, status=2)
    assert "unknown key 'workers'" in printed.err
