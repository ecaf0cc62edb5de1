"""Control records change the model in the same way now, at a replay and after a repair."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from state_folders import commit_and_learn, new_model, some_rows, trained_model

from spanboost.errors import ModelFileError, UsageError
from spanboost.models.files import from_bytes, to_bytes
from spanboost.service.storage.control import ROLLBACK, Control, decode_control, is_control
from spanboost.service.storage.entry import decode_entry, decode_ids
from spanboost.service.storage.folder_check import check_folder
from spanboost.service.storage.record_files import StateError
from spanboost.service.storage.repair import check_quarantine
from spanboost.service.storage.state import State

DATA = some_rows(60)
VALUES = st.dictionaries(st.text().filter(lambda name: name != "control"), st.text() | st.none())


@given(st.text(min_size=1), VALUES, st.binary())
def test_a_control_is_decoded_as_it_was_encoded(name, values, data):
    payload = memoryview(Control(name, values, data).encode())
    assert is_control(payload)
    assert decode_control(payload) == Control(name, values, data)
    assert decode_ids(payload) == []
    with pytest.raises(StateError, match="has no rows"):
        decode_entry(payload)


def test_rows_and_lost_records_are_not_controls(tmp_path):
    state = State(tmp_path, new_model)
    commit_and_learn(state, 0, 3, DATA)
    state.close()
    (record,) = state.journal.read()
    state.journal.close()
    assert not is_control(record.payload)
    assert not is_control(memoryview(b""))


def control(state, one):
    state.commit_control(one)
    state.obey(one)


@pytest.mark.parametrize("snapshot", [False, True])
def test_a_replay_obeys_controls(tmp_path, snapshot):
    state = State(tmp_path, new_model)
    commit_and_learn(state, 0, 20, DATA)
    control(state, Control(ROLLBACK, {"version": 0}, trained_model(DATA, 10)))
    assert to_bytes(state.model) == trained_model(DATA, 10)
    if snapshot:
        state.save()
    commit_and_learn(state, 10, 30, DATA)
    assert to_bytes(state.model) == trained_model(DATA, 30)
    state.close()
    state = State(tmp_path, new_model)
    assert to_bytes(state.model) == trained_model(DATA, 30)
    assert (state.learned_record, state.progress.rows) == (3, 40)
    state.close()


def test_an_unknown_control_is_refused(tmp_path):
    state = State(tmp_path, new_model)
    commit_and_learn(state, 0, 20, DATA)
    state.commit_control(Control("dance", {}))
    state.close()
    with pytest.raises(StateError, match=r"record 2 is a control \('dance'\).*upgrade spanboost"):
        State(tmp_path, new_model)


def test_a_control_cannot_be_put_into_quarantine(tmp_path):
    state = State(tmp_path, new_model)
    commit_and_learn(state, 0, 20, DATA)
    control(state, Control(ROLLBACK, {"version": 0}, trained_model(DATA, 10)))
    state.close()
    report = check_folder(tmp_path)
    assert report.problem is None
    check_quarantine(report, [1])
    with pytest.raises(UsageError, match=r"record 2 is a control \(rollback\), not rows"):
        check_quarantine(report, [2])


def test_a_model_from_bytes_learns_on_as_the_original():
    data = trained_model(DATA, 10)
    model = from_bytes(data)
    assert to_bytes(model) == data
    model.learn_many(DATA[0][10:30], DATA[1][10:30])
    assert to_bytes(model) == trained_model(DATA, 30)


@pytest.mark.parametrize("damage", [lambda d: b"", lambda d: d[:-3], lambda d: b"{" * 100])
def test_bytes_that_are_not_a_model_are_refused(damage):
    with pytest.raises(ModelFileError, match="model: not a model file"):
        from_bytes(damage(trained_model(DATA, 5)))
