"""Regressions agree with a direct solution of their equations."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanboost.core.regressions import STRENGTHS, new_regressions


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.booleans())
@settings(max_examples=30, deadline=None)
def test_forecasts_solve_the_equations(seed, K, weighted):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(40, K)) * rng.lognormal(0, 3, K), rng.normal(size=40)
    weights = rng.lognormal(0, 1, 40) if weighted else np.ones(40)
    model, gram, moment = new_regressions(K, len(STRENGTHS)), np.zeros((K, K)), np.zeros(K)
    for t, (x, label, weight) in enumerate(zip(X, y, weights, strict=True)):
        for s, strength in enumerate(STRENGTHS):
            forecast = model.forecast(x, s)
            if t == 0:
                assert forecast == 0
                continue
            kept = 0.99999 ** np.arange(t - 1, -1, -1)
            ridge = strength * np.trace(gram) / (K * kept.sum()) * np.eye(K)
            now = np.average(weights[:t], weights=kept) * np.outer(x, x)
            expected = moment @ np.linalg.solve(gram + ridge + now, x)
            assert forecast == pytest.approx(expected, rel=1e-6, abs=1e-9)
        model.absorb(x, label, weight)
        gram = 0.99999 * gram + weight * np.outer(x, x)
        moment = 0.99999 * moment + weight * label * x
    assert model.sound


@given(st.integers(0, 2**32 - 1), st.floats(1e-6, 1e6), st.floats(1e-3, 1e3))
@settings(max_examples=20, deadline=None)
def test_units_and_weights_do_not_matter(seed, a, weight):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(30, 3)), rng.normal(size=30)
    plain, scaled, resized = (new_regressions(3, len(STRENGTHS)) for _ in range(3))
    for t, (x, label) in enumerate(zip(X, y, strict=True)):
        for s in range(len(STRENGTHS)):
            expected = a * plain.forecast(x, s)
            assert scaled.forecast(a * x, s) == pytest.approx(expected, rel=1e-6, abs=1e-9 * a)
            size = a if t > 10 else 1.0
            forecast = size * plain.forecast(x, s)
            assert resized.forecast(size * x, s) == pytest.approx(forecast, rel=1e-6, abs=1e-9 * a)
        plain.absorb(x, label, 1.0)
        scaled.absorb(a * x, a * label, weight)
        size = a if t > 10 else 1.0
        resized.absorb(size * x, size * label, 1.0)
        if t == 10:
            resized.resize(a)


def test_equal_experts_and_no_information():
    model = new_regressions(3, len(STRENGTHS))
    x = np.ones(3)
    for _ in range(50):
        assert model.forecast(np.zeros(3), 0) == 0
        model.absorb(np.zeros(3), 1.0, 1.0)
    for _ in range(2000):
        model.forecast(x, 0)
        model.absorb(x, 1.0, 1.0)
    assert model.forecast(x, 0) == pytest.approx(1, abs=0.01)
    assert model.forecast(x, 2) < model.forecast(x, 1) < model.forecast(x, 0)
