"""The HTTP interface: responses, errors and status codes, limits and tokens."""

import io
import json
import random
import socket
import threading
import time
from base64 import b64decode
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pytest
from serving import serving_app, wait_until

from spanboost.cli.commands.serve import open_state
from spanboost.cli.main import main
from spanboost.cli.parser import parser
from spanboost.client import _parse_metrics
from spanboost.service.http import token_guard
from spanboost.service.http.app import build_app
from spanboost.service.learning.engine import Engine
from spanboost.service.limits import RequestLimits, StateLimits

pytestmark = pytest.mark.slow  # the file as a whole

JSON = {"Content-Type": "application/json"}
LINES = {"Content-Type": "application/x-ndjson"}
ARROW = {"Content-Type": "application/vnd.apache.arrow.stream"}
SMALL = ["--learner", "linear", "-n", "4"]


@contextmanager
def start_service(folder, *options, tokens=None, limits=None, state_limits=None):
    words = ["serve", "--dir", str(folder), *(options or SMALL)]
    state = open_state(parser().parse_args(words), state_limits or StateLimits())
    limits = limits or RequestLimits()
    engine = Engine(state, limits)
    app = build_app(engine, tokens, "id", limits)
    with serving_app(app) as client:
        client.engine, client.app = engine, app
        yield client


@pytest.fixture
def client(tmp_path):
    with start_service(tmp_path / "state") as client:
        yield client


def some_rows(n, seed=0):
    rng = random.Random(seed)
    rows = [{"size": rng.random(), "city": rng.choice("abc")} for _ in range(n)]
    return [row | {"label": 3 * row["size"] + (row["city"] == "a")} for row in rows]


def learn(client, rows, **query):
    return client.post("/learn", json=rows, params=query)


def test_a_text_under_a_key_of_numbers_is_refused_by_name(client):
    learn(client, some_rows(20), wait="true")
    wrong = {"size": "0.3", "city": "a"}
    reason = "'size' is the text '0.3', but was a number before; convert it to a number"
    refused = client.post("/predict", json=wrong)
    assert refused.status_code == 422
    assert reason in refused.text
    assert refused.json()["problems"][0]["field"] == "size"
    refused = learn(client, [wrong | {"label": 1.0}])
    assert refused.status_code == 422
    assert reason in refused.text
    assert refused.json()["problems"][0]["field"] == "size"
    skipped = learn(client, [wrong | {"label": 1.0}, *some_rows(2)], on_error="skip", wait="true")
    assert skipped.json()["learned"] == 2
    mixed = [{"new": 1.0, "label": 1}, {"new": "2", "label": 2}, {"new": 3.0, "label": 3}]
    learn(client, mixed, wait="true")  # the second one is accepted, and left out later
    assert client.engine.state.left_out == 1
    assert client.engine.state.model.label_health.learned == 24


@pytest.mark.parametrize("rows", [1, 9])
def test_an_unknown_text_under_a_key_of_numbers_is_noted(client, rows):
    learn(client, some_rows(20), wait="true")
    known = client.post("/predict", json=[{"size": 0.5, "city": "z"}] * rows)
    assert "Spanboost-Note" not in known.headers
    noted = client.post("/predict", json=[{"size": "forty", "city": "a"}] * rows)
    assert noted.status_code == 200
    more = f" (and {rows - 1} more)" if rows > 1 else ""
    assert noted.headers["Spanboost-Note"] == (
        f"'size' is the text 'forty', but was a number before{more}; the model has not learned "
        "this text, so the value counts as missing"
    )
    assert read_metric(client, "unknown_texts_total") == rows
    learn(client, [{"size": "forty", "city": "a", "label": 1.0}], wait="true")
    learned = client.post("/predict", json=[{"size": "forty", "city": "a"}] * rows)
    assert "Spanboost-Note" not in learned.headers


def arrow_stream(table):
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def read_metric(client, name):
    return _parse_metrics(client.get("/metrics").text)[f"spanboost_{name}"]


def without_labels(rows):
    return [{k: v for k, v in row.items() if k != "label"} for row in rows]


def test_the_service_learns_the_same_model_as_train(client, tmp_path):
    rows = some_rows(300)
    for first in range(0, 300, 60):
        response = learn(client, rows[first : first + 60])
        assert response.status_code == 200
        assert response.json() == {
            "learned": 60,
            "duplicates": 0,
            "problems": [],
            "queued": 60,
        }
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    train = ["train", str(tmp_path / "rows.jsonl"), "-o", str(tmp_path / "model.sb"), "--quiet"]
    assert main([*train, *SMALL]) == 0
    assert client.get("/model").content == (tmp_path / "model.sb").read_bytes()


