"""Prediction intervals of the service."""

import io
import json

import numpy as np
import pyarrow as pa
import pytest
from serving import serving_app

from spanboost import Calibrated, Intervals, load
from spanboost.cli.commands.serve import open_state
from spanboost.cli.parser import parser
from spanboost.client import Client
from spanboost.errors import UsageError
from spanboost.models.predictions import probabilities
from spanboost.service.http.app import build_app
from spanboost.service.learning.engine import Engine
from spanboost.service.limits import RequestLimits, StateLimits

pytestmark = pytest.mark.slow  # the file as a whole

SMALL = ("--learner", "linear", "-n", "2")


def open_folder(folder, *options):
    words = ["serve", "--dir", str(folder), *options]
    return open_state(parser().parse_args(words), StateLimits())


def serving(folder, *options):
    engine = Engine(open_folder(folder, *options), RequestLimits())
    return serving_app(build_app(engine, None, "id", RequestLimits()))


def some_rows(n, seed=0):
    rng = np.random.default_rng(seed)
    sizes, noise = rng.uniform(-1, 1, n), rng.normal(size=n)
    return [{"size": s, "label": 3 * s + e} for s, e in zip(sizes, noise, strict=True)]


@pytest.fixture
def client(tmp_path):
    with serving(tmp_path / "state", *SMALL, "--intervals") as client:
        yield client


def ends(client, coverage=0.9, row=None):
    found = client.post("/predict", params={"interval": coverage}, json=row or {"size": 0.5})
    assert found.status_code == 200, found.text
    return found.json()


def test_intervals_are_those_of_the_model_file(client, tmp_path):
    client.post("/learn", json=some_rows(400), params={"wait": "true"})
    (tmp_path / "model.sb").write_bytes(client.get("/model").content)
    model = load(tmp_path / "model.sb")
    assert isinstance(model, Intervals)
    found = ends(client, 0.8)
    expected = model.predict_interval([{"size": 0.5}], 0.8)[0].tolist()
    assert [found["low"], found["high"]] == expected
    assert found["prediction"] == model.predict_one({"size": 0.5})
    plain = client.post("/predict", json={"size": 0.5}).json()
    assert plain.keys() == {"id", "prediction"}
    assert plain["prediction"] == found["prediction"]


def test_bounds_are_the_ends_of_one_sided_intervals(client):
    assert (
        client.post("/predict", params={"upper": 0.9}, json={"size": 0.5}).json()["upper"] is None
    )
    client.post("/learn", json=some_rows(400), params={"wait": "true"})
    asked = {"interval": 0.8, "upper": 0.9, "lower": 0.95}
    found = client.post("/predict", params=asked, json={"size": 0.5}).json()
    assert [*found] == ["id", "prediction", "low", "high", "lower", "upper"]
    assert found["upper"] == found["high"]  # an 80 % interval leaves out a tenth on each side
    assert found["lower"] < found["low"]
    alone = client.post("/predict", params={"lower": 0.95}, json={"size": 0.5}).json()
    assert (alone["lower"], [*alone]) == (found["lower"], ["id", "prediction", "lower"])


@pytest.mark.parametrize("name", ["interval", "lower", "upper"])
@pytest.mark.parametrize("value", ["0", "1", "90", "wide", "nan", ""])
def test_a_coverage_outside_0_and_1_is_refused(client, name, value):
    found = client.post("/predict", params={name: value}, json={"size": 0.5})
    assert found.status_code == 422
    why = f"the query parameter '{name}' must be between 0 and 1 (got '{value}')"
    assert found.json()["error"] == why


@pytest.mark.parametrize(
    ("name", "limits"),
    [
        ("interval", "at most 0.99, the most that is calibrated"),
        ("lower", "between 0.005 and 0.995, which are calibrated"),
        ("upper", "between 0.005 and 0.995, which are calibrated"),
    ],
)
def test_a_coverage_beyond_the_calibrated_ones_is_refused(client, name, limits):
    found = client.post("/predict", params={name: 0.9999}, json={"size": 0.5})
    assert found.status_code == 422
    why = f"the query parameter '{name}' must be {limits} (got 0.9999); "
    assert found.json()["error"].startswith(why)


def test_labels_of_predicted_rows_calibrate(client):
    inside, rows = 0, some_rows(600)
    for row in rows:
        found = ends(client, 0.8, {"size": row["size"]})
        unknown = found["low"] is None or found["high"] is None  # infinite: too few labels
        inside += unknown or found["low"] <= row["label"] <= found["high"]
        label = {"id": found["id"], "label": row["label"]}
        assert client.post("/learn", json=label, params={"wait": "true"}).status_code == 200
    assert abs(inside / 600 - 0.8) < 0.03


