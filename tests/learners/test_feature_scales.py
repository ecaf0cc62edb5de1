"""The scales of features: compared with a plain version, and streams with absurd values in them."""

import naive_learners
import numpy as np
import pytest
from banks import arrays_of, learner_of, run_listing
from forged import file_arrays
from hypothesis import given
from hypothesis import strategies as st

from spanboost import HullBoost, LinearSGD, Network, Ridge, SpanBoost, Stumps, Trees, load, save
from spanboost.compiling.kernels import plain
from spanboost.learners.feature_scales import (
    DOUBTS,
    JUMP,
    PATIENCE,
    WINDOW,
    is_in_doubt,
    lower_scale,
    revise_scale,
)

F32, F64 = np.float32, np.float64
CALM, WILD, TINY = 1.0, 1e30, 1e-12
SIZES = st.sampled_from([CALM, 2.0, 3.9, 4.1, WILD, TINY, 1e-9])


def follow(sizes, young=0, dtype=F64):
    """Return the scale after each value, by the library; the first `young` rows are young."""
    S, doubts, out = np.zeros(1, dtype), np.zeros((1, DOUBTS), dtype), []
    for t, size in enumerate(sizes):
        if is_in_doubt(S, doubts, 0, dtype(size)):
            S[0] = revise_scale(S, doubts, 0, dtype(size), t < young)
        lower_scale(S, doubts, 0)
        out.append(float(S[0]))
    return out


@given(st.lists(st.tuples(SIZES, st.integers(1, 80)), max_size=12), st.sampled_from([0, 5, 64]))
def test_scales_agree_with_the_plain_version(runs, young):
    sizes = [size for size, number in runs for _ in range(number)]
    for dtype in (F32, F64):
        naive, expected = naive_learners.Scales(), []
        for t, size in enumerate(sizes):
            naive.S[0] = naive.meet(0, dtype(size), young=t < young)
            naive.fall(0)
            expected.append(float(naive.S[0]))
        assert follow(sizes, young, dtype) == expected


def test_strays_do_not_raise_a_scale_but_a_true_change_does():
    calm = [CALM] * 100
    assert max(follow([*calm, WILD, *calm], 64)) == CALM
    assert max(follow([*calm, *[WILD] * 50, *calm], 64)) == CALM
    assert max(follow([*calm, WILD] * 50, 64)) == CALM
    assert follow([*calm, JUMP * CALM], 64)[-1] == JUMP
    scales = follow([*calm, *[1000.0] * 100], 64)
    assert (scales[100 + PATIENCE - 2], scales[100 + PATIENCE - 1]) == (CALM, 1000)
    assert follow([*calm, *[1000.0, CALM] * 100], 64)[-1] == 1000  # two modes


