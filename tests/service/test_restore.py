"""`spanboost restore` returns to any record or time after the oldest snapshot."""

from datetime import UTC, datetime

import pytest
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
from spanboost.service.storage.state import State

DATA, ROWS = some_rows(300), 5
STEPS, RECORDS = [4, 4, 8], 16  # snapshots after records 4 and 8


def content(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def restore(folder, to, new):
    return main(["restore", str(folder), "--to", str(to), "--dir", str(new)])


def check_restored(folder, records):
    """Check that a folder ends at a record, and can be continued and restarted."""
    rows = records * ROWS
    for _ in range(3):
        state = State(folder, new_model)
        assert to_bytes(state.model) == trained_model(DATA, rows)
        assert all(f"row {k}" in state.ids for k in range(rows))
        assert f"row {rows}" not in state.ids
        commit_and_learn(state, rows, rows + 25, DATA)
        rows += 25
        state.save()
        state.close()


@pytest.mark.parametrize("record", [4, 5, 8, 9, 13, 16])
def test_records_are_restored(tmp_path, record):
    old, new = tmp_path / "old", tmp_path / "new"
    write_folder(old, STEPS, DATA, ROWS)
    before = content(old)
    assert restore(old, record, new) == 0
    assert content(old) == before
    check_restored(new, record)


def test_times_are_restored(tmp_path, monkeypatch, capsys):
    old, start = tmp_path / "old", datetime(2026, 1, 31, 12, tzinfo=UTC)
    state = State(old, new_model)
    for k in range(6):
        monkeypatch.setattr("time.time", lambda k=k: start.timestamp() + 60 * k)
        commit_and_learn(state, ROWS * k, ROWS * (k + 1), DATA)
    state.close()
    for k, to in enumerate(
        [
            "2026-01-31T12:00:30Z",
            "2026-01-31T13:01:00+01:00",
            start.astimezone().replace(tzinfo=None, minute=2).isoformat(),
        ],
        start=1,
    ):
        assert restore(old, to, tmp_path / str(k)) == 0
        check_restored(tmp_path / str(k), k)
    before = content(tmp_path)
    assert restore(old, "2026-01-31T11:59:59+00:00", tmp_path / "0") == 2
    error = capsys.readouterr().err
    assert "is before the first record of the journal (record 1, written 2026-01-31 12:00" in error
    assert content(tmp_path) == before
    assert restore(old, 0, tmp_path / "0") == 0  # the empty model, if it is asked for
    assert State(tmp_path / "0", new_model).progress.rows == 0


@pytest.mark.parametrize(
    ("to", "what"),
    [
        ("3", "record 3 cannot be restored; 4 to 16 can"),
        ("17", "record 17 cannot be restored; 4 to 16 can"),
        ("noon", "--to must be the number of a record or a time"),
        ("10", "exists and is not an empty folder"),
    ],
)
def test_other_points_are_refused(tmp_path, to, what, capsys):
    old, new = tmp_path / "old", tmp_path / "new"
    write_folder(old, STEPS, DATA, ROWS)
    if to == "10":
        new.mkdir()
        (new / "file").touch()
    before = content(tmp_path)
    assert restore(old, to, new) == 2
    assert what in capsys.readouterr().err
    assert content(tmp_path) == before


def test_records_that_cannot_be_read_are_not_left_out(tmp_path, capsys):
    old = tmp_path / "old"
    write_folder(old, STEPS, DATA, ROWS)
    path = journal_files(old)[-1]
    path.write_bytes(path.read_bytes()[:-1000] + bytes(1000))
    assert restore(old, 16, tmp_path / "new") == 2
    assert "cannot be restored; 4 to" in capsys.readouterr().err
    path = journal_files(old)[1]
    path.write_bytes(path.read_bytes().replace(b"row 27", b"row xx"))  # in record 6
    for record in (7, 9):
        assert restore(old, record, tmp_path / "new") == 2
        assert "record 6 cannot be read" in capsys.readouterr().err
    assert restore(old, 5, tmp_path / "new") == 0
    check_restored(tmp_path / "new", 5)
