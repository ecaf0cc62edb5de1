"""The service over HTTP: what is answered, what is refused, and by which status."""

import io
import json
import random
import socket
import threading
import time
from base64 import b64decode
from contextlib import contextmanager

import pyarrow as pa
import pytest
from serving import answering, until

from spanboost.cli.commands.serve import open_state
from spanboost.cli.main import main
from spanboost.cli.parser import parser
from spanboost.client import _metrics
from spanboost.service.app import application
from spanboost.service.engine import Engine
from spanboost.service.middleware import Limits
from spanboost.service.state import Bounds

JSON = {"Content-Type": "application/json"}
LINES = {"Content-Type": "application/x-ndjson"}
ARROW = {"Content-Type": "application/vnd.apache.arrow.stream"}
SMALL = ["--learner", "linear", "-n", "4"]


@contextmanager
def started(folder, *options, tokens=None, limits=None, room=50_000, bounds=None):
    words = ["serve", "--dir", str(folder), *(options or SMALL)]
    state = open_state(parser().parse_args(words), bounds or Bounds())
    engine = Engine(state, room)
    app = application(engine, tokens, "id", limits or Limits())
    with answering(app) as client:
        client.engine, client.app = engine, app
        yield client


@pytest.fixture
def client(tmp_path):
    with started(tmp_path / "state") as client:
        yield client


def some_rows(n, seed=0):
    rng = random.Random(seed)
    rows = [{"size": rng.random(), "city": rng.choice("abc")} for _ in range(n)]
    return [row | {"label": 3 * row["size"] + (row["city"] == "a")} for row in rows]


def learn(client, rows, **query):
    return client.post("/learn", json=rows, params=query)


def stream_of(table):
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def figure(client, name):
    return _metrics(client.get("/metrics").text)[f"spanboost_{name}"]


def unlabelled(rows):
    return [{k: v for k, v in row.items() if k != "label"} for row in rows]


def test_what_is_learned_is_what_train_would_have_learned(client, tmp_path):
    rows = some_rows(300)
    for first in range(0, 300, 60):
        answer = learn(client, rows[first : first + 60])
        assert answer.status_code == 200
        assert answer.json() == {"learned": 60, "duplicates": 0, "problems": []}
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    train = ["train", str(tmp_path / "rows.jsonl"), "-o", str(tmp_path / "model.sb"), "--quiet"]
    assert main([*train, *SMALL]) == 0
    assert client.get("/model").content == (tmp_path / "model.sb").read_bytes()


def test_a_model_of_a_table_is_served_and_goes_on_as_train_would(tmp_path, capsys):
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
    with started(tmp_path / "state", "-m", str(model)) as client:
        assert client.post("/predict", json=rows).json()["prediction"] == expected
        wrong = learn(client, [{"size": "large", "city": "x", "price": 1.0}])
        assert wrong.status_code == 422
        assert wrong.json()["problems"][0]["field"] == "size"
        assert learn(client, rows[:50]).json()["learned"] == 50
        table = pa.table(
            {name: [row[name] for row in rows[50:]] for name in ("size", "city", "price")}
        )
        assert (
            client.post("/learn", content=stream_of(table), headers=ARROW).json()["learned"] == 51
        )
        assert client.get("/model").content == after.read_bytes()


def test_rows_may_come_as_json_lines_or_arrow_and_are_answered_alike(client):
    rows = some_rows(50)
    learn(client, rows)
    rows = unlabelled(rows)
    expected = client.post("/predict", json=rows).json()["prediction"]
    text = "\n".join(map(json.dumps, rows))
    answer = client.post("/predict", content=text, headers=LINES)
    assert [json.loads(line)["prediction"] for line in answer.text.splitlines()] == expected
    for city in (pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())):
        cities = pa.array([row["city"] for row in rows]).cast(city)
        table = pa.table({"size": [row["size"] for row in rows], "city": cities})
        answer = client.post("/predict", content=stream_of(table), headers=ARROW)
        found = pa.ipc.open_stream(answer.content).read_all()
        assert found.column_names == ["id", "prediction"]
        assert found["prediction"].to_pylist() == expected
    one = client.post("/predict", json=rows[7]).json()
    assert one["prediction"] == expected[7]


