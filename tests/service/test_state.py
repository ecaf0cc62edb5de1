"""The journal, pending rows, the state folder and the engine lose no acknowledged row."""

import errno
import os
import threading
from itertools import pairwise

import numpy as np
import pytest
from forged import changed
from hypothesis import given, settings
from hypothesis import strategies as st
from serving import wait_until
from state_folders import (
    SPEC,
    add_pending,
    build_entry,
    commit_and_learn,
    new_model,
    some_rows,
    trained_model,
)

from spanboost.errors import DataError, LabelWarning
from spanboost.models.files import to_bytes
from spanboost.models.model_spec import ModelSpec
from spanboost.service.learning.engine import (
    CopyJob,
    Engine,
    LearnJob,
    PredictJob,
    StorageError,
)
from spanboost.service.learning.row_predictions import MAX_SINGLE_ROWS, predict_rows
from spanboost.service.learning.worker import Job, Worker
from spanboost.service.limits import StateLimits
from spanboost.service.request_rows import GONE, Example, collect_examples
from spanboost.service.storage import record_files
from spanboost.service.storage.entry import Entry, decode_entry
from spanboost.service.storage.journal import Journal
from spanboost.service.storage.journal_chain import journal_paths
from spanboost.service.storage.journal_files import MarkedRecords
from spanboost.service.storage.learned_ids import LearnedIds, label_mark
from spanboost.service.storage.record_files import StateError
from spanboost.service.storage.state import State

# the journal


def write_journal(folder, payloads, segment=1 << 20):
    journal = Journal(folder, segment)
    assert list(journal.read()) == []
    for payload in payloads:
        journal.append(payload)
    journal.close()


def read_journal(folder, segment=1 << 20):
    journal = Journal(folder, segment)
    records = [(record.number, bytes(record.payload)) for record in journal.read()]
    journal.close()
    return records, journal


@given(st.lists(st.binary(max_size=40), max_size=20), st.integers(1, 200))
@settings(max_examples=30, deadline=None)
def test_a_journal_returns_what_was_appended(tmp_path_factory, payloads, segment):
    folder = tmp_path_factory.mktemp("journal")
    write_journal(folder, payloads, segment)
    assert read_journal(folder, segment)[0] == list(enumerate(payloads, 1))


def test_an_incomplete_last_record_is_removed(tmp_path):
    write_journal(tmp_path, [b"one", b"two"])
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    start = len(whole) - MarkedRecords.overhead - len(b"two")
    for end in range(start, len(whole)):
        path.write_bytes(whole[:end])
        records, journal = read_journal(tmp_path)
        assert records == [(1, b"one")]
        assert journal.removed_bytes == end - start
        assert path.read_bytes() == whole[:start]


def test_a_damaged_record_is_refused_and_the_file_is_not_changed(tmp_path):
    write_journal(tmp_path, [b"one", b"two", b"three"])
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    for place in range(len(whole) - MarkedRecords.overhead - len(b"three")):
        damaged = bytearray(whole)
        damaged[place] ^= 0x40
        path.write_bytes(damaged)
        with pytest.raises(StateError, match="damaged"):
            read_journal(tmp_path)
        assert path.read_bytes() == damaged


def test_a_missing_journal_file_is_refused(tmp_path):
    write_journal(tmp_path, [b"x" * 50] * 6, segment=100)
    paths = sorted(tmp_path.iterdir())
    assert len(paths) == 3
    paths[1].unlink()
    with pytest.raises(StateError, match="is missing or empty"):
        read_journal(tmp_path)


def test_only_files_with_older_records_are_deleted(tmp_path):
    write_journal(tmp_path, [b"x" * 50] * 6, segment=100)
    journal = Journal(tmp_path, 100)
    list(journal.read())
    journal.rotate(4)
    assert journal.first_numbers() == [3, 5, 7]
    journal.rotate(100)  # the last file has no records
    assert journal.first_numbers() == [3, 5, 7]
    assert journal.append(b"next") == 7
    journal.rotate(7)
    assert journal.first_numbers() == [7, 8]
    journal.close()
    assert [number for number, _ in read_journal(tmp_path)[0]] == [7]
    assert read_journal(tmp_path)[1].first_numbers() == [7, 8]


