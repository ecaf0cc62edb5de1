"""The confidence sequence: against a plain transcription, exact expectations, and simulations."""

import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive_confidence import Path

from benchmarks.compare import KINDS
from spanboost.analysis.confidence_sequence import (
    LARGEST,
    SLOTS,
    add_values,
    new_sequence,
    restore_sequence,
)

VALUES = st.lists(
    st.one_of(st.floats(-3, 3), st.sampled_from([0.0, 1e-9, 40.0, -1e4])), min_size=1, max_size=40
)


@given(VALUES, st.sampled_from([0.001, 0.05, 0.5, 0.99]))
def test_widths_are_those_of_the_plain_transcription(values, level):
    values = [0.0 if abs(value) < 1e-12 else value for value in values]
    found = add_values(new_sequence(), np.array(values), level)
    for t, (total, width) in enumerate(found.tolist(), 1):
        path = Path(values[:t])
        assert total == pytest.approx(sum(path.x), abs=1e-12)
        exact = path.width(level)
        # Newton's method stops above the root; the smallest rates are left out
        assert exact * (1 - 1e-9) <= width <= exact * 1.02 or width == exact == math.inf


@given(VALUES)
def test_charges_are_never_lower_than_those_of_the_plain_transcription(values):
    values = [1e-6, *(0.0 if abs(value) < 1e-12 else value for value in values)]
    sequence, path = new_sequence(), Path(values)
    add_values(sequence, np.array(values), 0.05)
    assert sequence.counts[2] == path.doublings
    slots = path.doublings + np.arange(SLOTS)
    exact = np.array([path.charge(int(j)) for j in slots])
    charges = sequence.charges - np.log((slots + 1) * (slots + 2))
    assert (charges >= exact - 1e-14).all()
    kept = max(SLOTS - path.doublings, 0)
    np.testing.assert_allclose(charges[:kept], exact[:kept], rtol=1e-6, atol=1e-14)
    unit = 9 / 8 * path.first * 2.0**path.doublings
    squares = (
        sum((x - a) ** 2 for s, x, a in zip(path.s, path.x, path.a, strict=True) if s) / unit**2
    )
    assert sequence.sums[2] == pytest.approx(squares, rel=1e-6)


def expected_wealth(chance, start, sign, part=1):
    """Return the exact mean over all sequences of eight rows after the first.

    A row is 1 - chance with this chance, else -chance. `start` is the first row, over the largest.
    """
    expected = 0.0
    for ups in itertools.product((False, True), repeat=8):
        first = start * max(chance, 1 - chance)
        path = Path([first, *(1 - chance if up else -chance for up in ups)])
        share = math.prod(chance if up else 1 - chance for up in ups)
        # the mean of a row is 0 unless it is limited
        means = [chance * min(1 - chance, s) - (1 - chance) * min(chance, s) for s in path.s[1:]]
        expected += share * path.wealth(sign * (sum(path.x) - sum(means)), part)
    return expected


@pytest.mark.parametrize("start", [0.5, 0.1, 0.01])
@pytest.mark.parametrize("chance", [0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98])
def test_the_expected_wealth_is_at_most_1(chance, start):
    assert expected_wealth(chance, start, 1) <= 1 + 1e-12
    assert expected_wealth(chance, start, -1) <= 1 + 1e-12


def test_the_charges_are_as_low_as_they_can_be():
    assert expected_wealth(0.9, 0.5, 1) > 0.95
    assert expected_wealth(0.7, 0.5, 1, part=0.6) > 1


def looks(values, level=0.05):
    """Return whether an interval misses 0, ever."""
    total, width = add_values(new_sequence(), values, level).T
    return bool((np.abs(total) > width).any())


def fixed_time_looks(values):
    """Do the same with the usual interval, which is meant for one look."""
    rows = np.arange(1, len(values) + 1)
    means = np.cumsum(values) / rows
    deviations = np.sqrt(np.maximum(np.cumsum(values**2) / rows - means**2, 1e-300))
    return bool((np.abs(means) > 1.96 * deviations / np.sqrt(rows))[30:].any())


