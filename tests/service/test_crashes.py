"""A real server that is killed under load, and clients that are slow or hostile."""

import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest
from serving import OPTIONS, Server, serving, wait_until

from spanboost.cli.main import main
from spanboost.client import Client, ServiceError
from spanboost.errors import UserError, install_hint
from spanboost.models.files import load, to_bytes
from spanboost.service.storage.entry import decode_entry
from spanboost.service.storage.journal import Journal

pytestmark = pytest.mark.process
KILLS = int(os.environ.get("SPANBOOST_KILLS", "4"))


class Sender(threading.Thread):
    """Sends rows until `stop` is set, and retries until each is acknowledged."""

    def __init__(self, number, address, stop):
        super().__init__(daemon=True)
        self.rng, self.number = random.Random(number), number
        self.stop = stop
        self.client = Client(address, retries=200, timeout=20)
        self.sent = {}  # acknowledged rows: (row, label) by id
        self.duplicates = 0  # rows that an earlier attempt had delivered
        self.error = None

    def run(self):
        try:
            with self.client:
                while not self.stop.is_set():
                    self.send([self.draw_row() for _ in range(self.rng.choice([1, 5, 40]))])
                    time.sleep(0.002)
        except Exception as error:
            self.error = error

    def draw_row(self):
        return {"size": self.rng.random(), "city": self.rng.choice("abcdef")}

    def send(self, rows):
        labels = [3 * row["size"] + (row["city"] == "a") for row in rows]
        if self.rng.random() < 0.5:
            ids = [f"{self.number} {len(self.sent) + k}" for k in range(len(rows))]
            whole = [
                {"id": id, "label": y, **row} for id, y, row in zip(ids, labels, rows, strict=True)
            ]
            outcome = self.client.learn(whole)
        else:
            ids = [prediction.id for prediction in self.client.predict_many(rows)]
            outcome = self.client.label_many(dict(zip(ids, labels, strict=True)))
        assert outcome.learned + outcome.duplicates == len(rows)
        self.duplicates += outcome.duplicates
        self.sent |= dict(zip(ids, zip(rows, labels, strict=True), strict=True))


def test_kills_under_load_lose_no_row_and_do_not_change_the_model(tmp_path):
    folder, rng = tmp_path / "state", random.Random(5)
    options = (*OPTIONS, "--snapshot-every", "700")
    server = Server(folder, *options)
    port, stop = server.port, threading.Event()
    senders = [Sender(k, server.address, stop) for k in range(4)]
    for sender in senders:
        sender.start()
    for _ in range(KILLS):
        time.sleep(rng.uniform(0.1, 1.2))
        server.kill()
        server = Server(folder, *options, port=port)
    stop.set()
    for sender in senders:
        sender.join(120)
        assert sender.error is None
        assert not sender.is_alive()
    with Client(server.address) as client:
        model = client.model()
    assert server.stop() == 0
    ids, rows, labels = read_journal(folder)
    acknowledged = {id: one for sender in senders for id, one in sender.sent.items()}
    assert len(ids) == len(set(ids))  # no duplicates
    journaled = dict(zip(ids, zip(rows, labels, strict=True), strict=True))
    assert journaled == acknowledged  # no row lost, changed or invented
    fresh = load(new_model_file(tmp_path))
    fresh.learn_many(rows, labels)
    assert to_bytes(fresh) == model
    assert len(ids) > 100


def read_journal(folder):
    """Return the ids, rows and labels of a journal, in the order in which they were learned."""
    ids, rows, labels = [], [], []
    for record in Journal(folder / "journal").read():
        entry = decode_entry(record.payload)
        ids += entry.ids
        rows += entry.rows
        labels += entry.labels
    return ids, rows, labels


def new_model_file(tmp_path):
    """Return the file of the model that a new server starts with."""
    with serving(tmp_path / "other") as server, Client(server.address) as client:
        (tmp_path / "fresh.sb").write_bytes(client.model())
    return tmp_path / "fresh.sb"


def test_pending_rows_survive_a_kill(tmp_path):
    server = Server(tmp_path, *OPTIONS)
    with Client(server.address) as client:
        ids = [prediction.id for prediction in client.predict_many([{"x": k} for k in range(20)])]
        client.label(ids[3], 1.0)
    server.kill()
    with serving(tmp_path) as server, Client(server.address) as client:
        assert client.label(ids[3], 1.0).duplicates == 1
        outcome = client.label_many(dict.fromkeys(ids, 2.0), skip=True)
        assert outcome[:2] == (19, 0)
        assert [problem.row for problem in outcome.problems] == [3]  # its label was 1.0
        with pytest.raises(ServiceError, match="unknown or has expired") as caught:
            client.label("unknown", 2.0)
        assert caught.value.status == 410


def test_stopping_writes_a_snapshot(tmp_path):
    with serving(tmp_path) as server, Client(server.address) as client:
        client.learn([{"x": k, "label": k} for k in range(50)])
        assert server.stop() == 0
    assert len(list((tmp_path / "snapshots").iterdir())) == 2
    with serving(tmp_path) as server, Client(server.address) as client:
        assert client.metrics()["spanboost_learned_rows_total"] == 50


