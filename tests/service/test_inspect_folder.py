"""`spanboost inspect` of a state folder: what was learned, and what is queued."""

import json

import pytest
from state_folders import commit_and_learn, new_model, some_rows

from spanboost.service.storage.record_files import StateError
from spanboost.service.storage.state import State

DATA = some_rows(60)


@pytest.fixture
def open_state(tmp_path):
    """A folder that a service uses: 30 rows in a snapshot, 20 after it."""
    state = State(tmp_path, new_model)
    commit_and_learn(state, 0, 30, DATA)
    state.save()
    commit_and_learn(state, 30, 45, DATA)
    commit_and_learn(state, 45, 50, DATA)
    yield state
    state.close()


def test_learned_and_queued_rows(open_state, shell):
    facts = json.loads(shell("inspect", open_state.folder, "--json").out)
    assert facts["service"] == {"record": 1, "rows_learned": 30, "rows_queued": 20}
    assert facts["examples"] == 30
    text = shell("inspect", open_state.folder).out
    assert "rows learned   30\n" in text
    assert "snapshot       the newest one, up to record 1\n" in text
    assert "queued         20 rows in the journal after it" in text
    assert "give the address of the service to inspect its current model\n" in text
    open_state.save()
    facts = json.loads(shell("inspect", open_state.folder, "--json").out)
    assert facts["service"] == {"record": 3, "rows_learned": 50, "rows_queued": 0}


def test_an_empty_snapshot_is_not_called_a_model_without_rows(shell, tmp_path):
    state = State(tmp_path, new_model)
    commit_and_learn(state, 0, 30, DATA)
    text = shell("inspect", tmp_path).out
    state.close()
    assert "label          none in the snapshot\n" in text
    assert "features       none in the snapshot\n" in text
    assert "queued         30 rows in the journal after it" in text


def test_another_folder_is_refused(shell, tmp_path):
    printed = shell("inspect", tmp_path, status=2)
    assert printed.err.startswith(f"spanboost: {tmp_path} is a folder")


def test_a_folder_of_other_files_is_not_taken(tmp_path):
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(StateError, match=r"not empty and not a state folder.*'thesis.tex'"):
        State(tmp_path, new_model)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    (tmp_path / "thesis.tex").unlink()
    (tmp_path / "lost+found").mkdir()
    State(tmp_path, new_model).close()
    (tmp_path / "notes").write_text("x")
    State(tmp_path, new_model).close()  # it is a state folder now


def test_an_address_without_its_beginning_is_named(shell, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shown = shell("inspect", "localhost:8123", status=2)
    assert "give its address: http://localhost:8123" in shown.err
    shown = shell("predict", "rows.csv", "-m", "http://localhost:8123", status=2)
    assert "-m http://localhost:8123: predict reads a model file, not a service" in shown.err
