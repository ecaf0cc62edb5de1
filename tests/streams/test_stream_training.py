"""`train` and `evaluate` on topics and Redis streams give the models of the same rows in a file."""

import json
import random
import signal
import subprocess
import sys
import threading
import time

import pytest

from spanboost.cli.main import main
from spanboost.data.messages import kafka_client, message_rows
from spanboost.data.messages.message import UnavailableError
from spanboost.data.messages.message_rows import MessageRows
from spanboost.data.messages.opening import open_log
from spanboost.models.files import load, read_run, to_bytes

pytestmark = pytest.mark.process
OPTIONS = ("--learner", "linear", "-n", "4", "--quiet")
NUMBERS = iter(range(1000))


@pytest.fixture
def topic(broker):
    """The name of a new stream."""
    name = f"rows{next(NUMBERS)}"
    broker.create(name)
    return name


def draw_rows(count, seed=0):
    rng = random.Random(seed)
    rows = [{"size": rng.random(), "city": rng.choice("abc")} for _ in range(count)]
    return [{**row, "label": 3 * row["size"] + (row["city"] == "a")} for row in rows]


def model_of(rows, folder, *options):
    """Return the bytes of the model that learns rows from a file."""
    path = folder / "rows.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return train(path, folder / "file.sb", *options)


def train(data, output, *options):
    """Train a model and return its bytes, without the positions of its run."""
    assert main(["train", str(data), "-o", str(output), *OPTIONS, *options]) == 0
    return to_bytes(load(output))


def test_a_stream_gives_the_model_of_its_rows(broker, topic, tmp_path):
    rows = draw_rows(300)
    broker.send(topic, rows)
    assert train(broker.url(topic), tmp_path / "m.sb") == model_of(rows, tmp_path)
    assert list(read_run(tmp_path / "m.sb")["positions"]) == [broker.place(topic)]


def test_a_later_run_learns_only_new_rows(broker, topic, tmp_path, capsys):
    rows, path = draw_rows(90), tmp_path / "m.sb"
    broker.send(topic, rows[:50])
    train(broker.url(topic), path)
    broker.send(topic, rows[50:])
    words = ["train", broker.url(topic), "-i", str(path), "-o", str(path)]
    assert main(words) == 0
    assert f"continuing after the last row that {path} has learned" in capsys.readouterr().err
    assert to_bytes(load(path)) == model_of(rows, tmp_path)
    before = path.read_bytes()
    assert main(words) == 0
    assert "there are no new rows" in capsys.readouterr().err
    assert path.read_bytes() == before
    again = broker.url(topic, start="earliest")
    assert main(["train", again, "-i", str(path), "-o", str(path), "--quiet"]) == 0
    assert to_bytes(load(path)) == model_of([*rows, *rows], tmp_path)


def test_positions_survive_other_data(broker, topic, tmp_path, capsys):
    rows, path = draw_rows(40), tmp_path / "m.sb"
    other, more = f"{topic}x", draw_rows(10, seed=1)
    broker.send(topic, rows[:20])
    broker.send(other, draw_rows(5, seed=2))
    train(broker.url(topic), path)
    model_of(more, tmp_path)
    broker.send(topic, rows[20:])
    for data in (str(tmp_path / "rows.jsonl"), broker.url(other), broker.url(topic)):
        assert main(["train", data, "-i", str(path), "-o", str(path)]) == 0
    assert capsys.readouterr().err.count("continuing after the last row") == 1
    everything = [*rows[:20], *more, *draw_rows(5, seed=2), *rows[20:]]
    assert to_bytes(load(path)) == model_of(everything, tmp_path)


def test_a_failure_on_the_way_is_retried(broker, topic, tmp_path, monkeypatch):
    monkeypatch.setattr(message_rows, "PAUSES", (0.01, 0.01))
    rows, failures = draw_rows(60), []
    broker.send(topic, rows)
    kind = type(open_log(broker.url(topic)))
    read = kind.read

    def fail(self, after, *, wait):
        for messages in read(self, after, wait=wait):
            if len(failures) < 5:
                yield messages[:10]
                failures.append(len(failures))
                raise UnavailableError("the connection is lost")
            yield messages

    monkeypatch.setattr(kind, "read", fail)
    assert train(broker.url(topic, start="earliest"), tmp_path / "m.sb") == (
        model_of(rows, tmp_path)
    )
    assert len(failures) == 5


