"""The distribution of quantiles: distribution function, samples, and interpolated levels."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanboost import Intervals, LinearSGD, SpanBoost
from spanboost.models.quantiles.asked_levels import interpolate_levels
from spanboost.models.quantiles.distribution import distribution_function, draw_samples

LEVELS = (0.05, 0.25, 0.5, 0.9)
QUANTILES = st.lists(st.floats(-1e6, 1e6), min_size=4, max_size=4, unique=True).map(sorted)


def test_levels_next_to_infinite_quantiles_are_infinite():
    values = np.array([[-np.inf, -np.inf, 1.0, np.inf]])
    found = interpolate_levels(values, LEVELS, [0.01, 0.1, 0.3, 0.5, 0.7, 0.9])
    assert found.tolist() == [[-np.inf, -np.inf, -np.inf, 1.0, np.inf, np.inf]]


@given(QUANTILES, st.floats(0.051, 0.899))
def test_the_distribution_function_inverts_the_quantiles(quantiles, level):
    row = np.array([quantiles])
    value = interpolate_levels(row, LEVELS, [level])[0]
    found = distribution_function(row, LEVELS, value).item()
    again = interpolate_levels(row, LEVELS, [min(max(found, 0.05), 0.9)]).item()
    assert again == pytest.approx(value.item(), rel=1e-6, abs=1e-6 * (1 + np.ptp(quantiles)))


@given(QUANTILES, st.lists(st.floats(-1e7, 1e7), min_size=2, max_size=8).map(sorted))
def test_the_distribution_function_increases_from_0_to_1(quantiles, values):
    found = distribution_function(np.array([quantiles]), LEVELS, np.array(values))[0]
    assert (np.diff(found) >= 0).all()
    for value, chance in zip(values, found, strict=True):
        assert (chance == 0) == (value < quantiles[0])
        assert (chance == 1) == (value >= quantiles[-1])


def test_equal_and_infinite_quantiles_have_a_distribution_function():
    row = np.array([[-np.inf, 2.0, 2.0, np.inf]])
    found = distribution_function(row, LEVELS, np.array([1.0, 2.0, 3.0]))
    np.testing.assert_allclose(found, [[0.05, 0.5, 0.5]])


def test_samples_have_the_quantiles():
    row = np.array([[-3.0, -1.0, 0.0, 5.0]])
    drawn = draw_samples(row, LEVELS, 200_000, seed=0)
    np.testing.assert_allclose(np.quantile(drawn, LEVELS[1:3]), row[0, 1:3], atol=0.03)
    assert drawn.min() == -3
    assert drawn.max() == 5
    assert (draw_samples(row, LEVELS, 10, seed=1) == draw_samples(row, LEVELS, 10, seed=1)).all()


def test_models_have_both():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (2000, 1))
    y = 2 * X[:, 0] + rng.normal(size=2000)
    model = Intervals(SpanBoost(LinearSGD(), n=2, label_range="auto"))
    model.learn_many(X, y)
    found = model.predict_cdf([[0.5]], [-0.64, 1.0, 2.64])[0]  # 5, 50 and 95 % of the noise
    np.testing.assert_allclose(found, [0.05, 0.5, 0.95], atol=0.05)
    drawn = model.sample([[0.5], [-0.5]], n=2000, seed=0)
    assert drawn.shape == (2, 2000)
    middle = model.predict_quantiles([[0.5], [-0.5]], [0.5])[:, 0]
    np.testing.assert_allclose(np.median(drawn, axis=1), middle, atol=0.1)
    with pytest.raises(ValueError, match="n must be a positive integer"):
        model.sample(X, n=0)
    with pytest.raises(ValueError, match="values must be a list of numbers"):
        model.predict_cdf(X, [np.nan])


def test_samples_are_between_finite_quantiles():
    quantiles = np.array([[-np.inf, 1.0, 2.0, np.inf], [-np.inf, -np.inf, 3.0, np.inf]])
    samples = draw_samples(quantiles, LEVELS, 200, seed=0)
    assert samples[0].min() == 1
    assert samples[0].max() == 2
    assert (samples[1] == 3).all()


def test_a_model_without_residuals_has_no_samples():
    model = Intervals(SpanBoost(LinearSGD(), n=2))
    with pytest.raises(ValueError, match="sample needs residuals to draw from: learn labels first"):
        model.sample([[1.0]], n=3)
