"""Requests that try to get more than their share, or that can be read in two ways."""

import gzip
import json
import socket
import threading

import pytest
from test_http import JSON, start_service

from spanboost.service.http.token_guard import MAX_FAILURES
from spanboost.service.limits import RequestLimits, StateLimits

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


def predict(client, rows, **query):
    return client.post("/predict", json=rows, params=query)


def test_predictions_do_not_drop_the_waiting_rows_of_others(tmp_path):
    limits = StateLimits(pending_rows=100)
    with start_service(tmp_path / "state", state_limits=limits) as client:
        ids = predict(client, [{"x": k} for k in range(100)]).json()["id"]
        refused = predict(client, [{"x": 1}])
        assert refused.status_code == 429
        assert "--pending" in refused.json()["error"]
        assert int(refused.headers["retry-after"]) > 0
        assert predict(client, [{"x": 1}], keep="false").status_code == 200
        labels = [{"id": id, "label": 1.0} for id in ids]
        assert client.post("/learn", json=labels).json()["learned"] == 100
        assert predict(client, [{"x": 1}]).status_code == 200


def test_another_row_cannot_take_the_place_of_a_waiting_one(client):
    row = {"id": "a", "x": 1, "city": "Ulm"}
    assert predict(client, row).status_code == 200
    conflict = predict(client, row | {"x": 2})
    assert conflict.status_code == 409
    assert conflict.json()["problems"] == [
        {"row": 0, "field": "id", "reason": "another row waits for its label under the id 'a'"}
    ]
    both = [{"id": "b", "x": 1}, {"id": "b", "x": 2}]
    assert predict(client, both).status_code == 409
    assert client.post("/learn", json={"id": "b", "label": 1}).status_code == 410
    skipped = predict(client, [row | {"x": 2}, *both], on_error="skip").json()
    assert (skipped["id"], skipped["row"]) == (["b"], [1])
    assert [problem["row"] for problem in skipped["problems"]] == [0, 2]
    assert client.engine.state.pending.get("a") == {"x": 1, "city": "Ulm"}


def test_the_same_row_can_be_predicted_again(client):
    row = {"id": "a", "x": 1.5, "city": "Ulm", "missing": None}
    answers = [predict(client, again).json() for again in (row, row, dict(reversed(row.items())))]
    assert answers == [{"id": "a", "prediction": 0.0}] * 3
    assert predict(client, [row, row]).json()["id"] == ["a", "a"]
    assert len(client.engine.state.pending) == 1
    assert client.post("/learn", json={"id": "a", "label": 1}).json()["learned"] == 1
    assert predict(client, row | {"x": 2.0}).status_code == 200  # its label would be a duplicate
    assert len(client.engine.state.pending) == 0


def test_ids_of_the_service_cannot_be_guessed(client):
    ids = predict(client, [{"x": 1}] * 50).json()["id"]
    assert len({id[:8] for id in ids}) == 50
    assert all(len(id) >= 22 for id in ids)


def learn(client, rows, **query):
    return client.post("/learn", json=rows, params=query)


def test_new_names_are_refused_before_they_are_acknowledged(tmp_path):
    limits = RequestLimits(features=20)
    with start_service(tmp_path / "state", limits=limits) as client:
        rows = [{f"name {10 * row + k}": 1.0 for k in range(10)} | {"label": 1} for row in range(3)]
        refused = learn(client, rows)
        assert refused.status_code == 422
        (problem,) = refused.json()["problems"]
        assert problem["row"] == 2
        assert "--max-features" in problem["reason"]
        skipped = learn(client, rows, on_error="skip").json()
        assert (skipped["learned"], len(skipped["problems"])) == (2, 1)
        assert learn(client, [{"x": 1.0, "label": 1}]).status_code == 422
        assert learn(client, [{"name 3": 7.0, "label": 1}]).json()["learned"] == 1
        assert predict(client, {"x": 1.0}).status_code == 200
        client.engine.writer.close()
        assert len(client.engine.state.model.encoder.names.columns) == 20


def test_names_of_several_requests_count_together(tmp_path):
    limits = RequestLimits(features=30)
    with start_service(tmp_path / "state", limits=limits) as client:
        statuses = []

        def send(number):
            row = {f"{number} {k}": 1.0 for k in range(10)} | {"label": 1}
            statuses.append(learn(client, row).status_code)

        threads = [threading.Thread(target=send, args=[number]) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(statuses) == [200] * 3 + [422] * 5


@pytest.fixture
def small_service(tmp_path):
    """A service with little memory."""
    with start_service(tmp_path / "state", limits=RequestLimits(memory_bytes=520 << 20)) as client:
        yield client


@pytest.mark.parametrize("path", ["/predict", "/learn"])
def test_a_body_that_takes_too_much_memory_is_refused_before_it_is_parsed(small_service, path):
    for body in ("[" + "{}," * 2_000_000 + "{}]", "[" + "1," * 4_000_000 + "1]"):
        response = small_service.post(path, content=body, headers=JSON)
        assert response.status_code == 413
        assert "--max-memory" in response.json()["error"]
    assert small_service.engine.work_memory.reserved == 0


def test_labels_of_large_pending_rows_are_refused_before_they_are_read(small_service):
    row = {f"k{k}": "x" * 100 for k in range(4000)}
    ids = []
    for _ in range(10):
        response = predict(small_service, [row] * 3)
        assert response.status_code == 200
        ids += response.json()["id"]
    labels = [{"id": id, "label": 1} for id in ids]
    refused = learn(small_service, labels)
    assert refused.status_code == 413
    assert "fewer rows" in refused.json()["error"]
    for first in range(0, 30, 3):
        assert learn(small_service, labels[first : first + 3]).json()["learned"] == 3
    small_service.engine.writer.close()
    assert small_service.engine.work_memory.reserved == 0


def test_requests_return_their_memory(client):
    assert learn(client, [{"x": 1, "label": 1}] * 100).status_code == 200
    assert learn(client, [{"x": 1}]).status_code == 422
    assert predict(client, [{"x": 1}] * 5000).status_code == 200
    assert client.post("/predict", content="[", headers=JSON).status_code == 400
    assert learn(client, [{"id": "unknown", "label": 1}]).status_code == 410
    client.engine.writer.close()
    client.engine.predictor.close()
    assert client.engine.work_memory.reserved == 0