@pytest.fixture
def refusal(capsys):
    """Return the error message of a server that does not start."""

    def run(*words):
        assert main(["serve", *map(str, words)]) == 2
        (line,) = [line for line in capsys.readouterr().err.splitlines() if "compil" not in line]
        return line

    return run


def test_invalid_options_are_refused_at_the_start(tmp_path, refusal, monkeypatch):
    folder = tmp_path / "state"
    with serving(folder) as server:
        assert "in use by another server" in refusal("--dir", folder, "--port", 0)
        assert "cannot listen" in refusal("--dir", tmp_path / "x", "--port", server.port)
    assert "a different model or different options" in refusal(
        "--dir", folder, "--port", 0, "--learner", "stumps"
    )
    assert "a different model or different options" in refusal(
        "--dir", folder, "--port", 0, *OPTIONS, "--label", "y"
    )
    assert "a label, weight or column with this name" in refusal(
        "--dir", tmp_path / "new", "--port", 0, "--id", "label"
    )
    monkeypatch.setenv("SPANBOOST_LEARN_TOKEN", "x" * 16)
    monkeypatch.setenv("SPANBOOST_ADMIN_TOKEN", " ")
    for host in ("0.0.0.0", "::", "192.0.2.1"):
        message = refusal("--dir", folder, "--host", host)
        assert "SPANBOOST_PREDICT_TOKEN, SPANBOOST_ADMIN_TOKEN" in message
    vw = tmp_path / "rows.vw"
    vw.write_text("1 | a:1\n")
    assert main(["train", str(vw), "-o", f"{vw}.sb", "--quiet", "--learner", "linear"]) == 0
    assert "cannot be served" in refusal("--dir", tmp_path / "y", "--port", 0, "-m", f"{vw}.sb")
    (folder / "snapshots" / "00000000000000000000.sb").write_bytes(b"not a model")
    assert "restore the folder from a backup" in refusal("--dir", folder, "--port", 0)


def test_windows_is_refused(tmp_path, refusal, monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    assert "serve needs Linux or macOS" in refusal("--dir", tmp_path)


def test_missing_packages_are_named(tmp_path, refusal, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert install_hint("serve") in refusal("--dir", tmp_path)
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(UserError, match=r"pip install '\.\[client\]'"):
        Client()


def request(body, length=None, path="/predict"):
    return (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body) if length is None else length}\r\n\r\n{body}"
    ).encode()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("state")) as server:
        yield server


def connect(server):
    return socket.create_connection(("127.0.0.1", server.port), timeout=30)


def read_response(sock):
    """Read a response to its end, or until the server closes the connection."""
    data = b""
    while more := sock.recv(1 << 16):
        data += more
        head, end, body = data.partition(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head)
        if end and length and len(body) >= int(length[1]):
            break
    return data


def responds(server):
    with connect(server) as sock:
        sock.sendall(request('{"x": 1}'))
        return read_response(sock).startswith(b"HTTP/1.1 200")


def test_half_closed_and_broken_connections(server):
    good = request('{"x": 1}')
    for sent in (b"", b"POST", good[:40], request('{"x"', 1000), b"\x00\xff nonsense\r\n\r\n"):
        with connect(server) as sock:
            sock.sendall(sent)
            sock.shutdown(socket.SHUT_WR)
            read_response(sock)
        assert responds(server)
    with connect(server) as sock:  # a connection that is reset
        sock.sendall(good)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    with connect(server) as sock:  # two requests in one write
        sock.sendall(good + good)
        assert read_response(sock).startswith(b"HTTP/1.1 200")
    assert responds(server)


def send_headers_forever(sock):
    for k in range(100_000):
        sock.sendall(b"X-%d: " % k + b"y" * 1000 + b"\r\n")


def test_endless_headers_are_cut_off(server):
    with connect(server) as sock:
        sock.sendall(b"GET / HTTP/1.1\r\n")
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            send_headers_forever(sock)
    assert responds(server)


def test_slow_clients_do_not_block_others(server):
    slow = [connect(server) for _ in range(100)]
    for sock in slow:
        sock.sendall(request("{", 100)[:-30])
    assert all(responds(server) for _ in range(20))
    for sock in slow:
        sock.close()


def test_rows_are_never_logged(server):
    secret = "a-secret-value"
    for body in (f'{{"x": "{secret}"', f'[{{"x": ["{secret}"]}}]', f'{{"{secret}": 1e999}}'):
        for path in ("/predict", "/learn", f"/{secret}"):
            with connect(server) as sock:
                sock.sendall(request(body, path=path))
                assert b"HTTP/1.1 4" in read_response(sock)
    assert secret not in "".join(server.log)


