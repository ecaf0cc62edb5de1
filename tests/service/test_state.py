"""The journal, the rows that wait, the state folder: what is acknowledged is never lost."""

import errno
import os
import random
import threading
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from serving import until

from spanboost.errors import DataError
from spanboost.models.files import to_bytes
from spanboost.models.model_spec import ModelSpec
from spanboost.service import record_files
from spanboost.service.engine import (
    FEW,
    GONE,
    Copying,
    Engine,
    Learning,
    Predicting,
    StorageError,
    answers_of,
)
from spanboost.service.journal import Journal
from spanboost.service.learned_ids import LearnedIds
from spanboost.service.pending_rows import FILES, PendingRows
from spanboost.service.record_files import StateError
from spanboost.service.request_rows import Example
from spanboost.service.state import Bounds, Entry, State, entry_of
from spanboost.service.worker import Job, Worker

RECIPE = ModelSpec(learner="linear", n=4)


def fresh(recipe=RECIPE, target=None):
    from spanboost.data.schema import Schema
    from spanboost.data.target import NumberTarget

    model = recipe.model()
    model.schema = Schema("json", target or NumberTarget(None))
    return model, {"recipe": list(recipe)}


def some_rows(n, seed=0):
    rng = random.Random(seed)
    rows = [{"size": rng.random(), "city": rng.choice("abc")} for _ in range(n)]
    return rows, [3 * row["size"] + (row["city"] == "a") for row in rows]


def entry(first, last, data):
    rows, labels = data
    ids = [f"row {k}" for k in range(first, last)]
    return Entry(ids, rows[first:last], labels[first:last], None)


def undisturbed(data, n):
    model, _ = fresh()
    model.learn_many(data[0][:n], data[1][:n])
    return to_bytes(model)


def add(state, first, last, data):
    one = entry(first, last, data)
    state.commit(one)
    state.learn(one, 0, len(one.rows))


# the journal


def filled(folder, payloads, segment=1 << 20):
    journal = Journal(folder, segment)
    assert list(journal.read()) == []
    for payload in payloads:
        journal.append(payload)
    journal.close()


def contents(folder, segment=1 << 20):
    journal = Journal(folder, segment)
    found = [(record.number, bytes(record.payload)) for record in journal.read()]
    journal.close()
    return found, journal


@given(st.lists(st.binary(max_size=40), max_size=20), st.integers(1, 200))
@settings(max_examples=30, deadline=None)
def test_a_journal_gives_back_what_was_put_in(tmp_path_factory, payloads, segment):
    folder = tmp_path_factory.mktemp("journal")
    filled(folder, payloads, segment)
    assert contents(folder, segment)[0] == list(enumerate(payloads, 1))


def test_a_record_cut_off_anywhere_is_removed_and_the_rest_kept(tmp_path):
    filled(tmp_path, [b"one", b"two"])
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    start = len(record_files.record(1, b"one"))
    for end in range(start, len(whole)):
        path.write_bytes(whole[:end])
        found, journal = contents(tmp_path)
        assert found == [(1, b"one")]
        assert journal.cut == end - start
        assert path.read_bytes() == whole[:start]


def test_a_flipped_byte_in_the_middle_is_refused_and_nothing_is_changed(tmp_path):
    filled(tmp_path, [b"one", b"two", b"three"])
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    for place in range(len(record_files.record(1, b"one")) + len(record_files.record(2, b"two"))):
        damaged = bytearray(whole)
        damaged[place] ^= 0x40
        path.write_bytes(damaged)
        with pytest.raises(StateError, match="damaged at byte"):
            contents(tmp_path)
        assert path.read_bytes() == damaged


def test_a_missing_file_of_the_journal_is_refused(tmp_path):
    filled(tmp_path, [b"x" * 50] * 6, segment=100)
    paths = sorted(tmp_path.iterdir())
    assert len(paths) == 3
    paths[1].unlink()
    with pytest.raises(StateError, match="gap"):
        contents(tmp_path)


def test_files_are_forgotten_when_all_their_records_come_before(tmp_path):
    filled(tmp_path, [b"x" * 50] * 6, segment=100)
    journal = Journal(tmp_path, 100)
    list(journal.read())
    journal.forget(4)
    assert journal.firsts() == [3, 5]
    journal.forget(100)
    assert journal.firsts() == [5]
    assert journal.append(b"next") == 7
    journal.close()
    assert [number for number, _ in contents(tmp_path)[0]] == [5, 6, 7]


