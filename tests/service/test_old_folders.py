"""Folders whose journal files have no headers keep working."""

import pytest
from forged import changed
from state_folders import (
    commit_and_learn,
    journal_files,
    new_model,
    some_rows,
    trained_model,
    write_folder,
)

from spanboost.cli.main import main
from spanboost.models.files import to_bytes
from spanboost.service.storage.journal import Journal
from spanboost.service.storage.record_files import StateError, encode_record
from spanboost.service.storage.state import State

DATA = some_rows(600)


def make_old(folder, first_numbers):
    """Rewrite a folder as earlier versions wrote it, with files that begin with these records."""
    records = [(one.number, bytes(one.payload)) for one in Journal(folder / "journal").read()]
    for path in journal_files(folder):
        path.unlink()
    ends = [*first_numbers[1:], len(records) + 2]
    for first, end in zip(first_numbers, ends, strict=False):
        data = [encode_record(number, payload) for number, payload in records[first - 1 : end - 1]]
        (folder / "journal" / f"{first:020}.log").write_bytes(b"".join(data))
    for path in (folder / "snapshots").iterdir():
        changed(path, lambda header: header["run"].pop("journal"))


def continue_and_check(folder, rows, restarts=3):
    """Check that a folder has learned the first rows, and continue with it."""
    for restart in range(restarts):
        state = State(folder, new_model)
        assert to_bytes(state.model) == trained_model(DATA, rows)
        for _ in range(2):
            commit_and_learn(state, rows, rows + 25, DATA)
            rows += 25
        if restart != 1:
            state.save()
        state.close()
    state = State(folder, new_model)
    assert to_bytes(state.model) == trained_model(DATA, rows)
    state.close()


@pytest.mark.parametrize("first_numbers", [[1], [1, 3], [1, 3, 6], [1, 7]])
def test_old_folders_are_continued(tmp_path, first_numbers):
    rows = write_folder(tmp_path, [3, 3], DATA)
    make_old(tmp_path, first_numbers)
    continue_and_check(tmp_path, rows)


def test_a_folder_with_one_empty_file_is_continued(tmp_path):
    """Earlier versions deleted all older files if no row had an id."""
    rows = write_folder(tmp_path, [3, 3], DATA)
    state = State(tmp_path, new_model)
    state.save()
    state.close()
    make_old(tmp_path, [7])
    assert [path.stat().st_size for path in journal_files(tmp_path)] == [0]
    continue_and_check(tmp_path, rows)


def test_a_folder_that_was_killed_before_its_first_record_is_continued(tmp_path):
    write_folder(tmp_path, [0], DATA)
    make_old(tmp_path, [])
    state = State(tmp_path, new_model)
    commit_and_learn(state, 0, 25, DATA)
    state.close()
    continue_and_check(tmp_path, 25)


@pytest.mark.parametrize("first_numbers", [[1, 3], [1, 3, 6]])
def test_an_interrupted_write_of_an_earlier_version_is_removed(tmp_path, first_numbers):
    write_folder(tmp_path, [3, 3], DATA)
    make_old(tmp_path, first_numbers)
    path = journal_files(tmp_path)[-1]
    path.write_bytes(path.read_bytes()[:-1])
    continue_and_check(tmp_path, 125)


def test_missing_files_are_noticed_after_the_first_start(tmp_path):
    write_folder(tmp_path, [3, 3], DATA)
    make_old(tmp_path, [1, 3])
    state = State(tmp_path, new_model)
    commit_and_learn(state, 150, 175, DATA)
    state.close()
    first, second, third = journal_files(tmp_path)
    for path in (first, second):
        data = path.read_bytes()
        path.unlink()
        with pytest.raises(StateError, match=r"restore the folder from a backup"):
            State(tmp_path, new_model)
        path.write_bytes(data)
    second.write_bytes(second.read_bytes()[:-1])
    with pytest.raises(StateError, match="bytes of records, but the next file states"):
        State(tmp_path, new_model)
    assert third.exists()


def test_old_folders_are_repaired(tmp_path, capsys):
    write_folder(tmp_path, [3, 3], DATA)
    make_old(tmp_path, [1, 3, 5])
    first, second, _ = journal_files(tmp_path)
    second.unlink()
    data = bytearray(first.read_bytes())
    data[30] ^= 1  # in record 1
    first.write_bytes(data)
    with pytest.raises(StateError, match=r"damaged at byte 0 \(record 1\)"):
        State(tmp_path, new_model)
    assert main(["repair", str(tmp_path), "--yes"]) == 0
    text = capsys.readouterr().out
    assert "the labels in record 4." in text
    assert "the ids in records 1, 3." in text
    model, _ = new_model()
    kept = [*range(75), *range(100, 150)]  # the snapshot is after record 3
    model.learn_many([DATA[0][k] for k in kept], [DATA[1][k] for k in kept])
    state = State(tmp_path, new_model)
    assert to_bytes(state.model) == to_bytes(model)
    state.close()