def test_labels_come_later_by_id(client):
    rows = some_rows(30)
    ids = client.post("/predict", json=unlabelled(rows)).json()["id"]
    assert figure(client, "pending_rows") == 30
    for id, row in zip(ids, rows, strict=True):
        assert learn(client, {"id": id, "label": row["label"]}).json()["learned"] == 1
    assert learn(client, {"id": ids[0], "label": 7}).json()["duplicates"] == 1
    assert figure(client, "pending_rows") == 0
    late = client.get("/model").content
    with started(client.engine.state.folder.parent / "other") as other:
        learn(other, rows)
        assert other.get("/model").content == late


def test_ids_may_be_chosen_when_predicting(client):
    answer = client.post("/predict", json=[{"id": "mine", "size": 1}, {"id": 17, "size": 2}])
    assert answer.json()["id"] == ["mine", "17"]
    assert (
        learn(client, [{"id": 17, "label": 1}, {"id": "mine", "label": 2}]).json()["learned"] == 2
    )


def test_an_id_is_learned_once_over_requests_and_restarts(tmp_path):
    row = some_rows(1)[0] | {"id": "once"}
    for times in range(3):
        with started(tmp_path / "state") as client:
            outcome = learn(client, row).json()
            assert (outcome["learned"], outcome["duplicates"]) == ((1, 0), (0, 1))[times > 0]


def test_an_unknown_id_is_gone(client):
    answer = learn(client, {"id": "nobody", "label": 1})
    assert answer.status_code == 410
    assert "unknown, or expired" in answer.json()["error"]


def test_an_expired_id_is_gone(tmp_path):
    with started(tmp_path / "state", bounds=Bounds(pending_seconds=-1.0)) as client:
        id = client.post("/predict", json={"size": 1}).json()["id"]
        assert learn(client, {"id": id, "label": 1}).status_code == 410


BAD = [
    ({"size": [1], "label": 1}, "size", "a list"),
    ({"size": {"a": 1}, "label": 1}, "size", "an object"),
    ({"size": 1e39, "label": 1}, "size", "too large"),
    ({"size": 1}, "label", "missing"),
    ({"size": 1, "label": None}, "label", "missing"),
    ({"size": 1, "label": "many"}, "label", "no number"),
    ({"size": 1, "label": [1]}, "label", "a list"),
    ({"size": 1, "label": 1e301}, "label", "too large"),
    ({"id": "", "size": 1, "label": 1}, "id", "1 to 128"),
    ({"id": 1.5, "size": 1, "label": 1}, "id", "whole number"),
    ({"id": "x" * 129, "size": 1, "label": 1}, "id", "1 to 128"),
    ({"id": "a\nb", "size": 1, "label": 1}, "id", "1 to 128"),
    ({"id": 2**64, "size": 1, "label": 1}, "id", "64 bits"),
    ({"id": 2**64, "size": "\\:", "label": 1}, "id", "64 bits"),
    (17, None, "where an object is expected"),
    ([], None, "where an object is expected"),
]


@pytest.mark.parametrize(("bad", "field", "reason"), BAD)
def test_a_bad_row_is_named_and_nothing_is_learned_unless_skipped(client, bad, field, reason):
    good = some_rows(2)
    answer = learn(client, [good[0], bad, good[1]])
    assert answer.status_code == 422
    (problem,) = answer.json()["problems"]
    assert (problem["row"], problem["field"]) == (1, field)
    assert reason in problem["reason"]
    assert figure(client, "learned_rows_total") == 0
    answer = learn(client, [good[0], bad, good[1]], on_error="skip")
    assert answer.status_code == 200
    assert answer.json() == {"learned": 2, "duplicates": 0, "problems": [problem]}
    assert figure(client, "refused_rows_total") == 2