def test_a_model_trained_on_a_table_continues_as_train_would(tmp_path, capsys):
    rng = random.Random(2)
    lines = [f"{rng.random()},{rng.choice(['x', 'y', 'z'])},{rng.random()}" for _ in range(200)]
    halves = lines[:100], [*lines[100:], "0.5,new,1.5"]
    for name, half in zip(("one", "two"), halves, strict=True):
        (tmp_path / f"{name}.csv").write_text("\n".join(["size,city,price", *half]) + "\n")
    model, after = tmp_path / "one.sb", tmp_path / "two.sb"
    assert main(["train", str(tmp_path / "one.csv"), "-o", str(model), "--quiet", *SMALL]) == 0
    two = ["train", str(tmp_path / "two.csv"), "-i", str(model), "-o", str(after), "--quiet"]
    assert main(two) == 0
    main(["predict", str(tmp_path / "two.csv"), "-m", str(model)])
    expected = [*map(float, capsys.readouterr().out.split()[1:])]
    fields = [line.split(",") for line in halves[1]]
    rows = [{"size": float(a), "city": b, "price": float(c), "extra": 1} for a, b, c in fields]
    with start_service(tmp_path / "state", "-m", str(model)) as client:
        assert client.post("/predict", json=rows).json()["prediction"] == expected
        wrong = learn(client, [{"size": "large", "city": "x", "price": 1.0}])
        assert wrong.status_code == 422
        assert wrong.json()["problems"][0]["field"] == "size"
        assert learn(client, rows[:50]).json()["learned"] == 50
        table = pa.table(
            {name: [row[name] for row in rows[50:]] for name in ("size", "city", "price")}
        )
        assert (
            client.post("/learn", content=arrow_stream(table), headers=ARROW).json()["learned"]
            == 51
        )
        assert client.get("/model").content == after.read_bytes()


def test_json_lines_and_arrow_get_the_same_predictions_as_json(client):
    rows = some_rows(50)
    learn(client, rows)
    rows = without_labels(rows)
    expected = client.post("/predict", json=rows).json()["prediction"]
    text = "\n".join(map(json.dumps, rows))
    response = client.post("/predict", content=text, headers=LINES)
    assert [json.loads(line)["prediction"] for line in response.text.splitlines()] == expected
    for city in (pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())):
        cities = pa.array([row["city"] for row in rows]).cast(city)
        table = pa.table({"size": [row["size"] for row in rows], "city": cities})
        response = client.post("/predict", content=arrow_stream(table), headers=ARROW)
        table = pa.ipc.open_stream(response.content).read_all()
        assert table.column_names == ["id", "prediction"]
        assert table["prediction"].to_pylist() == expected
    one = client.post("/predict", json=rows[7]).json()
    assert one["prediction"] == expected[7]


def test_labels_arrive_later_by_id(client):
    rows = some_rows(30)
    ids = client.post("/predict", json=without_labels(rows)).json()["id"]
    assert read_metric(client, "pending_rows") == 30
    for id, row in zip(ids, rows, strict=True):
        assert learn(client, {"id": id, "label": row["label"]}).json()["learned"] == 1
    first = {"id": ids[0], "label": rows[0]["label"]}
    assert learn(client, first).json()["duplicates"] == 1
    assert read_metric(client, "pending_rows") == 0
    late = client.get("/model").content
    with start_service(client.engine.state.folder.parent / "other") as other:
        learn(other, rows)
        assert other.get("/model").content == late


def test_clients_can_choose_ids_when_they_predict(client):
    response = client.post("/predict", json=[{"id": "mine", "size": 1}, {"id": 17, "size": 2}])
    assert response.json()["id"] == ["mine", "17"]
    assert (
        learn(client, [{"id": 17, "label": 1}, {"id": "mine", "label": 2}]).json()["learned"] == 2
    )


def test_an_id_is_learned_once_over_requests_and_restarts(tmp_path):
    row = some_rows(1)[0] | {"id": "once"}
    for times in range(3):
        with start_service(tmp_path / "state") as client:
            outcome = learn(client, row).json()
            assert (outcome["learned"], outcome["duplicates"]) == ((1, 0), (0, 1))[times > 0]


