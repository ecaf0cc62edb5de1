"""The log of the service, and requests over TLS."""

import json
import logging
import os
import shutil
import ssl
import subprocess
import sys
from datetime import datetime

import httpx
import pytest
from serving import OPTIONS, serving

from spanboost.cli.main import main
from spanboost.client import Client
from spanboost.service import log
from spanboost.service.log import LimitedLog, log_disk_error, log_to_stderr, write_log


def test_lines_of_text(capsys):
    with log_to_stderr("text"):
        write_log(logging.INFO, "started", port=7)
        write_log(logging.WARNING, "status 404", id="abc")
    first, second = capsys.readouterr().err.splitlines()
    time, rest = first.split(" ", 1)
    assert datetime.fromisoformat(time).tzinfo is not None
    assert rest == "spanboost: started port=7"
    assert second.endswith(" spanboost: warning: status 404 id=abc")


def test_lines_of_json(capsys):
    with log_to_stderr("json"):
        write_log(logging.INFO, "two\nlines", port=7)
        try:
            raise MemoryError
        except MemoryError:
            write_log(logging.ERROR, "failed", traceback=True)
        logging.getLogger("uvicorn.error").error("from the HTTP server")
        print("spanboost: compiling", file=sys.stderr)
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [line["level"] for line in lines] == ["info", "error", "error", "info"]
    assert lines[0] | {"time": ""} == {
        "time": "",
        "level": "info",
        "message": "two\nlines",
        "port": 7,
    }
    assert "MemoryError" in lines[1]["traceback"]
    assert lines[2]["message"] == "from the HTTP server"
    assert lines[3]["message"] == "compiling"
    assert all(datetime.fromisoformat(line["time"]) for line in lines)


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_log_that_cannot_be_written_raises_no_error(monkeypatch, form):
    with open(os.devnull) as broken:  # not open for writing
        monkeypatch.setattr(sys, "stderr", broken)
        with log_to_stderr(form):
            write_log(logging.INFO, "started")


def test_lines_of_one_kind_are_limited(caplog):
    now = 0.0
    limited = LimitedLog(lambda: now)
    for _ in range(1000):
        limited.write("a", logging.WARNING, "flood")
    limited.write("b", logging.WARNING, "other")
    assert caplog.messages == ["flood"] * log.WINDOW_LINES + ["other"]
    now = log.WINDOW_SECONDS
    caplog.clear()
    limited.write("a", logging.WARNING, "flood")
    limited.write("a", logging.WARNING, "flood")
    assert [record.fields for record in caplog.records] == [{"not_logged": 990}, {}]


def test_disk_errors_name_the_write_and_the_reason(caplog):
    log_disk_error("a write to a test", OSError(28, "No space left on device"))
    assert caplog.messages == ["a write to a test failed (No space left on device)"]


SECRET = "a-secret-value"


@pytest.mark.process
def test_failed_requests_are_logged_with_their_ids(tmp_path):
    with serving(tmp_path, *OPTIONS, "--log", "json") as server:
        with httpx.Client(base_url=server.address, trust_env=False) as client:
            given = {"X-Request-Id": "mine-17"}
            bad = client.post("/learn", json=[{"x": [SECRET], "label": 1}], headers=given)
            assert (bad.status_code, bad.headers["x-request-id"]) == (422, "mine-17")
            missing = client.get(f"/{SECRET}", headers={"X-Request-Id": 'forged" id'})
            made = missing.headers["x-request-id"]
            assert made.isalnum()
            assert len(made) == 16
            assert client.post("/predict", json={"x": 1}).headers["x-request-id"] != made
            for _ in range(100):
                assert client.post("/predict").status_code == 415
        assert server.stop() == 0
    lines = [json.loads(line) for line in server.log]
    by_id = {line["id"]: line for line in lines if "id" in line}
    assert by_id["mine-17"]["message"] == "status 422"
    assert by_id["mine-17"]["path"] == "/learn"
    assert by_id["mine-17"]["level"] == "warning"
    assert by_id[made]["path"] == "other"
    assert sum(line["message"] == "status 415" for line in lines) == 10
    assert SECRET not in "".join(server.log)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """Return a certificate of 127.0.0.1 and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    folder = tmp_path_factory.mktemp("tls")
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    command += ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    command += ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    subprocess.run(command, check=True, capture_output=True)
    return folder / "cert.pem", folder / "key.pem"


@pytest.mark.process
def test_requests_over_tls(tmp_path, certificate):
    cert, key = map(str, certificate)
    options = (*OPTIONS, "--tls-cert", cert, "--tls-key", key)
    with serving(tmp_path, *options) as server:
        assert server.address.startswith("https://")
        trust = ssl.create_default_context(cafile=cert)
        with httpx.Client(base_url=server.address, verify=trust, trust_env=False) as client:
            assert client.get("/readyz").status_code == 200
            assert client.post("/predict", json={"x": 1}).status_code == 200
        with Client(server.address, certificate=cert) as client:
            assert client.learn([{"x": 1, "label": 1}], wait=True).learned == 1
        with httpx.Client(trust_env=False) as client, pytest.raises(httpx.TransportError):
            client.get(server.address.replace("https", "http"))


@pytest.mark.parametrize("swapped", [False, True])
def test_files_for_tls_are_checked_at_the_start(tmp_path, certificate, capsys, swapped):
    cert, key = certificate
    serve = ["serve", "--dir", str(tmp_path / "state"), "--port", "0"]
    assert main([*serve, "--tls-cert", str(cert)]) == 2
    assert "must be given together" in capsys.readouterr().err
    missing = tmp_path / "missing.pem"
    assert main([*serve, "--tls-cert", str(cert), "--tls-key", str(missing)]) == 2
    assert f"--tls-key {missing}: the file does not exist" in capsys.readouterr().err
    text = tmp_path / "text.pem"
    text.write_text("not a key")
    files = (key, cert) if swapped else (cert, text)
    assert main([*serve, "--tls-cert", str(files[0]), "--tls-key", str(files[1])]) == 2
    error = capsys.readouterr().err
    assert "are not a certificate and its key in PEM format" in error
    assert len(error.splitlines()) == 1
    assert not (tmp_path / "state").exists()
