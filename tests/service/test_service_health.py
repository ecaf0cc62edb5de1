"""Health checks, metrics and the end of a server, with a server in a thread."""

import json
import socket
import threading
import time
from contextlib import contextmanager

import httpx
import pytest
from serving import serving_app, wait_until

from spanboost.cli.commands.serve import open_state
from spanboost.cli.parser import parser
from spanboost.client import AsyncClient, Client, ServiceError, _parse_metrics
from spanboost.service.histogram import BUCKETS, Histogram, format_histograms
from spanboost.service.http.app import build_app
from spanboost.service.http.startup import CancelledError, StartProgress
from spanboost.service.learning.engine import Engine
from spanboost.service.limits import RequestLimits, StateLimits

pytestmark = pytest.mark.slow  # the file as a whole


def open_engine(folder, **options):
    words = ["serve", "--dir", str(folder), "--learner", "linear", "-n", "4"]
    return Engine(open_state(parser().parse_args(words), StateLimits()), **options)


@contextmanager
def start_service(folder, limits=None, **options):
    engine = open_engine(folder, **options)
    app = build_app(engine, limits=limits or RequestLimits())
    with serving_app(app) as client:
        client.engine, client.app = engine, app
        yield client


@pytest.fixture
def client(tmp_path):
    with start_service(tmp_path / "state") as client:
        yield client


def some_rows(n):
    return [{"x": k, "label": k} for k in range(n)]


def connect(client):
    return socket.create_connection((client.base_url.host, client.base_url.port), timeout=30)


def request_head(path, length):
    return (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {length}\r\n\r\n"
    ).encode()


def hold_learning(engine):
    """Let the next block wait until the returned event is set."""
    resume, learn = threading.Event(), engine.state.learn

    def learn_later(*args):
        resume.wait(30)
        learn(*args)

    engine.state.learn = learn_later
    return resume


def in_thread(function):
    """Run a function in a thread; return the thread and the list that gets its result."""
    results = []
    thread = threading.Thread(target=lambda: results.append(function()))
    thread.start()
    return thread, results


def test_progress_of_the_start(tmp_path):
    app = build_app(None)
    with serving_app(app) as client:
        assert client.get("/healthz").json() == {"status": "alive"}
        assert client.get("/readyz").json()["phase"] == "opening the folder"
        app.health.progress.update(10, 1000)
        response = client.get("/readyz")
        assert response.status_code == 503
        assert response.json() == {
            "status": "starting",
            "error": "the server is starting: replaying the journal (10 of 1,000 bytes)",
            "phase": "replaying the journal",
            "replayed_bytes": 10,
            "journal_bytes": 1000,
        }
        metrics = _parse_metrics(client.get("/metrics").text)
        assert metrics["spanboost_ready"] == 0
        assert metrics["spanboost_replay_done_bytes"] == 10
        assert metrics["spanboost_replay_bytes"] == 1000
        for method, path in (("POST", "/predict"), ("GET", "/"), ("DELETE", "/nothing")):
            refused = client.request(method, path)
            assert refused.status_code == 503
            assert refused.headers["retry-after"] == "1"
            assert "replaying the journal" in refused.json()["error"]
        app.health.progress.begin_compiling()
        assert client.get("/readyz").json()["phase"] == "compiling"
        app.begin(open_engine(tmp_path))
        assert client.get("/readyz").status_code == 200
        assert client.post("/predict", json={"x": 1}).status_code == 200
        metrics = _parse_metrics(client.get("/metrics").text)
        assert metrics["spanboost_ready"] == 1
        assert metrics["spanboost_replay_seconds_count"] == 1


def test_a_cancelled_start_ends_at_the_next_record():
    progress = StartProgress()
    progress.update(1, 2)
    progress.cancel()
    with pytest.raises(CancelledError):
        progress.update(2, 2)


def test_slow_bodies_do_not_shut_out_metrics(tmp_path):
    with start_service(tmp_path, RequestLimits(open_requests=3)) as client:
        slow = [connect(client) for _ in range(3)]
        for sock in slow:
            sock.sendall(request_head("/predict", 1000))
        wait_until(lambda: client.post("/predict", json={}).status_code == 503)
        for path in ("/metrics", "/healthz", "/readyz"):
            assert client.get(path).status_code == 200
        for sock in slow:
            sock.close()