@pytest.mark.parametrize("options", [(), ("--loss", "softmax")])
def test_another_label_of_a_learned_row_is_refused(tmp_path, options):
    first, other = {"id": "a", "size": 1, "label": 7}, {"id": "b", "size": 2, "label": 8}
    reason = "the label differs from the one that was learned for the id 'a'"
    problem = {"row": 1, "field": "label", "reason": reason}
    for _ in range(2):  # the second time after a restart
        with start_service(tmp_path / "state", *SMALL, *options) as client:
            learn(client, first)
            for changed in (9, -7, "x", None):
                response = learn(client, [other, {"id": "a", "label": changed}])
                assert response.status_code == 409
                assert response.json() == {"error": f"row 1: {reason}", "problems": [problem]}
            assert learn(client, {"id": "a", "label": 7.0}).json()["duplicates"] == 1
    with start_service(tmp_path / "state", *SMALL, *options) as client:
        rows = [other, {"id": "a", "label": 9}, other | {"label": 3}]
        found = client.post("/learn?on_error=skip", json=rows).json()
        assert (found["learned"], found["duplicates"]) == (1, 0)
        assert [one["row"] for one in found["problems"]] == [1, 2]


def test_a_label_for_an_unknown_id_gets_410(client):
    response = learn(client, {"id": "unknown", "label": 1})
    assert response.status_code == 410
    assert "unknown or has expired" in response.json()["error"]


def test_a_label_for_an_expired_id_gets_410(tmp_path):
    with start_service(
        tmp_path / "state", state_limits=StateLimits(pending_seconds=-1.0)
    ) as client:
        id = client.post("/predict", json={"size": 1}).json()["id"]
        assert learn(client, {"id": id, "label": 1}).status_code == 410


BAD = [
    ({"size": [1], "label": 1}, "size", "a list"),
    ({"size": {"a": 1}, "label": 1}, "size", "an object"),
    ({"size": 1e39, "label": 1}, "size", "too large"),
    ({"size": 1}, "label", "missing"),
    ({"size": 1, "label": None}, "label", "missing"),
    ({"size": 1, "label": "many"}, "label", "not a number"),
    ({"size": 1, "label": [1]}, "label", "a list"),
    ({"size": 1, "label": 1e301}, "label", "too large or not finite"),
    ({"id": "", "size": 1, "label": 1}, "id", "1 to 128"),
    ({"id": 1.5, "size": 1, "label": 1}, "id", "64-bit integer"),
    ({"id": "x" * 129, "size": 1, "label": 1}, "id", "1 to 128"),
    ({"id": "a\nb", "size": 1, "label": 1}, "id", "1 to 128"),
    ({"id": 2**64, "size": 1, "label": 1}, "id", "64-bit integer"),
    ({"id": 2**64, "size": "\\:", "label": 1}, "id", "64-bit integer"),
    (17, None, "expected a JSON object"),
    ([], None, "expected a JSON object"),
]


@pytest.mark.parametrize(("bad", "field", "reason"), BAD)
def test_a_bad_row_refuses_the_request_unless_it_is_skipped(client, bad, field, reason):
    good = some_rows(2)
    response = learn(client, [good[0], bad, good[1]])
    assert response.status_code == 422
    (problem,) = response.json()["problems"]
    assert (problem["row"], problem["field"]) == (1, field)
    assert reason in problem["reason"]
    assert read_metric(client, "learned_rows_total") == 0
    response = learn(client, [good[0], bad, good[1]], on_error="skip")
    assert response.status_code == 200
    assert response.json() == {
        "learned": 2,
        "duplicates": 0,
        "problems": [problem],
        "queued": 2,
    }
    assert read_metric(client, "refused_rows_total") == 2


def test_bad_rows_to_predict(client):
    rows = [{"size": 1}, {"size": [1]}, {"size": 2}]
    response = client.post("/predict", json=rows)
    assert response.status_code == 422
    assert response.json()["problems"][0]["field"] == "size"
    response = client.post("/predict", json=rows, params={"on_error": "skip"}).json()
    assert response["row"] == [0, 2]
    assert response["problems"][0]["row"] == 1
    lines = '{"size": 1}\n{"size": \n\n{"size": 2}\n'
    response = client.post("/predict?on_error=skip", content=lines, headers=LINES)
    results = [json.loads(line) for line in response.text.splitlines()]
    assert [result["row"] for result in results] == [0, 2, 1]
    assert "reason" in results[2]


