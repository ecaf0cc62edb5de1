"""`spanboost erase` removes rows from the journal, pending rows and, if it can, from the model."""

import errno
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from state_folders import (
    add_pending,
    build_entry,
    journal_files,
    new_model,
    some_rows,
    write_folder,
)

from spanboost.cli.main import main
from spanboost.models.files import to_bytes
from spanboost.models.model_spec import ModelSpec
from spanboost.service.limits import StateLimits
from spanboost.service.storage.challenger import BY_HAND, challenge_with
from spanboost.service.storage.pending_erase import erase_pending, find_pending
from spanboost.service.storage.pending_rows import PendingRows
from spanboost.service.storage.state import State
from spanboost.service.storage.versions import roll_back_to

DATA, ROWS = some_rows(300), 5
STEPS, RECORDS = [4, 4, 8], 16  # snapshots after records 4 and 8
REPLAYING = ModelSpec(learner="linear", n=4, replay=2)
ALL = StateLimits(keep_rows=10**6)


def content(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def model_without(erased, rows=RECORDS * ROWS, spec=None):
    """Return the bytes of a model that never had some of the rows."""
    model, _ = new_model(spec) if spec else new_model()
    kept = [k for k in range(rows) if k not in erased]
    model.learn_many([DATA[0][k] for k in kept], [DATA[1][k] for k in kept])
    return to_bytes(model)


def contains(folder, k):
    """Whether any file of a folder contains a row: its id, or its number, which is unique."""
    number = struct.pack("<d", DATA[0][k]["size"])
    found = content(folder).values()
    return any(b'"row %d"' % k in data or number in data for data in found)


def test_erased_rows_leave_no_trace(tmp_path, run):
    write_folder(tmp_path, STEPS, DATA, ROWS)  # the older snapshot has 4 records, so 20 rows
    erased = [27, 50, 51, 52, 53, 54]
    assert all(contains(tmp_path, k) for k in erased)
    words = ["erase", tmp_path, *(f"row {k}" for k in erased)]
    before = content(tmp_path)
    status, text = run(*words)
    assert status == 1
    assert "Journal: rows in records 6, 11." in text
    assert "Deleted snapshots, because they have learned the rows: 8." in text
    assert "replays the journal from record 4." in text
    assert "The model is then the same as if it had never learned the rows." in text
    assert "Remains" not in text
    assert content(tmp_path) == before
    status, text = run(*words, "--yes")
    assert (status, text.splitlines()[-1]) == (
        0,
        "Erased. Backups and other copies of the folder still have the rows.",
    )
    assert not any(contains(tmp_path, k) for k in erased)
    assert run("check", tmp_path)[0] == 0
    for _ in range(2):  # by replay, then from a snapshot
        state = State(tmp_path, new_model)
        assert to_bytes(state.model) == model_without(erased)
        assert {k for k in range(80) if f"row {k}" not in state.ids} == {*erased}
        assert state.progress.rows == 80 - len(erased)
        state.save()
        state.close()
    status, text = run(*words)
    assert status == 2
    assert "no row with the id 'row 27'" in text


@given(st.sets(st.integers(0, 79), min_size=1, max_size=12), st.sampled_from([None, REPLAYING]))
@settings(max_examples=10, deadline=None)
def test_the_model_is_that_of_the_other_rows(tmp_path_factory, erased, spec):
    folder = tmp_path_factory.mktemp("state")

    def new():
        return new_model(spec) if spec else new_model()

    state = State(folder, new, ALL)
    for k in range(RECORDS):
        entry = build_entry(ROWS * k, ROWS * k + ROWS, DATA)
        state.commit(entry)
        state.learn(entry, 0, ROWS)
        if k % 4 == 3:
            state.save()
    state.close()
    assert main(["erase", str(folder), *(f"row {k}" for k in erased), "--yes"]) == 0
    state = State(folder, new, ALL)
    assert to_bytes(state.model) == model_without(erased, spec=spec)
    state.close()
    assert not any(contains(folder, k) for k in erased)


def test_what_remains_in_the_model_is_said(tmp_path, run):
    write_folder(tmp_path, STEPS, DATA, ROWS)
    status, text = run("erase", tmp_path, "row 3", "row 50", "--yes")
    assert status == 0
    assert "Remains: all snapshots have learned record 1. The sums of the model" in text
    assert "same as if" not in text
    assert not any(b'"row 3"' in data for data in content(tmp_path).values())
    state = State(tmp_path, new_model)
    assert to_bytes(state.model) == model_without([50])
    assert {k for k in range(80) if f"row {k}" not in state.ids} == {3, 50}
    state.close()


def test_a_model_in_the_journal_is_named(tmp_path, run):
    write_folder(tmp_path, STEPS, DATA, ROWS)
    state = State(tmp_path, new_model)
    control = roll_back_to(state.snapshots, 8)
    state.commit_control(control)
    state.obey(control)
    state.close()
    what = "Remains: models in record 17 of the journal"
    assert what in run("erase", tmp_path, "row 27")[1]
    assert "Remains" not in run("erase", tmp_path, "row 50")[1]
    assert run("erase", tmp_path, "row 50", "--yes")[0] == 0
    state = State(tmp_path, new_model)
    assert to_bytes(state.model) == model_without([], 40)
    state.close()


def test_a_challenger_that_came_after_a_row_is_named(tmp_path, run):
    write_folder(tmp_path, STEPS, DATA, ROWS)
    state = State(tmp_path, new_model)
    control = challenge_with(state.model, state.model, BY_HAND)
    state.commit_control(control)
    state.obey(control)
    entry = build_entry(80, 85, DATA)
    state.commit(entry)
    state.learn(entry, 0, 5)
    state.close()
    assert "models in record 17 of the journal" in run("erase", tmp_path, "row 50")[1]
    assert "Remains" not in run("erase", tmp_path, "row 82")[1]
    assert run("erase", tmp_path, "row 82", "--yes")[0] == 0
    state = State(tmp_path, new_model)
    assert to_bytes(state.model) == to_bytes(state.challenger.model) == model_without([82], 85)
    state.close()


def test_pending_rows_are_erased_whether_they_wait_or_not(tmp_path, run):
    state = State(tmp_path, new_model)
    add_pending(state.pending, {f"row {k}": DATA[0][k] for k in range(10)})
    entry = build_entry(0, 5, DATA)
    state.commit(entry)
    state.learn(entry, 0, 5)
    state.close()
    status, text = run("erase", tmp_path, "row 2", "row 7", "--yes")
    assert status == 0
    assert "Journal: rows in record 1." in text
    assert "Pending rows: rows in " in text
    assert not contains(tmp_path, 2)
    assert not contains(tmp_path, 7)
    state = State(tmp_path, new_model)
    assert to_bytes(state.model) == model_without([2], 5)
    expected = {f"row {k}": DATA[0][k] for k in (5, 6, 8, 9)}
    assert {id: state.pending.get(id) for id in expected} == expected
    assert len(state.pending) == 4
    state.close()


ROW = st.dictionaries(st.sampled_from("abc"), st.floats(0, 1) | st.integers(0, 9) | st.text())


@given(st.lists(st.lists(ROW, min_size=1, max_size=4), max_size=5), st.data())
@settings(max_examples=50, deadline=None)
def test_other_pending_rows_stay_as_they_were(tmp_path_factory, groups, data):
    folder = tmp_path_factory.mktemp("pending")
    pending, expected = PendingRows(folder), {}
    pending.open(lambda id: False)
    for group in groups:
        rows = {f"id {len(expected) + k}": row for k, row in enumerate(group)}
        add_pending(pending, rows)
        expected |= rows
    ids = data.draw(st.lists(st.sampled_from(sorted(expected)), unique=True)) if expected else []
    half = len(ids) // 2
    pending.remove(ids[:half])
    pending.close()
    erased = {*ids[half:]}
    found = find_pending(folder.iterdir(), erased)
    assert set().union(*found.values()) == erased
    for path, own in found.items():
        erase_pending(path, own)
    again = PendingRows(folder)
    again.open(lambda id: False)
    left = {id: row for id, row in expected.items() if id not in ids}
    assert {id: again.get(id) for id in expected} == {id: left.get(id) for id in expected}
    again.close()


@pytest.mark.parametrize("failing", range(9))
def test_an_interrupted_erasure_can_be_repeated(tmp_path, run, monkeypatch, failing):
    write_folder(tmp_path, STEPS, DATA, ROWS)
    calls = []

    def fail_at(name, patch):
        original = getattr(Path, name)

        def replaced(path, *arguments, **options):
            if tmp_path in path.parents and path.name != "lock":
                calls.append(name)
                if len(calls) == failing + 1:
                    raise OSError(errno.EIO, "Input/output error")
            return original(path, *arguments, **options)

        patch.setattr(Path, name, replaced)

    with monkeypatch.context() as patch:
        for name in ("unlink", "rename", "rmdir"):
            fail_at(name, patch)
        interrupted = run("erase", tmp_path, "row 27", "--yes")[0] != 0
    assert interrupted == (failing < len(calls))
    again = run("erase", tmp_path, "row 27", "--yes")
    assert again[0] == 0 or "no row with the id" in again[1]
    assert not contains(tmp_path, 27)
    state = State(tmp_path, new_model)
    assert to_bytes(state.model) == model_without([27])
    state.close()


def test_other_files_are_named_and_bad_requests_change_nothing(tmp_path, run):
    folder = tmp_path / "state"
    write_folder(folder, STEPS, DATA, ROWS)
    (folder / "quarantine").mkdir()
    (folder / "snapshots" / "1.damaged").touch()
    before = content(folder)
    status, text = run("erase", folder, "row 50")
    assert status == 1
    assert "Not searched, so delete them if they contain the rows: quarantine, 1.damaged." in text
    for ids in (["nobody"], ["row 50", "nobody"]):
        status, text = run("erase", folder, *ids, "--yes")
        assert status == 2
        assert "no row with the id 'nobody'" in text
    assert run("erase", tmp_path, "row 50", "--yes")[0] == 2
    assert content(folder) == before
    journal_files(folder)[1].unlink()
    status, text = run("erase", folder, "row 50", "--yes")
    assert status == 2
    assert text.endswith("; repair the folder before rows are erased\n")