class Disk:
    """A disk that can be set to be full or to fail."""

    def __init__(self, monkeypatch):
        self.full = self.failing = False
        write, sync = os.pwrite, record_files._sync

        def pwrite(file, data, place):
            if self.full:
                write(file, data[:3], place)
                raise OSError(errno.ENOSPC, "No space left on device")
            return write(file, data, place)

        def fail_or_sync(file):
            if self.failing:
                raise OSError(errno.EIO, "Input/output error")
            sync(file)

        monkeypatch.setattr(record_files.os, "pwrite", pwrite)
        monkeypatch.setattr(record_files, "_sync", fail_or_sync)


def test_a_full_disk_does_not_change_the_journal(tmp_path, monkeypatch):
    journal = Journal(tmp_path)
    list(journal.read())
    journal.append(b"one")
    disk = Disk(monkeypatch)
    disk.full = True
    with pytest.raises(OSError, match="No space"):
        journal.append(b"two")
    disk.full = False
    journal.append(b"two again")
    journal.close()
    assert read_journal(tmp_path)[0] == [(1, b"one"), (2, b"two again")]


def test_a_failed_sync_stops_all_writes(tmp_path, monkeypatch):
    journal = Journal(tmp_path)
    list(journal.read())
    disk = Disk(monkeypatch)
    disk.failing = True
    with pytest.raises(OSError, match="Input/output"):
        journal.append(b"one")
    disk.failing = False
    with pytest.raises(OSError, match="restart the server"):
        journal.append(b"two")
    assert "disk failed" in journal.failure


# ids


def test_recent_ids_are_remembered_and_old_ones_forgotten():
    ids = LearnedIds(10)
    for k in range(100):
        ids.add([str(k)], [float(k)], k)
        assert all(str(last) in ids for last in range(max(k - 9, 0), k + 1))
        assert len(ids) <= 20
        assert str(ids.first_record) in ids
    assert "0" not in ids


def test_labels_are_compared_by_value():
    ids = LearnedIds(10)
    ids.add(["a", "b", None], [0.1, "1.0", 3.0], 1)
    assert ids.mark("a") == label_mark(0.1) != label_mark(0.2)
    assert ids.mark("b") == label_mark("1") != label_mark("2")
    assert label_mark(-0.0) == label_mark(0.0)
    assert ids.mark("c") is None


def test_rows_without_ids_expire_old_ids_so_that_the_journal_stays_bounded():
    ids = LearnedIds(10)
    ids.add(["a", None], [1.0, 2.0], 1)
    assert ("a" in ids, ids.first_record) == (True, 1)
    for record in range(2, 6):
        ids.add([None] * 5, [0.0] * 5, record)
    assert ("a" in ids, ids.first_record) == (False, None)


# the folder


@given(
    st.lists(
        st.tuples(st.integers(1, 40), st.sampled_from(["continue", "stop", "save"])), max_size=8
    )
)
@settings(max_examples=10, deadline=None)
def test_groups_restarts_and_snapshots_do_not_change_the_model(tmp_path_factory, steps):
    folder, data, n = tmp_path_factory.mktemp("state"), some_rows(400), 0
    state = State(folder, new_model)
    for rows, then in steps:
        commit_and_learn(state, n, n + rows, data)
        n += rows
        if then == "save":
            state.save()
        if then == "stop":  # like a kill: no snapshot is written
            state.close()
            state = State(folder, new_model)
    if n:
        assert to_bytes(state.model) == trained_model(data, n)
    assert state.progress.rows == n
    assert all(f"row {k}" in state.ids for k in range(n))
    state.close()


def test_a_restart_does_not_change_the_progress(tmp_path):
    data = some_rows(3000)
    whole, parts = State(tmp_path / "whole", new_model), State(tmp_path / "parts", new_model)
    commit_and_learn(whole, 0, 3000, data)
    for first in range(0, 3000, 500):
        commit_and_learn(parts, first, first + 500, data)
        if first == 1000:
            parts.save()
        parts.close()
        parts = State(tmp_path / "parts", new_model)
    one, other = whole.progress.state(), parts.progress.state()
    for state in (one, other):
        state["points"] = [point[:3] for point in state["points"]]
    assert one == other
    assert one["rows"] == 3000
    whole.close()
    parts.close()