def test_empty_requests(client):
    assert client.post("/predict", json=[]).json() == {"id": [], "prediction": []}
    assert learn(client, []).json()["learned"] == 0


def test_rows_are_not_stored_with_keep_false(client):
    assert client.post("/predict?keep=false", json={"size": 1}).json() == {"prediction": 0.0}
    assert read_metric(client, "pending_rows") == 0


def test_weights_and_other_column_names(tmp_path):
    options = [*SMALL, "--label", "price", "--weight", "importance", "--ignore", "note"]
    with start_service(tmp_path / "state", *options) as client:
        rows = [{"size": k, "price": k, "importance": k % 3, "note": "x"} for k in range(30)]
        assert learn(client, rows).json()["learned"] == 30
        bad = learn(client, {"size": 1, "price": 1, "importance": -1})
        assert bad.json()["problems"][0]["field"] == "importance"
        (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        train = ["train", str(tmp_path / "rows.jsonl"), "-o", str(tmp_path / "model.sb")]
        assert main([*train, "--quiet", *options]) == 0
        assert client.get("/model").content == (tmp_path / "model.sb").read_bytes()


def test_a_restart_accepts_the_same_options(tmp_path):
    options = [*SMALL, "--label-range", "0,10", "--ignore", "note", "--categorical", "city,zip"]
    for number in range(2):
        with start_service(tmp_path / "state", *options) as client:
            outside = learn(client, {"size": 1, "label": 11})
            assert "outside the label range" in outside.json()["error"]
            learn(client, {"size": 1, "label": 1})
            wait_until(
                lambda number=number: read_metric(client, "learned_rows_total") == number + 1
            )


@pytest.mark.parametrize("loss", ["softmax", "logistic"])
def test_before_the_first_label_there_is_no_class_to_predict(loss, tmp_path):
    with start_service(tmp_path / "state", *SMALL, "--loss", loss) as client:
        assert client.post("/predict?keep=false", json={"x": 1}).json() == {"prediction": None}


def test_only_classes_that_have_appeared_are_predicted(tmp_path):
    with start_service(tmp_path / "state", *SMALL, "--loss", "softmax") as client:
        for known in (["elm"], ["elm", "oak"], ["elm", "oak", "ash"]):
            client.post("/learn?wait=true", json={"x": 1, "label": known[-1]})
            answer = client.post("/predict?keep=false", json={"x": 1}).json()
            assert [*answer] == ["prediction", *(f"p_{name}" for name in known)]
            assert sum(answer[f"p_{name}"] for name in known) == pytest.approx(1)


def test_two_classes(tmp_path):
    with start_service(tmp_path / "state", *SMALL, "--loss", "logistic") as client:
        rows = [{"x": k % 2, "label": "yes" if k % 2 else "no"} for k in range(60)]
        assert learn(client, rows).json()["learned"] == 60
        refused = learn(client, [{"x": 1, "label": "maybe"}])
        assert refused.status_code == 422
        error = refused.json()["error"]
        assert error == "row 0: the label 'maybe' cannot be used together with 'no', 'yes'"
        response = client.post("/predict", json=[{"x": 1}, {"x": 0}]).json()
        assert response["prediction"] == ["yes", "no"]
        assert response["p_yes"][0] > 0.5 > response["p_yes"][1]
        assert response["p_no"][0] < 0.5 < response["p_no"][1]


def test_a_form_gets_the_header_to_set(client):
    form = {"Content-Type": "application/x-www-form-urlencoded"}  # which curl -d sends
    error = client.post("/predict", content=b'{"x": 1}', headers=form).json()["error"]
    assert "(got 'application/x-www-form-urlencoded')" in error
    assert "set the header Content-Type to one of: application/json, " in error


REFUSED = [
    ("POST", "/predict", b"{}", {"Content-Type": "text/plain"}, 415),
    ("POST", "/predict", b"{}", {}, 415),
    ("POST", "/predict", b"", JSON, 400),
    ("POST", "/predict", b"{", JSON, 400),
    ("POST", "/predict", b"\xff", JSON, 400),
    ("POST", "/predict", b"17", JSON, 400),
    ("POST", "/predict", b'{"x": NaN}', JSON, 400),
    ("POST", "/predict", b'{"x": 1, "x": 2}', JSON, 400),
    ("POST", "/predict", b'{"x": "\\ud800"}', JSON, 400),
    ("POST", "/predict", b"[" * 100_000, JSON, 400),
    ("POST", "/predict", b'{"x":' * 100_000, JSON, 400),
    ("POST", "/predict", b'{"x": ' + b"9" * 100_000 + b"}", JSON, 422),
    ("POST", "/predict", b"not arrow", ARROW, 400),
    ("POST", "/predict", b"\xff\xff\xff\xff\xff\xff\xff\x7f", ARROW, 400),
    ("POST", "/predict?on_error=perhaps", b"{}", JSON, 422),
    ("POST", "/predict?keep=perhaps", b"{}", JSON, 422),
    ("POST", "/learn", b'{"label": NaN}', JSON, 400),
    ("GET", "/learn", b"", {}, 405),
    ("DELETE", "/model", b"", {}, 405),
    ("GET", "/nothing", b"", {}, 404),
    ("GET", "/../../etc/passwd", b"", {}, 404),
    ("GET", "/page.html", b"", {}, 404),
    ("POST", "/predict/", b"{}", JSON, 404),
]


@pytest.mark.parametrize(("method", "path", "body", "headers", "status"), REFUSED)
def test_invalid_requests_get_an_error(client, method, path, body, headers, status):
    response = client.request(method, path, content=body, headers=headers)
    assert response.status_code == status
    assert response.json()["error"]


def invalid_tables():
    nulls = pa.nulls(10_001)
    long = pa.DictionaryArray.from_arrays([0] * 2000, ["x" * 100_000])
    yield "types", pa.table({"blob": pa.array([b"x"], pa.binary())})
    yield "lists", pa.table({"x": [[1.0]]})
    yield "duplicate columns", pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["x", "x"])
    yield "rows", pa.table({"x": nulls})
    yield "dictionaries", pa.table({"x": long})
    yield "columns of nulls", pa.table({str(k): pa.nulls(10_000) for k in range(1000)})
    yield "dictionaries of numbers", pa.table({"x": pa.array([1.0]).dictionary_encode()})