def test_bad_rows_to_predict(client):
    rows = [{"size": 1}, {"size": [1]}, {"size": 2}]
    answer = client.post("/predict", json=rows)
    assert answer.status_code == 422
    assert answer.json()["problems"][0]["field"] == "size"
    answer = client.post("/predict", json=rows, params={"on_error": "skip"}).json()
    assert answer["row"] == [0, 2]
    assert answer["problems"][0]["row"] == 1
    lines = '{"size": 1}\n{"size": \n\n{"size": 2}\n'
    answer = client.post("/predict?on_error=skip", content=lines, headers=LINES)
    told = [json.loads(line) for line in answer.text.splitlines()]
    assert [one["row"] for one in told] == [0, 2, 1]
    assert "reason" in told[2]


def test_nothing_to_predict_and_nothing_to_learn(client):
    assert client.post("/predict", json=[]).json() == {"id": [], "prediction": []}
    assert learn(client, []).json()["learned"] == 0


def test_rows_that_no_label_will_come_for_are_not_kept(client):
    assert client.post("/predict?keep=false", json={"size": 1}).json() == {"prediction": 0.0}
    assert figure(client, "pending_rows") == 0


def test_weights_and_other_names(tmp_path):
    options = [*SMALL, "--label", "price", "--weight", "importance", "--ignore", "note"]
    with started(tmp_path / "state", *options) as client:
        rows = [{"size": k, "price": k, "importance": k % 3, "note": "x"} for k in range(30)]
        assert learn(client, rows).json()["learned"] == 30
        bad = learn(client, {"size": 1, "price": 1, "importance": -1})
        assert bad.json()["problems"][0]["field"] == "importance"
        (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        train = ["train", str(tmp_path / "rows.jsonl"), "-o", str(tmp_path / "model.sb")]
        assert main([*train, "--quiet", *options]) == 0
        assert client.get("/model").content == (tmp_path / "model.sb").read_bytes()


def test_options_are_the_same_ones_when_it_starts_and_starts_again(tmp_path):
    options = [*SMALL, "--label-range", "0,10", "--ignore", "note", "--categorical", "city,zip"]
    for number in range(2):
        with started(tmp_path / "state", *options) as client:
            outside = learn(client, {"size": 1, "label": 11})
            assert "outside the label range" in outside.json()["error"]
            learn(client, {"size": 1, "label": 1})
            until(lambda number=number: figure(client, "learned_rows_total") == number + 1)


def test_two_classes(tmp_path):
    with started(tmp_path / "state", *SMALL, "--loss", "logistic") as client:
        rows = [{"x": k % 2, "label": "yes" if k % 2 else "no"} for k in range(60)]
        assert learn(client, rows).json()["learned"] == 60
        refused = learn(client, [{"x": 1, "label": "maybe"}])
        assert refused.status_code == 422
        assert "does not go with" in refused.json()["error"]
        answer = client.post("/predict", json=[{"x": 1}, {"x": 0}]).json()
        assert answer["prediction"] == ["yes", "no"]
        assert answer["probability"][0] > 0.5 > answer["probability"][1]


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
def test_what_cannot_be_answered_is_refused(client, method, path, body, headers, status):
    answer = client.request(method, path, content=body, headers=headers)
    assert answer.status_code == status
    assert answer.json()["error"]


def tables():
    nothing = pa.nulls(10_001)
    long = pa.DictionaryArray.from_arrays([0] * 2000, ["x" * 100_000])
    yield "types", pa.table({"when": pa.array([0], pa.timestamp("s"))})
    yield "lists", pa.table({"x": [[1.0]]})
    yield "twice", pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["x", "x"])
    yield "rows", pa.table({"x": nothing})
    yield "dictionaries", pa.table({"x": long})
    yield "columns of nothing", pa.table({str(k): pa.nulls(10_000) for k in range(1000)})
    yield "of numbers", pa.table({"x": pa.array([1.0]).dictionary_encode()})


@pytest.mark.parametrize(("name", "table"), [*tables()])
def test_arrow_that_is_not_for_us(client, name, table):
    answer = client.post("/predict", content=stream_of(table), headers=ARROW)
    assert answer.status_code == 400
    assert answer.json()["error"]