def test_one_damaged_snapshot_is_skipped_and_two_are_refused(tmp_path):
    data = some_rows(300)
    state = State(tmp_path, new_model)
    for first in (0, 100):
        commit_and_learn(state, first, first + 100, data)
        state.save()
    commit_and_learn(state, 200, 300, data)
    state.close()
    older, newer = sorted((tmp_path / "snapshots").iterdir())
    damage(newer)
    state = State(tmp_path, new_model)
    assert len(state.damaged) == 1
    assert to_bytes(state.model) == trained_model(data, 300)
    state.close()
    damage(older)
    with pytest.raises(StateError, match="no readable snapshot"):
        State(tmp_path, new_model)


def damage(path):
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(data)


def test_a_folder_of_version_0_1_keeps_its_growing_label_range(tmp_path):
    """The options of version 0.1 still name the folder, where "auto" meant "growing"."""
    State(tmp_path, new_model).close()
    (snapshot,) = (tmp_path / "snapshots").glob("*.sb")
    changed(snapshot, lambda header: header.update(format=1))
    identities = []
    state = State(tmp_path, new_model, check=identities.append)
    rows, labels = data = some_rows(150)
    labels[100] = 1e6
    with pytest.warns(LabelWarning, match="half-widths from the centre"):
        commit_and_learn(state, 0, 150, data)
    state.close()
    assert identities == [new_model()[1]]
    expected, _ = new_model(SPEC.replace(label_range="growing"))
    with pytest.warns(LabelWarning):
        expected.learn_many(rows, labels)
    assert to_bytes(state.model) == to_bytes(expected)


def test_a_journal_that_ends_before_the_snapshot_is_refused(tmp_path):
    state = State(tmp_path, new_model)
    commit_and_learn(state, 0, 10, some_rows(10))
    state.save()
    state.close()
    for path in (tmp_path / "journal").iterdir():
        path.unlink()
    with pytest.raises(StateError, match="file that the last snapshot names is missing"):
        State(tmp_path, new_model)


def test_a_journal_that_begins_after_the_snapshot_is_refused(tmp_path):
    data = some_rows(30)
    state = State(tmp_path, new_model)
    (oldest,) = (tmp_path / "snapshots").iterdir()
    model = oldest.read_bytes()
    for first in (0, 10, 20):
        commit_and_learn(state, first, first + 10, data)
        state.save()
    state.journal.append(build_entry(0, 1, data).encode())
    state.journal.rotate(4)
    state.close()
    for path in (tmp_path / "snapshots").iterdir():
        path.unlink()
    (tmp_path / "journal" / f"{1:020}.log").touch()  # a deletion that is not on the disk
    changed_path = tmp_path / "snapshots" / oldest.name
    changed_path.write_bytes(model)
    changed(changed_path, lambda header: header["run"].pop("journal"))
    with pytest.raises(StateError, match="begins at record 4, but the snapshot ends at record 0"):
        State(tmp_path, new_model)


@pytest.mark.parametrize("name", ["journal/a.log", "pending/a.log", "snapshots/a.sb"])
def test_a_foreign_file_is_named(tmp_path, name):
    State(tmp_path, new_model).close()
    (tmp_path / name).touch()
    with pytest.raises(StateError, match="does not belong to a state folder"):
        State(tmp_path, new_model)


def test_journal_size_while_files_are_deleted(tmp_path, monkeypatch):
    write_journal(tmp_path, [b"x" * 50] * 6, segment=100)
    journal = Journal(tmp_path, 100)
    paths, before = journal_paths(tmp_path), journal.size
    gone = paths[0].stat().st_size
    paths[0].unlink()
    monkeypatch.setattr("spanboost.service.storage.journal.journal_paths", lambda folder: paths)
    assert journal.size == before - gone


