"""Dictionaries and single rows give the same model as blocks of arrays."""

import copy
import pickle
import warnings

import numpy as np
import pytest
from banks import bits_of
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy_free import Csr

from spanboost import (
    DataError,
    HullBoost,
    LinearSGD,
    Network,
    Ridge,
    SpanBoost,
    Stumps,
    Symmetrised,
    Trees,
)
from spanboost.compiling.kernels import plain
from spanboost.losses import SquaredEuclidean
from spanboost.rows.feature_names import FeatureNames

LEARNERS = {
    "linear": LinearSGD(),
    "stumps": Stumps(),
    "network": Network(hidden=3),
    "trees": Trees(depth=3, candidates=8, evidence=0.5, grace=5, delay=2),
    "ridge": Ridge(columns=4),
}
EVERY = pytest.mark.parametrize("name", LEARNERS)


def stream(T=40, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(T, 4)).round(3)
    X[rng.random((T, 4)) < 0.3] = 0
    return X, (0.4 * np.tanh(X[:, 0] - X[:, 2])).round(3)


def dicts(X, names="abcd"):
    return [dict(zip(names, map(float, x), strict=True)) for x in X]


def state(model):
    """Return every array of a model except scratch space, its labels and its feature names."""
    labels = {k: str(v) for k, v in vars(model.labels).items() if not k.startswith("_")}
    labels["history"] = str(model.labels.history and model.labels.history[:5])
    columns = dict(model.encoder.names.columns) if model.encoder.names else {}
    return bits_of(model.core.state) if model.started else {}, labels, columns


@EVERY
def test_dictionaries_are_sparse_rows_with_names(name):
    X, y = stream()
    named, sparse = SpanBoost(LEARNERS[name], 3), SpanBoost(LEARNERS[name], 3)
    with plain():
        np.testing.assert_array_equal(named.learn_many(dicts(X), y), sparse.learn_many(Csr(X), y))
        np.testing.assert_array_equal(named.predict_many(dicts(X)), sparse.predict_many(Csr(X)))
    assert named.encoder.names.columns == {"a": 0, "b": 1, "c": 2, "d": 3}


@EVERY
@pytest.mark.parametrize("kind", ["dictionaries", "lists", "tuples", "arrays"])
def test_one_row_at_a_time_is_a_block(name, kind):
    X, y = stream()
    rows = dicts(X) if kind == "dictionaries" else X.tolist()
    rows = list(map(tuple, rows)) if kind == "tuples" else rows
    rows = list(X) if kind == "arrays" else rows
    block, single = SpanBoost(LEARNERS[name], 3), SpanBoost(LEARNERS[name], 3)
    want = block.learn_many(rows, y)
    got = []
    for x, label in zip(rows, y.tolist(), strict=True):
        ahead = single.predict_one(x)
        got.append(single.learn_one(x, label))
        assert got[-1] == ahead
        assert type(ahead) is type(got[-1]) is float
    np.testing.assert_array_equal(got, want)
    assert state(single) == state(block)


names = st.sampled_from(["a", "b", "c", 7, "long name"])
numbers = st.floats(-1e3, 1e3, width=32) | st.integers(-9, 9) | st.booleans()
missing = st.none() | st.just(float("nan"))
text = st.sampled_from(["x", "1.5", ""])
rows_of_any_kind = st.lists(
    st.dictionaries(names, numbers | missing | text, max_size=5), min_size=1, max_size=12
)


