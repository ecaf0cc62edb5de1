"""A worker learns each row exactly once, whatever the batches and wherever it crashes.

A plain oracle says what must be learned. The streams are in memory.
"""

import errno
import json
import threading
import time

import pytest
from brokers import as_bytes
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_streams import DRAIN, CrashError, MemorySink, MemorySource, Run, streams_of
from serving import wait_until
from state_folders import trained_model

from spanboost.models.files import to_bytes
from spanboost.service.http.stream_metrics import format_stream
from spanboost.service.limits import StateLimits
from spanboost.service.storage.entry import decode_entry
from spanboost.service.storage.journal import Journal
from spanboost.service.streaming import idle_log, retries, stream_worker
from spanboost.service.streaming.stream_worker import WORKER, Behaviour

POINTS = ("before delivery", "after delivery", "before commit", "after commit")


def row(id, size=None):
    return {"id": id, "size": size or 0.25 * (hash(id) % 7), "city": id[-1]}


def label(id, value=None):
    return {"id": id, "label": value or len(id) + 0.5}


def oracle(messages):
    """Return the ids that must be learned, in order, and the messages that cannot be used."""
    waiting, learned, bad = set(), [], []
    for message in messages:
        if not isinstance(message, dict):
            bad.append(message)
        elif "label" not in message:
            if message["id"] not in learned:
                waiting.add(message["id"])
        elif message["id"] in learned:
            continue
        elif "size" in message or message["id"] in waiting:
            learned.append(message["id"])
        else:
            bad.append(message)
    return learned, bad


def read_journal(folder):
    ids, rows, labels = [], [], []
    for record in Journal(folder / "journal").read():
        entry = decode_entry(record.payload)
        ids += entry.ids
        rows += entry.rows
        labels += entry.labels
    return ids, rows, labels


IDS = st.sampled_from([f"row {k}" for k in range(12)])
MESSAGES = st.lists(
    st.one_of(
        IDS.map(row),
        IDS.map(label),
        IDS.map(lambda id: row(id) | label(id)),
        st.just(b"not JSON"),
        st.just([1, 2]),
    ),
    max_size=40,
)


class Crashes:
    """Raises a crash when a point was reached a number of times."""

    def __init__(self):
        self.point, self.left = None, 0

    def reach(self, point):
        if point == self.point:
            self.left -= 1
            if self.left < 0:
                self.point = None
                raise CrashError(point)


@given(
    MESSAGES,
    st.lists(st.integers(1, 9), min_size=1, max_size=4),
    st.lists(st.tuples(st.sampled_from(POINTS), st.integers(0, 4)), max_size=5),
)
@settings(max_examples=60, deadline=None)
def test_rows_are_learned_once_in_their_order(tmp_path_factory, messages, sizes, plan):
    folder, crashes = tmp_path_factory.mktemp("state"), Crashes()

    def points():
        return {
            "before": lambda: crashes.reach("before delivery"),
            "after": lambda: crashes.reach("after delivery"),
        }

    predictions, dead = MemorySink(**points()), MemorySink(**points())
    for point, count in [*plan, (None, 0)]:
        crashes.point, crashes.left = point, count
        source = MemorySource(messages, sizes)
        run = Run(folder, streams_of(source, None, predictions, dead), reach=crashes.reach)
        failures = run.wait()
        crashed = point is not None and crashes.point is None
        assert bool(failures) == crashed, failures
        model = to_bytes(run.engine.state.model)
        run.close(crashed)
        sizes = sizes[::-1]  # other batches after a restart
    learned, bad = oracle(messages)
    ids, rows, labels = read_journal(folder)
    assert ids == learned
    if rows:  # a model that has only predicted has empty tables, which a new one does not have
        assert model == trained_model((rows, labels), len(rows))
    predicted = {json.loads(one.payload)["id"] for one in predictions.delivered}
    assert predicted >= {m["id"] for m in messages if isinstance(m, dict) and "label" not in m}
    positions = {one.headers["position"] for one in dead.delivered}
    assert len(positions) == len(bad)


@given(MESSAGES, st.lists(st.integers(1, 9), min_size=1, max_size=4), st.randoms())
@settings(max_examples=20, deadline=None)
def test_labels_of_another_stream_are_learned_in_their_order(
    tmp_path_factory, messages, sizes, rng
):
    folder = tmp_path_factory.mktemp("state")
    rows = [m for m in messages if isinstance(m, dict) and "label" not in m]
    labels = [m for m in messages if isinstance(m, dict) and "size" not in m]
    sources = MemorySource(rows, sizes), MemorySource(labels, sizes[::-1], "memory:labels")
    dead = MemorySink()
    run = Run(folder, streams_of(*sources, None, dead))
    assert run.wait() == []
    run.close()
    learned, bad = oracle([*rows, *labels])  # all rows come before their labels
    assert read_journal(folder)[0] == learned
    assert len(dead.delivered) == len(bad)