def test_compressed_arrow_is_refused_before_it_is_unpacked(client):
    for codec in ("lz4", "zstd"):
        sink, table = io.BytesIO(), pa.table({"x": pa.array([0.0] * 1000)})
        options = pa.ipc.IpcWriteOptions(compression=codec)
        with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
            writer.write_table(table)
        answer = client.post("/predict", content=sink.getvalue(), headers=ARROW)
        assert answer.status_code == 400
        assert "compressed" in answer.json()["error"]


# 1,000 zeros, compressed as Arrow 0.17 did it: named in the metadata of the message
OLD = """
/////3AAAAAQAAAAAAAKAAwABgAFAAgACgAAAAABAwAMAAAACAAIAAAABAAIAAAABAAAAAEAAAAUAAAAEAAUAAgA
BgAHAAwAAAAQABAAAAAAAAEDEAAAABgAAAAEAAAAAAAAAAEAAAB4AAYACAAGAAYAAAAAAAIA/////+gAAAAYAAAA
DgAgAAQABgAIABAADAAAAAAAAAAUAAAAAwADAHAAAAAUAAAAIAAAAAAAAAAAAAAAAAAAAAEAAAAMAAAACAAMAAQA
CAAIAAAACAAAACgAAAAeAAAAQVJST1c6ZXhwZXJpbWVudGFsX2NvbXByZXNzaW9uAAAEAAAAenN0ZAAAAAAKABgA
CAAEABAAAAAMAAAAGAAAAOgDAAAAAAAAJAAAAAAAAAAAAAAAAQAAAOgDAAAAAAAAAAAAAAAAAAAAAAAAAgAAAAAA
AAAAAAAAAAAAAAAAAAAAAAAAAAAAABsAAAAAAAAAQB8AAAAAAAAotS/9YEAeTQAAEAAAAQA73wMsAAAAAAD/////
AAAAAA==
"""


def test_what_older_versions_of_arrow_compressed_is_refused_too(client):
    data = b64decode(OLD)
    assert pa.ipc.open_stream(data).read_all().num_rows == 1000
    answer = client.post("/predict", content=data, headers=ARROW)
    assert answer.status_code == 400
    assert "compressed" in answer.json()["error"]


def test_infinite_and_missing_numbers_of_arrow(client):
    table = pa.table({"x": [1.0, float("nan"), None]})
    answer = client.post("/predict", content=stream_of(table), headers=ARROW)
    assert answer.status_code == 200
    table = pa.table({"x": [1.0, float("inf")]})
    answer = client.post("/predict", content=stream_of(table), headers=ARROW)
    assert answer.status_code == 422
    assert answer.json()["problems"][0]["field"] == "x"


def test_bytes_of_arrow_turned_at_random_are_answered(client):
    rows = some_rows(20)
    table = pa.table({name: [row[name] for row in rows] for name in rows[0]})
    good, rng = stream_of(table), random.Random(3)
    for _ in range(300):
        bad = bytearray(good)
        for _ in range(rng.randrange(1, 4)):
            bad[rng.randrange(len(bad))] = rng.randrange(256)
        answer = client.post("/predict?keep=false", content=bytes(bad), headers=ARROW)
        assert answer.status_code in (200, 400, 422)


@pytest.mark.parametrize("days", ["-1", "0", "nan", "inf"])
def test_days_that_are_none(days, capsys):
    with pytest.raises(SystemExit):
        parser().parse_args(["serve", "--dir", "state", "--pending-days", days])
    assert f"must be a positive number of days (got {days})" in capsys.readouterr().err


def test_limits(tmp_path):
    with started(tmp_path / "state", limits=Limits(body=1000, rows=3, width=4)) as client:
        assert client.post("/predict", content=b" " * 1001, headers=JSON).status_code == 413
        pieces = (b" " * 100 for _ in range(11))
        assert client.post("/predict", content=pieces, headers=JSON).status_code == 413
        assert client.post("/predict", json=[{}] * 3).status_code == 200
        assert client.post("/predict", json=[{}] * 4).status_code == 400
        wide = client.post("/predict", json={str(k): k for k in range(5)})
        assert wide.status_code == 422
        assert "5 names" in wide.json()["error"]