@pytest.mark.parametrize(("name", "table"), [*invalid_tables()])
def test_invalid_arrow_tables_are_refused(client, name, table):
    response = client.post("/predict", content=arrow_stream(table), headers=ARROW)
    assert response.status_code == 400
    assert response.json()["error"]


def test_compressed_arrow_is_refused_before_it_is_unpacked(client):
    for codec in ("lz4", "zstd"):
        sink, table = io.BytesIO(), pa.table({"x": pa.array([0.0] * 1000)})
        options = pa.ipc.IpcWriteOptions(compression=codec)
        with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
            writer.write_table(table)
        response = client.post("/predict", content=sink.getvalue(), headers=ARROW)
        assert response.status_code == 400
        assert "compressed" in response.json()["error"]


# 1,000 zeros, compressed by Arrow 0.17, which names the compression in the message metadata
ARROW_0_17 = """
/////3AAAAAQAAAAAAAKAAwABgAFAAgACgAAAAABAwAMAAAACAAIAAAABAAIAAAABAAAAAEAAAAUAAAAEAAUAAgA
BgAHAAwAAAAQABAAAAAAAAEDEAAAABgAAAAEAAAAAAAAAAEAAAB4AAYACAAGAAYAAAAAAAIA/////+gAAAAYAAAA
DgAgAAQABgAIABAADAAAAAAAAAAUAAAAAwADAHAAAAAUAAAAIAAAAAAAAAAAAAAAAAAAAAEAAAAMAAAACAAMAAQA
CAAIAAAACAAAACgAAAAeAAAAQVJST1c6ZXhwZXJpbWVudGFsX2NvbXByZXNzaW9uAAAEAAAAenN0ZAAAAAAKABgA
CAAEABAAAAAMAAAAGAAAAOgDAAAAAAAAJAAAAAAAAAAAAAAAAQAAAOgDAAAAAAAAAAAAAAAAAAAAAAAAAgAAAAAA
AAAAAAAAAAAAAAAAAAAAAAAAAAAAABsAAAAAAAAAQB8AAAAAAAAotS/9YEAeTQAAEAAAAQA73wMsAAAAAAD/////
AAAAAA==
"""


