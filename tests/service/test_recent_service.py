"""Recent rows in the service: predictions use them, and a restart gives the same bits."""

import pytest
from small_experts import set_small_experts
from state_folders import build_entry, commit_and_learn, new_model, some_rows

from spanboost.models.files import to_bytes
from spanboost.models.model_spec import ModelSpec
from spanboost.service.storage.state import State

DATA = some_rows(300)
SPEC = ModelSpec(recent=True)


@pytest.fixture(autouse=True)
def small_experts(monkeypatch):
    set_small_experts(monkeypatch)


def test_a_replayed_journal_gives_the_same_bits(tmp_path):
    state = State(tmp_path, lambda: new_model(SPEC))
    assert [*state.model.stages] == ["recent"]
    commit_and_learn(state, 0, 150, DATA)
    state.save()
    commit_and_learn(state, 150, 200, DATA)
    state.commit(build_entry(200, 250, DATA))  # a crash before these rows are learned
    state.close()
    again = State(tmp_path, lambda: new_model(SPEC))
    commit_and_learn(again, 250, 300, DATA)
    model, _ = new_model(SPEC)
    model.learn_many(*DATA)
    assert to_bytes(again.model) == to_bytes(model)
    again.close()