def run_all(folder, messages, behaviour=DRAIN, **sinks):
    run = Run(folder, streams_of(MemorySource(messages), **sinks), behaviour)
    failures = run.wait()
    run.close()
    return failures


def test_predictions_have_the_ids_of_rows_or_names_that_do_not_change(tmp_path):
    sink = MemorySink()
    first = {"size": 1.0}
    run_all(tmp_path, [first, row("a"), [{"size": 1.0}, {"size": 2.0}]], predictions=sink)
    found = [json.loads(one.payload) for one in sink.delivered]
    names = ["memory:rows:0", "a", "memory:rows:2/0", "memory:rows:2/1"]
    assert [one["id"] for one in found] == names == [one.key for one in sink.delivered]
    assert all(one["prediction"] == 0.0 for one in found)
    # a label can use the name
    assert run_all(tmp_path, [first] * 3 + [label("memory:rows:0")]) == []
    assert read_journal(tmp_path)[0] == ["memory:rows:0"]


def test_a_bad_message_ends_the_worker_and_nothing_is_lost(tmp_path):
    messages = [row("a"), b"oops", label("a")]
    (failure,) = run_all(tmp_path, messages)
    assert failure.startswith(
        "message 1 of memory:rows cannot be used (invalid JSON at column 1: Expecting value); add "
        "--dead-letters URL"
    )
    assert "oops" not in failure  # a log has no values of rows
    assert read_journal(tmp_path)[0] == []
    assert run_all(tmp_path, messages, Behaviour(skip_bad=True, drain=True)) == []
    assert read_journal(tmp_path)[0] == ["a"]


def test_skipped_messages_are_named_in_the_log(tmp_path, caplog):
    messages = [b"oops", {"size": 1.0, "label": "a secret"}, [row("a"), {"size": ["a secret"]}]]
    assert run_all(tmp_path, messages, Behaviour(skip_bad=True, drain=True)) == []
    assert [text for text in caplog.messages if text.startswith("skipped: ")] == [
        "skipped: message 0 of memory:rows cannot be used (invalid JSON at column 1: Expecting "
        "value)",
        "skipped: row 1 of message 2 of memory:rows cannot be used (the value of 'size' is "
        "invalid)",
        "skipped: message 1 of memory:rows cannot be used (the value of 'label' is invalid)",
    ]


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (b"oops", "invalid JSON"),
        (b'{"size": 1,\n "city": x}', "invalid JSON at line 2, column 10: Expecting value: 'x}'"),
        (b"\xff\xfe", "not valid UTF-8"),
        (b'{"size": 1, "size": 2}', "duplicate key"),
        ([7], "expected a JSON object"),
        ({"size": [1]}, "must be a number"),
        ({}, "neither features nor a label"),
        ({"label": 3}, "the row has a label but no features"),
        ({"id": "x"}, "neither features nor a label"),
        ({"id": "x", "label": None}, "neither features nor a label"),
        ({"id": "x", "label": "high", "size": 1}, "the label 'high' is not a number"),
        (label("nobody"), "no pending row with the id 'nobody'"),
        (label("a", 9.0), "the label differs from the one that was learned for the id 'a'"),
        ({"id": ["x"], "size": 1}, "an id must be a string"),
        (b"\xff\xff\xff\xff\x00\x00", "not a valid Arrow stream"),
    ],
)
def test_dead_letters_have_the_reason_and_the_message(tmp_path, message, reason):
    dead = MemorySink()
    good = row("a") | label("a")
    assert run_all(tmp_path, [good, message, good], dead_letters=dead) == []
    (letter,) = dead.delivered
    assert reason in letter.headers["reason"]
    assert (letter.headers["place"], letter.headers["position"]) == ("memory:rows", "1")
    assert letter.payload == as_bytes(message)
    assert read_journal(tmp_path)[0] == ["a"]