def test_evaluate_and_predict(broker, topic, tmp_path, capsys):
    rows = draw_rows(60)
    broker.send(topic, rows)
    model_of(rows, tmp_path)
    capsys.readouterr()
    results = []
    for data in (broker.url(topic), str(tmp_path / "rows.jsonl")):
        assert main(["evaluate", data, *OPTIONS, "--json"]) == 0
        result = json.loads(capsys.readouterr().out)
        assert main(["predict", data, "-m", str(tmp_path / "file.sb")]) == 0
        results.append((result["loss"], result["examples"], capsys.readouterr().out))
    assert results[0] == results[1]


def test_an_interrupted_run_resumes_at_its_position(broker, topic, tmp_path, capsys):
    rows = draw_rows(500)
    broker.send(topic, rows)
    path = tmp_path / "m.sb"
    url = broker.url(topic, start="earliest")  # the checkpoint is stronger
    command = ["train", url, "-o", str(path), *OPTIONS, "--checkpoint-every", "70"]
    process = subprocess.Popen(
        [sys.executable, "-m", "spanboost", *command, "--rows", "501"],  # it waits for one more
    )
    checkpoint = path.with_name("m.sb.checkpoint")
    end = time.monotonic() + 60
    while not (checkpoint.exists() and read_run(checkpoint)["rows"] == 490):
        assert time.monotonic() < end
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait(10)
    (position,) = read_run(checkpoint)["positions"].values()
    assert position
    assert main([*command, "--resume"]) == 0
    assert to_bytes(load(path)) == model_of(rows, tmp_path)
    assert not checkpoint.exists()


def test_rows_that_come_later_are_waited_for(broker, topic, tmp_path):
    rows = draw_rows(40)
    broker.send(topic, rows[:10])
    threads = [threading.Timer(0.5, broker.send, [topic, rows[10:]])]
    threads[0].start()
    found = train(broker.url(topic), tmp_path / "m.sb", "--rows", "30")
    threads[0].join()
    assert found == model_of(rows[:30], tmp_path)
    # the next run begins with row 31
    words = ["train", broker.url(topic), "-i", str(tmp_path / "m.sb"), "-o", f"{tmp_path}/n.sb"]
    assert main([*words, "--quiet"]) == 0
    assert to_bytes(load(tmp_path / "n.sb")) == model_of(rows, tmp_path)


def test_arrow_messages_can_be_interrupted_between_their_rows(broker, topic, tmp_path):
    import pyarrow as pa

    rows = draw_rows(50)
    for first in range(0, 50, 25):
        table = pa.Table.from_pylist(rows[first : first + 25])
        with pa.BufferOutputStream() as out:
            with pa.ipc.new_stream(out, table.schema) as writer:
                writer.write_table(table)
            broker.send(topic, [out.getvalue().to_pybytes()])
    path = tmp_path / "m.sb"
    train(broker.url(topic), path, "--rows", "33")
    (position,) = read_run(path)["positions"].values()
    assert position[1] == 8
    assert main(["train", broker.url(topic), "-i", str(path), "-o", str(path), "--quiet"]) == 0
    assert to_bytes(load(path)) == model_of(rows, tmp_path)


def test_bad_messages_are_named(broker, topic, capsys):
    broker.send(topic, [{"x": 1, "label": 1}, b"oops", {"x": 2, "label": 2}])
    url = broker.url(topic)
    assert main(["evaluate", url, *OPTIONS]) == 2
    message = capsys.readouterr().err
    assert f"/{topic}:2: invalid JSON" in message
    assert f"of {broker.place(topic)})" in message
    assert "config" not in message
    assert main(["evaluate", url, *OPTIONS, "--on-error", "skip"]) == 0
    assert "bad rows left out = 1" in capsys.readouterr().out


