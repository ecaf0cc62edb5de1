"""Comparisons of two models: averages, intervals, since when, weights, states and errors."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.compare import GAIN, same_noise
from spanboost import Comparison, LinearSGD, SpanBoost, Stumps, compare
from spanboost.analysis.confidence_sequence import add_values, new_sequence
from spanboost.models.row_losses import losses_of


def test_intervals_are_the_sequence_over_the_summed_weights():
    rng = np.random.default_rng(0)
    first, second, weights = rng.exponential(1, (3, 200))
    comparison = Comparison(level=0.1)
    found = comparison.add(first, second, weights)
    total, width = add_values(new_sequence(), weights * first - weights * second, 0.1).T
    sums = np.cumsum(weights)
    np.testing.assert_allclose(found[:, 0], np.cumsum(weights * (first - second)) / sums)
    np.testing.assert_array_equal(found[:, 1], (total - width) / sums)
    np.testing.assert_array_equal(found[:, 2], (total + width) / sums)
    assert comparison.interval == tuple(found[-1, 1:])
    assert comparison.losses[0] == pytest.approx(np.average(first, weights=weights))
    assert comparison.losses[1] == pytest.approx(np.average(second, weights=weights))
    assert comparison.difference == pytest.approx(found[-1, 0])
    assert comparison.rows == 200


@pytest.mark.parametrize("wild", [1e36, math.inf])
def test_one_huge_loss_of_both_models_leaves_the_difference_of_the_others(wild):
    rng = np.random.default_rng(3)
    first, second = rng.uniform(1, 2, 500), rng.uniform(0, 1, 500)
    first[100] = second[100] = wild
    comparison = Comparison()
    found = comparison.add(first, second)
    first[100] = second[100] = 0
    assert comparison.difference == pytest.approx((first - second).mean(), rel=1e-12)
    assert found[-1, 0] == comparison.difference


def test_a_state_of_an_earlier_version_continues():
    comparison = Comparison()
    comparison.add([3.0, 1.0], [1.0, 0.0])
    state = comparison.state()
    state["totals"] = state["totals"][:3]  # earlier versions stored no sum of differences
    old = Comparison(state=state)
    assert old.difference == comparison.difference == 1.5


@given(st.lists(st.integers(1, 2999), max_size=5, unique=True), st.sampled_from([-1, 1]))
def test_blocks_and_saved_states_change_nothing(cuts, sign):
    rng = np.random.default_rng(1)
    # the second model becomes better, then worse: the answer changes on the way
    values = sign * np.append(rng.normal(0.5, 1, 1000), rng.normal(-0.7, 1, 2000))
    second = np.full(3000, 10.0)
    whole = Comparison()
    expected = whole.add(second + values, second)
    sides = (expected[:, 1] > 0).astype(int) - (expected[:, 2] < 0)
    assert {-1, 0, 1} == set(sides)
    found, comparison = [], Comparison()
    for rows in np.split(np.arange(3000), sorted(cuts)):
        found.append(comparison.add(second[rows] + values[rows], second[rows]))
        seen = sides[: comparison.rows]
        assert comparison.better == {1: "second", -1: "first", 0: None}[seen[-1]]
        others = np.flatnonzero(seen != seen[-1])
        expected_since = int(others[-1]) + 2 if len(others) else 1
        assert comparison.since == (expected_since if seen[-1] else None)
        comparison = Comparison(state=json.loads(json.dumps(comparison.state())))
    np.testing.assert_array_equal(np.concatenate(found), expected)
    assert comparison.state() == whole.state()
    assert comparison.interval == whole.interval


def test_a_challenger_that_is_2_percent_better_is_found():
    found = Comparison()
    found.add(*same_noise(np.random.default_rng(0), 100_000, GAIN))
    assert found.better == "second"
    low, high = found.interval
    assert low <= 1.1 * GAIN <= high
    equal = Comparison()
    equal.add(*same_noise(np.random.default_rng(0), 100_000, 0.0))
    assert equal.better is None
    assert equal.since is None


def test_before_the_first_row_nothing_is_known():
    comparison = Comparison()
    assert comparison.add([], []).shape == (0, 3)
    assert comparison.interval == (-math.inf, math.inf)
    assert all(map(math.isnan, (*comparison.losses, comparison.difference)))
    assert (comparison.rows, comparison.better, comparison.since) == (0, None, None)
    comparison.add([1.0], [2.0], [0.0])
    assert comparison.interval == (-math.inf, math.inf)


def test_infinite_losses_are_counted_but_leave_the_interval_finite():
    comparison = Comparison()
    first, second = np.ones(500), np.full(500, 1.5)
    first[100], second[100], second[200] = np.inf, np.inf, np.inf
    comparison.add(first, second)
    assert np.isfinite(comparison.interval).all()
    assert comparison.better == "first"
    assert comparison.limited == 1


def streams():
    X = np.random.default_rng(0).uniform(-1, 1, (400, 2))
    return X, 0.5 * X[:, 0] + 0.2 * X[:, 1]


def test_models_predict_then_learn_as_they_do_alone():
    X, y = streams()
    weights = np.linspace(0, 2, 400)
    found = None
    models = SpanBoost(LinearSGD(), n=3), SpanBoost(Stumps(), n=3)
    for rows in (slice(0, 150), slice(150, 400)):
        found = compare(*models, X[rows], y[rows], weights[rows], comparison=found)
    alone = SpanBoost(LinearSGD(), n=3), SpanBoost(Stumps(), n=3)
    losses = [losses_of(model, y, model.learn_many(X, y, weights)) for model in alone]
    expected = Comparison()
    expected.add(*losses, weights)
    assert found.state() == expected.state()
    before = models[0].predict_many(X)
    still = compare(*models, X, y, learn=False)
    assert still.losses[0] == pytest.approx(np.mean((before - y) ** 2))
    np.testing.assert_array_equal(models[0].predict_many(X), before)


def test_bad_rows_are_learned_by_neither_model():
    X, y = streams()
    models = SpanBoost(LinearSGD(), n=3), SpanBoost(Stumps(), n=3)
    compare(*models, X, y)
    before = [model.predict_many(X) for model in models]
    with pytest.raises(ValueError, match="row 1"):
        compare(*models, X[:2], [0.0, np.nan])
    for model, predictions in zip(models, before, strict=True):
        np.testing.assert_array_equal(model.predict_many(X), predictions)


def test_what_cannot_be_compared_is_refused():
    X, y = streams()
    model = SpanBoost(LinearSGD(), n=3)
    with pytest.raises(ValueError, match="not the same one"):
        compare(model, model, X, y)
    with pytest.raises(ValueError, match="different losses"):
        compare(model, SpanBoost(LinearSGD(), n=3, loss="absolute"), X, y)
    with pytest.raises(ValueError, match="one number for each row"):
        Comparison().add([1.0, 2.0], [1.0])
    with pytest.raises(ValueError, match="one number for each row"):
        Comparison().add([1.0], [1.0], [[1.0]])
    for level in (0, 1, -0.1, math.nan):
        with pytest.raises(ValueError, match="level must be between 0 and 1"):
            Comparison(level)


@pytest.mark.parametrize(
    ("field", "value"),
    [("level", 2), ("totals", ["0x0p0"]), ("side", 7), ("sequence", {}), ("interval", ["0x0p0"])],
)
def test_invalid_states_are_refused(field, value):
    state = Comparison().state()
    with pytest.raises(ValueError, match="invalid comparison"):
        Comparison(state=state | {field: value})
    with pytest.raises(ValueError, match="invalid comparison"):
        Comparison(state={name: state[name] for name in state if name != field})