@settings(max_examples=60, deadline=None)
@given(rows_of_any_kind, st.sampled_from([None, 3]), st.sampled_from([np.float32, np.float64]))
def test_rows_of_any_names_one_by_one_are_a_block(rows, bits, dtype):
    learner = LinearSGD(bits=bits, dtype=dtype)
    y, bad = np.linspace(-0.9, 0.9, len(rows)).tolist(), None
    with plain(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # texts that are numbers
        block, single = SpanBoost(learner, 2), SpanBoost(learner, 2)
        try:
            want = block.learn_many(rows, y)
        except DataError as error:  # a number and a text that is a number under the same name
            bad, rows = rows[error.row], rows[: error.row]
            want = block.learn_many(rows, y[: len(rows)]) if rows else []
        got = [single.learn_one(x, label) for x, label in zip(rows, y, strict=False)]
        np.testing.assert_array_equal(got, want)
        assert state(single)[1:] == state(block)[1:]  # tables may have grown in other steps
        for model in (block, single) if bad is not None else ():
            with pytest.raises(DataError, match=r"row 0: .* before; convert it"):
                model.learn_one(bad, 0.0)
        if rows:
            np.testing.assert_array_equal(single.predict_many(rows), block.predict_many(rows))


def test_a_string_is_a_category_and_a_number_under_the_same_name_is_another_feature():
    model = SpanBoost(LinearSGD(), 2)
    for _ in range(50):
        for city, price in (("Ulm", 0.2), ("Bonn", -0.4)):
            model.learn_one({"city": city, "area": 1.0}, price)
    assert model.predict_one({"city": "Ulm", "area": 1.0}) == pytest.approx(0.2, abs=0.02)
    assert model.predict_one({"city": "Bonn", "area": 1.0}) == pytest.approx(-0.4, abs=0.02)
    assert list(model.encoder.names.columns) == ["area", "city=Ulm", "city=Bonn"]
    number = model.predict_one({"city": 1.0, "area": 1.0})
    assert number == model.predict_one({"area": 1.0})  # `city` as a number was never learned


def test_names_never_learned_are_absent_and_predicting_does_not_learn_them():
    X, y = stream()
    model = SpanBoost(Stumps(), 3)
    model.learn_many(dicts(X), y)
    before = state(model)
    known = model.predict_many(dicts(X))
    strange = [{"new": 3.0, **x} for x in dicts(X)]
    got = [model.predict_one(x) for x in strange]
    assert state(model) == before
    np.testing.assert_array_equal(got, model.predict_many(strange))
    model = SpanBoost(LinearSGD(), 3)
    model.learn_many(dicts(X), y)
    np.testing.assert_array_equal(model.predict_many(strange), model.predict_many(dicts(X)))
    assert known.shape == (40,)


def test_missing_values_are_absent():
    X, y = stream()
    gaps = dicts(X)
    for t, x in enumerate(gaps):
        x["b"] = None if t % 2 else float("nan")
    without = [{k: v for k, v in x.items() if k != "b"} for x in gaps]
    learned = SpanBoost(LinearSGD(), 2).learn_many(gaps, y)
    np.testing.assert_array_equal(learned, SpanBoost(LinearSGD(), 2).learn_many(without, y))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"a": 1.0, "b": [1]}, r"'b' is \[1\], neither a number nor a string"),
        ({"a": 1 + 2j}, "neither a number nor a string"),
        ({"a": float("inf")}, "infinite"),
        ({"a": 1e39}, "too large"),
        ({"a": 10**400}, "too large"),
        ([1.0, 2.0], r"expected a dictionary, .*\(got \[1.0"),
    ],
)
def test_bad_rows_are_named_and_change_nothing(wrong, message):
    X, y = stream()
    for started in (False, True):
        model = SpanBoost(LinearSGD(), 2)
        if started:
            model.learn_many(dicts(X), y)
            model.learn_one({"a": 1.0}, 0.5)
        before = state(model)
        with pytest.raises(DataError, match=message) as raised:
            model.learn_many([{"new": 1.0}, wrong], [0.1, 0.2])
        assert raised.value.row == 1
        if started:
            with pytest.raises(DataError):
                model.learn_one(wrong, 0.1)
            with pytest.raises(DataError):
                model.predict_one(wrong)
        assert state(model) == before


@pytest.mark.parametrize("label", [1.5, float("nan"), float("inf"), "0.5", None])
def test_bad_labels_and_weights_of_single_rows_change_nothing(label):
    X, y = stream()
    model = SpanBoost(LinearSGD(), 2)
    model.learn_many(dicts(X), y)
    model.learn_one({"a": 1.0}, 0.5)
    before = state(model)
    with pytest.raises(ValueError, match="label"):
        model.learn_one({"a": 1.0}, label)
    for weight in (-1.0, float("nan"), float("inf"), 1e39):
        with pytest.raises(DataError, match="weight"):
            model.learn_one({"a": 1.0}, 0.5, weight)
    assert state(model) == before


def test_rows_of_another_kind_are_refused():
    X, y = stream()
    by_name, by_place = SpanBoost(LinearSGD(), 2), SpanBoost(LinearSGD(), 2)
    by_name.learn_many(dicts(X), y)
    by_place.learn_many(X, y)
    with pytest.raises(DataError, match="a sequence of numbers, but the model expects a dict"):
        by_name.learn_one(X[0].tolist(), 0.1)
    with pytest.raises(DataError, match="a dictionary, but the model expects a sequence"):
        by_place.learn_one(dicts(X)[0], 0.1)
    with pytest.raises(DataError, match="the row has 3 features, but the model expects 4"):
        by_place.predict_one([1.0, 2.0, 3.0])