def test_too_many_rows_that_wait_are_sent_back(tmp_path):
    with started(tmp_path / "state", room=100) as client:
        engine, began, go_on = client.engine, threading.Event(), threading.Event()
        learn_now = engine.state.learn

        def slowly(*args):
            began.set()
            go_on.wait(30)
            learn_now(*args)

        engine.state.learn = slowly
        assert learn(client, some_rows(60)).status_code == 200  # in the journal, not learned yet
        began.wait(30)
        answer = learn(client, some_rows(60))
        assert answer.status_code == 429
        assert answer.headers["retry-after"] == "1"
        assert figure(client, "waiting_rows") == 60
        go_on.set()


def test_too_many_open_requests_are_sent_back_but_health_is_told(tmp_path):
    with started(tmp_path / "state", limits=Limits(open=0)) as client:
        answer = client.post("/predict", json={})
        assert answer.status_code == 503
        assert answer.headers["retry-after"]
        assert client.get("/healthz").status_code == 200


def connected(client):
    url = client.base_url
    return socket.create_connection((url.host, url.port), timeout=30)


def head(path, length):
    return (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {length}\r\n\r\n"
    ).encode()


def test_too_many_bytes_at_once_are_sent_back(tmp_path):
    with started(tmp_path / "state", limits=Limits(body=1000)) as client:
        meter, slow = client.app.meter, [connected(client) for _ in range(16)]
        for sock in slow:
            sock.sendall(head("/predict", 1000) + b" " * 998)
        until(lambda: meter.bodies == 16 * 998)
        answer = client.post("/predict", content=b" " * 100, headers=JSON)
        assert answer.status_code == 503
        assert answer.headers["retry-after"]
        for sock in slow:
            sock.sendall(b"{}")
            assert sock.recv(100).startswith(b"HTTP/1.1 200")
            sock.close()
        until(lambda: meter.bodies == 0)
        assert client.post("/predict", json={}).status_code == 200


def test_who_was_answered_may_not_go_on_asking_for_ever(client, monkeypatch):
    monkeypatch.setattr("spanboost.service.server.HEAD_SECONDS", 0.2)
    for path in ("/nothing", "/metrics"):
        with connected(client) as sock:
            sock.sendall(head(path, 1000))
            assert sock.recv(100).startswith(b"HTTP/1.1 40")
            with pytest.raises((BrokenPipeError, ConnectionResetError)):
                dribble(sock)
    with connected(client) as sock:  # all of it is there soon
        sock.sendall(head("/nothing", 4))
        assert sock.recv(100).startswith(b"HTTP/1.1 404")
        sock.sendall(b"    ")
        time.sleep(0.4)
        sock.sendall(head("/predict", 2) + b"{}")
        until(lambda: b"HTTP/1.1 200" in sock.recv(1000))


def dribble(sock):
    for _ in range(500):
        sock.sendall(b" ")
        time.sleep(0.02)


def test_who_takes_no_answers_is_left(client, monkeypatch):
    monkeypatch.setattr("spanboost.service.server.TAKING_SECONDS", 0.2)
    body = json.dumps([{"id": "x" * 128}] * 10_000).encode()
    question = head("/predict?keep=true", len(body)) + body
    connections = client.server.server_state.connections
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 12)
        sock.settimeout(30)
        sock.connect((client.base_url.host, client.base_url.port))
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            sock.sendall(question * 100)  # each is answered by more than a megabyte
        until(lambda: len(connections) == 0)


def test_the_head_of_events_is_no_stream(client):
    answer = client.head("/events")
    assert (answer.status_code, answer.content) == (200, b"")


def test_a_disk_that_takes_nothing_is_told(client, monkeypatch):
    def full(entry):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(client.engine.state, "commit", full)
        answer = learn(client, some_rows(2))
        assert answer.status_code == 503
        assert "No space left" in answer.json()["error"]
        assert figure(client, "disk_problems_total") == 1
    assert learn(client, some_rows(2)).status_code == 200