def test_the_coverage_is_counted_and_survives_a_restart(tmp_path):
    folder = tmp_path / "state"
    with serving(folder, *SMALL, "--intervals") as client:
        assert "spanboost_interval_coverage nan" in client.get("/metrics").text.lower()
        client.post("/learn", json=some_rows(600), params={"wait": "true"})
        before = client.get("/metrics").text
    (line,) = [one for one in before.splitlines() if one.startswith("spanboost_interval_coverage")]
    assert abs(float(line.split()[1]) - 0.9) < 0.03
    with serving(folder) as client:
        assert line in client.get("/metrics").text
        client.post("/learn", json=some_rows(50, seed=1), params={"wait": "true"})
        assert line not in client.get("/metrics").text


def test_other_formats_have_the_same_columns(client):
    client.post("/learn", json=some_rows(100), params={"wait": "true"})
    expected = ends(client)
    query = {"interval": 0.9, "keep": "false"}
    lines = client.post(
        "/predict",
        params=query,
        content=b'{"size": 0.5}\n{"size": 0.5}\n',
        headers={"Content-Type": "application/x-ndjson"},
    )
    for line in lines.text.splitlines():
        assert json.loads(line) == {key: expected[key] for key in ("prediction", "low", "high")}
    sink = io.BytesIO()
    table = pa.table({"size": [0.5] * 20})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    arrow = client.post(
        "/predict",
        params=query,
        content=sink.getvalue(),
        headers={"Content-Type": "application/vnd.apache.arrow.stream"},
    )
    found = pa.ipc.open_stream(arrow.content).read_all().to_pydict()
    assert found["low"] == [expected["low"]] * 20


def test_infinite_ends_are_null(client, monkeypatch):
    client.post("/learn", json=some_rows(10), params={"wait": "true"})
    monkeypatch.setattr(
        Intervals, "predict_both", lambda self, X, levels: (np.zeros(1), np.array([[-np.inf, 1]]))
    )
    found = ends(client)
    assert (found["low"], found["high"]) == (None, 1.0)


def test_a_restart_keeps_the_intervals(tmp_path):
    folder = tmp_path / "state"
    with serving(folder, *SMALL, "--intervals") as client:
        client.post("/learn", json=some_rows(300), params={"wait": "true"})
        before = ends(client)
    with serving(folder) as client:
        after = ends(client)
    assert (before["low"], before["high"]) == (after["low"], after["high"])


def test_a_model_without_intervals_says_so_and_stores_nothing(tmp_path):
    with serving(tmp_path / "state", *SMALL) as client:
        found = client.post("/predict", params={"interval": 0.9}, json={"size": 1, "id": "a"})
        assert found.status_code == 422
        assert "the model has no intervals" in found.json()["error"]
        label = client.post("/learn", json={"id": "a", "label": 1})
        assert label.status_code == 410


def test_a_folder_cannot_change_whether_it_has_intervals(tmp_path):
    folder = tmp_path / "state"
    open_folder(folder, *SMALL).close()
    with pytest.raises(UsageError, match=r"--intervals is off \(got on\)"):
        open_folder(folder, *SMALL, "--intervals")
    with pytest.raises(UsageError, match="requires numeric labels; --loss logistic has classes"):
        open_folder(tmp_path / "other", "--loss", "logistic", "--intervals")


def test_probabilities_are_calibrated(tmp_path):
    rows = [{"size": row["size"], "label": int(row["label"] > 0)} for row in some_rows(600)]
    for options in ((), ("--calibrate",)):
        folder = tmp_path / f"state{len(options)}"
        with serving(folder, *SMALL, "--loss", "logistic", *options) as client:
            client.post("/learn", json=rows, params={"wait": "true"})
            found = client.post("/predict", json={"size": 0.5}, params={"keep": "false"}).json()
            (tmp_path / "model.sb").write_bytes(client.get("/model").content)
        model = load(tmp_path / "model.sb")
        assert isinstance(model, Calibrated) == bool(options)
        assert found["p_1"] == probabilities(model.predict_many([{"size": 0.5}]))[0, 1]
    with pytest.raises(UsageError, match=r"--calibrate is off \(got on\)"):
        open_folder(tmp_path / "state0", *SMALL, "--loss", "logistic", "--calibrate")
    with pytest.raises(UsageError, match="--calibrate requires --loss logistic or softmax"):
        open_folder(tmp_path / "other", *SMALL, "--calibrate")


def test_the_client_returns_intervals(client):
    client.post("/learn", json=some_rows(100), params={"wait": "true"})
    with Client(str(client.base_url)) as python:
        found = python.predict({"size": 0.5}, interval=0.9)
        assert found.columns["low"] < found.value < found.columns["high"]
        assert "low" not in python.predict({"size": 0.5}).columns
        bounds = python.predict({"size": 0.5}, lower=0.95, upper=0.95, interval=None).columns
        assert (bounds["lower"], bounds["upper"]) == (found.columns["low"], found.columns["high"])


def test_the_description_names_the_parameter(client):
    described = client.get("/openapi.json").json()["paths"]["/predict"]["post"]["parameters"]
    assert {"interval", "lower", "upper"} <= {one["name"] for one in described}
