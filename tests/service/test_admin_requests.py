"""Requests that change the model: a retry does not repeat them, and errors say what to do."""

import asyncio
import socket
import ssl
import subprocess
import threading
from contextlib import contextmanager

import pytest
from serving import serving_app
from state_folders import commit_and_learn, new_model, some_rows

from spanboost import client as client_module
from spanboost.cli.main import main
from spanboost.client import Client, ServiceError
from spanboost.errors import UsageError, UserError
from spanboost.service.http import controls
from spanboost.service.http.app import build_app
from spanboost.service.http.server import Tls
from spanboost.service.learning.engine import Engine
from spanboost.service.learning.leaders import ServerLeader
from spanboost.service.storage.leader_copy import LeaderError
from spanboost.service.storage.state import State

DATA = some_rows(100)
OPTIONS = {"learner": "linear", "n": 2}


class LosingApp:
    """An application whose first answers to changes are lost; `dropped` says how many."""

    def __init__(self, app, dropped=1):
        self.app, self.dropped = app, dropped
        self.requests = 0

    async def __call__(self, scope, receive, send):
        changes = scope["method"] != "GET"
        self.requests += changes
        if not changes or self.requests > self.dropped:
            await self.app(scope, receive, send)
            return

        async def forget(message):
            pass

        await self.app(scope, receive, forget)  # the server then answers with status 500

    def __getattr__(self, name):
        return getattr(self.app, name)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(client_module, "MAX_DELAY", 0.01)


@contextmanager
def losing_service(folder):
    state = State(folder, new_model)
    commit_and_learn(state, 0, 50, DATA)
    state.save()
    app = LosingApp(build_app(Engine(state)))
    with serving_app(app) as http, Client(str(http.base_url)) as client:
        client.app, client.state = app, state
        yield client


def test_a_repeated_change_is_executed_once(tmp_path):
    with losing_service(tmp_path / "state") as client:
        first = client.state.journal.last
        for k, (method, path, body) in enumerate(
            [
                ("POST", "/challenger", OPTIONS),
                ("DELETE", "/challenger", None),
                ("POST", "/challenger", OPTIONS),
                ("POST", "/challenger/promote", None),
                ("POST", f"/versions/{first + 4}/rollback", None),
            ]
        ):
            client.app.requests = 0
            answer = client.administer(method, path, body)
            assert client.app.requests == 2
            assert answer["record"] == client.state.journal.last == first + k + 1


def test_a_repeated_change_waits_for_the_first_one(tmp_path, monkeypatch):
    """As after a timeout of the client, while the model is still compiled."""
    begun, proceed = threading.Event(), threading.Event()
    prepare = controls.run_in_threadpool

    async def slow(function):
        begun.set()
        await asyncio.to_thread(proceed.wait, 60)
        return await prepare(function)

    monkeypatch.setattr(controls, "run_in_threadpool", slow)
    with serving_app(build_app(Engine(State(tmp_path / "state", new_model)))) as client:
        answers = []

        def send():
            headers = {"Idempotency-Key": "key-1"}
            answers.append(client.post("/challenger", json=OPTIONS, headers=headers))

        threads = [threading.Thread(target=send) for _ in range(2)]
        threads[0].start()
        assert begun.wait(60)
        threads[1].start()
        proceed.set()
        for thread in threads:
            thread.join(60)
        assert [one.json() for one in answers] == [{"record": 1}] * 2
        assert client.post("/challenger", json=OPTIONS).status_code == 409  # another request


def test_a_key_can_be_used_again_after_an_error_of_the_disk(tmp_path, monkeypatch):
    with serving_app(build_app(Engine(State(tmp_path / "state", new_model)))) as client:
        headers = {"Idempotency-Key": "a"}

        def fail(state, control):
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(State, "commit_control", fail)
            answer = client.post("/challenger", json=OPTIONS, headers=headers)
            assert answer.status_code == 503
        answer = client.post("/challenger", json=OPTIONS, headers=headers)
        assert (answer.status_code, answer.json()) == (200, {"record": 1})


@pytest.mark.parametrize("key", ["", "a b", "x" * 65, "ü".encode()])
def test_bad_keys_are_refused(tmp_path, key):
    with serving_app(build_app(Engine(State(tmp_path / "state", new_model)))) as client:
        answer = client.delete("/challenger", headers={"Idempotency-Key": key})
        assert answer.status_code == 400
        assert "Idempotency-Key must be 1 to 64 letters" in answer.json()["error"]


def test_few_keys_are_remembered(tmp_path, monkeypatch):
    monkeypatch.setattr(controls, "MAX_KEYS", 2)
    with serving_app(build_app(Engine(State(tmp_path / "state", new_model)))) as client:

        def promote(key):
            return client.post("/challenger/promote", headers={"Idempotency-Key": key})

        assert client.post("/challenger", json=OPTIONS).status_code == 200
        assert promote("a").json() == promote("a").json() == {"record": 2}
        assert [promote(key).status_code for key in "bc"] == [409, 409]
        assert promote("a").status_code == 409  # forgotten


