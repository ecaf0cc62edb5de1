"""The rule that decides which files are shuffled."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanboost.data.batch import Batch
from spanboost.paper.row_order import LIMIT, gap_of_halves, headline_order, in_order, shuffle_name

labels = st.lists(st.integers(-5, 5), min_size=2, max_size=60)
quick = settings(max_examples=100, deadline=None, derandomize=True)


def plain_gap(values):
    """The same in plain Python: Welch's statistic, with the variances of the halves."""
    half = math.ceil(len(values) / 2)
    parts = values[:half], values[half:]
    means = [sum(part) / len(part) for part in parts]
    squares = [
        sum((v - m) ** 2 for v in part) / len(part) ** 2
        for part, m in zip(parts, means, strict=True)
    ]
    difference = abs(means[0] - means[1])
    if sum(squares) == 0:
        return math.inf if difference else 0.0
    return difference / math.sqrt(sum(squares))


@quick
@given(labels)
def test_the_gap_is_that_of_the_plain_formula(values):
    assert gap_of_halves(np.array(values)) == pytest.approx(plain_gap(values))


@quick
@given(labels, st.sampled_from([-3.0, 0.5, 7.0]), st.integers(-9, 9))
def test_units_do_not_matter(values, factor, shift):
    y = np.array(values, np.float64)
    assert gap_of_halves(factor * y + shift) == pytest.approx(gap_of_halves(y), abs=1e-6)


@quick
@given(labels)
def test_the_order_within_a_half_does_not_matter(values):
    y = np.array(values)
    first, second = np.array_split(y, 2)
    again = np.concatenate([np.sort(first), second[::-1]])
    assert gap_of_halves(again) == pytest.approx(gap_of_halves(y))


@quick
@given(st.integers(0, 2**32 - 1), st.floats(0.05, 0.95))
def test_a_shuffled_file_keeps_its_order(seed, share):
    """Exchangeable labels exceed ten standard errors with a probability of about 1e-23."""
    y = np.random.default_rng(seed).random(2000) < share
    assert headline_order(y) == "file"


def test_a_sorted_file_is_shuffled():
    y = np.repeat([0, 1], 500)
    assert gap_of_halves(y) == math.inf
    assert headline_order(y) == "shuffle0"
    mixed = np.concatenate([y[::10], y])  # the first part holds both classes
    assert gap_of_halves(mixed) > LIMIT
    assert headline_order(mixed) == "shuffle0"


@pytest.mark.parametrize("values", [[], [3.0], [2.0, 2.0, 2.0]])
def test_labels_without_variance_keep_their_order(values):
    assert gap_of_halves(np.array(values)) == 0
    assert headline_order(np.array(values)) == "file"


def test_the_limit_is_exclusive(monkeypatch):
    y = np.array([0.0, 2.0, 3.0, 5.0])  # means 1 and 4, variances 1 and 1: 3 standard errors
    assert gap_of_halves(y) == pytest.approx(3)
    monkeypatch.setattr("spanboost.paper.row_order.LIMIT", gap_of_halves(y))
    assert headline_order(y) == "file"
    monkeypatch.setattr("spanboost.paper.row_order.LIMIT", 2.99)
    assert headline_order(y) == "shuffle0"


def test_orders_of_rows():
    X = np.arange(20.0)[:, None]
    examples = Batch(X, X[:, 0], None, "here", np.arange(1, 21))
    assert in_order(examples, "file") is examples
    shuffled = [in_order(examples, shuffle_name(seed)) for seed in (0, 0, 1)]
    assert (shuffled[0].y == shuffled[1].y).all()
    assert (shuffled[0].y != shuffled[2].y).any()
    for one in shuffled:
        assert (one.X[:, 0] == one.y).all()
        assert sorted(one.y) == list(range(20))