def test_streams_compressed_by_arrow_0_17_are_refused(client):
    data = b64decode(ARROW_0_17)
    assert pa.ipc.open_stream(data).read_all().num_rows == 1000
    response = client.post("/predict", content=data, headers=ARROW)
    assert response.status_code == 400
    assert "compressed" in response.json()["error"]


def test_infinite_and_missing_numbers_in_arrow(client):
    table = pa.table({"x": [1.0, float("nan"), None]})
    response = client.post("/predict", content=arrow_stream(table), headers=ARROW)
    assert response.status_code == 200
    table = pa.table({"x": [1.0, float("inf")]})
    response = client.post("/predict", content=arrow_stream(table), headers=ARROW)
    assert response.status_code == 422
    assert response.json()["problems"][0]["field"] == "x"


def test_corrupted_arrow_streams_get_a_response(client):
    rows = some_rows(20)
    table = pa.table({name: [row[name] for row in rows] for name in rows[0]})
    good, rng = arrow_stream(table), random.Random(3)
    for _ in range(300):
        bad = bytearray(good)
        for _ in range(rng.randrange(1, 4)):
            bad[rng.randrange(len(bad))] = rng.randrange(256)
        response = client.post("/predict?keep=false", content=bytes(bad), headers=ARROW)
        assert response.status_code in (200, 400, 422)


@pytest.mark.parametrize("days", ["-1", "0", "nan", "inf"])
def test_invalid_days_are_refused(days, capsys):
    with pytest.raises(SystemExit):
        parser().parse_args(["serve", "--dir", "state", "--pending-days", days])
    assert f"must be a positive number of days (got {days})" in capsys.readouterr().err


def test_limits(tmp_path):
    with start_service(
        tmp_path / "state", limits=RequestLimits(body_bytes=1000, rows=3, row_keys=4)
    ) as client:
        assert client.post("/predict", content=b" " * 1001, headers=JSON).status_code == 413
        pieces = (b" " * 100 for _ in range(11))
        assert client.post("/predict", content=pieces, headers=JSON).status_code == 413
        assert client.post("/predict", json=[{}] * 3).status_code == 200
        assert client.post("/predict", json=[{}] * 4).status_code == 400
        wide = client.post("/predict", json={str(k): k for k in range(5)})
        assert wide.status_code == 422
        assert "too many keys in one row: 5 (maximum: 4)" in wide.json()["error"]


def test_too_many_waiting_rows_get_429(tmp_path):
    with start_service(tmp_path / "state", limits=RequestLimits(waiting_rows=100)) as client:
        engine, began, resume = client.engine, threading.Event(), threading.Event()
        learn_rows = engine.state.learn

        def learn_slowly(*args):
            began.set()
            resume.wait(30)
            learn_rows(*args)

        engine.state.learn = learn_slowly
        assert learn(client, some_rows(60)).status_code == 200  # in the journal, not learned yet
        began.wait(30)
        response = learn(client, some_rows(60))
        assert response.status_code == 429
        assert response.headers["retry-after"] == "1"
        assert read_metric(client, "waiting_rows") == 60
        resume.set()


def test_too_many_open_requests_get_503_but_health_checks_work(tmp_path):
    with start_service(tmp_path / "state", limits=RequestLimits(open_requests=0)) as client:
        response = client.post("/predict", json={})
        assert response.status_code == 503
        assert response.headers["retry-after"]
        assert client.get("/healthz").status_code == 200


def connect(client):
    url = client.base_url
    return socket.create_connection((url.host, url.port), timeout=30)


def request_head(path, length):
    return (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {length}\r\n\r\n"
    ).encode()


def test_too_many_open_body_bytes_get_503(tmp_path):
    size = 40_000
    with start_service(tmp_path / "state", limits=RequestLimits(body_bytes=size)) as client:
        counters, slow = client.app.counters, [connect(client) for _ in range(16)]
        for sock in slow:
            sock.sendall(request_head("/predict", size) + b" " * (size - 2))
        wait_until(lambda: counters.open_body_bytes == 16 * (size - 2))
        response = client.post("/predict", content=b" " * 20_000, headers=JSON)
        assert response.status_code == 503
        assert response.headers["retry-after"]
        assert client.post("/predict", json={}).status_code == 200  # small bodies are still read
        for sock in slow:
            sock.sendall(b"{}")
            assert sock.recv(100).startswith(b"HTTP/1.1 200")
            sock.close()
        wait_until(lambda: counters.open_body_bytes == 0)
        assert client.post("/predict", json={}).status_code == 200