def test_a_new_connection_replaces_the_oldest_idle_one(client, monkeypatch):
    monkeypatch.setattr("spanboost.service.http.server.CONNECTIONS", 10)
    client.close()  # its connection would be one more
    with httpx.Client(base_url=client.base_url, trust_env=False) as kept:
        busy = connect(client)
        busy.sendall(request_head("/predict", 2) + b"{")  # a request in work is not closed
        wait_until(lambda: kept.get("/healthz").status_code == 200)
        idle = [connect(client) for _ in range(30)]
        assert kept.get("/healthz").status_code == 200
        assert idle[0].recv(1) == b""  # closed
        busy.sendall(b"}")
        assert busy.recv(100).startswith(b"HTTP/1.1 200")
        idle[-1].sendall(request_head("/predict", 2) + b"{}")
        assert idle[-1].recv(100).startswith(b"HTTP/1.1 200")
    for sock in (busy, *idle):
        sock.close()


def test_every_part_is_in_the_readiness_check(tmp_path, monkeypatch):
    with start_service(tmp_path) as client:
        state = client.engine.state
        parts = {"writer", "predictor", "journal", "pending", "snapshots"}
        assert client.get("/readyz").json() == {
            "status": "ready",
            "checks": dict.fromkeys(parts, "ok"),
        }
        with monkeypatch.context() as patch:
            patch.setattr(state, "commit", full_disk)
            assert client.post("/learn", json=some_rows(2)).status_code == 503
            check_part(client, "journal", 503)
            assert client.post("/predict", json={"x": 1}).status_code == 200
        assert client.post("/learn", json=some_rows(2)).status_code == 200
        check_part(client, None, 200)
        with monkeypatch.context() as patch:
            patch.setattr(state.pending, "add", full_disk)
            assert client.post("/predict", json={"x": 1}).status_code == 503
            check_part(client, "pending", 503)
            patch.setattr("spanboost.service.storage.disk_status.RECENT_SECONDS", 0)
            check_part(client, None, 200)  # otherwise no request would try again
        assert client.post("/predict", json={"x": 1}).status_code == 200
        state.limits = state.limits._replace(snapshot_rows=1)
        with monkeypatch.context() as patch:
            patch.setattr(state, "save", full_disk)
            client.post("/learn", json=some_rows(2))
            wait_until(lambda: client.engine.snapshot_writes.failures)
            check_part(client, "snapshots", 200)
        client.post("/learn", json=some_rows(2))
        wait_until(lambda: not client.engine.snapshot_writes.problem)
        check_part(client, None, 200)
        assert read_metrics(client)["spanboost_disk_problems_total"] == 3


def full_disk(*_):
    raise OSError(28, "No space left on device")


def check_part(client, broken, status):
    """Check that exactly this part is broken."""
    response = client.get("/readyz")
    assert response.status_code == status
    wrong = {part: what for part, what in response.json()["checks"].items() if what != "ok"}
    assert wrong == ({} if broken is None else {broken: "No space left on device"})


def read_metrics(client):
    return _parse_metrics(client.get("/metrics").text)


def test_an_engine_reports_a_failure_once_it_cannot_learn(tmp_path):
    reasons = []
    with start_service(tmp_path, on_failure=reasons.append) as client:

        def fail(*_):
            raise MemoryError

        client.engine.state.learn = fail
        client.post("/learn", json=some_rows(2))
        wait_until(lambda: reasons)
        assert reasons == ["the writer failed: out of memory"]
        assert client.get("/readyz").json()["error"] == f"writer: {reasons[0]}"
        assert client.post("/learn?wait=true", json=some_rows(2)).status_code == 503


def test_wait_answers_after_the_rows_are_learned(client):
    resume = hold_learning(client.engine)
    stored = client.post("/learn", json=some_rows(3)).json()
    assert (stored["learned"], stored["queued"]) == (3, 3)
    assert read_metrics(client)['spanboost_queue_requests{queue="learn"}'] == 1
    assert read_metrics(client)['spanboost_queue_oldest_seconds{queue="learn"}'] > 0
    thread, results = in_thread(lambda: client.post("/learn?wait=true", json=some_rows(4)))
    wait_until(lambda: read_metrics(client)['spanboost_queue_rows{queue="learn"}'] == 7)
    assert not results
    resume.set()
    thread.join(30)
    assert (results[0].json()["learned"], results[0].json()["queued"]) == (4, 0)
    assert read_metrics(client)["spanboost_learned_rows_total"] == 7
    assert client.post("/learn?wait=maybe", json=some_rows(1)).status_code == 422


def test_stopping_answers_queued_requests_with_503(tmp_path, monkeypatch):
    monkeypatch.setattr("spanboost.service.http.server.GRACE_SECONDS", 0.3)
    with start_service(tmp_path) as client:
        resume = hold_learning(client.engine)
        assert client.post("/learn", json=some_rows(3)).status_code == 200
        queued = [
            in_thread(lambda: client.post("/learn", json=some_rows(5), timeout=60))
            for _ in range(3)
        ]
        slow = connect(client)
        slow.sendall(request_head("/predict", 1000) + b"{")
        wait_until(lambda: read_metrics(client)['spanboost_queue_rows{queue="learn"}'] == 18)
        client.server.stop()
        for thread, results in queued:
            thread.join(30)
            assert results[0].status_code == 503
            assert results[0].headers["retry-after"] == "5"
            assert results[0].json()["error"] == "the server is stopping"
        assert slow.recv(100).startswith(b"HTTP/1.1 503")
        slow.close()
        resume.set()
    engine = open_engine(tmp_path)  # refused labels were not learned after all
    assert engine.state.progress.rows == 3
    engine.close()


