"""Compares the aggregators with plain formulas, and their regrets with the bounds.

For a tight bound, the test uses a stream whose regret is close to it, so that the test would fail
with half of any constant in the bound.
"""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanboost.core.experts import (
    concave_regret,
    hedge_rate,
    hedge_regret,
    interval_regret,
    new_hedge,
    new_ridge,
    new_share,
    ridge_regret,
    shared_regret,
)

RATE = 0.5  # squared loss on [0, 1] is exp-concave at 1 / (2 R^2)
SEEDS = st.integers(0, 2**32 - 1)


def squared(aggregator, forecasts, labels, rate=RATE):
    """Return the squared losses of an aggregator [T] and of the experts [T, K]."""
    ours = np.empty(len(labels))
    theirs = (forecasts - labels[:, None]) ** 2
    for t, y in enumerate(labels):
        ours[t] = (aggregator.weights @ forecasts[t] - y) ** 2
        aggregator.charge(theirs[t], rate)
    return ours, theirs


def random_stream(seed, K, T):
    """Return forecasts and labels in [0, 1]; the experts are good, bad and constant ones."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, T) * 1.0 if seed % 2 else rng.random(T)
    noise = rng.random(K)
    forecasts = np.where(rng.random((T, K)) < noise, labels[:, None], rng.random((T, K)))
    forecasts[:, 0] = rng.integers(0, 2)
    return forecasts, labels


def adversarial(aggregator, K, T, rng):
    """Return the regret against labels that maximise the loss of each single round."""
    regret = np.zeros(K)
    for _ in range(T):
        forecasts = rng.integers(0, 2, K) * 1.0
        mean = aggregator.weights @ forecasts
        y = 1.0 if mean < 0.5 else 0.0
        losses = (forecasts - y) ** 2
        regret += (mean - y) ** 2 - losses
        aggregator.charge(losses, RATE)
    return regret.max()


@given(SEEDS, st.integers(2, 6), st.floats(0.01, 10))
def test_hedge_agrees_with_the_formula(seed, K, rate):
    losses = np.random.default_rng(seed).normal(size=(20, K)) * 10
    hedge = new_hedge(K)
    for t in range(20):
        hedge.charge(losses[t], rate)
        expected = np.exp(-rate * (sums := losses[: t + 1].sum(axis=0)) + rate * sums.min())
        np.testing.assert_allclose(hedge.weights, expected / expected.sum(), rtol=1e-7, atol=1e-12)


@given(SEEDS, st.integers(2, 4))
@settings(max_examples=20)
def test_fixed_share_is_a_mixture_of_all_sequences_of_experts(seed, K):
    T = 5
    losses = np.random.default_rng(seed).random((T, K))
    share = new_share(K)
    sequences = np.array(np.meshgrid(*[range(K)] * (T + 1))).reshape(T + 1, -1)
    chance = np.full(sequences.shape[1], 1 / K)
    for t in range(T):
        share.charge(losses[t], RATE)
        same = sequences[t] == sequences[t + 1]
        shared = 1 / (t + 2)
        chance *= np.exp(-RATE * losses[t][sequences[t]])
        chance *= shared / K + (1 - shared) * same
        expected = np.bincount(sequences[t + 1], chance, K)
        np.testing.assert_allclose(share.weights, expected / expected.sum(), rtol=1e-9)


@given(SEEDS, st.integers(2, 8), st.integers(1, 200))
def test_regret_of_hedge_under_exp_concave_losses(seed, K, T):
    forecasts, labels = random_stream(seed, K, T)
    ours, theirs = squared(new_hedge(K), forecasts, labels)
    assert ours.sum() <= theirs.sum(axis=0).min() + concave_regret(K, RATE) + 1e-9


@given(SEEDS, st.integers(2, 8))
@settings(max_examples=20)
def test_regret_against_an_adversary(seed, K):
    rng = np.random.default_rng(seed)
    assert adversarial(new_hedge(K), K, 100, rng) <= concave_regret(K, RATE)
    assert adversarial(new_share(K), K, 100, rng) <= shared_regret(K, 100, 0, RATE)


def needle(K, T, best):
    """Return forecasts and labels for which one expert is right and all others are wrong."""
    forecasts = np.zeros((T, K))
    forecasts[np.arange(T), best] = 1
    return forecasts, np.ones(T)


@pytest.mark.slow
def test_the_bound_of_hedge_is_tight():
    K = 100_000
    ours, theirs = squared(new_hedge(K), *needle(K, 60, 7))
    bound = concave_regret(K, RATE)
    assert theirs[:, 7].sum() == 0
    assert 0.85 * bound < ours.sum() <= bound


def test_the_bound_of_fixed_share_is_tight():
    K, T, switches = 2000, 500, 4
    best = np.repeat(np.arange(switches + 1), T // (switches + 1))
    ours, theirs = squared(new_share(K), *needle(K, T, best))
    bound = shared_regret(K, T, switches, RATE)
    assert theirs[np.arange(T), best].sum() == 0
    assert 0.75 * bound < ours.sum() <= bound
    stubborn, _ = squared(new_hedge(K), *needle(K, T, best))
    assert stubborn.sum() > 1.5 * bound


@given(SEEDS, st.integers(2, 6), st.integers(2, 100))
def test_regret_of_fixed_share_against_experts_that_change(seed, K, T):
    forecasts, labels = random_stream(seed, K, T)
    rng = np.random.default_rng(seed)
    cuts = np.sort(rng.integers(0, T, 2))
    best = rng.integers(0, K, 3)[np.searchsorted(cuts, np.arange(T), side="right")]
    switches = int((np.diff(best) != 0).sum())
    ours, theirs = squared(new_share(K), forecasts, labels)
    allowed = shared_regret(K, T, switches, RATE)
    assert ours.sum() <= theirs[np.arange(T), best].sum() + allowed + 1e-9


@given(SEEDS, st.integers(2, 6), st.integers(0, 7))
@settings(max_examples=30)
def test_regret_of_fixed_share_over_every_interval_of_a_dyadic_cover(seed, K, power):
    T = 2**power
    forecasts, labels = random_stream(seed, K, T)
    ours, theirs = squared(new_share(K), forecasts, labels)
    for size in (2**j for j in range(power + 1)):
        for last in range(size, T + 1, size):
            part = slice(last - size, last)
            allowed = interval_regret(K, last, RATE)
            assert ours[part].sum() <= theirs[part].sum(axis=0).min() + allowed + 1e-9


def test_the_bound_over_an_interval_is_tight():
    K, T = 2000, 512
    best = np.repeat([0, 1], T // 2)  # the second half is an interval with another best expert
    ours, theirs = squared(new_share(K), *needle(K, T, best))
    assert theirs[T // 2 :, 1].sum() == 0
    bound = interval_regret(K, T, RATE)
    assert 0.75 * bound < ours[T // 2 :].sum() <= bound


@given(SEEDS, st.integers(2, 6), st.integers(1, 200))
def test_regret_of_hedge_under_bounded_losses(seed, K, T):
    losses = np.random.default_rng(seed).random((T, K)) * 3
    hedge, ours = new_hedge(K), 0.0
    for t in range(T):
        ours += hedge.weights @ losses[t]
        hedge.charge(losses[t], hedge_rate(K, t + 2, 3.0))
    assert ours <= losses.sum(axis=0).min() + hedge_regret(K, T, 3.0)


@given(SEEDS, st.integers(1, 5), st.floats(0.01, 10))
@settings(max_examples=50)
def test_ridge_regression_agrees_with_the_formula_and_the_bound(seed, K, ridge):
    rng = np.random.default_rng(seed)
    T = 60
    X, y = rng.normal(size=(T, K)), rng.uniform(-2, 2, T)
    weights = rng.integers(1, 4, T)
    plain, weighted = new_ridge(K, ridge), new_ridge(K, ridge)
    A, b, Aw, bw, ours = ridge * np.eye(K), np.zeros(K), ridge * np.eye(K), np.zeros(K), 0.0
    for t in range(T):
        x = X[t]
        A += np.outer(x, x)
        Aw += weights[t] * np.outer(x, x)
        forecast = plain.forecast(x, 1.0)
        assert forecast == pytest.approx(b @ np.linalg.solve(A, x), rel=1e-6, abs=1e-9)
        heavy = weighted.forecast(x, float(weights[t]))
        assert heavy == pytest.approx(bw @ np.linalg.solve(Aw, x), rel=1e-6, abs=1e-9)
        plain.absorb(x, y[t], 1.0)
        weighted.absorb(x, y[t], float(weights[t]))
        b += y[t] * x
        bw += weights[t] * y[t] * x
        ours += (forecast - y[t]) ** 2
    u = np.linalg.solve(A, b)
    size = np.linalg.norm(X, axis=1).max()
    bound = ridge_regret(K, T, ridge, size, 2.0, float(np.linalg.norm(u)))
    assert ours <= ((X @ u - y) ** 2).sum() + bound


def test_the_bound_of_ridge_regression_is_tight():
    T, label = 3000, 3.0
    model, ours, x = new_ridge(1, 1.0), 0.0, np.ones(1)
    labels = np.empty(T)
    for t in range(T):
        forecast = model.forecast(x, 1.0)
        labels[t] = -label if forecast > 0 else label
        model.absorb(x, labels[t], 1.0)
        ours += (forecast - labels[t]) ** 2
    u = labels.sum() / (1 + T)
    regret = ours - ((labels - u) ** 2).sum()
    bound = ridge_regret(1, T, 1.0, 1.0, label, u)
    assert 0.85 * bound < regret <= bound


def test_the_bounds_by_hand():
    assert concave_regret(10, 0.5) == pytest.approx(2 * math.log(10))
    assert shared_regret(10, 100, 2, 0.5) == pytest.approx(6 * math.log(1000))
    assert ridge_regret(2, 10, 0.5, 2.0, 3.0, 4.0) == pytest.approx(8 + 18 * math.log(41))
