"""The order of the keys in a dictionary does not change the model, bit for bit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_feature_names import LEARNERS, state

from spanboost import AutoBoost, LinearSGD, SpanBoost
from spanboost.compiling.kernels import plain
from spanboost.rows.feature_names import canonical_order

keys = st.sampled_from(["b", "a", "city", "c 1", 1, "1", 2.5, True])
values = st.floats(-9, 9, width=32) | st.sampled_from(["Ulm", "Bonn"]) | st.none()
row = st.dictionaries(keys, values, min_size=1, max_size=6)
pair = row.flatmap(lambda x: st.tuples(st.just(x), st.permutations(list(x))))


@settings(max_examples=60, deadline=None)
@given(st.lists(pair, min_size=1, max_size=8), st.sampled_from([None, 4]))
def test_rows_of_any_order_are_the_same_rows(pairs, bits):
    y = np.linspace(-0.9, 0.9, len(pairs)).tolist()
    with plain():
        straight, mixed = SpanBoost(LinearSGD(bits=bits), 2), SpanBoost(LinearSGD(bits=bits), 2)
        for (x, order), label in zip(pairs, y, strict=True):
            other = {name: x[name] for name in order}
            assert straight.predict_one(x) == mixed.predict_one(other)
            assert straight.learn_one(x, label) == mixed.learn_one(other, label)
    assert state(straight) == state(mixed)


@pytest.mark.parametrize("name", [*LEARNERS, "auto"])
def test_every_learner_reads_names_in_one_order(name):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 4)), rng.uniform(-0.9, 0.9, 120).tolist()
    straight, mixed = (
        AutoBoost(budget="fast") if name == "auto" else SpanBoost(LEARNERS[name], 3)
        for _ in range(2)
    )
    for t, label in enumerate(y):
        names = ["low", "high", "new" if t > 60 else "old", "x"]
        x = dict(zip(names, X[t].tolist(), strict=True))
        other = {names[k]: x[names[k]] for k in rng.permutation(4)}
        assert straight.learn_one(x, label) == mixed.learn_one(other, label)


def test_single_rows_in_another_order_reuse_the_same_block():
    """The fast path for single rows handles the same names in another order."""
    model, block = SpanBoost(LinearSGD(), 2), SpanBoost(LinearSGD(), 2)
    rows = [{"a": 0.1, "b": 3.0}, {"b": 2.0, "a": 0.3}, {"a": 0.7, "b": 1.0}, {"b": 5.0, "a": 0.2}]
    y = [0.1, 0.2, 0.3, 0.4]
    single = [model.learn_one(x, label) for x, label in zip(rows, y, strict=True)]
    np.testing.assert_array_equal(single, block.learn_many(rows, y))
    assert model.encoder.single(rows[1]) is model.encoder.single(rows[2])  # one block for both


def test_names_are_sorted_as_strings():
    assert canonical_order(["b", 10, "a", 9, "9"]) == [10, 9, "9", "a", "b"]