def answer_with(statuses):
    """Answer each connection with the next status; return the address and the thread."""
    listener = socket.create_server(("127.0.0.1", 0))
    body = json.dumps({"learned": 1, "duplicates": 0, "problems": [], "error": "no"}).encode()

    def run():
        with listener:
            for status, retry_after in statuses:
                sock, _ = listener.accept()
                with sock:
                    data = b""
                    while b"label" not in data:
                        data += sock.recv(1 << 16)
                    head = f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\n"
                    head += f"Retry-After: {retry_after}\r\n" if retry_after else ""
                    sock.sendall(f"{head}Connection: close\r\n\r\n".encode() + body)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return f"http://127.0.0.1:{listener.getsockname()[1]}", thread


def test_clients_retry_errors_of_the_service(monkeypatch):
    import asyncio

    delays = []
    monkeypatch.setattr(time, "sleep", delays.append)
    statuses = [(500, None), (503, 7), (502, None), (429, 30), (504, 1000), (200, None)]
    address, thread = answer_with(statuses)
    with Client(address) as client:
        assert client.learn([{"x": 1, "label": 1}]).learned == 1
    thread.join(30)
    assert delays[1] == 7
    assert delays[3] == 30
    assert delays[4] == 60
    assert all(delay < 3 for delay in (delays[0], delays[2]))

    async def pause(delay):
        delays.append(delay)

    monkeypatch.setattr(asyncio, "sleep", pause)
    address, thread = answer_with([(503, 7), (200, None)])

    async def learn():
        async with AsyncClient(address) as client:
            return await client.learn([{"x": 1, "label": 1}], wait=True)

    assert asyncio.run(learn()).learned == 1
    assert 7 in delays[5:]


def test_clients_do_not_retry_errors_of_their_own():
    address, thread = answer_with([(422, None)])
    with Client(address) as client, pytest.raises(ServiceError) as caught:
        client.learn([{"x": 1, "label": 1}])
    assert caught.value.status == 422
    thread.join(30)


def test_histograms_of_a_running_server(client):
    before = read_metrics(client)["spanboost_journal_sync_seconds_count"]
    client.post("/learn?wait=true", json=some_rows(2))
    assert read_metrics(client)["spanboost_journal_sync_seconds_count"] == before + 1
    client.engine.state.limits = client.engine.state.limits._replace(snapshot_rows=1)
    client.post("/learn?wait=true", json=some_rows(2))
    wait_until(lambda: read_metrics(client)["spanboost_snapshot_seconds_count"] == 1)
    metrics = read_metrics(client)
    assert 0 <= metrics["spanboost_snapshot_age_seconds"] < 60
    assert metrics["spanboost_snapshot_seconds_sum"] > 0


def test_the_age_of_the_oldest_pending_row(client):
    pending, now = client.engine.state.pending, time.time()
    assert read_metrics(client)["spanboost_pending_oldest_seconds"] == 0
    for age in (50, 20):
        pending.clock = lambda age=age: now - age
        client.post("/predict", json={"id": f"{age}", "x": 1})
    pending.clock = lambda: now
    assert read_metrics(client)["spanboost_pending_oldest_seconds"] == pytest.approx(50)
    client.post("/learn?wait=true", json={"id": "50", "label": 1})
    assert read_metrics(client)["spanboost_pending_oldest_seconds"] == pytest.approx(20)


def test_a_histogram_counts_each_bucket_and_those_below():
    histogram = Histogram()
    for seconds in (0.0, BUCKETS[0], BUCKETS[3], BUCKETS[-1] + 1):
        histogram.add(seconds)
    lines = format_histograms("t", "Help.", {'a="b"': histogram})
    values = dict(line.rsplit(" ", 1) for line in lines[2:])
    assert values['t_bucket{a="b",le="0.001"}'] == "2"
    assert values['t_bucket{a="b",le="0.005"}'] == "2"
    assert values['t_bucket{a="b",le="0.01"}'] == "3"
    assert values[f't_bucket{{a="b",le="{BUCKETS[-1]}"}}'] == "3"
    assert values['t_bucket{a="b",le="+Inf"}'] == values['t_count{a="b"}'] == "4"
    assert float(values['t_sum{a="b"}']) == sum((0.0, BUCKETS[0], BUCKETS[3], BUCKETS[-1] + 1))
