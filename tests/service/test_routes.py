"""Requests to wrong paths, with wrong methods or with unknown query parameters."""

import pytest
from serving import serving_app, wait_until
from state_folders import new_model

from spanboost.service.http.app import ENDPOINTS, REPLICATION, build_app
from spanboost.service.http.several_models import SeveralModels
from spanboost.service.http.worker_app import WorkerApplication
from spanboost.service.learning.engine import Engine
from spanboost.service.learning.replica import Replica
from spanboost.service.limits import RequestLimits, describe_duration
from spanboost.service.storage.replica import ReplicaState
from spanboost.service.storage.state import State

MONITORING = ("/healthz", "/readyz", "/metrics")
POSTS = ("/predict", "/learn", "/challenger/promote")
CHANGES = [f"/versions/0/{change}" for change in ("pin", "unpin", "rollback")]


@pytest.fixture
def client(tmp_path):
    with serving_app(build_app(Engine(State(tmp_path / "state", new_model)))) as client:
        client.folder = tmp_path / "state"
        yield client


@pytest.fixture
def several(tmp_path):
    """Two models, of which one has not started."""
    apps = {name: build_app(None) for name in "ab"}
    apps["a"].begin(Engine(State(tmp_path / "a", new_model)))
    with serving_app(SeveralModels(apps, {})) as client:
        yield client


def refusal(client, path, method="GET", **query):
    response = client.request(method, path, params=query, json={"size": 1, "label": 1})
    assert response.status_code == 400, response.text
    return response.json()["error"]


def test_a_misspelt_parameter_is_refused_with_a_suggestion(client):
    why = "unknown query parameter 'wiat'; did you mean 'wait'?"
    assert refusal(client, "/learn", "POST", wiat="true") == why
    assert client.get("/metrics").text.count("spanboost_learned_rows_total 0") == 1
    why = "unknown query parameter 'Keep'; did you mean 'keep'?"
    assert refusal(client, "/predict", "POST", Keep="false") == why
    why = "unknown query parameter 'rule'; expected 'promote'"
    assert refusal(client, "/challenger", "POST", rule="by-hand") == why
    why = "unknown query parameter 'x'; expected 'from', 'mark' or 'check'"
    assert refusal(client, "/journal", x="1") == why
    assert len(refusal(client, "/learn", "POST", **{"x" * 1000: "1"})) < 100


def test_a_repeated_parameter_is_refused(client):
    why = "duplicate query parameter 'interval'"
    assert refusal(client, "/predict", "POST", interval=["0.5", "0.9"]) == why


def test_every_path_refuses_unknown_parameters(client):
    for path in {*ENDPOINTS, *REPLICATION, *MONITORING, *CHANGES}:
        method = "POST" if path in (*POSTS, *CHANGES) else "GET"
        assert "unknown query parameter 'pretty'" in refusal(client, path, method, pretty="1")
    assert refusal(client, "/model", x="1").endswith("; this path has no query parameters")
    assert "'x'" in refusal(client, "/challenger", "DELETE", x="1")
    assert len(list((client.folder / "snapshots").iterdir())) == 1  # nothing was pinned


def test_every_path_of_several_models_refuses_unknown_parameters(several):
    for path in (*MONITORING, "/m/a"):
        assert "unknown query parameter 'x'" in refusal(several, path, x="1")
    assert "unknown query parameter 'x'" in refusal(several, "/m/a/readyz", x="1")


def test_a_wrong_path_or_method_is_named(client, several):
    response = client.post("/nothing?x=1")
    assert response.status_code == 404
    why = "this path does not exist; /openapi.json lists all paths"
    assert response.json() == {"error": why}
    response = client.get("/learn?x=1")
    assert response.status_code == 405
    assert response.json() == {"error": "this path does not accept 'GET'; use POST"}
    assert client.post("/model").json()["error"].endswith("use GET or HEAD")
    response = several.post("/predict", json={})
    assert response.status_code == 404
    assert "the paths of the models begin with /m/a/, /m/b/" in response.json()["error"]


def test_a_prediction_in_a_worker_refuses_unknown_parameters(tmp_path):
    state = State(tmp_path / "state", new_model)
    try:
        replica = Replica(ReplicaState(tmp_path / "state"), RequestLimits())
        with serving_app(WorkerApplication(replica, None, {}, "id", RequestLimits())) as client:
            names = "'interval', 'lower', 'upper', 'keep' or 'on_error'"
            why = f"unknown query parameter 'x'; expected {names}"
            query = {"keep": "false", "x": "1"}
            wait_until(lambda: replica.fresh)
            answer = client.post("/predict", params=query, json={})
            assert (answer.status_code, answer.json()["error"]) == (400, why)
    finally:
        state.close()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (7 * 86400, "7 days"),
        (86400, "1 day"),
        (1.5 * 86400, "36 hours"),
        (3600, "1 hour"),
        (90, "90 seconds"),
        (120, "2 minutes"),
        (1, "1 second"),
        (0.5, "0.5 seconds"),
        (10_000 * 86400, "10,000 days"),
        (7201, "7,201 seconds"),
    ],
)
def test_durations_have_units(seconds, text):
    assert describe_duration(float(seconds)) == text


def test_the_message_of_410_says_how_long_rows_wait(client):
    answer = client.post("/learn", json={"id": "unknown", "label": 1})
    assert answer.status_code == 410
    assert answer.json()["error"].endswith("(rows wait for at most 7 days)")
