"""Averages of boosters, compared with sums written out feature by feature."""

import copy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanboost import (
    HullBoost,
    LabelWarning,
    LinearBall,
    LinearSGD,
    Network,
    SpanBoost,
    Stumps,
    Trees,
)
from spanboost.parallel.averaging import average, check_averageable, gain_shares, weighted_average
from spanboost.rows.labels import RangeChange
from spanboost.rows.validation import Sparse

LEARNERS = [LinearSGD(), Stumps(), Stumps(intercept=True), Network(hidden=3)]
LEAST = 1e-20


def rows(count, seed, scale=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, 4)) * scale
    X[rng.random(X.shape) < 0.3] = 0
    return X, 20 + X[:, 0] - 2 * X[:, 1] * (X[:, 2] > 0)


def booster(learner, kind=SpanBoost, **parameters):
    given = {"n": 4, "label_range": "auto"} | parameters
    return kind(copy.deepcopy(learner), **given)


def shards(learner, kind=SpanBoost, number=3, **parameters):
    """Return a model, and copies of it trained on shards with different scales and ranges."""
    before = booster(learner, kind, **parameters)
    before.learn_many(*rows(30, 0))
    models = [copy.deepcopy(before) for _ in range(number)]
    for k, model in enumerate(models):
        X, y = rows(25 + 10 * k, 1 + k, scale=1.0 + k)
        model.learn_many(X, y)
    return before, models


def state(model):
    """Return all arrays that a booster has learned."""
    found = []

    def walk(node):
        for name in node._fields:
            value = getattr(node, name)
            if name != "scratch" and isinstance(value, np.ndarray):
                found.append(value)
            elif name != "scratch" and hasattr(value, "_fields"):
                walk(value)

    walk(model.core.state.algorithm)
    walk(model.core.state.bank)
    return [*found, model.labels.centre, np.array(model.labels.half)]


def assert_same(one, other):
    for a, b in zip(state(one), state(other), strict=True):
        assert a.dtype == b.dtype
        assert a.tobytes() == b.tobytes()


@pytest.mark.parametrize("kind", [SpanBoost, HullBoost])
@pytest.mark.parametrize("feedback", ["greedy", "linear"])
@pytest.mark.parametrize("learner", LEARNERS, ids=str)
def test_the_average_of_equal_models_is_the_model(learner, feedback, kind):
    before, models = shards(learner, kind, feedback=feedback)
    for number in (1, 2, 3, 7):
        merged = average(before, [models[1]] * number)
        assert_same(merged, models[1])
        assert merged.labels.rows == models[1].labels.rows
        assert merged.labels.seen == 30 + number * 35


@pytest.mark.parametrize("learner", LEARNERS, ids=str)
def test_averaging_does_not_change_its_arguments(learner):
    before, models = shards(learner)
    kept = copy.deepcopy([before, *models])
    average(before, models)
    for one, other in zip([before, *models], kept, strict=True):
        assert_same(one, other)


@pytest.mark.parametrize("learner", LEARNERS, ids=str)
def test_workers_with_the_same_rows_equal_one_worker(learner):
    alone = booster(learner)
    team = [booster(learner) for _ in range(3)]
    before = booster(learner, label_range="auto")
    for seed in range(4):
        X, y = rows(20, seed)
        alone.learn_many(X, y)
        for one in team:
            one.learn_many(X, y)
        before = average(before, team)
        team = [copy.deepcopy(before) for _ in team]
    assert_same(before, alone)
    np.testing.assert_array_equal(before.predict_many(X), alone.predict_many(X))


def reference_gain(G_before, G, S_before, S_own, S):
    """Return the squared gradients, and their gain, as if the scale had always been the widest."""
    now = G if S_own == S else max(G * (S_own / S) ** 2, LEAST) if S_own else 0.0
    then = G_before if S_before == S else max(G_before * (S_before / S) ** 2, LEAST)
    return now, max(now - (then if S_before else 0.0), 0.0)


def reference_average(values, gains):
    total = sum(gains)
    parts = [gain / total for gain in gains] if total else [1 / len(gains)] * len(gains)
    return sum(part * value for part, value in zip(parts, values, strict=True))


def in_common_units(before, models):
    """Return the banks of all models, in the units of the widest label range."""
    copies = copy.deepcopy([before, *models])
    half = max(one.labels.half for one in copies)
    for one in copies:
        if one.labels.half < half:
            one.core.change_range(RangeChange(0, one.labels.centre, half))
    return copies[0].core.state.bank, [one.core.state.bank for one in copies[1:]]