def test_missing_topics_and_wrong_options(broker, topic, tmp_path, capsys):
    broker.send(topic, [{"x": 1, "label": 1}])
    for words, message in (
        ([broker.url(f"{topic}x")], f"there is no {'topic' if broker.name == 'kafka' else 'str'}"),
        ([broker.url(topic), "--format", "csv"], "--format is only for files"),
        ([broker.url(topic), str(tmp_path / "a.csv")], "cannot be read together"),
    ):
        assert main(["evaluate", *words, *OPTIONS]) == 2
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1


@pytest.mark.parametrize("scheme", ["kafka", "redis"])
def test_a_system_that_cannot_be_reached(scheme, capsys, monkeypatch):
    pytest.importorskip({"kafka": "confluent_kafka", "redis": "redis"}[scheme])
    monkeypatch.setattr(kafka_client, "METADATA_SECONDS", 0.5)
    monkeypatch.setattr(message_rows, "PAUSES", (0.01,))
    monkeypatch.setenv("REDISCLI_AUTH", "s3cret")
    assert main(["evaluate", f"{scheme}://127.0.0.1:1/rows", *OPTIONS]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"spanboost: cannot reach {scheme}://127.0.0.1:1/rows: ")
    assert "refused" in error
    assert "s3cret" not in error
    assert error.count("\n") == 1


def test_partitions_are_merged_by_time(kafka, tmp_path):
    kafka.create("merged")
    rng = random.Random(3)
    sent = []
    for k in range(60):
        partition = rng.choice([0, 0, 0, 2])
        moment = 1_700_000_000_000 + rng.randrange(20)  # with equal times, and out of order
        kafka.send("merged", [{"k": k}], partition=partition, time=moment)
        sent.append((partition, moment, k))
    log = open_log(kafka.url("merged"))
    found = [json.loads(m.payload)["k"] for part in log.read({}, wait=False) for m in part]
    assert found == merge_naively(sent)
    ((values, _),) = [
        (chunk.values, chunk.lines) for chunk in MessageRows(log, wait=False).read(exact=False)
    ]
    assert [value["k"] for value in values] == found
    only = open_log(kafka.url("merged", partitions=2))
    second = [json.loads(m.payload)["k"] for part in only.read({}, wait=False) for m in part]
    assert second == [k for partition, _, k in sent if partition == 2]


def merge_naively(sent):
    """Take the oldest of the first messages of all partitions, one at a time."""
    queues = {p: [one for one in sent if one[0] == p] for p in (0, 2)}
    found = []
    while any(queues.values()):
        first = min((q[0][1], p) for p, q in queues.items() if q)
        found.append(queues[first[1]].pop(0)[2])
    return found


def test_a_partition_far_ahead_waits(kafka, monkeypatch):
    monkeypatch.setattr("spanboost.data.messages.kafka_log.QUEUED", 5)
    monkeypatch.setattr("spanboost.data.messages.kafka_log.BATCH", 3)
    kafka.create("ahead")
    kafka.send("ahead", [{"k": k} for k in range(50)], partition=0, time=2_000_000)
    kafka.send("ahead", [{"k": k} for k in range(50, 120)], partition=1, time=1_000_000)
    log = open_log(kafka.url("ahead"))
    found = [json.loads(m.payload)["k"] for part in log.read({}, wait=False) for m in part]
    assert found == [*range(50, 120), *range(50)]


def test_positions_outside_a_topic(kafka, tmp_path, capsys):
    kafka.create("short")
    kafka.send("short", draw_rows(10))
    path = tmp_path / "m.sb"
    train(kafka.url("short"), path)
    from spanboost.models.files import save

    save(load(path), path, run={"positions": {"kafka:short/0": 20}})
    words = ["train", kafka.url("short"), "-i", str(path), "-o", str(path), "--quiet"]
    assert main(words) == 2
    assert "ends at offset 10, before offset 21" in capsys.readouterr().err
    assert main(["evaluate", kafka.url("short", partitions=9), *OPTIONS]) == 2
    assert "the topic has no partition 9" in capsys.readouterr().err