class Disk:
    """A disk that is full, or fails, when told to."""

    def __init__(self, monkeypatch):
        self.full = self.failing = False
        write, sync = os.pwrite, record_files._sync

        def pwrite(file, data, place):
            if self.full:
                write(file, data[:3], place)
                raise OSError(errno.ENOSPC, "No space left on device")
            return write(file, data, place)

        def synced(file):
            if self.failing:
                raise OSError(errno.EIO, "Input/output error")
            sync(file)

        monkeypatch.setattr(record_files.os, "pwrite", pwrite)
        monkeypatch.setattr(record_files, "_sync", synced)


def test_a_full_disk_leaves_the_journal_as_it_was(tmp_path, monkeypatch):
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
    assert contents(tmp_path)[0] == [(1, b"one"), (2, b"two again")]


def test_after_a_failed_sync_nothing_is_written_any_more(tmp_path, monkeypatch):
    journal = Journal(tmp_path)
    list(journal.read())
    disk = Disk(monkeypatch)
    disk.failing = True
    with pytest.raises(OSError, match="Input/output"):
        journal.append(b"one")
    disk.failing = False
    with pytest.raises(OSError, match="start the server again"):
        journal.append(b"two")
    assert "disk failed" in journal.broken


# ids and rows that wait


def test_the_last_ids_are_known_and_old_ones_forgotten():
    ids = LearnedIds(10)
    for k in range(100):
        ids.add([str(k)], k)
        assert all(str(last) in ids for last in range(max(k - 9, 0), k + 1))
        assert len(ids) <= 20
        assert str(ids.since) in ids
    assert "0" not in ids


def test_rows_without_ids_push_old_ones_out_so_that_the_journal_ends_somewhere():
    ids = LearnedIds(10)
    ids.add(["a", None], 1)
    assert ("a" in ids, ids.since) == (True, 1)
    for record in range(2, 6):
        ids.add([None] * 5, record)
    assert ("a" in ids, ids.since) == (False, None)


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


def test_rows_wait_up_to_a_number_and_a_time(tmp_path):
    clock = Clock()
    pending = PendingRows(tmp_path, 80, 100.0, clock)
    for k in range(200):
        pending.put({str(k): {"k": k}})
        assert len(pending) <= 80
        clock.now += 0.1
    assert pending.get("199") == {"k": 199}
    assert all(pending.get(str(k)) == {"k": k} for k in range(130, 200))
    assert pending.get("0") is None
    assert pending.dropped == 200 - len(pending)
    clock.now += 101
    assert pending.get("199") is None
    pending.put({"new": {}})
    assert len(pending) <= 21  # the others went with their files


def test_labels_that_never_come_do_not_add_up_to_open_files(tmp_path):
    pending = PendingRows(tmp_path, 800, 1e6)
    for k in range(200):
        ids = [f"{k} {j}" for j in range(100)]
        pending.put({id: {"k": float(k)} for id in ids})
        pending.done(ids[1:])
    assert len(list(tmp_path.iterdir())) == FILES
    assert len(pending) == FILES
    assert pending.dropped == 200 - FILES
    assert pending.get("199 0") == {"k": 199.0}
    assert pending.get(f"{200 - FILES} 0") is not None
    assert pending.get("0 0") is None
    again = PendingRows(tmp_path, 800, 1e6)
    again.open(lambda id: False)
    assert len(again) == FILES
    assert again.get("199 0") == {"k": 199.0}


def test_rows_that_wait_outlive_the_server_and_those_with_labels_do_not_come_back(tmp_path):
    pending = PendingRows(tmp_path, 100, 100.0)
    for k in range(40):
        pending.put({str(k): {"k": float(k), "name": "ü"}})
    pending.done(["3", "nobody", "39"])
    again = PendingRows(tmp_path, 100, 100.0)
    again.open(lambda id: id == "7")
    assert len(again) == 37
    assert again.get("8") == {"k": 8.0, "name": "ü"}
    assert [again.get(id) for id in ("3", "7", "39")] == [None] * 3
    again.put({"more": {"k": 1}})
    assert again.get("more") == {"k": 1}


def test_rows_that_wait_survive_a_write_that_was_cut_off(tmp_path):
    pending = PendingRows(tmp_path, 100, 100.0)
    pending.put({"a": {"k": 1}})
    pending.put({"b": {"k": 2}})
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:-1])
    again = PendingRows(tmp_path, 100, 100.0)
    again.open(lambda id: False)
    assert again.get("a") == {"k": 1}
    assert again.get("b") is None


# the folder