def test_clients_retry_until_the_server_runs(tmp_path):
    server = Server(tmp_path, *OPTIONS)
    address, port = server.address, server.port
    server.kill()
    outcomes = []

    def learn():
        with Client(address, retries=100) as client:
            outcomes.append(client.learn([{"x": 1, "label": 2}]))

    thread = threading.Thread(target=learn)
    thread.start()
    server = Server(tmp_path, *OPTIONS, port=port)
    thread.join(60)
    assert outcomes == [(1, 0, [])]
    assert server.stop() == 0
    with (
        Client(address, retries=1) as client,
        pytest.raises(ServiceError, match=f"cannot reach the service at {address}: ") as caught,
    ):
        client.predict({"x": 1})
    assert caught.value.status == 0


@pytest.mark.parametrize("row", [{"x": 1, "label": 2}, {"id": None, "x": 1, "label": 2}])
def test_a_lost_response_does_not_make_it_learn_twice(server, row):
    """A proxy delivers the first attempt but drops its response."""
    listener = socket.create_server(("127.0.0.1", 0))
    attempts = []

    def proxy():
        for k in range(2):
            sock, _ = listener.accept()
            with sock, connect(server) as other:
                data = sock.recv(1 << 16)
                while b"label" not in data:
                    data += sock.recv(1 << 16)
                attempts.append(data)
                other.sendall(data)
                response = read_response(other)
                if k:
                    sock.sendall(response)

    thread = threading.Thread(target=proxy)
    thread.start()
    client = Client(f"http://127.0.0.1:{listener.getsockname()[1]}")
    assert client.learn([row]) == (0, 1, [])
    thread.join(30)
    listener.close()
    client.close()
    bodies = [json.loads(data.partition(b"\r\n\r\n")[2]) for data in attempts]
    assert bodies[0] == bodies[1]


@pytest.mark.parametrize("address", ["localhost:8000", "127.0.0.1:8000", "ftp://localhost"])
def test_an_invalid_address_is_not_retried(address, monkeypatch):
    monkeypatch.setattr("time.sleep", lambda _: pytest.fail("the client waits for a retry"))
    with Client(address) as client, pytest.raises(ServiceError, match="protocol"):
        client.predict({"x": 1})


def test_async_client(server):
    import asyncio

    from spanboost.client import AsyncClient

    async def use_client():
        async with AsyncClient(server.address) as client:
            predictions = await asyncio.gather(*(client.predict({"x": k}) for k in range(20)))
            assert len({prediction.id for prediction in predictions}) == 20
            outcome = await client.label_many({prediction.id: 1.0 for prediction in predictions})
            assert outcome == (20, 0, [])
            assert await client.learn([{"x": 1}], skip=True) == (
                0,
                0,
                [(0, "label", "the label is missing: no key 'label'")],
            )
            with pytest.raises(ServiceError, match="label is missing") as caught:
                await client.learn([{"x": 1}])
            assert caught.value.problems[0].field == "label"
            assert (await client.predict({"x": 1}, keep=False)).id is None
            assert len(await client.model()) > 100
            return await client.metrics()

    assert asyncio.run(use_client())["spanboost_learned_rows_total"] >= 20


def test_tokens_of_a_real_server(tmp_path):
    tokens = {"predict": "a" * 16, "learn": "ü" * 16, "admin": "c" * 16 + "\n"}
    with serving(tmp_path, *OPTIONS, "--host", "0.0.0.0", tokens=tokens) as server:
        client_tokens = {f"{scope}_token": token.strip() for scope, token in tokens.items()}
        address = f"http://127.0.0.1:{server.port}"
        with Client(address, **client_tokens) as client:
            client.label(client.predict({"x": 1}).id, 1.0)
            wait_until(lambda: client.metrics()["spanboost_learned_rows_total"] == 1)
        with Client(address) as client, pytest.raises(ServiceError, match="token") as caught:
            client.predict({"x": 1})
        assert caught.value.status == 401


def test_memory_stays_flat_under_hostile_bodies(server):
    bodies = [
        "[" * 200_000,
        '{"x":' * 50_000,
        f'{{"x": {"9" * 200_000}}}',
        f'{{"x": "{"y" * 500_000}"}}',
        json.dumps({f"name {k}": k for k in range(9000)}),
        json.dumps([{"x": 1}] * 9000),
    ]
    before = None
    for k in range(12):
        for body in bodies:
            with connect(server) as sock:
                sock.sendall(request(body, path="/predict?keep=false"))
                assert b" 50" not in read_response(sock).partition(b"\r\n")[0]
        if k == 5:
            before = server.memory()
    assert server.memory() < before + (20 << 20)


def test_a_kill_during_the_start(tmp_path):
    command = [sys.executable, "-m", "spanboost", "serve", "--dir", str(tmp_path), "--port", "0"]
    for seconds in (0.05, 0.4, 0.9):
        process = subprocess.Popen([*command, *OPTIONS], stderr=subprocess.PIPE)
        time.sleep(seconds)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    with serving(tmp_path) as server:
        wait_until(lambda: responds(server))
        assert responds(server)
