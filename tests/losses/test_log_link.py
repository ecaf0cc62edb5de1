"""Losses with a log link against scikit-learn's deviances, and their constants against a search."""

import math

import numpy as np
import pytest
from sklearn.metrics import mean_tweedie_deviance

from spanboost.losses import Gamma, Poisson, Tweedie, constant, has_log_link, radius, resolve
from spanboost.losses.log_link import MOST

LOSSES = [Poisson(), Gamma(), Tweedie(1.2), Tweedie(1.5), Tweedie(1.9)]
RADII = [0.05, 0.5, 1.0, 2.0, 4.0]


def labels_of(loss):
    """Return labels up to 2, for which the constants hold, with both ends."""
    return np.append(1e-9 if isinstance(loss, Gamma) else 0.0, np.linspace(0.05, MOST, 40))


def test_names():
    assert resolve("poisson") == Poisson()
    assert resolve("gamma") == Gamma()
    assert resolve("tweedie:1.5") == Tweedie(1.5)
    assert all(map(has_log_link, LOSSES))
    assert not has_log_link(resolve("squared"))
    for name in ("tweedie", "tweedie:1", "tweedie:2", "tweedie:x"):
        with pytest.raises(ValueError, match="tweedie:POWER"):
            resolve(name)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_value_is_half_the_deviance(loss):
    rng = np.random.default_rng(0)
    y, mean = rng.gamma(1, 5, 50) + 1e-3, rng.gamma(1, 5, 50) + 1e-3
    if loss.takes_zero:
        y[:10] = 0
    values = [loss.value(label, math.log(m)) for label, m in zip(y, mean, strict=True)]
    assert 2 * np.mean(values) == pytest.approx(
        mean_tweedie_deviance(y, mean, power=loss.power), rel=1e-9
    )


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_gradient_is_the_derivative(loss):
    for label in labels_of(loss)[1:]:
        for y in np.linspace(-3, 3, 13):
            h = 1e-5
            slope = (loss.value(label, y + h) - loss.value(label, y - h)) / (2 * h)
            assert loss.gradient(label, y) == pytest.approx(slope, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("b", RADII)
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_constants_are_the_largest_that_a_search_finds(loss, b):
    points, outside = np.linspace(-b, b, 401), np.geomspace(1e-6, 5.0, 60)
    slopes = np.array([[loss.gradient(label, y) for y in points] for label in labels_of(loss)])
    L = np.abs(slopes).max()
    assert constant(loss, "L", b) == pytest.approx(L, rel=1e-3)
    beta = (np.diff(slopes, axis=1) / np.diff(points)).max()
    assert beta * (1 - 1e-9) <= constant(loss, "beta", b) <= beta * 1.05
    eps = max(
        (loss.value(label, sign * b) - loss.value(label, sign * (b + far))) / far
        for label in labels_of(loss)
        for sign in (-1, 1)
        for far in outside
    )
    assert constant(loss, "eps", b) == pytest.approx(eps, rel=1e-3)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_the_radius_is_finite_and_moderate(loss):
    assert 1 <= radius(loss, 0.1, 100, 1.0) < 5


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_a_step_by_the_curvature_never_passes_the_label(loss):
    for label in (1e-6, 0.5, 1.0, 3.0, 1e6):
        for y in (-4.0, 0.0, 4.0):
            step = -loss.gradient(label, y) / loss.curvature(label, y)
            distance = math.log(label) - y
            assert -1 - 1e-9 <= step <= max(distance, 0.0) + 1e-3
            assert step * distance >= 0