def test_a_folder_is_locked_by_one_server(tmp_path):
    state = State(tmp_path, new_model)
    with pytest.raises(StateError, match="in use by another server"):
        State(tmp_path, new_model)
    state.close()
    State(tmp_path, new_model).close()


def test_the_lock_does_not_depend_on_a_file(tmp_path):
    state = State(tmp_path, new_model)
    assert int((tmp_path / "lock").read_text()) == os.getpid()
    (tmp_path / "lock").unlink()
    with pytest.raises(StateError, match="in use by another server"):
        State(tmp_path, new_model)
    state.close()


def test_only_the_owner_can_read_files(tmp_path):
    state = State(tmp_path, new_model)
    commit_and_learn(state, 0, 10, some_rows(10))
    state.save()
    add_pending(state.pending, {"a": {"x": 1.0}})
    state.close()
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) == 6
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}


def test_a_partial_snapshot_is_removed(tmp_path):
    State(tmp_path, new_model).close()
    (tmp_path / "snapshots" / f"{7:020}.sb.abc.partial").write_bytes(b"half a model")
    State(tmp_path, new_model).close()
    assert [path.name for path in (tmp_path / "snapshots").iterdir()] == [f"{0:020}.sb"]


def test_old_records_are_deleted_when_neither_snapshots_nor_ids_need_them(tmp_path):
    data = some_rows(1000)
    state = State(tmp_path, new_model, StateLimits(remembered_ids=200))
    for first in range(0, 1000, 50):
        commit_and_learn(state, first, first + 50, data)
        state.save()
    assert len(list((tmp_path / "snapshots").iterdir())) == 2
    assert 4 <= len(state.journal.first_numbers()) <= 10
    state.close()
    state = State(tmp_path, new_model, StateLimits(remembered_ids=200))
    assert all(f"row {k}" in state.ids for k in range(800, 1000))
    state.close()


# the engine


@pytest.fixture
def engine(tmp_path):
    engine = Engine(State(tmp_path, new_model))
    yield engine
    engine.close()


def learn(engine, examples, skip=False):
    job = LearnJob(collect_examples(dict(enumerate(examples))), skip)
    engine.writer.submit(job)
    return job.result(60)


def predict(engine, rows, ids=None, keep=True):
    job = PredictJob(rows, ids or [None] * len(rows), keep)
    engine.predictor.submit(job)
    return job.result(60)


def copy_model(engine):
    job = CopyJob()
    engine.writer.submit(job)
    return job.result(60)


def test_an_id_is_learned_once(engine):
    data = some_rows(50)
    examples = [
        Example(f"id {k}", row, y, 1.0) for k, (row, y) in enumerate(zip(*data, strict=True))
    ]
    assert learn(engine, examples) == (50, 0, [])
    assert learn(engine, examples) == (0, 50, [])
    twice = Example("new", data[0][0], 1.0, 1.0)
    assert learn(engine, [twice, twice]) == (1, 1, [])
    assert engine.duplicates == 51
    model, _ = new_model()
    model.learn_many([*data[0], data[0][0]], [*data[1], 1.0])
    assert copy_model(engine) == to_bytes(model)


def test_labels_arrive_later_for_pending_rows(engine):
    rows, labels = some_rows(20)
    predictions = predict(engine, rows)
    assert predictions.columns == {"prediction": [0.0] * 20}
    assert len(set(predictions.ids)) == 20
    order = [5, 3, *range(6, 20), 0, 1, 2, 4]
    for k in order:
        assert learn(engine, [Example(predictions.ids[k], None, labels[k], 1.0)]) == (1, 0, [])
    assert learn(engine, [Example(predictions.ids[3], None, labels[3], 1.0)]) == (0, 1, [])
    model, _ = new_model()
    model.learn_many([rows[k] for k in order], [labels[k] for k in order])
    assert copy_model(engine) == to_bytes(model)
    assert predict(engine, rows).columns["prediction"] == model.predict_many(rows).tolist()