@pytest.mark.parametrize("kind", KINDS)
def test_equal_models_are_rarely_told_apart_at_any_row(kind):
    streams, wrong, control = 150, 0, 0
    for seed in range(streams):
        first, second = KINDS[kind](np.random.default_rng([seed, 3]), 1000, 0.0)
        wrong += looks(first - second)
        control += fixed_time_looks(first - second)
    assert wrong <= 0.05 * streams + 2 * math.sqrt(0.05 * 0.95 * streams)
    # the simulation can tell: looking at every row with intervals for one look fails it
    assert control > 0.05 * streams + 3 * math.sqrt(0.05 * 0.95 * streams)


def test_the_level_is_nearly_used_up_by_a_stream_that_bets_on_it():
    # stopping as soon as 0 is outside, and a large level: the share must be below, but not far
    level, streams = 0.5, 400
    wrong = sum(
        looks(np.random.default_rng([seed, 5]).choice([-1.0, 1.0], 3000), level)
        for seed in range(streams)
    )
    assert 0.1 * level < wrong / streams <= level


def test_a_small_difference_is_found_and_the_interval_contains_it():
    rng = np.random.default_rng(0)
    values = 0.05 + rng.normal(0, 1, 60_000)
    total, width = add_values(new_sequence(), values, 0.05).T
    rows = np.arange(1, len(values) + 1)
    assert (np.abs(total / rows - 0.05) <= width / rows).all()
    assert total[-1] > width[-1]
    # at most 2.2 times as wide as the interval for a single look
    assert 1.5 < width[-1] / (1.96 * math.sqrt(len(values))) < 2.2


@given(st.lists(st.integers(1, 99), max_size=5, unique=True), st.integers(0, 3))
def test_blocks_and_saved_states_do_not_change_a_bit(cuts, seed):
    values = np.random.default_rng(seed).standard_cauchy(100)
    whole = new_sequence()
    expected = add_values(whole, values, 0.05)
    sequence, found = new_sequence(), []
    for block in np.split(values, sorted(cuts)):
        found.append(add_values(sequence, block, 0.05))
        sequence = restore_sequence(json.loads(json.dumps(sequence.state())))
    np.testing.assert_array_equal(np.concatenate(found), expected)
    for one, other in zip(sequence, whole, strict=True):
        np.testing.assert_array_equal(one, other)


@given(
    st.lists(
        st.sampled_from(
            [0.0, 5e-324, 1e-300, 1.0, -1e10, 1e300, -1e308, math.inf, -math.inf, math.nan]
        ),
        max_size=60,
    )
)
def test_absurd_values_leave_finite_states(values):
    sequence = new_sequence()
    found = add_values(sequence, np.array(values), 0.05)
    assert not np.isnan(found).any()
    assert np.isfinite(found[:, 0]).all()
    assert np.isfinite(sequence.sums).all()
    assert np.isfinite(sequence.charges).all()
    assert sequence.sums[0] <= 8 * LARGEST
    assert sequence.counts[0] == len(values)


def test_one_absurd_value_does_not_hide_a_difference():
    values = 0.3 + np.random.default_rng(0).normal(0, 1, 5000)
    values[100] = -1e12
    sequence = new_sequence()
    total, width = add_values(sequence, values, 0.05)[-1]
    assert total > width
    assert sequence.counts[1] <= 4


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("counts", [0, 0]),
        ("counts", [-1, 0, 0]),
        ("counts", None),
        ("sums", ["0x0p0"] * 2),
        ("sums", ["inf", "0x0p0", "0x0p0"]),
        ("sums", [0.0, 0.0, 0.0]),
        ("charges", ["0x1p0"] * (SLOTS + 1)),
        ("charges", ["-0x1p0"] * SLOTS),
        ("charges", ["x"] * SLOTS),
    ],
)
def test_invalid_states_are_refused(field, value):
    with pytest.raises(ValueError, match=r"invalid"):
        restore_sequence(new_sequence().state() | {field: value})
