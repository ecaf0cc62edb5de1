"""`spanboost work` as a process: start, metrics, failures, and a graceful end."""

import json
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.request

import pytest
from brokers import redis_server
from serving import OPTIONS, Server, wait_until

from spanboost.cli.main import main
from spanboost.models.files import load, to_bytes
from spanboost.service.storage.entry import decode_entry
from spanboost.service.storage.journal import Journal

pytestmark = pytest.mark.process
NUMBERS = iter(range(1000))


@pytest.fixture
def name(broker):
    """The name of new streams: NAME, NAME-labels, NAME-out and NAME-bad."""
    name = f"work{next(NUMBERS)}"
    broker.create(name, *(f"{name}-{part}" for part in ("labels", "out", "bad")))
    return name


def rows(first, last):
    return [{"id": f"r{k}", "size": k / 10, "city": "ab"[k % 2]} for k in range(first, last)]


def labels(first, last):
    return [{"id": f"r{k}", "label": k / 5} for k in range(first, last)]


def options_of(broker, name, *parts):
    fixed = {"partitions": 0} if broker.name == "kafka" else {}
    words = [*OPTIONS, "--from", broker.url(name, **fixed)]
    for part in parts:
        flag = {"out": "--to", "bad": "--dead-letters", "labels": "--labels"}[part]
        words += [flag, broker.url(f"{name}-{part}", **(fixed if part == "labels" else {}))]
    return words


def get(worker, path):
    with urllib.request.urlopen(worker.address + path) as response:
        return response.read().decode()


def metric(worker, name):
    lines = [line for line in get(worker, "/metrics").splitlines() if line.startswith(name + " ")]
    return float(lines[0].split()[-1]) if lines else None


def learned_ids(folder):
    return [id for r in Journal(folder / "journal").read() for id in decode_entry(r.payload).ids]