def assert_weighted_inputs(then, each, merged):
    S = np.max([one.S for one in each], axis=0)
    np.testing.assert_array_equal(merged.S, S)
    compared = 0
    for f in np.flatnonzero(S):
        for column in range(merged.W.shape[1]):
            pairs = [
                reference_gain(
                    float(then.G[f, column]), float(one.G[f, column]), then.S[f], one.S[f], S[f]
                )
                for one in each
            ]
            gains = [gain for _, gain in pairs]
            W = reference_average([float(one.W[f, column]) for one in each], gains)
            G = reference_average([now for now, _ in pairs], gains)
            np.testing.assert_allclose(merged.W[f, column], W, rtol=1e-5, atol=1e-7)
            np.testing.assert_allclose(merged.G[f, column], G, rtol=1e-5)
            compared += 1
    assert compared == 5 * merged.W.shape[1]
    np.testing.assert_allclose(merged.seen, np.mean([one.seen for one in each], axis=0))


@pytest.mark.parametrize("kind", [SpanBoost, HullBoost])
def test_linear_weights_are_averaged_by_squared_gradients(kind):
    before, models = shards(LinearSGD(), kind)
    merged = average(before, models)
    then, each = in_common_units(before, models)
    assert_weighted_inputs(then.inputs, [one.inputs for one in each], merged.core.state.bank.inputs)
    assert merged.labels.half == max(one.labels.half for one in models)
    if kind is SpanBoost:
        sigma = np.mean([one.sigma_ for one in models], axis=0)
        np.testing.assert_allclose(merged.sigma_, sigma, rtol=1e-6)
        assert merged.core.state.algorithm.t[0] == 30 + (25 + 35 + 45) // 3


def test_networks_are_averaged_by_squared_gradients():
    before, models = shards(Network(hidden=3))
    merged = average(before, models).core.state.bank
    then, each = in_common_units(before, models)
    assert_weighted_inputs(then.inputs, [one.inputs for one in each], merged.inputs)
    for i in range(4):
        gains = [float(one.G[..., i].sum() - then.G[..., i].sum(dtype=np.float64)) for one in each]
        for name in ("V", "G"):
            expected = reference_average(
                [getattr(one, name)[..., i].astype(float) for one in each], gains
            )
            np.testing.assert_allclose(getattr(merged, name)[..., i], expected, rtol=1e-4)