def test_an_unknown_id_refuses_the_request_unless_it_is_skipped(engine):
    good = Example("a", {"x": 1.0}, 1.0, 1.0)
    unknown = Example("unknown", None, 1.0, 1.0)
    outcome = learn(engine, [good, unknown])
    assert outcome.learned == 0
    assert [(problem.row, problem.status) for problem in outcome.rejected] == [(1, GONE)]
    assert "unknown or has expired" in outcome.rejected[0].reason
    outcome = learn(engine, [good, unknown], skip=True)
    assert (outcome.learned, len(outcome.rejected)) == (1, 1)


def test_predictions_without_keep_store_nothing(engine):
    assert predict(engine, [{"x": 1.0}], keep=False).ids is None
    assert len(engine.state.pending) == 0


def test_refused_labels_do_not_define_classes(tmp_path):
    from spanboost.data.target import ClassTarget

    spec = ModelSpec(learner="linear", n=2, loss="softmax", classes=2)
    engine = Engine(State(tmp_path, lambda: new_model(spec, ClassTarget(2))))
    bad = [Example(None, {"x": 1.0}, label, 1.0) for label in ("a", "b", "c")]
    (problem,) = learn(engine, bad).rejected
    assert problem.field == "label"
    assert "is not one of the 2 classes" in problem.reason
    good = [Example(None, {"x": 1.0}, label, 1.0) for label in ("c", "b")]
    assert learn(engine, good).learned == 2
    assert engine.state.model.schema.target.values == ["c", "b"]
    assert set(predict(engine, [{"x": 1.0}]).columns) == {
        "prediction",
        "p_b",
        "p_c",
    }
    engine.close()


@pytest.mark.parametrize("loss", ["squared", "softmax"])
def test_few_rows_get_the_same_predictions_as_many(loss):
    spec = ModelSpec(learner="linear", n=2, loss=loss, classes=3 if loss == "softmax" else None)
    model, _ = new_model(spec)
    rows = [{"x": k / 7, "y": "abc"[k % 3]} for k in range(4 * MAX_SINGLE_ROWS)]
    model.learn_many(rows, np.arange(len(rows)) % 3.0)
    many = predict_rows(model, rows).predictions
    assert many.shape == ((len(rows), 3) if loss == "softmax" else (len(rows),))
    few = [
        predict_rows(model, rows[k : k + MAX_SINGLE_ROWS]).predictions
        for k in range(0, len(rows), MAX_SINGLE_ROWS)
    ]
    np.testing.assert_array_equal(np.concatenate(few), many)
    for size in (3, len(rows)):
        with pytest.raises(DataError, match="too large") as caught:
            predict_rows(model, [*rows[: size - 1], {"x": 1e39}])
        assert caught.value.row == size - 1


class GrowingList(list):
    """A list of classes that grows whenever its length is read."""

    def __len__(self):
        length = super().__len__()
        self.append("new")
        return length


def test_classes_may_be_added_during_a_prediction(tmp_path):
    from spanboost.data.target import ClassTarget

    spec = ModelSpec(learner="linear", n=2, loss="softmax", classes=4)
    engine = Engine(State(tmp_path, lambda: new_model(spec, ClassTarget(4))))
    learn(engine, [Example(None, {"x": 1.0}, "a", 1.0)])
    copy_model(engine)
    target = engine.state.model.schema.target
    target.values = GrowingList(target.values)
    assert len(predict(engine, [{"x": 1.0}]).columns) == 5
    target.values = ["a"]
    engine.close()


def test_a_full_disk_refuses_labels_until_there_is_space(engine, monkeypatch):
    disk = Disk(monkeypatch)
    example = Example("a", {"x": 1.0}, 1.0, 1.0)
    learn(engine, [Example("before", {"x": 0.5}, 2.0, 1.0)])
    before = copy_model(engine)
    disk.full = True
    with pytest.raises(StorageError, match="No space"):
        learn(engine, [example])
    with pytest.raises(StorageError, match="No space"):
        predict(engine, [{"x": 1.0}])
    assert predict(engine, [{"x": 1.0}], keep=False).columns["prediction"]
    assert copy_model(engine) == before
    disk.full = False
    assert learn(engine, [example]) == (1, 0, [])
    assert copy_model(engine) != before