def test_a_client_cannot_keep_sending_after_its_response(client, monkeypatch):
    monkeypatch.setattr("spanboost.service.http.server.HEAD_SECONDS", 0.2)
    for path in ("/nothing", "/metrics"):
        with connect(client) as sock:
            sock.sendall(request_head(path, 1000))
            assert sock.recv(100).startswith(b"HTTP/1.1 40")
            with pytest.raises((BrokenPipeError, ConnectionResetError)):
                send_slowly(sock)
    with connect(client) as sock:  # the rest of the request arrives soon
        sock.sendall(request_head("/nothing", 4))
        assert sock.recv(100).startswith(b"HTTP/1.1 404")
        sock.sendall(b"    ")
        time.sleep(0.4)
        sock.sendall(request_head("/predict", 2) + b"{}")
        wait_until(lambda: b"HTTP/1.1 200" in sock.recv(1000))


def send_slowly(sock):
    for _ in range(500):
        sock.sendall(b" ")
        time.sleep(0.02)


def test_a_client_that_reads_no_response_is_disconnected(client, monkeypatch):
    monkeypatch.setattr("spanboost.service.http.server.TAKING_SECONDS", 0.2)
    body = json.dumps([{"id": "x" * 128}] * 10_000).encode()
    message = request_head("/predict?keep=true", len(body)) + body
    connections = client.server.server_state.connections
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 12)
        sock.settimeout(30)
        sock.connect((client.base_url.host, client.base_url.port))
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            sock.sendall(message * 100)  # each response has more than a megabyte
        wait_until(lambda: len(connections) == 0)


def test_head_of_events_does_not_stream(client):
    response = client.head("/events")
    assert (response.status_code, response.content) == (200, b"")


def test_a_full_disk_gets_503(client, monkeypatch):
    def full(entry):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(client.engine.state, "commit", full)
        response = learn(client, some_rows(2))
        assert response.status_code == 503
        assert "No space left" in response.json()["error"]
        assert read_metric(client, "disk_problems_total") == 1
    assert learn(client, some_rows(2)).status_code == 200


def test_a_failed_writer_thread_gets_503(client, monkeypatch):
    def broken(*_):
        raise MemoryError

    assert client.get("/readyz").json()["status"] == "ready"
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    client.engine.state.learn = broken
    learn(client, some_rows(2))
    while client.engine.failure is None:
        pass
    assert learn(client, some_rows(2)).status_code == 503
    assert client.get("/readyz").status_code == 503
    assert client.get("/healthz").status_code == 200


TOKENS = {"predict": "one", "learn": "two", "admin": "three"}
REQUIRED_TOKENS = {
    ("POST", "/predict"): "one",
    ("POST", "/learn"): "two",
    ("GET", "/model"): "three",
    ("GET", "/metrics"): "three",
    ("GET", "/"): "three",
    ("GET", "/page.js"): "three",
    ("GET", "/nothing"): "three",
    ("GET", "/healthz"): None,
    ("GET", "/readyz"): None,
}


def test_every_path_needs_its_own_token(tmp_path, monkeypatch):
    monkeypatch.setattr(token_guard, "MAX_FAILURES", 1000)
    with start_service(tmp_path / "state", tokens=TOKENS) as client:
        for (method, path), need in REQUIRED_TOKENS.items():
            for token in (None, "x", "one", "two", "three", "thre", "threee", "ü"):
                headers = {} if token is None else {"Authorization": f"Bearer {token}".encode()}
                response = client.request(method, path, headers=headers)
                assert (response.status_code == 401) == (need not in (None, token))
        for token in TOKENS.values():
            headers = {"Authorization": f"Bearer {token}"}
            assert client.get("/openapi.json", headers=headers).status_code == 200
        assert client.get("/openapi.json").status_code == 401
        assert client.get("/metrics", auth=("anyone", "three")).status_code == 200
        assert client.get("/metrics", auth=("three", "anyone")).status_code == 401
        assert client.get("/").headers["www-authenticate"].startswith("Basic")
        for header in ("Basic ???", "Basic", "Bearer", "three", "Digest three"):
            assert client.get("/metrics", headers={"Authorization": header}).status_code == 401