@given(
    st.lists(st.tuples(st.integers(1, 40), st.sampled_from(["go on", "stop", "save"])), max_size=8)
)
@settings(max_examples=10, deadline=None)
def test_groups_stops_and_snapshots_leave_no_trace(tmp_path_factory, steps):
    folder, data, n = tmp_path_factory.mktemp("state"), some_rows(400), 0
    state = State(folder, fresh)
    for rows, then in steps:
        add(state, n, n + rows, data)
        n += rows
        if then == "save":
            state.save()
        if then == "stop":  # as a kill would leave it: no snapshot is written
            state.close()
            state = State(folder, fresh)
    if n:
        assert to_bytes(state.model) == undisturbed(data, n)
    assert state.progress.rows == n
    assert all(f"row {k}" in state.ids for k in range(n))
    state.close()


def test_a_restart_keeps_the_progress_as_it_was(tmp_path):
    data = some_rows(3000)
    whole, parts = State(tmp_path / "whole", fresh), State(tmp_path / "parts", fresh)
    add(whole, 0, 3000, data)
    for first in range(0, 3000, 500):
        add(parts, first, first + 500, data)
        if first == 1000:
            parts.save()
        parts.close()
        parts = State(tmp_path / "parts", fresh)
    one, other = whole.progress.state(), parts.progress.state()
    for state in (one, other):
        state["curve"] = [point[:3] for point in state["curve"]]
    assert one == other
    assert one["rows"] == 3000
    whole.close()
    parts.close()


def test_a_damaged_snapshot_is_passed_over_and_two_are_refused(tmp_path):
    data = some_rows(300)
    state = State(tmp_path, fresh)
    for first in (0, 100):
        add(state, first, first + 100, data)
        state.save()
    add(state, 200, 300, data)
    state.close()
    older, newer = sorted((tmp_path / "snapshots").iterdir())
    damage(newer)
    state = State(tmp_path, fresh)
    assert len(state.damaged) == 1
    assert to_bytes(state.model) == undisturbed(data, 300)
    state.close()
    damage(older)
    with pytest.raises(StateError, match="no snapshot that can be read"):
        State(tmp_path, fresh)


def damage(path):
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(data)


def test_a_journal_that_ends_before_the_snapshot_is_refused(tmp_path):
    state = State(tmp_path, fresh)
    add(state, 0, 10, some_rows(10))
    state.save()
    state.close()
    for path in (tmp_path / "journal").iterdir():
        path.unlink()
    with pytest.raises(StateError, match="before the last snapshot"):
        State(tmp_path, fresh)


@pytest.mark.parametrize("name", ["journal/a.log", "pending/a.log", "snapshots/a.sb"])
def test_a_file_that_does_not_belong_there_is_named(tmp_path, name):
    State(tmp_path, fresh).close()
    (tmp_path / name).touch()
    with pytest.raises(StateError, match="no file of a state folder"):
        State(tmp_path, fresh)


def test_the_bytes_of_a_journal_are_told_while_its_files_go(tmp_path, monkeypatch):
    filled(tmp_path, [b"x" * 50] * 6, segment=100)
    journal = Journal(tmp_path, 100)
    paths, before = journal._paths(), journal.bytes
    gone = paths[0].stat().st_size
    paths[0].unlink()
    monkeypatch.setattr(journal, "_paths", lambda: paths)
    assert journal.bytes == before - gone


def test_one_folder_one_server(tmp_path):
    state = State(tmp_path, fresh)
    with pytest.raises(StateError, match="in use by another server"):
        State(tmp_path, fresh)
    state.close()
    State(tmp_path, fresh).close()


def test_what_a_kill_left_of_a_snapshot_is_removed(tmp_path):
    State(tmp_path, fresh).close()
    (tmp_path / "snapshots" / f"{7:020}.sb.abc.partial").write_bytes(b"half a model")
    State(tmp_path, fresh).close()
    assert [path.name for path in (tmp_path / "snapshots").iterdir()] == [f"{0:020}.sb"]


def test_old_records_go_when_neither_snapshots_nor_ids_need_them(tmp_path):
    data = some_rows(1000)
    state = State(tmp_path, fresh, Bounds(ids=200))
    for first in range(0, 1000, 50):
        add(state, first, first + 50, data)
        state.save()
    assert len(list((tmp_path / "snapshots").iterdir())) == 2
    assert 4 <= len(state.journal.firsts()) <= 10
    state.close()
    state = State(tmp_path, fresh, Bounds(ids=200))
    assert all(f"row {k}" in state.ids for k in range(800, 1000))
    state.close()


# the engine


@pytest.fixture
def engine(tmp_path):
    engine = Engine(State(tmp_path, fresh))
    yield engine
    engine.close()


