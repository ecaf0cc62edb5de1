"""The bound on coverage: on any sequence, on every interval, and not looser than it must be."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanboost.models.quantiles.levels import LIMIT, STEP, new_levels
from spanboost.models.quantiles.residuals import WINDOW, new_residuals
from spanboost.theory.coverage import coverage_bound

LEVELS = np.array([0.05, 0.1, 0.5, 0.9, 0.95])
ROWS = 4096


def run(labels):
    """Return [rows, levels] whether each label is at or below the quantile.

    labels: called with the row number and the quantiles, so it can be an adversary.
    """
    levels, residuals = new_levels(LEVELS), new_residuals()
    below = np.zeros((ROWS, len(LEVELS)), bool)
    for t in range(ROWS):
        quantiles = np.array([residuals.read_quantile(odds) for odds in levels.used])
        assert (quantiles[1:] >= quantiles[:-1]).all()
        label = labels(t, quantiles)
        below[t] = label <= quantiles
        levels.move_levels(quantiles, label)
        residuals.add_residual(label)
    return below


def worst(below):
    """Return the largest ratio of an error to its bound, over dyadic intervals and suffixes."""
    sums = np.vstack([np.zeros(len(LEVELS)), np.cumsum(below - LEVELS, axis=0)])
    ratios = []
    for size in (2**k for k in range(4, 13)):
        bound = coverage_bound(size, STEP, LIMIT, len(LEVELS)) * size
        errors = np.abs(sums[size:] - sums[:-size])  # every interval of this size
        ratios.append(errors.max() / bound)
    return max(ratios)


def finite(value):
    return np.clip(value, -1e90, 1e90)


ADVERSARIES = {
    "above everything": lambda t, q: t * 1.0,
    "below everything": lambda t, q: -t * 1.0,
    "just above the median": lambda t, q: np.nextafter(finite(q[2]), np.inf),
    "between two levels": lambda t, q: finite(q[1]) / 2 + finite(q[2]) / 2,
    "flips": lambda t, q: (1.0 if t // 300 % 2 else -1.0) * (1 + t),
    "the outermost": lambda t, q: finite(q[4] + 1 if t % 2 else q[0] - 1),
    "grows": lambda t, q: float(2 ** (t % 64)),
}


@pytest.mark.parametrize("name", ADVERSARIES)
def test_the_bound_holds_on_every_interval_against(name):
    assert worst(run(ADVERSARIES[name])) <= 1


@given(st.integers(0, 2**32), st.floats(0, 1), st.sampled_from([1.0, 10.0, 1e6]))
@settings(max_examples=5, deadline=None)
def test_the_bound_holds_on_streams_whose_variance_jumps(seed, mix, jump):
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=ROWS) * np.where(np.arange(ROWS) // 512 % 2, jump, 1)
    aimed = rng.random(ROWS) < mix

    def label(t, q):
        return finite(q[t % 5]) + 1e-9 if aimed[t] else noise[t]

    assert worst(run(label)) <= 1


def test_the_bound_is_reached_within_a_factor():
    # labels beyond the highest quantile drive its log-odds from one limit to the other
    high = run(lambda t, q: (-1e6 - t) if t < 2000 else 1e6 + t)[2000:]
    first = int(np.argmax(high[:, 4]))  # until the quantile is infinite, every label is above
    share = abs(high[:first, 4].mean() - LEVELS[4])
    assert 0.4 < share / coverage_bound(first, STEP, LIMIT, len(LEVELS)) <= 1


def test_levels_are_right_on_a_stream_without_change():
    noise = np.random.default_rng(0).normal(size=ROWS)
    below = run(lambda t, q: noise[t])
    assert np.abs(below[WINDOW:].mean(axis=0) - LEVELS).max() < 0.01


def test_late_labels_widen_the_bound():
    assert coverage_bound(10_000, 0.05, 8, 5, 10) == pytest.approx(2 * (160 + 55) / 10_000)
    assert coverage_bound(10_000, 0.05, 8, 5) == pytest.approx(2 * (160 + 5) / 10_000)
    assert coverage_bound(3, 0.05, 8, 5) == 1


@pytest.mark.parametrize(
    ("name", "value"), [("rows", 0), ("step", 0), ("limit", -1), ("levels", 0), ("pending", -1)]
)
def test_arguments_outside_their_range_are_refused(name, value):
    good = {"rows": 10, "step": 0.1, "limit": 8, "levels": 1, "pending": 0}
    with pytest.raises(ValueError, match=name):
        coverage_bound(**good | {name: value})