def test_a_full_disk_at_the_end_loses_nothing(tmp_path, monkeypatch):
    engine = Engine(State(tmp_path, new_model))
    learn(engine, [Example("a", {"x": 1.0}, 1.0, 1.0)])
    model = copy_model(engine)

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("spanboost.service.storage.state.save", full)
    engine.close()
    assert engine.failed_writes == 1
    engine = Engine(State(tmp_path, new_model))
    assert copy_model(engine) == model
    engine.close()


def test_a_failed_snapshot_is_retried_later(tmp_path, monkeypatch):
    engine, attempts = Engine(State(tmp_path, new_model, StateLimits(snapshot_rows=10))), []

    def full(*_, **__):
        attempts.append(engine.state.learned_record)
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("spanboost.service.storage.state.save", full)
        for k in range(25):
            learn(engine, [Example(None, {"x": 1.0}, float(k), 1.0)])
            copy_model(engine)
    assert attempts == [10, 20]
    engine.close()


def test_a_good_label_after_a_bad_one_with_the_same_id_is_not_a_duplicate(engine):
    bad, good = Example("a", {"x": 1.0}, "many", 1.0), Example("a", {"x": 1.0}, 1.0, 1.0)
    outcome = learn(engine, [bad, good, good], skip=True)
    assert (outcome.learned, outcome.duplicates) == (1, 1)
    assert [problem.row for problem in outcome.rejected] == [0]


def test_cancelled_jobs_are_skipped(tmp_path):
    began, resume, done = threading.Event(), threading.Event(), []

    def work(jobs):
        done.append(jobs)
        began.set()
        resume.wait(30)

    worker = Worker("slow", work, 100)
    first, second = Job(1), Job(2)
    worker.submit(first)
    began.wait(30)
    worker.submit(second)
    assert second.cancel()
    resume.set()
    wait_until(lambda: worker.waiting == 0)
    worker.close()
    assert done == [[first]]


def test_committed_rows_are_learned_by_the_next_start(tmp_path, monkeypatch):
    data = some_rows(60)
    state = State(tmp_path, new_model)
    commit_and_learn(state, 0, 40, data)
    state.commit(build_entry(40, 60, data))
    state.close()
    state = State(tmp_path, new_model)
    assert to_bytes(state.model) == trained_model(data, 60)
    assert "row 59" in state.ids
    state.close()


def test_a_row_that_the_model_rejects_is_skipped_in_blocks_of_any_size(tmp_path):
    rows, labels = some_rows(10)
    labels[4] = 2e300  # the row parser would have refused this label
    models = []
    for cuts in ([0, 10], [0, 5, 10], [0, 4, 5, 10], range(11)):
        state = State(tmp_path / str(len(models)), new_model)
        one = Entry([None] * 10, rows, labels, None)
        state.commit(one)
        for first, last in pairwise(cuts):
            state.learn(one, first, last)
        assert (state.left_out, state.progress.rows) == (1, 9)
        models.append(to_bytes(state.model))
        state.close()
    assert len(set(models)) == 1


@given(
    st.lists(st.sampled_from("abü\n"), max_size=3, unique=True),
    st.integers(1, 5),
    st.booleans(),
    st.data(),
)
@settings(max_examples=100, deadline=None)
def test_entries_survive_encoding_and_decoding(names, rows, alike, data):
    floats = st.floats(allow_nan=False, allow_infinity=False)
    texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=3)
    kinds = [
        data.draw(st.sampled_from([floats, texts, st.one_of(floats, texts, st.none())]))
        for _ in names
    ]
    block = [{k: data.draw(v) for k, v in zip(names, kinds, strict=True)} for _ in range(rows)]
    if not alike:
        block[-1] = {"other": 1.0}
    one = Entry(
        [None, "a\nb"] + [None] * rows, block, [1.0, "b"], data.draw(st.none() | st.just([0.5]))
    )
    decoded = decode_entry(memoryview(one.encode()))
    assert decoded == one
    assert [list(row) for row in decoded.rows] == [list(row) for row in block]  # in order
    again = [repr(row) for row in decoded.rows]
    assert again == [repr(row) for row in block]  # -0.0 is not 0.0