def test_a_writer_that_broke_is_told(client, monkeypatch):
    def broken(*_):
        raise MemoryError

    assert client.get("/readyz").json() == {"status": "ready"}
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    client.engine.state.learn = broken
    learn(client, some_rows(2))
    while client.engine.trouble is None:
        pass
    assert learn(client, some_rows(2)).status_code == 503
    assert client.get("/readyz").status_code == 503
    assert client.get("/healthz").status_code == 200


TOKENS = {"predict": "one", "learn": "two", "admin": "three"}
NEEDS = {
    ("POST", "/predict"): "one",
    ("POST", "/learn"): "two",
    ("GET", "/model"): "three",
    ("GET", "/metrics"): "three",
    ("GET", "/"): "three",
    ("GET", "/page.js"): "three",
    ("GET", "/nothing"): "three",
    ("GET", "/healthz"): None,
    ("GET", "/readyz"): None,
    ("GET", "/openapi.json"): None,
}


def test_every_path_needs_its_own_token(tmp_path):
    with started(tmp_path / "state", tokens=TOKENS) as client:
        for (method, path), need in NEEDS.items():
            for token in (None, "x", "one", "two", "three", "thre", "threee", "ü"):
                headers = {} if token is None else {"Authorization": f"Bearer {token}".encode()}
                answer = client.request(method, path, headers=headers)
                assert (answer.status_code == 401) == (need not in (None, token))
        assert client.get("/metrics", auth=("anyone", "three")).status_code == 200
        assert client.get("/metrics", auth=("three", "anyone")).status_code == 401
        assert client.get("/").headers["www-authenticate"].startswith("Basic")
        for header in ("Basic ???", "Basic", "Bearer", "three", "Digest three"):
            assert client.get("/metrics", headers={"Authorization": header}).status_code == 401


def test_without_tokens_only_the_machine_itself_is_answered(client):
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
        answer = client.get("/metrics", headers={"Host": host})
        assert (answer.status_code == 200) == good


def test_with_some_tokens_the_rest_is_for_the_machine_itself(tmp_path):
    with started(tmp_path / "state", tokens={"learn": "two"}) as client:
        evil = {"Host": "evil.example"}
        assert client.get("/metrics").status_code == 200
        assert client.get("/metrics", headers=evil).status_code == 421
        assert client.get("/healthz", headers=evil).status_code == 200
    with started(tmp_path / "state", tokens=TOKENS) as client:
        assert client.get("/openapi.json", headers=evil).status_code == 200


def test_tokens_of_any_characters(tmp_path):
    odd = {"admin": "ü\udcff"}  # as an environment that is not UTF-8 gives it
    with started(tmp_path / "state", tokens=odd) as client:
        for token, status in (("ü".encode() + b"\xff", 200), (b"\xfc\xff", 401)):
            headers = {"Authorization": b"Bearer " + token}
            assert client.get("/metrics", headers=headers).status_code == status


def test_answers_have_headers_that_protect(client):
    for path in ("/", "/metrics", "/nothing"):
        headers = client.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"


def test_figures(client):
    rows = some_rows(250)
    learn(client, rows)
    learn(client, rows[:1])
    client.post("/predict", json=unlabelled(rows))
    client.engine.writer.close()
    found = _metrics(client.get("/metrics").text)
    assert found["spanboost_learned_rows_total"] == 251
    assert found["spanboost_predicted_rows_total"] == 250
    assert found["spanboost_pending_rows"] == 250
    assert found["spanboost_loss"] == client.engine.state.progress.loss > 0
    assert found['spanboost_requests_total{path="/learn",status="200"}'] == 2
    assert found['spanboost_request_seconds_count{path="/learn"}'] == 2
    assert found['spanboost_request_seconds_bucket{path="/learn",le="+Inf"}'] == 2


def test_the_description_names_every_path_and_its_parts_exist(client):
    told = client.get("/openapi.json").json()
    for path in ("/predict", "/learn", "/model", "/healthz", "/readyz", "/metrics"):
        assert path in told["paths"]
    text = json.dumps(told)
    for name in told["components"]["schemas"]:
        assert f"#/components/schemas/{name}" in text
    for reference in text.split('"$ref": "')[1:]:
        assert reference.partition('"')[0].rpartition("/")[2] in told["components"]["schemas"]