def test_single_rows_follow_weights_vectors_and_growing_ranges():
    X, y = stream()
    rows, weights = dicts(X), np.random.default_rng(1).choice([0.0, 1.0, 2.5], len(y))
    prices = 250_000 + 10_000 * y
    pairs = np.stack([y, -y], axis=1)
    for make, labels in (
        (lambda: SpanBoost(LinearSGD(), 2), y),
        (lambda: HullBoost(LinearSGD(), 2, label_range="auto"), prices),
        (lambda: HullBoost(LinearSGD(), 2, loss=SquaredEuclidean(2)), pairs),
        (lambda: SpanBoost(LinearSGD(), 2, loss="logistic"), np.sign(y) + (y == 0)),
    ):
        block, single = make(), make()
        want = block.learn_many(rows, labels, weights)
        got = [
            single.learn_one(x, label, weight)
            for x, label, weight in zip(rows, labels.tolist(), weights.tolist(), strict=True)
        ]
        np.testing.assert_array_equal(got, want)
        assert state(single) == state(block)


def test_copies_and_pickles_are_independent():
    X, y = stream()
    rows = dicts(X)
    model = SpanBoost(LinearSGD(), 2)
    for x, label in zip(rows[:20], y[:20].tolist(), strict=True):
        model.learn_one(x, label)
    twins = copy.deepcopy(model), pickle.loads(pickle.dumps(model))
    want = [model.learn_one(x, label) for x, label in zip(rows[20:], y[20:].tolist(), strict=True)]
    for twin in twins:
        got = [
            twin.learn_one(x, label) for x, label in zip(rows[20:], y[20:].tolist(), strict=True)
        ]
        assert got == want
        assert state(twin) == state(model)


def test_a_model_that_has_only_predicted_has_room_to_learn():
    model = SpanBoost(LinearSGD(), 2)
    assert model.predict_one([1.0, 2.0]) == 0
    assert model.predict_one([1.0, 2.0]) == 0
    model.learn_one([1.0, 2.0], 0.5)
    other = SpanBoost(LinearSGD(), 2)
    other.learn_one([1.0, 2.0], 0.5)
    assert model.predict_one([1.0, 2.0]) == other.predict_one([1.0, 2.0]) != 0


def test_hashed_names_are_not_stored():
    X, y = stream()
    model = SpanBoost(LinearSGD(bits=4), 2)
    for x, label in zip(dicts(X), y.tolist(), strict=True):
        model.learn_one(x, label)
    assert model.encoder.names.columns == {}
    assert len(model.core.state.bank.inputs.S) == 16
    assert FeatureNames(4).column("area") == FeatureNames(18).column("area")


def test_the_symmetriser_reads_names_too():
    X, y = stream()
    with plain():
        named = SpanBoost(Symmetrised(LinearSGD()), 2, feedback="linear")
        sparse = SpanBoost(Symmetrised(LinearSGD()), 2, feedback="linear")
        np.testing.assert_array_equal(named.learn_many(dicts(X), y), sparse.learn_many(Csr(X), y))


VALUES = st.one_of(st.floats(-9, 9), st.sampled_from("uvw"), st.none(), st.integers(-3, 3))


@given(
    st.lists(st.sampled_from("abcd"), min_size=1, max_size=4, unique=True),
    st.integers(1, 6),
    st.sampled_from([None, 4]),
    st.data(),
)
@settings(max_examples=100, deadline=None)
def test_rows_with_equal_keys_are_read_like_others(keys, rows, bits, data):
    kinds = [
        data.draw(st.sampled_from([st.floats(-9, 9), st.sampled_from("uvw"), VALUES])) for _ in keys
    ]
    block = [
        {key: data.draw(kind) for key, kind in zip(keys, kinds, strict=True)} for _ in range(rows)
    ]
    known, one_by_one = FeatureNames(bits), FeatureNames(bits)
    for _ in range(2):  # first with new names, then with known ones
        found, new = known.read(block)
        parts = []
        for row in block:
            part, more = one_by_one.read([row, {}])  # rows with different keys
            one_by_one.add(more)
            parts.append(part)
        known.add(new)
        assert known.columns == one_by_one.columns
        np.testing.assert_array_equal(found.indices, np.concatenate([p.indices for p in parts]))
        np.testing.assert_array_equal(found.data, np.concatenate([p.data for p in parts]))
        np.testing.assert_array_equal(np.diff(found.indptr), [len(row) for row in block])
        assert found.indptr[0] == 0
