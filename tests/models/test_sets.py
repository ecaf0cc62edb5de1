"""Sets of classes: coverage on any stream, identity over blocks and files, new classes."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.isotonic import isotonic_regression

from spanboost import AutoBoost, Intervals, LinearSGD, PredictionSets, SpanBoost, load, save
from spanboost.compiling.kernels import Caller, plain
from spanboost.losses import Softmax
from spanboost.models.files import to_bytes
from spanboost.models.predictions import probabilities
from spanboost.models.quantiles.levels import LIMIT, STEP
from spanboost.models.quantiles.thresholds import learn_thresholds, new_thresholds
from spanboost.theory.coverage import coverage_bound


def stream(rows=3000, seed=0, late=False):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (rows, 2))
    y = np.digitize(X[:, 0] + 0.4 * rng.normal(size=rows), [-0.5, 0, 0.5])
    if late:
        y[: rows // 2] = y[: rows // 2] % 2  # two of the classes appear in the second half
    return X, y


def linear(loss="softmax"):
    return PredictionSets(SpanBoost(LinearSGD(), n=2, loss=loss))


def covered(sets, y):
    return sets[np.arange(len(y)), y]


@pytest.mark.parametrize("coverage", [0.7, 0.8, 0.9, 0.95])
def test_sets_contain_the_share_that_was_asked_for(coverage):
    X, y = stream(5000)
    sets = linear().learn_sets(X, y, coverage)
    assert abs(covered(sets, y)[1000:].mean() - coverage) < 0.015
    assert sets.any(axis=1).all()


def test_two_classes_have_sets_too():
    X, y = stream(4000)
    y = y // 2
    sets = linear("logistic").learn_sets(X, 2.0 * y - 1, 0.95)
    assert sets.shape == (4000, 2)
    assert abs(covered(sets, y)[1000:].mean() - 0.95) < 0.01


def test_a_model_that_is_always_right_has_sets_of_one_class():
    X = np.tile([[1.0, 0.0], [-1.0, 0.0]], (1000, 1))
    y = np.tile([0, 1], 1000)
    sets = linear(Softmax(2)).learn_sets(X, y, 0.9)
    assert (sets[500:].sum(axis=1) == 1).all()
    assert covered(sets, y)[500:].all()


@given(st.integers(0, 2**32), st.sampled_from([0.5, 0.8, 0.9, 0.99]))
@settings(max_examples=10, deadline=None)
def test_labels_that_avoid_the_sets_are_still_covered(seed, coverage):
    # an adversary that picks a class outside the set whenever there is one
    rng = np.random.default_rng(seed)
    levels = np.array([0.5, 0.8, 0.9, 0.99])
    state, k, inside = new_thresholds(levels), int(np.searchsorted(levels, coverage)), []
    out = np.empty((1, 4))
    for _ in range(2000):
        chances = rng.dirichlet(np.ones(4))
        state.read_thresholds(out[0])
        outside = np.flatnonzero(1 - chances > out[0, k])
        label = rng.choice(outside) if len(outside) else rng.integers(4)
        inside.append(len(outside) == 0)
        learn_thresholds(state, np.array([1 - chances[label]]), np.ones(1), out)
    bound = coverage_bound(2000, STEP, LIMIT, levels=4)
    assert np.mean(inside) >= coverage - bound
    sums = np.append(0, np.cumsum(np.array(inside) - coverage))
    for size in (256, 512, 1024):
        bound = coverage_bound(size, STEP, LIMIT, levels=4) * size
        assert (sums[size:] - sums[:-size]).min() >= -bound


def test_sets_match_a_plain_loop():
    X, y = stream(400)
    model, alone = linear(Softmax(4)), SpanBoost(LinearSGD(), n=2, loss=Softmax(4))
    sets = model.learn_sets(X, y, 0.8)
    chances = probabilities(alone.learn_many(X, y))
    levels = np.array(model.coverages)
    h, past = np.log(levels / (1 - levels)), []
    for t in range(400):
        read = zip(levels, isotonic_regression(h), strict=True)
        limits = np.array([quantile(past, level, odds) for level, odds in read])
        best = chances[t] == chances[t].max()
        assert (sets[t] == (best | (1 - chances[t] <= limits[levels == 0.8]))).all()
        score = 1 - chances[t, y[t]]
        h = h + STEP * (levels - (score <= limits))
        past.append(score)


def quantile(past, level, odds):
    past, n = np.sort(past), len(past)
    if n == 0 or level > n / (n + 1) + 1e-9:
        return np.inf
    if abs(odds) >= LIMIT:
        return np.copysign(np.inf, odds)
    share = 1 / (1 + np.exp(-odds))
    place, middle = share * (n + 1) - 1, past[n // 2]
    if place <= 0:
        return past[0] + 0.5 * (middle - past[0]) * np.log(share * (n + 1))
    if place >= n - 1:
        return past[-1] - 0.5 * (past[-1] - middle) * np.log((1 - share) * (n + 1))
    return np.interp(place, np.arange(n), past)


def test_a_coverage_beyond_the_calibrated_ones_is_refused():
    X, y = stream(30)
    model = linear()
    for call in (lambda: model.predict_set(X, 0.999), lambda: model.learn_sets(X, y, 0.999)):
        with pytest.raises(ValueError, match=r"coverage must be at most 0.995, .*\(got 0.999\)"):
            call()
    assert not model.started
    assert model.learn_sets(X, y, 0.3).shape[0] == 30  # the sets of 0.5 contain more


def test_scores_that_are_all_the_same_leave_the_levels_as_they_are():
    levels = np.array([0.5, 0.9, 0.99])
    state, out = new_thresholds(levels), np.empty((500, 3))
    learn_thresholds(state, np.zeros(500), np.ones(500), out)
    assert (out[100:] == 0).all()
    np.testing.assert_allclose(state.levels.h, np.log(levels / (1 - levels)), atol=STEP)


def test_the_sets_of_a_new_model_contain_every_class():
    X, y = stream(60)
    for coverage, enough in ((0.5, 1), (0.8, 4), (0.9, 9), (0.95, 19)):
        sets = linear(Softmax(4)).learn_sets(X, y, coverage)
        assert sets[:enough].all()
        assert not sets.all()
    assert linear(Softmax(4)).predict_set(X[:3], 0.5).all()


def test_held_out_rows_calibrate_the_sets():
    X, y = stream(3000)
    model = linear(Softmax(4))
    model.learn_many(X[:1000], y[:1000])
    before = probabilities(model.predict_many(X[1000:1500]))
    model.learn_held_out(X[1000:1500], y[1000:1500])
    scores = np.sort(1 - before[np.arange(500), y[1000:1500]])
    threshold = np.interp(0.9 * 501 - 1, np.arange(500), scores)
    chances = probabilities(model.predict_many(X[1500:]))
    expected = (1 - chances <= threshold) | (chances == chances.max(axis=1, keepdims=True))
    assert (model.predict_set(X[1500:], 0.9) == expected).all()


def test_compiled_and_plain_code_agree():
    scores = np.random.default_rng(0).random(300)
    outs = []
    for compiled in (True, False):
        state, out = new_thresholds(np.array([0.5, 0.9])), np.empty((300, 2))
        if compiled:
            Caller()(learn_thresholds, state, scores, np.ones(300), out)
        else:
            with plain():
                learn_thresholds(state, scores, np.ones(300), out)
        outs.append(out)
    np.testing.assert_allclose(outs[0], outs[1], rtol=1e-12)


@pytest.mark.parametrize("blocks", [1, 7, 250])
def test_blocks_do_not_change_the_bits(blocks):
    X, y = stream(500, late=True)
    whole, parts = linear(), linear()
    expected = whole.learn_sets(X, y)
    for a in range(0, len(y), blocks):
        found = parts.learn_sets(X[a : a + blocks], y[a : a + blocks])
        own = expected[a : a + blocks]
        assert (own[:, : found.shape[1]] == found).all()
        assert not own[:, found.shape[1] :].any()  # classes that are not known yet
    assert to_bytes(parts) == to_bytes(whole)


def test_the_first_row_of_a_new_class_does_not_calibrate():
    X, y = stream(300)
    model = linear()
    model.learn_many(X, y % 2)
    before = model.thresholds.levels.h.copy()
    model.learn_many(X[:1], [2])
    assert (model.thresholds.levels.h == before).all()
    model.learn_many(X[:1], [2])
    assert (model.thresholds.levels.h != before).any()


@pytest.mark.parametrize("loss", ["softmax", "logistic", Softmax(4)])
def test_a_loaded_model_goes_on_as_if_it_had_never_been_saved(loss, tmp_path):
    X, y = stream(400, late=True)
    y = 2.0 * (y % 2) - 1 if loss == "logistic" else y
    model = PredictionSets(AutoBoost(budget="fast", loss=loss))
    save(model, tmp_path / "fresh.sb")
    assert not load(tmp_path / "fresh.sb").started
    model.learn_many(X[:200], y[:200])
    save(model, tmp_path / "model.sb")
    again = load(tmp_path / "model.sb")
    assert isinstance(again, PredictionSets)
    assert (model.learn_sets(X[200:], y[200:]) == again.learn_sets(X[200:], y[200:])).all()
    assert to_bytes(again) == to_bytes(model)


def test_larger_coverages_have_larger_sets():
    X, y = stream(1000)
    model = linear()
    model.learn_many(X, y)
    shares = [0.5, 0.75, 0.9, 0.93, 0.995]
    sets = [model.predict_set(X, one) for one in shares]
    for small, large in pairwise(sets):
        assert (small <= large).all()
    assert (sets[-1].sum(axis=1) > sets[0].sum(axis=1)).any()


def test_rows_of_weight_0_are_not_learned():
    X, y = stream(400)
    model, other = linear(Softmax(4)), linear(Softmax(4))
    model.learn_many(X, y, np.tile([1.0, 0.0], 200))
    other.learn_many(X[::2], y[::2])
    assert (model.thresholds.levels.h == other.thresholds.levels.h).all()
    assert (model.predict_set(X) == other.predict_set(X)).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model": AutoBoost()}, "must have logistic or softmax loss"),
        ({"model": AutoBoost(loss="hinge")}, "must have logistic or softmax loss"),
        ({"model": Intervals()}, r"must be AutoBoost\(\) or a booster"),
        ({"coverages": [0.9, 0.8]}, "increasing"),
        ({"coverages": [90]}, "between 0 and 1"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        PredictionSets(**arguments)


def test_a_coverage_outside_0_and_1_is_refused_and_nothing_is_learned():
    X, y = stream(10)
    model = linear()
    with pytest.raises(ValueError, match="coverage must be between 0 and 1"):
        model.learn_sets(X, y, 90)
    assert not model.started
