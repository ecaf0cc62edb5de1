"""Strings in ISO 8601 in dictionaries are times, except in models of earlier versions."""

import pickle
from datetime import datetime

import pandas as pd
import pytest

import spanboost
from spanboost import LinearSGD, SpanBoost
from spanboost.rows import times
from spanboost.rows.feature_names import FeatureNames

TEXT, MOMENT = "2024-01-02T10:00", datetime(2024, 1, 2, 10)
PARTS = {f"when.{part}" for part in times.PARTS}


def read(names, rows):
    matrix, new = names.read(rows)
    return matrix.indices.tolist(), matrix.data.tolist(), new


@pytest.mark.parametrize("bits", [None, 10])
def test_a_text_is_read_like_the_time(bits):
    rows = [{"when": TEXT, "x": 1.0, "c": "a"}, {"when": TEXT, "x": 2.0, "c": "2024"}]
    times = [row | {"when": MOMENT} for row in rows]
    assert read(FeatureNames(bits), rows) == read(FeatureNames(bits), times)
    names = FeatureNames(bits)
    names.add(names.read(rows)[1])
    assert read(names, rows) == read(names, times)  # the fast path of known names


def test_each_value_counts_by_itself():
    _, _, new = read(FeatureNames(None), [{"when": TEXT}, {"when": "soon"}, {"when": None}])
    assert new.keys() == PARTS | {"when=soon", "when"}


@pytest.mark.parametrize(
    "change", [{"iso_times": False}, {"categorical": frozenset(["when"])}], ids=str
)
def test_texts_can_be_categories(change):
    names = FeatureNames(None)
    vars(names).update(change)
    assert read(names, [{"when": TEXT}])[2].keys() == {f"when={TEXT}"}


def model():
    return SpanBoost(LinearSGD(), n=2, label_range="auto")


def test_models_learn_texts_as_times(tmp_path):
    texts, times, frame = model(), model(), model()
    for k in range(20):
        text = f"2024-01-{k + 1:02}T10:00"
        moment = datetime.fromisoformat(text)
        assert texts.learn_one({"when": text, "c": "a"}, k) == times.learn_one(
            {"when": moment, "c": "a"}, k
        )
    days = [f"2024-01-{k + 1:02}T10:00" for k in range(20)]
    frame.learn_many(pd.DataFrame({"when": days, "c": "a"}), range(20))
    new = {"when": "2024-02-01", "c": "a"}
    assert texts.predict_one(new) == times.predict_one(new) == frame.predict_one(new)
    assert texts.encoder.names.columns.keys() >= PARTS
    for same in (pickle.loads(pickle.dumps(texts)), saved_and_loaded(texts, tmp_path)):
        assert same.predict_one(new) == texts.predict_one(new)
        assert same.learn_one(new, 3) == times.predict_one(new)


def saved_and_loaded(model, folder):
    spanboost.save(model, folder / "m.sb")
    return spanboost.load(folder / "m.sb")


def test_models_of_earlier_versions_read_texts_as_categories(tmp_path):
    old = model()
    old.encoder.names.iso_times = False
    old.learn_many([{"when": TEXT}, {"when": "2024-01-03"}], [1.0, 2.0])
    assert [*old.encoder.names.columns] == [f"when={TEXT}", "when=2024-01-03"]
    assert "iso_times" not in str(old.header())
    same = saved_and_loaded(old, tmp_path)
    assert same.predict_one({"when": TEXT}) == old.predict_one({"when": TEXT})
    same.learn_one({"when": "2024-01-04"}, 1.0)
    assert "when=2024-01-04" in same.encoder.names.columns
