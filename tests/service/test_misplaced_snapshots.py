"""A snapshot that is not one of its folder is refused by the service and by offline commands."""

import shutil

import pytest
from state_folders import commit_and_learn, new_model, some_rows, trained_model, write_folder

from spanboost.models.files import load_checkpoint, save, to_bytes
from spanboost.service.limits import StateLimits
from spanboost.service.storage.record_files import StateError
from spanboost.service.storage.state import State

DATA, ROWS = some_rows(300), 5
STEPS = [4, 4, 8]  # snapshots after records 4 and 8
OTHER = some_rows(300, seed=1)


def content(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def snapshot(folder, number):
    return folder / "snapshots" / f"{number:020}.sb"


def foreign_snapshot(folder):
    """Copy a newer snapshot of another folder."""
    write_folder(folder.parent / "other", [4, 4, 4, 1], OTHER, ROWS)
    shutil.copy(snapshot(folder.parent / "other", 12), snapshot(folder, 12))
    return "the snapshot is from another folder"


def foreign_snapshot_with_the_same_name(folder):
    write_folder(folder.parent / "other", STEPS, OTHER, ROWS)
    shutil.copy(snapshot(folder.parent / "other", 8), snapshot(folder, 8))
    return "the snapshot is from another folder"


def renamed_snapshot(folder):
    snapshot(folder, 8).rename(snapshot(folder, 12))
    return "the snapshot is of record 8, but its name is the number 12"


@pytest.mark.parametrize(
    "misplace", [foreign_snapshot, foreign_snapshot_with_the_same_name, renamed_snapshot]
)
def test_a_misplaced_snapshot_is_refused(tmp_path, run, misplace):
    folder = tmp_path / "state"
    write_folder(folder, STEPS, DATA, ROWS)
    what = misplace(folder)
    before = content(folder)
    with pytest.raises(StateError, match=what):
        State(folder, new_model)
    status, text = run("check", folder)
    assert status == 1
    assert what in text.partition("The service cannot start.")[2]
    for words in (
        ["repair", folder, "--yes"],
        ["erase", folder, "row 50", "--yes"],
        ["backup", folder, tmp_path / "backup.tar"],
    ):
        status, text = run(*words)
        assert status == 2
        assert what in text
        assert "move it elsewhere" in text
        assert text.count("; ") == 1
    assert content(folder) == before
    # without it, the folder is as it was
    max((folder / "snapshots").iterdir()).unlink()
    assert run("check", folder)[0] == 0
    state = State(folder, new_model)
    assert to_bytes(state.model) == trained_model(DATA, 80)
    state.close()


def test_a_damaged_journal_does_not_make_a_foreign_snapshot_acceptable(tmp_path, run):
    folder = tmp_path / "state"
    write_folder(folder, STEPS, DATA, ROWS)
    foreign_snapshot(folder)
    next(iter(sorted((folder / "journal").iterdir()))).unlink()
    before = content(folder)
    status, text = run("repair", folder, "--yes")
    assert (status, "from another folder" in text) == (2, True)
    assert content(folder) == before


def test_an_old_misplaced_snapshot_is_listed_and_not_used(tmp_path, run):
    folder = tmp_path / "state"
    write_folder(folder, STEPS, DATA, ROWS)
    write_folder(tmp_path / "other", [2, 2, 2], OTHER, ROWS)
    shutil.copy(snapshot(tmp_path / "other", 4), snapshot(folder, 4))
    status, text = run("check", folder)
    assert status == 1
    assert "snapshot at record 4: " in text
    assert (
        f"The service can start from the snapshot at record 8. It does not use {4:020}.sb" in text
    )
    status, text = run("restore", folder, "--to", 5, "--dir", tmp_path / "new")
    assert status == 2
    assert "record 5 cannot be restored; 8 to 16 can" in text


def test_a_snapshot_without_a_mark_is_accepted(tmp_path, run):
    write_folder(tmp_path, STEPS, DATA, ROWS)
    model, run_state = load_checkpoint(snapshot(tmp_path, 8))
    del run_state["journal"]
    save(model, snapshot(tmp_path, 8), run=run_state)
    assert run("check", tmp_path)[0] == 0
    state = State(tmp_path, new_model)
    assert to_bytes(state.model) == trained_model(DATA, 80)
    state.close()


def test_all_snapshots_of_a_repaired_folder_stay_usable(tmp_path, run):
    """The header of a journal file has space for the marks of eight snapshots."""
    limits = StateLimits(keep_rows=10**6)
    state = State(tmp_path / "state", new_model, limits)
    for k in range(12):
        commit_and_learn(state, ROWS * k, ROWS * (k + 1), DATA)
        state.save()
    state.close()
    journal = sorted((tmp_path / "state" / "journal").iterdir())
    journal[-2].unlink()  # record 12
    assert run("repair", tmp_path / "state", "--yes")[0] == 0
    status, text = run("check", tmp_path / "state")
    assert (status, text.count(": ok")) == (0, 13)
    assert run("restore", tmp_path / "state", "--to", 2, "--dir", tmp_path / "new")[0] == 0
    state = State(tmp_path / "new", new_model)
    assert to_bytes(state.model) == trained_model(DATA, 2 * ROWS)
    state.close()


def test_a_snapshot_in_quarantine_is_not_taken_back(tmp_path, run):
    write_folder(tmp_path, STEPS, DATA, ROWS)
    assert run("repair", tmp_path, "--quarantine", 6, "--yes")[0] == 0
    shutil.copy(tmp_path / "quarantine" / f"{8:020}.sb", snapshot(tmp_path, 8))
    with pytest.raises(StateError, match="move it elsewhere"):
        State(tmp_path, new_model)
