"""Numbers that are written as text, in dictionaries: refused, or categories with a warning."""

import copy
import math
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanboost import AutoBoost, DataError, LinearSGD, ModelFileError, SpanBoost, Trees, load, save
from spanboost.compiling.kernels import plain
from spanboost.models.files import from_bytes, to_bytes
from spanboost.rows.key_kinds import is_numeral, is_quantity

NUMERALS = ["5", "-0.35", " 7 ", "1e-3", "+2.", ".5", "007"]
OTHERS = ["", "x", "NaN", "inf", "1,5", "1_000", "0x1", "5 m", "--1", "1e", "٣", "1.2.3"]


def linear(**given):
    return SpanBoost(LinearSGD(**given), 2, label_range="auto")


def test_texts_that_are_numbers_are_recognised():
    assert all(map(is_numeral, NUMERALS))
    assert not any(map(is_numeral, OTHERS))
    assert [text for text in NUMERALS if not is_quantity(text)] == ["007"]


@pytest.mark.parametrize("new", [linear, lambda: AutoBoost(budget="fast")])
@pytest.mark.parametrize("text", NUMERALS)
def test_a_text_under_a_key_of_numbers_is_refused_by_name(new, text):
    model = new()
    for k in range(5):
        model.learn_one({"a": float(k), "b": 1.0}, k)
    before = to_bytes(model)
    wrong = {"a": text, "b": 1.0}
    for use in (
        lambda: model.predict_one(wrong),
        lambda: model.learn_one(wrong, 1.0),
        lambda: model.predict_many([wrong]),
        lambda: model.learn_many([wrong], [1.0]),
    ):
        with pytest.raises(DataError, match=r"row 0: 'a' is the text '.*', but was a number befo"):
            use()
    with pytest.raises(DataError, match="row 1: 'a' is the text"):
        model.predict_many([{"a": 1.0}, wrong])
    assert to_bytes(model) == before


def test_a_number_under_a_key_of_texts_that_are_numbers_is_refused_by_name():
    model = linear()
    model.learn_many([{"zip": "89073"}, {"zip": "00100"}], [1.0, 2.0])
    for number in (89073, 89073.0, np.int64(7), True):
        with pytest.raises(DataError, match=r"'zip' is the number .* but was text before; convert"):
            model.predict_one({"zip": number})
    assert model.predict_one({"zip": "89073"}) != model.predict_one({"zip": "00100"})


def test_other_texts_may_share_a_key_with_numbers():
    model = linear()
    model.learn_many([{"a": 1.0}, {"a": "broken"}, {"a": None}, {"a": 2}], [1.0, 0.0, 1.0, 2.0])
    assert list(model.encoder.names.columns) == ["a", "a=broken"]


@pytest.mark.parametrize("missing", [None, math.nan, np.nan])
def test_a_missing_value_does_not_decide_what_a_key_has(missing, tmp_path):
    model = linear()
    model.learn_many([{"a": missing, "b": 1.0}] * 3, [1.0, 2.0, 3.0])
    save(model, tmp_path / "model.sb")
    for first, other in (("5", 5.0), (5.0, "5")):
        again = load(tmp_path / "model.sb")
        again.learn_one({"a": first, "b": 1.0}, 1.0)
        again.learn_one({"a": missing, "b": 1.0}, 1.0)
        again.learn_one({"a": first, "b": 1.0}, 1.0)
        with pytest.raises(DataError, match="convert it"):
            again.learn_one({"a": other, "b": 1.0}, 1.0)


keys = st.sampled_from(["a", "b", 7])
values = st.sampled_from([1.5, 2, True, None, math.nan, "3", "0.5", "x"])
blocks = st.lists(st.lists(st.dictionaries(keys, values), min_size=1, max_size=4), max_size=6)


def first_mistake(rows):
    """Return the first row that mixes numbers and texts of numbers: a plain transcription."""
    seen = {}
    for t, row in enumerate(rows):
        for key, value in row.items():
            if value in (None, "x") or (isinstance(value, float) and math.isnan(value)):
                continue
            if seen.setdefault(str(key), isinstance(value, str)) != isinstance(value, str):
                return t
    return None


@settings(max_examples=200, deadline=None)
@given(blocks, st.booleans())
def test_the_first_mistake_is_found_in_any_blocks(blocks, saved):
    rows = [row for block in blocks for row in block]
    with plain(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert learn_until_mistake(blocks, saved) == first_mistake(rows)


def learn_until_mistake(blocks, saved):
    """Return the number of the row that a model refuses; None if it learns all of them."""
    model, done = linear(), 0
    for block in blocks:
        try:
            if len(block) == 1:
                model.learn_one(block[0], 0.5)
            else:
                model.learn_many(block, [0.5] * len(block))
        except DataError as error:
            return done + error.row
        done += len(block)
        model = from_bytes(to_bytes(model)) if saved else copy.deepcopy(model)
    return None


@pytest.mark.parametrize("text", ["0.35", "1e-3"])
def test_texts_with_a_fraction_get_one_warning(text):
    model = linear()
    with pytest.warns(UserWarning, match=rf"texts like '{text}' of 'a' are numbers") as caught:
        model.learn_many([{"a": text}, {"a": "0.5"}, {"a": "0.6"}], [1.0, 2.0, 3.0])
    assert len(caught) == 1
    assert caught[0].filename == __file__
    model.learn_one({"a": "0.7"}, 4.0)  # no further warning


def test_whole_numbers_as_text_get_a_warning_when_there_are_many():
    model = linear()
    model.learn_many([{"a": str(k)} for k in range(1, 20)], [1.0] * 19)
    with pytest.warns(UserWarning, match="texts like '99' of 'a' are numbers"):
        model.learn_one({"a": "99"}, 1.0)
    codes = linear()
    codes.learn_many([{"a": f"0{k}"} for k in range(50)], [1.0] * 50)  # codes: no warning


def test_frames_of_the_core_and_river_warn_too():
    from spanboost.river import BoostingRegressor

    frame = pd.DataFrame({"a": ["0.5", "0.25"], "b": ["x", "y"]})
    with pytest.warns(UserWarning, match="texts like '0.5' of 'a'"):
        SpanBoost(Trees(), 2, label_range="auto").learn_many(frame, [1.0, 2.0])
    with pytest.warns(UserWarning, match="texts like '0.5' of 'a'"):
        BoostingRegressor("linear").learn_one({"a": "0.5"}, 1.0)


def test_hashed_names_are_not_stored_and_take_both():
    model = linear(bits=10)
    model.learn_one({"a": 1.0}, 1.0)
    model.learn_one({"a": "0.5"}, 1.0)
    assert "keys" not in model.header()


def test_models_of_earlier_versions_take_both(tmp_path):
    model = linear()
    model.learn_one({"a": 1.0}, 1.0)
    header = model.header()
    del header["keys"]
    old = SpanBoost.restore(header, dict(model.tensors()))
    twin = pickle.loads(pickle.dumps(model))
    del vars(twin.encoder.names)["kinds"]  # as in a pickle of an earlier version
    for one in (old, twin):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            one.learn_one({"a": "5"}, 2.0)
        assert list(one.encoder.names.columns) == ["a", "a=5"]
        assert "keys" not in one.header()


@pytest.mark.parametrize("keys", [None, 3, {}, {"blank": [1], "numerals": []}, {"blank": ["a"]}])
def test_forged_keys_are_refused(keys):
    model = linear()
    model.learn_one({"a": 1.0}, 1.0)
    with pytest.raises(ModelFileError, match="the keys of rows is invalid"):
        SpanBoost.restore(model.header() | {"keys": keys}, dict(model.tensors()))