def learned(engine, examples, skip=False):
    job = Learning(dict(enumerate(examples)), skip)
    engine.writer.submit(job)
    return job.result(60)


def predicted(engine, rows, ids=None, keep=True):
    job = Predicting(rows, ids or [None] * len(rows), keep)
    engine.predictor.submit(job)
    return job.result(60)


def model_of(engine):
    job = Copying()
    engine.writer.submit(job)
    return job.result(60)


def test_an_id_is_learned_once(engine):
    data = some_rows(50)
    examples = [
        Example(f"id {k}", row, y, 1.0) for k, (row, y) in enumerate(zip(*data, strict=True))
    ]
    assert learned(engine, examples) == (50, 0, [])
    assert learned(engine, examples) == (0, 50, [])
    twice = Example("new", data[0][0], 1.0, 1.0)
    assert learned(engine, [twice, twice]) == (1, 1, [])
    assert engine.duplicates == 51
    model, _ = fresh()
    model.learn_many([*data[0], data[0][0]], [*data[1], 1.0])
    assert model_of(engine) == to_bytes(model)


def test_labels_come_later_for_rows_that_were_predicted(engine):
    rows, labels = some_rows(20)
    answers = predicted(engine, rows)
    assert answers.columns == {"prediction": [0.0] * 20}
    assert len(set(answers.ids)) == 20
    order = [5, 3, *range(6, 20), 0, 1, 2, 4]
    for k in order:
        assert learned(engine, [Example(answers.ids[k], None, labels[k], 1.0)]) == (1, 0, [])
    assert learned(engine, [Example(answers.ids[3], None, 9.0, 1.0)]) == (0, 1, [])
    model, _ = fresh()
    model.learn_many([rows[k] for k in order], [labels[k] for k in order])
    assert model_of(engine) == to_bytes(model)
    assert predicted(engine, rows).columns["prediction"] == model.predict_many(rows).tolist()


def test_an_unknown_id_is_gone_and_takes_the_batch_with_it_unless_skipped(engine):
    good = Example("a", {"x": 1.0}, 1.0, 1.0)
    unknown = Example("nobody", None, 1.0, 1.0)
    outcome = learned(engine, [good, unknown])
    assert outcome.learned == 0
    assert [(problem.row, problem.status) for problem in outcome.problems] == [(1, GONE)]
    assert "unknown, or expired" in outcome.problems[0].reason
    outcome = learned(engine, [good, unknown], skip=True)
    assert (outcome.learned, len(outcome.problems)) == (1, 1)


def test_predictions_without_ids_leave_nothing_behind(engine):
    assert predicted(engine, [{"x": 1.0}], keep=False).ids is None
    assert len(engine.state.pending) == 0


def test_classes_are_numbered_by_what_was_learned_not_by_what_was_refused(tmp_path):
    from spanboost.data.target import ClassTarget

    recipe = ModelSpec(learner="linear", n=2, loss="softmax", classes=2)
    engine = Engine(State(tmp_path, lambda: fresh(recipe, ClassTarget(2))))
    bad = [Example(None, {"x": 1.0}, label, 1.0) for label in ("a", "b", "c")]
    (problem,) = learned(engine, bad).problems
    assert problem.field == "label"
    assert "is not one of the 2 classes" in problem.reason
    good = [Example(None, {"x": 1.0}, label, 1.0) for label in ("c", "b")]
    assert learned(engine, good).learned == 2
    assert engine.state.model.schema.target.values == ["c", "b"]
    assert set(predicted(engine, [{"x": 1.0}]).columns) == {
        "prediction",
        "probability_b",
        "probability_c",
    }
    engine.close()


@pytest.mark.parametrize("loss", ["squared", "softmax"])
def test_a_few_rows_are_predicted_as_many_are(loss):
    recipe = ModelSpec(learner="linear", n=2, loss=loss, classes=3 if loss == "softmax" else None)
    model, _ = fresh(recipe)
    rows = [{"x": k / 7, "y": "abc"[k % 3]} for k in range(4 * FEW)]
    model.learn_many(rows, np.arange(len(rows)) % 3.0)
    many = answers_of(model, rows)
    assert many.shape == ((len(rows), 3) if loss == "softmax" else (len(rows),))
    few = [answers_of(model, rows[k : k + FEW]) for k in range(0, len(rows), FEW)]
    np.testing.assert_array_equal(np.concatenate(few), many)
    for size in (3, len(rows)):
        with pytest.raises(DataError, match="too large") as caught:
            answers_of(model, [*rows[: size - 1], {"x": 1e39}])
        assert caught.value.row == size - 1