def test_a_refusal_after_a_lost_answer_says_so(tmp_path, monkeypatch):
    """As after a restart between both attempts: the service has forgotten the key."""
    monkeypatch.setattr(controls, "MAX_KEYS", 0)
    with losing_service(tmp_path / "state") as client:
        lost = "an earlier attempt, whose answer was lost, may have succeeded"
        with pytest.raises(ServiceError, match=f"there is a challenger already.*; {lost}"):
            client.administer("POST", "/challenger", OPTIONS)
        with pytest.raises(ServiceError, match="there is a challenger already") as refused:
            client.administer("POST", "/challenger", OPTIONS)
        assert lost not in str(refused.value)


# servers that cannot be reached


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    command += ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    command += ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    subprocess.run(command, check=True, capture_output=True)
    return Tls(folder / "cert.pem", folder / "key.pem")


@pytest.fixture
def tls_port(certificate):
    """A server that only knows how to begin TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        attempts = []

        def accept():
            while True:
                try:
                    connection, _ = listener.accept()
                    attempts.append(1)
                    context.wrap_socket(connection, server_side=True).close()
                except ssl.SSLError:
                    continue
                except OSError:
                    return

        threading.Thread(target=accept, daemon=True).start()
        yield listener.getsockname()[1], attempts
        listener.shutdown(socket.SHUT_RDWR)


def test_an_unknown_certificate_gets_advice_at_once(tls_port):
    port, attempts = tls_port
    with Client(f"https://127.0.0.1:{port}") as client, pytest.raises(ServiceError) as refused:
        client.metrics()
    assert "CERTIFICATE_VERIFY_FAILED" in str(refused.value)
    assert "--certificate FILE" in str(refused.value)
    assert "token" not in str(refused.value)
    assert len(attempts) == 1


def test_the_command_names_the_option_for_certificates(tls_port, tmp_path, capsys):
    address = f"https://127.0.0.1:{tls_port[0]}"
    for command in (["versions", address], ["backup", address, str(tmp_path / "file")]):
        assert main(command) == 2
        assert "--certificate FILE" in capsys.readouterr().err
    missing = str(tmp_path / "missing.pem")
    assert main(["versions", address, "--certificate", missing]) == 2
    assert f"certificate {missing}: No such file" in capsys.readouterr().err


def test_a_follower_names_the_way_to_trust_its_leader(tls_port):
    leader = ServerLeader(f"https://127.0.0.1:{tls_port[0]}", None)
    with pytest.raises(LeaderError, match="set the environment variable SSL_CERT_FILE") as error:
        leader.snapshot()
    assert "TOKEN" not in str(error.value)


def test_a_server_without_tls_is_named(tmp_path):
    with serving_app(build_app(None)) as http:
        address = str(http.base_url).replace("http:", "https:")
        with Client(address) as client, pytest.raises(ServiceError, match="does not use TLS"):
            client.metrics()
        with pytest.raises(LeaderError, match="does not use TLS"):
            ServerLeader(address, None).snapshot()


def test_an_unknown_host_is_named(monkeypatch):
    lookups = []

    def fail(*arguments, **options):
        lookups.append(arguments)
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    with Client("http://leader.invalid") as client, pytest.raises(ServiceError) as refused:
        client.metrics()
    assert "Name or service not known; check the name of the host" in str(refused.value)
    assert len(lookups) == 1
    with pytest.raises(LeaderError, match="check the name of the host") as error:
        ServerLeader("http://leader.invalid", "token").snapshot()
    assert "TOKEN" not in str(error.value)


def test_a_wrong_path_of_the_leader_is_not_a_problem_of_the_token(tmp_path):
    state = State(tmp_path / "state", new_model)
    tokens = {"admin": "a" * 16}
    with serving_app(build_app(Engine(state), tokens)) as http:
        with pytest.raises(UsageError, match=r"status 404: .*; check the URL") as error:
            ServerLeader(f"{http.base_url}/wrong", tokens["admin"]).snapshot()
        assert "TOKEN" not in str(error.value)
        with pytest.raises(UsageError, match="set SPANBOOST_LEADER_TOKEN to the admin token"):
            ServerLeader(str(http.base_url), "wrong").snapshot()


def test_commands_name_the_variable_of_the_token(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("SPANBOOST_ADMIN_TOKEN", raising=False)
    state = State(tmp_path / "state", new_model)
    with serving_app(build_app(Engine(state), {"admin": "a" * 16})) as http:
        address = str(http.base_url)
        for command in ("versions", "challenge", "inspect"):
            assert main([command, address]) == 2
            assert "needs the admin token; set SPANBOOST_ADMIN_TOKEN" in capsys.readouterr().err
        monkeypatch.setenv("SPANBOOST_ADMIN_TOKEN", "a" * 16)
        assert main(["versions", f"{address}/wrong"]) == 2
        assert "this path does not exist" in (error := capsys.readouterr().err)
        assert "TOKEN" not in error


def test_inspect_shows_the_model_of_a_running_service(tmp_path, capsys):
    state = State(tmp_path / "state", new_model)
    commit_and_learn(state, 0, 30, DATA)
    with serving_app(build_app(Engine(state))) as http:
        assert main(["inspect", str(http.base_url)]) == 0
        assert "rows learned   30\n" in capsys.readouterr().out


def test_a_missing_certificate_file_is_named():
    with pytest.raises(UserError, match=r"certificate none\.pem: No such file"):
        Client("https://127.0.0.1", certificate="none.pem")
