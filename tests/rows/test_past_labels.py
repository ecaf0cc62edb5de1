"""Past labels: lags, seasons, means and keys are those of the plain definition."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_past import all_past

from spanboost import AutoBoost, Rows
from spanboost.compiling.kernels import Caller, plain
from spanboost.data.schema import Column, Schema
from spanboost.data.target import Target
from spanboost.errors import UserError
from spanboost.rows.past_keys import NO_KEY, SETS, WAYS, new_key_table
from spanboost.rows.past_labels import learn_past, new_past_labels, read_past
from spanboost.rows.row_keys import refuse_absent_key, row_keys


def learn(state, labels, errors, keys=None, weights=None):
    """Learn labels; return what was known about each before."""
    rows = len(labels)
    keys = np.full(rows, NO_KEY) if keys is None else np.array(keys)
    weights = np.ones(rows) if weights is None else weights
    out = np.empty((rows, state.columns))
    given = np.zeros(rows, bool)
    Caller()(learn_past, state, keys, labels, errors, weights, given, out)
    return out


def stream(rows, seed=0):
    rng = np.random.default_rng(seed)
    season = np.sin(2 * np.pi * np.arange(rows) / 12)
    return 50 + 10 * season + rng.normal(size=rows), rng.normal(size=rows)


@pytest.mark.parametrize("keyed", [False, True])
def test_the_past_is_the_plain_one(keyed):
    labels, errors = stream(450)
    keys = np.random.default_rng(1).integers(0, 9, 450) if keyed else None
    expected = all_past(labels.tolist(), errors.tolist(), keys)
    state = new_past_labels(keyed)
    found = learn(state, labels, errors, keys)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert state.season[0] in range(12, 400, 12)
    assert found.shape[1] == state.columns
    assert np.isnan(found[0]).all()


@given(st.lists(st.integers(1, 60), min_size=1, max_size=8), st.booleans())
@settings(max_examples=15, deadline=None)
def test_blocks_do_not_matter(sizes, keyed):
    labels, errors = stream(sum(sizes), len(sizes))
    keys = np.arange(len(labels)) % 4 if keyed else np.full(len(labels), NO_KEY)
    whole = learn(new_past_labels(keyed), labels, errors, keys)
    state, ends = new_past_labels(keyed), np.cumsum(sizes)
    parts = [
        learn(state, labels[b - n : b], errors[b - n : b], keys[b - n : b])
        for n, b in zip(sizes, ends, strict=True)
    ]
    np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_compiled_and_plain_code_agree():
    labels, errors = stream(90)
    keys = np.arange(90) % 7
    compiled = learn(new_past_labels(True), labels, errors, keys)
    with plain():
        np.testing.assert_array_equal(learn(new_past_labels(True), labels, errors, keys), compiled)


def test_rows_without_weight_are_not_learned():
    labels, errors = stream(60)
    weights = np.where(np.arange(60) % 3 == 0, 0.0, 2.0)
    found = learn(new_past_labels(), labels, errors, weights=weights)
    kept = weights > 0
    np.testing.assert_array_equal(found[kept], learn(new_past_labels(), labels[kept], errors[kept]))


def test_reading_changes_nothing():
    labels, errors = stream(50)
    state = new_past_labels()
    learn(state, labels, errors)
    first, second = np.empty((2, 3, state.columns))
    Caller()(read_past, state, np.full(3, NO_KEY), first)
    Caller()(read_past, state, np.full(3, NO_KEY), second)
    np.testing.assert_array_equal(first, second)
    assert first[0, 0] == labels[-1]


def test_a_full_set_drops_the_key_that_was_not_seen_for_longest():
    table = new_key_table(True)
    keys = [SETS * i + 5 for i in range(WAYS)]
    for count, key in enumerate([*keys, keys[0]], 1):
        table.learn_key(key, count, float(key), 0.0)
    table.learn_key(SETS * WAYS + 5, 10, 1.0, 0.0)
    assert [table.find_slot(key) >= 0 for key in keys] == [True, False, *[True] * (WAYS - 2)]
    out = np.empty(8)
    table.read_key(keys[0], 10, out, 0, 5)
    assert out[:2].tolist() == [keys[0], keys[0]]
    assert out[7] == 10 + 1 - (WAYS + 1)


def test_keys_of_every_kind_of_rows():
    names = ["a", "b", "a", None]
    dicts = [{"store": name, "x": 1.0} for name in names]
    by_name = row_keys(dicts, "store", None)
    assert by_name[0] == by_name[2] != by_name[1]
    assert by_name[3] == NO_KEY
    codes = np.array([[0, 3], [1, 3], [0, 4], [-1, 3]])
    table = Rows(np.zeros((4, 1)), codes)
    assert row_keys(table, 0, None).tolist() == [0, 1, 0, NO_KEY]
    both = row_keys(table, (0, 1), None)
    assert len({*both[:3].tolist()}) == 3
    assert both[3] == NO_KEY
    numbers = row_keys(np.array([[1.5], [2.0], [1.5], [np.nan]]), 0, None)
    assert numbers[0] == numbers[2] != numbers[1]
    assert numbers[3] == NO_KEY
    assert (by_name[:3] >= 0).all()


@pytest.mark.parametrize("frame", [pd.DataFrame, pa.table])
def test_a_key_that_is_not_a_column_of_a_frame(frame):
    rows = frame({"store": ["a", "b"], "x": [1.0, 2.0]})
    first, second = row_keys(rows, "store", None)
    assert first != second
    with pytest.raises(UserError, match=r"the key 'shop' is not .* columns are 'store', 'x'"):
        row_keys(rows, "shop", None)
    with pytest.raises(UserError, match=r"the key 'stor' is not .*; did you mean 'store'"):
        row_keys(rows, "stor", None)


def test_a_key_that_no_dictionary_has():
    rows = [{"x": 1.0}, {"store": None}]
    refuse_absent_key(rows, "store")
    refuse_absent_key(np.zeros((2, 1)), 0)
    with pytest.raises(UserError, match="none of the first rows has the key 'stor'; did you mean"):
        refuse_absent_key(rows, ("store", "stor"))
    model = AutoBoost(key="shop", budget="fast")
    with pytest.raises(UserError, match="the first row does not have the key 'shop'; use None"):
        model.learn_one({"store": "a"}, 1.0)
    assert not model.started


def test_keys_of_a_table_by_name():
    columns = [Column("x", False), Column("shop", True)]
    schema = Schema("table", Target(), columns=columns)
    table = Rows(np.zeros((2, 1)), np.array([[4], [5]]))
    assert row_keys(table, "shop", schema).tolist() == [4, 5]
    with pytest.raises(ValueError, match=r"the key 'shp' is not a column of the rows.*'shop'"):
        row_keys(table, "shp", schema)
    with pytest.raises(UserError, match=r"the key 'city' is not a .*the columns are 'x', 'shop'"):
        row_keys(table, "city", schema)
    with pytest.raises(ValueError, match="needs rows with names"):
        row_keys(table, "shop", None)
    with pytest.raises(ValueError, match="there are 1 columns"):
        row_keys(table, 3, None)