def work(folder, *words):
    """Run a worker to its end."""
    return subprocess.run(
        [sys.executable, "-m", "spanboost", "work", "--dir", folder, "--port", "0", *words],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_worker_is_a_service(broker, name, tmp_path):
    broker.send(name, rows(0, 20))
    worker = Server(tmp_path, *options_of(broker, name, "labels", "out", "bad"), command="work")
    wait_until(lambda: metric(worker, "spanboost_stream_predictions_total") == 20)
    broker.send(f"{name}-labels", labels(0, 15))
    wait_until(lambda: metric(worker, "spanboost_learned_rows_total") == 15)
    broker.send(name, [b"oops"])
    wait_until(lambda: metric(worker, "spanboost_stream_bad_rows_total") == 1)
    place = broker.place(name)
    wait_until(lambda: metric(worker, f'spanboost_stream_lag_messages{{place="{place}"}}') == 0)
    ready = json.loads(get(worker, "/readyz"))
    assert ready["status"] == "ready"
    parts = ("rows", "labels", "predictions", "dead letters")
    assert {part: ready["checks"][part] for part in parts} == dict.fromkeys(parts, "ok")
    request = urllib.request.Request(
        f"{worker.address}/predict?keep=false",
        b'{"size": 1.0, "city": "a"}',
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request) as response:
        assert "prediction" in json.load(response)
    assert worker.stop() == 0
    assert "Traceback" not in "".join(worker.log)
    written = {json.loads(payload)["id"] for payload, _ in broker.read(f"{name}-out")}
    assert written == {f"r{k}" for k in range(20)}
    assert learned_ids(tmp_path) == [f"r{k}" for k in range(15)]
    if broker.name == "kafka":
        assert broker.committed(name) == {0: 21}
        assert broker.committed(f"{name}-labels", "spanboost-labels") == {0: 15}
    else:
        assert broker.client.xpending(name, "spanboost")["pending"] == 0


def test_a_bad_message_ends_the_process(broker, name, tmp_path):
    broker.send(name, [*rows(0, 3), {"size": ["a secret"]}])
    done = work(tmp_path, *options_of(broker, name), "--drain")
    assert done.returncode == 1
    assert "add --dead-letters URL" in done.stderr
    assert "a secret" not in done.stderr
    assert "Traceback" not in done.stderr
    done = work(tmp_path, *options_of(broker, name), "--drain", "--on-error", "skip")
    assert done.returncode == 0, done.stderr


def test_ids_in_fields_of_redis_are_text(redis, tmp_path):
    ids = ["17", "12345e12", "1e5", "007", "0.50", "9" * 30]  # for example hexadecimal digits
    for id in ids:
        redis.client.xadd("hex", {"id": id, "size": 1})
        redis.client.xadd("hex-labels", {"id": id, "label": 2})
    options = ("--from", redis.url("hex"), "--labels", redis.url("hex-labels"), "--drain")
    done = work(tmp_path, *OPTIONS, *options)
    assert done.returncode == 0, done.stderr
    assert learned_ids(tmp_path) == ids


@pytest.mark.parametrize(
    ("option", "address"),
    [
        ("--to", "redis://localhost/rows"),
        ("--dead-letters", "redis://localhost:6379/0/rows?maxlen=5"),
        ("--to", "redis://localhost:6379/labels"),
        ("--dead-letters", "redis://localhost/0/labels"),
    ],
)
def test_a_worker_does_not_write_to_what_it_reads(tmp_path, option, address):
    pytest.importorskip("redis", reason="the package redis is not installed")
    words = ("--from", "redis://localhost/rows", "--labels", "redis://localhost/labels")
    done = work(tmp_path / "state", *words, option, address)
    assert done.returncode == 2
    assert f"{option} and " in done.stderr
    assert "are the same stream" in done.stderr
    assert not (tmp_path / "state").exists()


def test_a_missing_stream_is_an_error(broker, name, tmp_path):
    done = work(tmp_path, *options_of(broker, f"{name}x"), "--drain")
    assert done.returncode == 2
    assert f"there is no {'topic' if broker.name == 'kafka' else 'stream'} '{name}x'" in done.stderr
    assert "Traceback" not in done.stderr


def test_predictions_with_intervals(redis, tmp_path):
    redis.create("wide")
    labelled = [row | one for row, one in zip(rows(0, 60), labels(0, 60), strict=True)]
    redis.send("wide", [*labelled, {"id": "new", "size": 1.0}])
    words = ["--from", redis.url("wide"), "--to", redis.url("wide-out"), "--interval", "0.8"]
    done = work(tmp_path, *OPTIONS, *words, "--drain")
    assert done.returncode == 0, done.stderr
    ((payload, _),) = redis.read("wide-out")
    assert list(json.loads(payload)) == ["id", "prediction", "low", "high"]


def test_a_worker_waits_for_a_server_that_starts_later(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with redis_server() as other:  # skips without Redis
        assert other.port != port
    url = f"redis://:s3cret@127.0.0.1:{port}/rows"
    worker = Server(tmp_path, *OPTIONS, "--from", url, command="work")
    wait_until(lambda: any("cannot reach" in line for line in worker.log))
    (line,) = [line for line in worker.log if "cannot reach" in line]
    assert f"warning: cannot reach redis://127.0.0.1:{port}/rows: " in line
    assert line.rstrip().endswith("; retrying")
    assert json.loads(get(worker, "/readyz"))["status"] == "ready"
    process = subprocess.Popen(
        ["redis-server", "--port", str(port), "--save", "", "--requirepass", "s3cret"],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
    )
    try:
        import redis

        client = redis.Redis(port=port, password="s3cret")
        wait_until(lambda: add_row(client))
        wait_until(lambda: metric(worker, "spanboost_learned_rows_total") >= 1)
        assert any("rows: working again" in line for line in worker.log)
        client.close()
        process.terminate()
        process.wait(20)
        wait_until(lambda: 'connected{stream="rows"} 0' in get(worker, "/metrics"))
        began = time.monotonic()
        assert worker.stop() == 0  # although the server is away
        assert time.monotonic() - began < 60
        assert "s3cret" not in "".join(worker.log)
        assert "Traceback" not in "".join(worker.log)
    finally:
        process.kill()
        process.wait(10)


def test_a_worker_waits_while_the_memory_of_the_server_is_full(tmp_path):
    with redis_server() as broker:
        broker.send("rows", [{"id": "a", "size": 1.0}, {"id": "a", "label": 2}])
        broker.client.xgroup_create("rows", "spanboost", "0")
        broker.client.config_set("maxmemory", "1mb")
        words = ("--from", broker.url("rows"), "--to", broker.url("out"))
        worker = Server(tmp_path, *OPTIONS, *words, command="work")
        wait_until(lambda: any("maxmemory" in line for line in worker.log), 60)
        assert broker.client.xlen("out") == 0
        broker.client.config_set("maxmemory", "0")
        wait_until(lambda: broker.client.xlen("out") == 1, 60)
        wait_until(lambda: learned_ids(tmp_path) == ["a"], 60)
        assert worker.stop() == 0
        assert '"prediction"' not in "".join(worker.log)


def test_errors_of_redis_have_no_values_of_rows(redis):
    from spanboost.data.messages.message import Outgoing
    from spanboost.data.messages.opening import open_sink
    from spanboost.data.problems import StreamError

    sink = open_sink(redis.url("becomes-text"))
    redis.client.set("becomes-text", "x")
    with pytest.raises(StreamError, match="becomes-text: WRONGTYPE") as failure:
        sink.deliver([Outgoing("k", b"a secret")])
    assert "a secret" not in str(failure.value)
    with pytest.raises(StreamError, match="is a string; expected a stream"):
        open_sink(redis.url("becomes-text"))


def add_row(client):
    import redis

    try:
        return client.xadd("rows", {"size": 1, "label": 2})
    except redis.RedisError:
        return False


def test_a_kafka_worker_stops_while_no_broker_responds(tmp_path):
    pytest.importorskip("confluent_kafka", reason="needs confluent-kafka")
    url = "kafka://127.0.0.1:1/rows"
    worker = Server(tmp_path, *OPTIONS, "--from", f"{url}2", "--to", url, command="work")
    wait_until(lambda: any("cannot reach" in line for line in worker.log), 60)
    assert worker.stop() == 0
    log = "".join(worker.log)
    assert f"cannot reach {url}: " in log
    assert "refused" in log
    assert "Traceback" not in log


def test_rows_of_a_table(tmp_path):
    pytest.importorskip("sqlalchemy", reason="needs sqlalchemy")
    path, folder = tmp_path / "shop.db", tmp_path / "state"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, size REAL, price REAL)")
        database.executemany(
            "INSERT INTO orders VALUES (?, ?, ?)", [(k, k / 10, k / 5) for k in range(1, 41)]
        )
    words = [*OPTIONS, "--from", f"sqlite:///{path}", "--resume-column", "id", "--label", "price"]
    query = ("--query", "SELECT * FROM orders")
    assert work(folder, *words, *query, "--drain").returncode == 0
    with sqlite3.connect(path) as database:
        database.execute("INSERT INTO orders VALUES (41, 4.1, 8.2)")
    done = work(folder, *words, *query, "--drain")
    assert done.returncode == 0, done.stderr
    assert learned_ids(folder) == [str(k) for k in range(1, 42)]
    trained = tmp_path / "m.sb"
    train = ["train", f"sqlite:///{path}", "-o", str(trained), *OPTIONS, "--quiet", "--label"]
    assert main([*train, "price", *query, "--resume-column", "id"]) == 0
    assert load(trained).predict_one([4.1]) == pytest.approx(
        load(max((folder / "snapshots").glob("*.sb"))).predict_one({"size": 4.1})
    )
    done = work(folder, *words, "--query", "SELECT * FROM orders WHERE id > 0", "--drain")
    assert done.returncode == 2
    assert "belongs to another query" in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--from", "rows.csv"], "rows.csv is not the address of a stream"),
        (["--from", "kafka://h"], "invalid kafka address"),
        (["--from", "kafka://h/t?group=g"], "unknown option 'group'"),
        (["--from", "kafka://h/t", "--to", "out.csv"], "out.csv is not the address of a stream"),
        (["--from", "kafka://h/t", "--labels", "sqlite:///x"], "a database needs --query"),
        (["--from", "redis://h/t", "--labels", "redis://h/t"], "leave out --labels"),
        (["--from", "sqlite:///x"], "a database needs --query and --resume-column"),
        (["--from", "sqlite:///x", "--query", "SELECT 1"], "--query requires --resume-column"),
        (["--from", "redis://h/t", "--host", "0.0.0.0"], "other machines can reach 0.0.0.0"),
    ],
)
def test_wrong_options_are_refused_before_the_folder_is_created(tmp_path, capsys, words, message):
    for library in ("confluent_kafka", "redis", "sqlalchemy"):
        pytest.importorskip(library, reason=f"needs {library}")
    assert main(["work", "--dir", str(tmp_path / "state"), "--port", "0", *words]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize(
    ("library", "extra", "words"),
    [
        ("confluent_kafka", "kafka", ["--from", "kafka://h/t"]),
        ("redis", "redis", ["--from", "redis://h/t"]),
        ("sqlalchemy", "sql", ["--from", "sqlite://", "--query", "x", "--resume-column", "id"]),
        ("uvicorn", "serve", ["--from", "redis://h/t"]),
    ],
)
def test_missing_packages_are_named(tmp_path, capsys, monkeypatch, library, extra, words):
    monkeypatch.setitem(sys.modules, library, None)
    assert main(["work", "--dir", str(tmp_path / "state"), *words]) == 2
    assert f"run pip install '.[{extra}]' in a clone" in capsys.readouterr().err


def test_a_trained_model_continues_in_a_worker(redis, tmp_path):
    """A worker learns the rows of a stream exactly as `train` does."""
    redis.create("both")
    labelled = [row | one for row, one in zip(rows(0, 50), labels(0, 50), strict=True)]
    redis.send("both", labelled)
    path = tmp_path / "m.sb"
    words = ["train", redis.url("both"), "-o", str(path), *OPTIONS, "--quiet", "--ignore", "id"]
    assert main(words) == 0
    state = tmp_path / "state"
    done = work(state, "--from", redis.url("both"), *OPTIONS, "--ignore", "id", "--drain")
    assert done.returncode == 0, done.stderr
    newest = max((state / "snapshots").glob("*.sb"))
    assert to_bytes(load(newest)) == to_bytes(load(path))