def test_without_tokens_only_requests_to_localhost_are_answered(client):
    for host, good in (
        ("localhost:8000", True),
        ("LOCALHOST", True),
        ("127.0.0.2:8000", True),
        ("127.0.0.1", True),
        ("[::1]:80", True),
        ("evil.example", False),
        ("localhost.evil.example", False),
        ("", False),
    ):
        response = client.get("/metrics", headers={"Host": host})
        assert (response.status_code == 200) == good


def test_with_some_tokens_only_requests_to_localhost_are_answered(tmp_path):
    with start_service(tmp_path / "state", tokens={"learn": "two"}) as client:
        evil = {"Host": "evil.example"}
        assert client.get("/metrics").status_code == 200
        assert client.get("/metrics", headers=evil).status_code == 421
        assert client.get("/healthz", headers=evil).status_code == 200
    with start_service(tmp_path / "state", tokens=TOKENS) as client:
        evil |= {"Authorization": "Bearer one"}
        assert client.get("/openapi.json", headers=evil).status_code == 200


def test_tokens_can_have_any_bytes(tmp_path):
    odd = {"admin": "ü\udcff"}  # as read from an environment that is not UTF-8
    with start_service(tmp_path / "state", tokens=odd) as client:
        for token, status in (("ü".encode() + b"\xff", 200), (b"\xfc\xff", 401)):
            headers = {"Authorization": b"Bearer " + token}
            assert client.get("/metrics", headers=headers).status_code == status


def test_responses_have_security_headers(client):
    for path in ("/", "/metrics", "/nothing"):
        headers = client.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"


def test_metrics(client):
    rows = some_rows(250)
    learn(client, rows)
    learn(client, rows[:1])
    client.post("/predict", json=without_labels(rows))
    client.engine.writer.close()
    metrics = _parse_metrics(client.get("/metrics").text)
    assert metrics["spanboost_learned_rows_total"] == 251
    assert metrics["spanboost_predicted_rows_total"] == 250
    assert metrics["spanboost_pending_rows"] == 250
    assert metrics["spanboost_loss"] == client.engine.state.progress.loss > 0
    assert metrics['spanboost_requests_total{path="/learn",status="200"}'] == 2
    assert metrics['spanboost_request_seconds_count{path="/learn"}'] == 2
    assert metrics['spanboost_request_seconds_bucket{path="/learn",le="+Inf"}'] == 2


@pytest.mark.filterwarnings("ignore::spanboost.LabelWarning")
def test_metrics_show_the_health_of_the_model(tmp_path):
    rows = some_rows(400)
    for row in (200, 210):
        rows[row]["label"] = 1e9
    with start_service(tmp_path / "state") as client:
        assert read_metric(client, "labels_clipped_total") == 0
        assert read_metric(client, "state_nans") == 0
        assert "spanboost_label_range_changed_row{" not in client.get("/metrics").text
        learn(client, rows)
        client.engine.writer.close()
        model = client.engine.state.model
        assert read_metric(client, "labels_clipped_total") == 2 == model.health.labels.clipped
        widened = read_metric(client, 'label_range_changed_row{kind="widened"}')
        assert widened == model.health.labels.widened


def test_nans_are_counted_at_snapshots(tmp_path):
    limits = StateLimits(snapshot_rows=300)
    with start_service(tmp_path / "state", state_limits=limits) as client:
        learn(client, some_rows(100))
        wait_until(lambda: read_metric(client, "learned_rows_total") == 100)
        client.engine.state.model.core.state.bank.mass[0] = np.nan
        assert read_metric(client, "state_nans") == 0
        learn(client, some_rows(250, seed=1))
        client.engine.writer.close()
        assert read_metric(client, "state_nans") == client.engine.state.model.health.nans > 0
        assert read_metric(client, "snapshot_record") == 0  # a file with NaN cannot be loaded
    with start_service(tmp_path / "state", state_limits=limits) as client:
        assert read_metric(client, "learned_rows_total") == 350
        assert read_metric(client, "state_nans") == 0


def test_openapi_names_every_path_and_all_references_exist(client):
    description = client.get("/openapi.json").json()
    for path in ("/predict", "/learn", "/model", "/backup", "/healthz", "/readyz", "/metrics"):
        assert path in description["paths"]
    text = json.dumps(description)
    for name in description["components"]["schemas"]:
        assert f"#/components/schemas/{name}" in text
    for reference in text.split('"$ref": "')[1:]:
        assert (
            reference.partition('"')[0].rpartition("/")[2] in description["components"]["schemas"]
        )