@pytest.mark.parametrize("intercept", [False, True])
def test_stumps_are_averaged_by_squared_gradients(intercept):
    before, models = shards(Stumps(intercept=intercept))
    merged = average(before, models).core.state.bank
    then, each = in_common_units(before, models)
    S = np.max([one.S for one in each], axis=0)
    for f in np.flatnonzero(S):
        for i in range(4):
            gains, now = [], []
            for one in each:
                scales = then.S[f], one.S[f], S[f]
                G, gain = reference_gain(
                    float(then.G[f, 0, 0, i]), float(one.G[f, 0, 0, i]), *scales
                )
                if intercept:
                    gain += float(one.G[f, 1, 0, i]) - float(then.G[f, 1, 0, i])
                gains.append(gain)
                now.append(G)
            U = reference_average([one.U[f, :, 0, i].astype(float) for one in each], gains)
            np.testing.assert_allclose(merged.U[f, :, 0, i], U, rtol=1e-4, atol=1e-7)
            np.testing.assert_allclose(
                merged.G[f, 0, 0, i], reference_average(now, gains), rtol=1e-5
            )
    for name in ("score", "seen"):  # sums over rows
        mean = np.mean([getattr(one, name) for one in each], axis=0)
        np.testing.assert_allclose(getattr(merged, name), mean, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("learner", [LinearSGD(), Stumps(), Network(hidden=3)], ids=str)
def test_a_feature_that_one_model_has_seen_is_copied(learner):
    before = booster(learner, label_range=(-1, 1))
    one, other = (booster(learner, label_range=(-1, 1)) for _ in range(2))
    for column, model in ((3, one), (5, other)):
        data = np.linspace(-1, 1, 20)
        model.learn_many(Sparse(np.arange(21), np.full(20, column), data, (20,)), 0.8 * data)
    merged = average(before, [one, other])
    tables = [
        getattr(model.core.state.bank, "inputs", model.core.state.bank) for model in (one, other)
    ]
    found = getattr(merged.core.state.bank, "inputs", merged.core.state.bank)
    for table, column in zip(tables, (3, 5), strict=True):
        names = ("U", "G", "S") if isinstance(learner, Stumps) else ("W", "G", "S")
        for name in names:
            np.testing.assert_allclose(
                getattr(found, name)[1 + column], getattr(table, name)[1 + column], rtol=1e-6
            )


@pytest.mark.parametrize("learner", LEARNERS, ids=str)
def test_a_wider_label_range_does_not_change_predictions(learner):
    before, models = shards(learner)
    wide = copy.deepcopy(models[0])
    wide.core.change_range(RangeChange(0, wide.labels.centre, 4 * wide.labels.half))
    merged = average(before, [models[0], wide])
    assert merged.labels.half == wide.labels.half
    X, _ = rows(40, 9)
    np.testing.assert_allclose(merged.predict_many(X), wide.predict_many(X), rtol=1e-5)


@pytest.mark.parametrize("learner", LEARNERS, ids=str)
@pytest.mark.filterwarnings("ignore::spanboost.LabelWarning")
def test_new_units_of_one_model_are_those_of_all(learner):
    before = booster(learner)
    before.learn_many(*rows(300, 0))
    old, new = copy.deepcopy(before), copy.deepcopy(before)
    old.learn_many(*rows(20, 1))
    X, y = rows(80, 2)
    new.learn_many(X, 1000 * y)
    assert new.labels.changes_of_units == 1
    merged = average(before, [old, new])
    assert (merged.labels.half, merged.labels.centre) == (new.labels.half, new.labels.centre)
    assert merged.labels.health == new.labels.health._replace(learned=400)
    one = copy.deepcopy(old)
    one.core.change_range(RangeChange(0, new.labels.centre, new.labels.half, exact=False))
    other = average(before, [one, new])
    np.testing.assert_allclose(merged.predict_many(X), other.predict_many(X), rtol=1e-6)


def test_an_average_has_the_clipped_labels_of_all_models():
    before = booster(LinearSGD())
    before.learn_many(*rows(100, 0))
    models = [copy.deepcopy(before) for _ in range(3)]
    for k, model in enumerate(models):
        X, y = rows(30, 1 + k)
        y[: k + 1] = 1e9
        with pytest.warns(LabelWarning):
            model.learn_many(X, y)
    health = average(before, models).labels.health
    assert (health.learned, health.clipped) == (190, 6)


@pytest.mark.parametrize("learner", LEARNERS, ids=str)
@given(seed=st.integers(0, 50))
def test_functions_stay_bounded_under_linear_feedback(learner, seed):
    before = booster(learner, feedback="linear", label_range=(-100, 100), D=0.3)
    models = [copy.deepcopy(before) for _ in range(3)]
    for k, model in enumerate(models):
        model.learn_many(*rows(60, 100 * seed + k, 1.0 + k))
    bank = average(before, models).core.state.bank
    if isinstance(learner, LinearSGD):
        sizes = bank.keep * np.abs(bank.inputs.W, dtype=np.float64).sum(axis=0)
        np.testing.assert_allclose(bank.mass, sizes / bank.keep, rtol=1e-5)
    elif isinstance(learner, Stumps):
        sizes = np.abs(bank.U).sum(axis=(1, 2))
    else:
        sizes = np.abs(bank.V).sum(axis=(0, 1))
    assert 0.2 < np.max(sizes) <= 0.3 * (1 + 1e-5)


def test_models_that_cannot_be_averaged_are_refused():
    with pytest.raises(ValueError, match="Trees cannot be averaged"):
        check_averageable(SpanBoost(Trees()))
    with pytest.raises(ValueError, match="LinearBall cannot be averaged"):
        check_averageable(SpanBoost(LinearBall()))
    check_averageable(booster(LinearSGD(), loss="poisson", label_range=(0, 9)))
    with pytest.raises(
        ValueError, match="Poisson loss cannot be averaged unless their label range"
    ):
        check_averageable(booster(LinearSGD(), loss="poisson"))
    with pytest.raises(ValueError, match="models with replay cannot be averaged"):
        check_averageable(SpanBoost(LinearSGD(), replay=2))
    before = booster(LinearSGD())
    models = [copy.deepcopy(before) for _ in range(2)]
    for k, model in enumerate(models):
        model.learn_many([[1.0]], [float(k)])
    with pytest.raises(ValueError, match="label ranges have different centres"):
        average(before, models)
    with pytest.raises(ValueError, match="has learned nothing"):
        average(models[0], [models[0], booster(LinearSGD(), label_range=(-1, 1))])


@given(st.lists(st.floats(0, 1e308), min_size=1, max_size=5))
def test_shares_add_up_to_one(gains):
    shares = gain_shares([np.array([gain]) for gain in gains])
    assert sum(share[0] for share in shares) == pytest.approx(1)
    if max(gains) == 0:
        assert {share[0] for share in shares} == {1 / len(gains)}


@given(st.floats(-(2.0**99), 2.0**99, width=32), st.integers(1, 9))
def test_the_average_of_equal_numbers_is_that_number(value, times):
    values = [np.array([value], np.float32)] * times
    assert weighted_average(values, None)[0] == np.float32(value)