def test_a_scale_falls_after_a_mistake():
    for large, rows in ((WILD, WINDOW // 8), (1000.0, WINDOW)):
        for mistake in ([large], [CALM, large]):
            scales = follow([*mistake, *[CALM] * rows], 64)
            assert scales[-2:] == [large, CALM]
    assert follow([1.0, *[0.002] * 1000], 64)[-1] == 1.0  # small values are no mistake


def test_a_late_feature_gets_its_own_start():
    assert follow([0.01, 1.0], 0)[-1] == 1.0
    assert follow([*[0.01] * 100, 1.0], 0)[-1] == 0.01


# --------------------------------------------------------------------------------------------
# Learners with absurd values


def smooth(T=10_000):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(T, 4))
    linear = X @ [1.5, 0.7, -0.5, 0.0]
    return X, linear + 2 * np.sin(1.5 * X[:, 0]) + 0.3 * rng.normal(size=T)


PLACES = {
    "one": [2000],
    "first": [0],
    "50 in a row": range(2000, 2050),
    "one in 1,000": range(500, 10_000, 1000),
}
MODELS = {
    "linear": lambda: HullBoost(LinearSGD(), 1, label_range="auto"),
    "network": lambda: HullBoost(Network(hidden=20), 1, label_range="auto"),
    "stumps": lambda: HullBoost(Stumps(), 1, label_range="auto"),
    "ridge": lambda: HullBoost(Ridge(), 1, label_range="auto"),
    "linear, boosted": lambda: SpanBoost(LinearSGD(), 8, label_range="auto"),
    "network, boosted": lambda: SpanBoost(Network(), 8, label_range="auto"),
    "ridge, boosted": lambda: SpanBoost(Ridge(), 8, label_range="auto"),
}


def error(model, X, y, bad=()):
    """Return the error over the last half, without the bad rows."""
    losses = (model.learn_many(X, y) - y) ** 2
    scored = np.arange(len(y)) >= len(y) // 2
    scored[list(bad)] = False
    assert all(np.isfinite(part).all() for part in arrays_of(model.core.state))
    return losses[scored].mean()


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_absurd_values_do_no_lasting_damage(name):
    X, y = smooth()
    clean = error(MODELS[name](), X, y)
    for place in PLACES.values():
        for value in (1e30, 1e9, -1e30, 100.0)[: 3 if 0 in place else 4]:
            bad = X.copy()
            bad[place, 0] = value
            assert error(MODELS[name](), bad, y, place) <= 1.06 * clean, (place, value)


@pytest.mark.slow
@pytest.mark.parametrize("factor", [1e-3, 1e3, 1e12])
@pytest.mark.parametrize("name", ["linear", "network", "stumps", "ridge"])
def test_a_feature_may_change_its_unit(name, factor):
    X, y = smooth()
    X[2000:, 0] *= factor
    fresh = error(MODELS[name](), X[2000:], y[2000:])
    assert error(MODELS[name](), X, y) <= 1.2 * fresh


@pytest.mark.parametrize("learner", [LinearSGD(), Stumps(), Network(), Ridge(), Trees()], ids=repr)
def test_odd_columns_leave_the_state_finite(learner):
    X, y = smooth(400)
    X[:, 1] = np.nan
    X[:, 2] = 1e15 + np.arange(400)
    X[::7, 3] = 3e38
    model = SpanBoost(learner, 2, label_range="auto")
    assert np.isfinite(model.learn_many(X, y)).all()
    parts = arrays_of(model.core.state)
    if isinstance(learner, Trees):  # a candidate at a missing value has an infinite threshold
        parts = [np.where(np.isinf(part), 0, part) for part in parts]
    assert all(np.isfinite(part).all() for part in parts)


def wild_stream(T=220):
    """Return a stream with strays, a burst that is believed, and a scale that falls."""
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(T, 2)), 2)
    y = np.tanh(X[:, 0]) / 2
    X[5, 0] = X[90, 0] = 1e12
    X[100:170, 1] = 1e9
    return X, y


@pytest.mark.parametrize("feedback", ["greedy", "linear"])
@pytest.mark.parametrize("name", ["linear", "stumps", "intercepts", "network"])
def test_learners_agree_with_naive_copies_on_a_wild_stream(name, feedback):
    X, y = wild_stream()
    D = 1.0 if feedback == "greedy" else 50.0  # at a bound, rounding decides on the next step
    learner = learner_of(name, dtype=F64)
    booster = SpanBoost(learner, 2, feedback=feedback, D=D)
    with plain():
        got = booster.learn_many(X, y)
    bank = booster.core.state.bank

    def copy(c, bound, i):
        options = {"cut": D, "curvature": c, "D": bound}
        if name == "linear":
            return naive_learners.Linear(1, 0.3, **options)
        if name == "network":
            start = booster.core.fresh_bank().grown(8, 8).inputs.W.reshape(-1, 3, 2)
            return naive_learners.Network(
                1, 0.3, hidden=3, start=lambda f, j: start[f, j, i], **options
            )
        return naive_learners.Stumps(1, 0.3, intercept=name == "intercepts", **options)

    want = run_listing(booster, copy, "squared", X, y, np.ones(len(y)))[:, 0]
    np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9)
    scales = getattr(bank, "inputs", bank).S
    assert scales[1:3].max() < 10  # both have fallen


@pytest.mark.parametrize("learner", [LinearSGD(), Ridge()], ids=repr)
def test_doubts_are_part_of_the_file(learner, tmp_path):
    X, y = wild_stream()
    for cut, doubtful in ((80, False), (92, True), (140, True)):
        whole, first = SpanBoost(learner, 2), SpanBoost(learner, 2)
        expected = whole.learn_many(X, y)
        first.learn_many(X[:cut], y[:cut])
        save(first, tmp_path / "model.sb")
        again = load(tmp_path / "model.sb")
        np.testing.assert_array_equal(again.learn_many(X[cut:], y[cut:]), expected[cut:])
        if isinstance(learner, LinearSGD):
            assert ("bank.inputs.doubts" in file_arrays(tmp_path / "model.sb")) == doubtful


def test_the_sum_of_weights_follows_a_scale_that_falls():
    X, y = wild_stream()
    model = SpanBoost(LinearSGD(dtype=F64), 2, feedback="linear", D=0.5)
    model.learn_many(X, y)
    bank = model.core.state.bank
    np.testing.assert_allclose(bank.mass, np.abs(bank.inputs.W).sum(axis=0), rtol=1e-9)
