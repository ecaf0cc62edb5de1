"""The service with a refitted expert: a start that replays the journal gives the same bits."""

import pytest
from state_folders import build_entry, commit_and_learn, some_rows

from spanboost import AutoBoost, Refitted
from spanboost.data.schema import Schema
from spanboost.data.target import NumberTarget
from spanboost.models.files import to_bytes
from spanboost.service.storage.state import State

pytest.importorskip("lightgbm")
DATA = some_rows(500)


def new_model():
    model = AutoBoost(budget="fast", past=False, experts=[Refitted(first=60)])
    model.schema = Schema("json", NumberTarget(None))
    return model, {"recipe": ["refitted"]}


def test_a_replayed_journal_gives_the_same_bits(tmp_path):
    state = State(tmp_path, new_model)
    commit_and_learn(state, 0, 125, DATA)
    state.save()  # while a fit is running: it was started at row 120 and is used from 127 on
    commit_and_learn(state, 125, 250, DATA)
    state.commit(build_entry(250, 300, DATA))  # a crash before these rows are learned
    state.close()
    again = State(tmp_path, new_model)
    commit_and_learn(again, 300, 500, DATA)
    found = to_bytes(again.model)
    again.close()
    model, _ = new_model()
    model.learn_many(*DATA)
    assert found == to_bytes(model)