def test_the_good_rows_of_a_message_with_bad_ones_are_learned(tmp_path):
    dead = MemorySink()
    rows = [row(f"r{k}") | label(f"r{k}") for k in range(4)]
    rows[1]["size"] = rows[2]["label"] = []
    assert run_all(tmp_path, [rows], dead_letters=dead) == []
    (letter,) = dead.delivered
    assert letter.headers["rows"] == "1,2"
    assert read_journal(tmp_path)[0] == ["r0", "r3"]


def test_another_row_under_a_waiting_id_is_a_dead_letter(tmp_path):
    dead = MemorySink()
    assert run_all(tmp_path, [row("a", 1.0), row("a", 2.0), label("a")], dead_letters=dead) == []
    (letter,) = dead.delivered
    assert "another row waits for its label under the id 'a'" in letter.headers["reason"]
    assert read_journal(tmp_path)[1][0]["size"] == 1.0


def test_arrow_messages(tmp_path):
    import pyarrow as pa

    rows = [row(f"r{k}") | label(f"r{k}") for k in range(5)]
    table = pa.Table.from_pylist(rows)
    with pa.BufferOutputStream() as out:
        with pa.ipc.new_stream(out, table.schema) as writer:
            writer.write_table(table)
        payload = out.getvalue().to_pybytes()
    assert run_all(tmp_path / "arrow", [payload]) == []
    assert run_all(tmp_path / "json", rows) == []
    assert read_journal(tmp_path / "arrow") == read_journal(tmp_path / "json")


def test_an_empty_message_is_skipped(tmp_path):
    assert run_all(tmp_path, [b"", row("a") | label("a")]) == []
    assert read_journal(tmp_path)[0] == ["a"]


def test_rows_wait_while_too_many_have_no_label(tmp_path):
    rows = MemorySource([row(f"r{k}") for k in range(10)])
    labels = MemorySource([], place="memory:labels")
    run = Run(tmp_path, streams_of(rows, labels), Behaviour(), StateLimits(pending_rows=4))
    run.worker.start()
    wait_until(lambda: run.worker.counts.paused and rows.kept_alive)
    assert len(run.engine.state.pending) == 4
    assert "spanboost_stream_paused 1" in format_stream(run.worker)
    labels.values += [label(f"r{k}") for k in range(10)]  # the last ones wait for their rows
    wait_until(lambda: run.engine.state.progress.rows == 10)
    assert not run.worker.counts.paused
    run.close()
    assert read_journal(tmp_path)[0] == [f"r{k}" for k in range(10)]


