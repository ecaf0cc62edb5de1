"""Requests that try to get more than their share, or that can be read in two ways."""

import gzip
import json
import socket

import pytest
from test_http import JSON, start_service

from spanboost.service.token_guard import MAX_FAILURES

pytestmark = pytest.mark.slow  # the file as a whole


@pytest.fixture
def client(tmp_path):
    with start_service(tmp_path / "state") as client:
        yield client


def send_raw(client, text):
    """Send bytes to the server and return the first line of the response."""
    url = client.base_url
    with socket.create_connection((url.host, url.port), timeout=30) as connection:
        connection.sendall(text.encode())
        return connection.makefile().readline()


def test_a_second_host_header_is_refused(client):
    request = "GET /metrics HTTP/1.1\r\n{}Connection: close\r\n\r\n"
    good, evil = "Host: localhost\r\n", "Host: evil.example\r\n"
    assert "200" in send_raw(client, request.format(good))
    for hosts in (good + evil, evil + good, good + good):
        assert "400" in send_raw(client, request.format(hosts))


@pytest.mark.parametrize("coding", ["gzip", "GZIP", "identity, gzip", "br"])
def test_compressed_bodies_are_refused(client, coding):
    body = json.dumps({"x": 1}).encode()
    response = client.post(
        "/predict", content=gzip.compress(body), headers=JSON | {"Content-Encoding": coding}
    )
    assert response.status_code == 415
    assert "uncompressed" in response.json()["error"]
    plain = JSON | {"Content-Encoding": "identity"}
    assert client.post("/predict", content=body, headers=plain).status_code == 200


def test_an_address_that_guesses_tokens_is_braked(tmp_path):
    tokens = {"predict": "p" * 16, "learn": "l" * 16, "admin": "a" * 16}
    with start_service(tmp_path / "state", tokens=tokens) as client:
        for k in range(MAX_FAILURES):
            wrong = {"Authorization": f"Bearer guess {k}"}
            assert client.get("/metrics", headers=wrong).status_code == 401
        right = {"Authorization": f"Bearer {tokens['admin']}"}
        response = client.get("/metrics", headers=right)
        assert response.status_code == 429
        assert response.headers["retry-after"] == "60"
        assert client.get("/healthz").status_code == 200