def test_fields_of_redis_entries_are_keys(redis, tmp_path):
    redis.client.xadd("flat", {"size": 40, "city": "Ulm", "code": "007", "label": 900})
    redis.client.xadd("flat", {"size": "8e1", "city": "Bonn", "code": "1", "label": "1700"})
    redis.client.xadd("flat", {"payload": '{"size": 1, "label": 2}'})
    rows = [
        {"size": 40, "city": "Ulm", "code": "007", "label": 900},
        {"size": 80.0, "city": "Bonn", "code": "1", "label": 1700},
    ]
    skip = ("--on-error", "skip", "--categorical", "code")
    found = train(redis.url("flat"), tmp_path / "m.sb", *skip)
    assert found == model_of(rows, tmp_path, *skip)
    other = train(redis.url("flat", field="payload"), tmp_path / "n.sb", *skip)
    assert other == model_of([*rows, {"size": 1, "label": 2}], tmp_path, *skip)


def test_codes_of_redis_fields_are_not_mixed_with_numbers(redis, tmp_path, capsys):
    redis.client.xadd("codes", {"code": "007", "label": 1})
    redis.client.xadd("codes", {"code": "112", "label": 2})
    assert main(["train", redis.url("codes"), "-o", str(tmp_path / "m.sb"), *OPTIONS]) == 2
    assert "'code' is the number 112.0, but was text before" in capsys.readouterr().err


def test_other_keys_of_redis_and_start(redis, tmp_path, capsys):
    redis.client.set("text", "x")
    assert main(["evaluate", redis.url("text"), *OPTIONS]) == 2
    assert "'text' is a string; expected a stream" in capsys.readouterr().err
    redis.create("late")
    redis.send("late", draw_rows(5))
    assert main(["evaluate", redis.url("late", start="latest"), *OPTIONS]) == 2
    assert "there are no rows" in capsys.readouterr().err
    middle = redis.client.xrange("late")[2][0].decode()
    assert main(["evaluate", redis.url("late", start=middle), *OPTIONS, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["examples"] == 2


def test_a_stream_of_redis_that_was_created_again(redis, tmp_path, capsys):
    for k in range(5):
        redis.client.xadd("again", {"size": k, "label": k}, id=f"{100 + k}-0")
    path = tmp_path / "m.sb"
    train(redis.url("again"), path)
    redis.client.delete("again")
    redis.client.xadd("again", {"size": 1, "label": 2}, id="7-0")
    words = ["train", redis.url("again"), "-i", str(path), "-o", str(path), "--quiet"]
    assert main(words) == 2
    assert "ends at entry 7-0, before entry 104-0" in capsys.readouterr().err


def test_passwords_of_redis(redis, tmp_path, capsys, monkeypatch):
    redis.create("secret")
    redis.send("secret", draw_rows(5))
    redis.client.config_set("requirepass", "s3cret")
    try:
        report = tmp_path / "page.html"
        url = redis.url("secret")
        assert main(["evaluate", url, *OPTIONS]) == 2
        assert "needs a password; set the environment variable" in capsys.readouterr().err
        wrong = url.replace("//", "//:wr0ng@")
        assert main(["evaluate", wrong, *OPTIONS]) == 2
        assert "wr0ng" not in capsys.readouterr().err
        right = url.replace("//", "//:s3cret@")
        assert main(["evaluate", right, *OPTIONS[:-1], "--report", str(report)]) == 0
        output = capsys.readouterr()
        assert "s3cret" not in output.out + output.err + report.read_text()
        monkeypatch.setenv("REDISCLI_AUTH", "s3cret")
        assert main(["evaluate", url, *OPTIONS]) == 0
    finally:
        redis.client.execute_command("AUTH", "s3cret")
        redis.client.config_set("requirepass", "")