class Growing(list):
    """Classes of which one more is met whenever they are counted."""

    def __len__(self):
        found = super().__len__()
        self.append("new")
        return found


def test_classes_that_are_met_while_rows_are_predicted_do_no_harm(tmp_path):
    from spanboost.data.target import ClassTarget

    recipe = ModelSpec(learner="linear", n=2, loss="softmax", classes=4)
    engine = Engine(State(tmp_path, lambda: fresh(recipe, ClassTarget(4))))
    learned(engine, [Example(None, {"x": 1.0}, "a", 1.0)])
    model_of(engine)
    target = engine.state.model.schema.target
    target.values = Growing(target.values)
    assert len(predicted(engine, [{"x": 1.0}]).columns) == 5
    target.values = ["a"]
    engine.close()


def test_a_full_disk_refuses_labels_and_learns_them_when_there_is_room(engine, monkeypatch):
    disk = Disk(monkeypatch)
    example = Example("a", {"x": 1.0}, 1.0, 1.0)
    learned(engine, [Example("before", {"x": 0.5}, 2.0, 1.0)])
    before = model_of(engine)
    disk.full = True
    with pytest.raises(StorageError, match="No space"):
        learned(engine, [example])
    with pytest.raises(StorageError, match="No space"):
        predicted(engine, [{"x": 1.0}])
    assert predicted(engine, [{"x": 1.0}], keep=False).columns["prediction"]
    assert model_of(engine) == before
    disk.full = False
    assert learned(engine, [example]) == (1, 0, [])
    assert model_of(engine) != before


def test_a_full_disk_at_the_end_is_no_snapshot_and_no_trouble(tmp_path, monkeypatch):
    engine = Engine(State(tmp_path, fresh))
    learned(engine, [Example("a", {"x": 1.0}, 1.0, 1.0)])
    model = model_of(engine)

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("spanboost.service.state.save", full)
    engine.close()
    assert engine.unwritten == 1
    engine = Engine(State(tmp_path, fresh))
    assert model_of(engine) == model
    engine.close()


def test_a_snapshot_the_disk_does_not_take_is_tried_again_later_not_at_once(tmp_path, monkeypatch):
    engine, tries = Engine(State(tmp_path, fresh, Bounds(snapshot_rows=10))), []

    def full(*_, **__):
        tries.append(engine.state.learned)
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("spanboost.service.state.save", full)
        for k in range(25):
            learned(engine, [Example(None, {"x": 1.0}, float(k), 1.0)])
            model_of(engine)
    assert tries == [10, 20]
    engine.close()


def test_a_second_label_under_the_id_of_a_bad_one_is_no_duplicate(engine):
    bad, good = Example("a", {"x": 1.0}, "many", 1.0), Example("a", {"x": 1.0}, 1.0, 1.0)
    outcome = learned(engine, [bad, good, good], skip=True)
    assert (outcome.learned, outcome.duplicates) == (1, 1)
    assert [problem.row for problem in outcome.problems] == [0]


def test_those_who_wait_no_more_are_passed_over(tmp_path):
    began, go_on, done = threading.Event(), threading.Event(), []

    def work(jobs):
        done.append(jobs)
        began.set()
        go_on.wait(30)

    worker = Worker("slow", work, 100)
    first, second = Job(1), Job(2)
    worker.submit(first)
    began.wait(30)
    worker.submit(second)
    assert second.cancel()
    go_on.set()
    until(lambda: worker.waiting == 0)
    worker.close()
    assert done == [[first]]


def test_what_was_committed_and_not_learned_is_learned_by_the_next_start(tmp_path, monkeypatch):
    data = some_rows(60)
    state = State(tmp_path, fresh)
    add(state, 0, 40, data)
    state.commit(entry(40, 60, data))
    state.close()
    state = State(tmp_path, fresh)
    assert to_bytes(state.model) == undisturbed(data, 60)
    assert "row 59" in state.ids
    state.close()


def test_a_row_no_model_takes_is_left_out_whatever_the_blocks(tmp_path):
    rows, labels = some_rows(10)
    labels[4] = 2e300  # a label that the rows' reader would have refused
    models = []
    for cuts in ([0, 10], [0, 5, 10], [0, 4, 5, 10], range(11)):
        state = State(tmp_path / str(len(models)), fresh)
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
def test_a_record_is_what_was_packed(names, rows, alike, data):
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
    found = entry_of(memoryview(one.packed()))
    assert found == one
    assert [list(row) for row in found.rows] == [list(row) for row in block]  # in order
    again = [repr(row) for row in found.rows]
    assert again == [repr(row) for row in block]  # -0.0 is not 0.0