def test_the_log_says_that_rows_wait_for_space(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(idle_log, "IDLE_SECONDS", 0.0)
    monkeypatch.setattr(stream_worker, "REPORT_SECONDS", 0.0)
    caplog.set_level("INFO", "spanboost.service")
    rows = MemorySource([row(f"r{k}") for k in range(6)])
    run = Run(tmp_path, streams_of(rows), Behaviour(), StateLimits(pending_rows=4))
    run.worker.start()
    expected = (
        "the worker waits; rows: too many predicted rows have no label (--pending, "
        "--pending-bytes); predicted rows wait for their labels: 4"
    )
    wait_until(lambda: expected in caplog.messages)
    run.close()


def test_a_row_that_does_not_fit_waits_for_space(tmp_path):
    rows = MemorySource([row("a"), row("b"), label("a"), label("b")], sizes=[1])
    run = Run(tmp_path, streams_of(rows), Behaviour(), StateLimits(pending_rows=1))
    run.worker.start()
    wait_until(lambda: run.worker.counts.paused)
    time.sleep(0.3)
    assert (rows.next, len(run.engine.state.pending)) == (2, 1)  # nothing else was read
    run.close()
    again = Run(tmp_path, streams_of(MemorySource(rows.values)), limits=StateLimits(pending_rows=2))
    assert again.wait() == []
    again.close()
    assert read_journal(tmp_path)[0] == ["a", "b"]


@pytest.fixture
def no_pauses(monkeypatch):
    monkeypatch.setattr(retries, "FIRST_SECONDS", 0.001)


@pytest.mark.usefixtures("no_pauses")
def test_a_source_that_fails_begins_again_after_the_journal(tmp_path):
    source = MemorySource([row(f"r{k}") | label(f"r{k}") for k in range(9)], sizes=[2])
    run = Run(tmp_path, streams_of(source))
    source.failures = 3
    assert run.wait() == []
    assert source.epoch > 1
    run.close()
    assert read_journal(tmp_path)[0] == [f"r{k}" for k in range(9)]
    assert source.committed == 8


@pytest.mark.usefixtures("no_pauses")
def test_a_sink_that_fails_is_tried_again(tmp_path):
    from spanboost.data.messages.message import UnavailableError

    failures = [UnavailableError("the sink is away")] * 4

    def fail():
        if failures:
            raise failures.pop()

    sink = MemorySink(before=fail)
    assert run_all(tmp_path, [row("a")], predictions=sink) == []
    assert len(sink.delivered) == 1


@pytest.mark.usefixtures("no_pauses")
def test_predictions_wait_while_the_disk_is_full(tmp_path, monkeypatch):
    run, failures = Run(tmp_path, streams_of(MemorySource([row("a"), label("a")]))), [1, 2, 3]
    add = run.engine.state.pending.add

    def fail(*arguments):
        if failures:
            failures.pop()
            raise OSError(errno.ENOSPC, "No space left on device")
        add(*arguments)

    monkeypatch.setattr(run.engine.state.pending, "add", fail)
    assert run.wait() == []
    run.close()
    assert failures == []
    assert read_journal(tmp_path)[0] == ["a"]


def test_a_sink_that_fails_does_not_prevent_the_end(tmp_path):
    from spanboost.data.messages.message import UnavailableError

    tried = threading.Event()

    def fail():
        tried.set()
        raise UnavailableError("the sink is away")

    source, sink = MemorySource([row("a"), label("a")]), MemorySink(before=fail)
    run = Run(tmp_path, streams_of(source, None, sink), Behaviour())
    run.worker.start()
    assert tried.wait(10)
    wait_until(lambda: run.worker.problems()["predictions"] == "the sink is away")
    run.close()
    assert read_journal(tmp_path)[0] == []  # nothing was learned without its prediction
    assert run_all(tmp_path, source.values, predictions=MemorySink()) == []
    assert read_journal(tmp_path)[0] == ["a"]


def test_the_log_says_once_why_a_worker_waits_and_stops(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(idle_log, "IDLE_SECONDS", 0.0)
    monkeypatch.setattr(stream_worker, "REPORT_SECONDS", 0.0)
    caplog.set_level("INFO", "spanboost.service")
    source = MemorySource([row("a"), row("b")])
    run = Run(tmp_path, streams_of(source), Behaviour())
    run.worker.start()

    def lines():
        return [text for text in caplog.messages if text.startswith("the worker waits; ")]

    wait_until(lambda: lines()[-1:] and "labels" in lines()[-1])
    assert lines()[-1] == (
        "the worker waits; rows: no new messages; predicted rows wait for their labels: 2"
    )
    source.problem = "cannot reach the broker"
    wait_until(lambda: "rows: cannot reach the broker" in lines()[-1])
    said = len(lines())
    time.sleep(0.5)
    assert len(lines()) == said
    run.close()
    assert caplog.messages[-1] == (
        "the worker stopped; it was asked to stop; rows: cannot reach the broker; predicted rows "
        "without a label: 2"
    )
    assert run_all(tmp_path, [*source.values, label("a"), label("b")]) == []
    assert caplog.messages[-1] == "the worker stopped; all messages were processed"


def test_a_worker_keeps_its_name(tmp_path):
    names = []
    for _ in range(2):
        source = MemorySource([row("a")])
        run = Run(tmp_path, streams_of(source))
        run.wait()
        names.append(run.engine.state.positions[WORKER])
        run.close()
    assert names[0] == names[1]


def test_positions_that_a_source_has_chosen_are_remembered(tmp_path):
    source = MemorySource([row("a"), row("b")])
    source.chosen = {"memory:other": 41}
    run = Run(tmp_path, streams_of(source))
    run.wait()
    run.close(crashed=True)
    again = Run(tmp_path, streams_of(MemorySource([])))
    assert again.engine.state.positions["memory:other"] == 41
    again.close()


def test_metrics_of_a_worker(tmp_path):
    source = MemorySource([row("a"), b"oops", label("a")], place='memory:"x"')
    run = Run(tmp_path, streams_of(source), Behaviour(skip_bad=True))
    run.worker.start()
    wait_until(lambda: run.worker.counts.lags)
    text = format_stream(run.worker)
    run.close()
    for line in (
        'spanboost_stream_lag_messages{place="memory:\\"x\\""} 0',
        'spanboost_stream_messages_total{stream="rows"} 3',
        'spanboost_stream_connected{stream="rows"} 1',
        "spanboost_stream_predictions_total 1",
        "spanboost_stream_bad_rows_total 1",
        "spanboost_stream_paused 0",
    ):
        assert line in text.splitlines()
