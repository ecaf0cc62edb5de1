"""Weights that are relative, and the warning about large ones."""

import warnings
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanboost import AutoBoost, LinearSGD, SpanBoost, Trees, WeightWarning, load, save
from spanboost.rows.weights import WeightScale, relative_weights

X = np.random.default_rng(0).normal(size=(400, 3))
Y = X[:, 0] - X[:, 1]
POSITIVE = st.floats(1e-3, 1e3)


def scale_of(model):
    return model.labels.weight_scale


@given(st.lists(st.one_of(st.just(0.0), POSITIVE), min_size=1), POSITIVE)
def test_relative_weights_do_not_depend_on_a_common_factor(weights, factor):
    weights = np.array(weights)
    found = relative_weights(weights)
    np.testing.assert_array_equal(found > 0, weights > 0)
    if weights.any():
        assert found[found > 0].mean() == pytest.approx(1)
        np.testing.assert_allclose(found, weights / weights[weights > 0].mean(), rtol=1e-6)
    other = relative_weights(weights * factor)
    np.testing.assert_array_equal(other.astype(np.float32), found.astype(np.float32))


@pytest.mark.parametrize("factor", [1e-3, 0.1, 1 / 3, 7, 500, 1e15, 1e300])
def test_equal_weights_become_ones(factor):
    np.testing.assert_array_equal(relative_weights(np.full(999, factor)), np.ones(999))


def test_zeros_and_invalid_weights_stay_as_they_are():
    np.testing.assert_array_equal(relative_weights(np.array([0.0, 1.0, 1.0])), [0, 1, 1])
    for same in ([0.0, 0.0], [2.0, -1.0], [2.0, np.inf]):
        np.testing.assert_array_equal(relative_weights(np.array(same)), same)


def first_large(weights):
    """Return the row of the warning, computed plainly; None if there is none."""
    learned = total = 0
    for t, weight in enumerate(weights):
        learned, total = learned + (weight > 0), total + weight
        if learned >= 100 and total > 10 * learned:
            return t
    return None


@given(st.integers(0, 2**32 - 1), st.lists(st.integers(0, 300), max_size=4), st.floats(1, 50))
def test_the_warning_names_the_first_row_with_a_large_mean(seed, edges, scale):
    rng = np.random.default_rng(seed)
    weights = rng.choice([0.0, 0.5, 1.0, scale, 2 * scale], 300)
    known, learned, found = WeightScale(), 0, []
    for first, last in pairwise([0, *sorted(edges), 300]):
        part = weights[first:last]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            known.warn(part, first, learned)
        found += [one.message.row for one in caught]
        known.add(part)
        learned += np.count_nonzero(part)
    expected = first_large(weights)
    assert found == ([] if expected is None else [expected])
    whole = WeightScale()
    whole.add(weights)
    assert known.excess == whole.excess


@pytest.mark.parametrize(
    "make", [lambda: SpanBoost(LinearSGD(), n=4), lambda: AutoBoost(budget="fast")]
)
def test_models_warn_once_of_weights_on_a_large_scale(make, tmp_path):
    model = make()
    with pytest.warns(WeightWarning) as caught:
        model.learn_many(X[:200], Y[:200].clip(-1, 1), np.full(200, 500.0))
    assert str(caught[0].message) == (
        "row 99: the mean of the weights so far is 500, and models learn poorly if it is far above "
        "1; divide all weights by their mean"
    )
    assert len(caught) == 1
    assert caught[0].filename == __file__
    save(model, tmp_path / "model.sb")
    for one in (model, load(tmp_path / "model.sb")):
        one.learn_many(X[200:], Y[200:].clip(-1, 1), np.full(200, 500.0))  # no second warning
        assert scale_of(one).excess == 400 * 499


def test_single_rows_and_blocks_know_the_same():
    weights = np.where(np.arange(400) % 3, 1.0, 40.0)
    many, single = (SpanBoost(Trees(), n=2, label_range="auto") for _ in range(2))

    def learn_single():
        for x, y, weight in zip(X.tolist(), Y.tolist(), weights.tolist(), strict=True):
            single.learn_one(x, y, weight)

    for learn in (lambda: many.learn_many(X, Y, weights), learn_single):
        with pytest.warns(WeightWarning, match=r"^row 99: .* is 14\.26") as caught:
            learn()
        assert len(caught) == 1
    assert scale_of(many).to_json() == scale_of(single).to_json()


def test_ordinary_weights_are_not_in_files_and_cause_no_warning(tmp_path):
    model = SpanBoost(LinearSGD(), n=4, label_range="auto")
    model.learn_many(X, Y)
    assert "weights" not in model.labels.to_json()
    model.learn_many(X, Y, np.linspace(0, 20, 400))  # the mean over all rows is less than 10


def test_a_warning_as_an_error_loses_only_its_block():
    model = SpanBoost(LinearSGD(), n=4, label_range="auto")
    model.learn_many(X[:50], Y[:50])
    before = model.predict_many(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(WeightWarning):
            model.learn_many(X, Y, np.full(400, 500.0))
    np.testing.assert_array_equal(model.predict_many(X), before)
    assert scale_of(model).excess == 0
