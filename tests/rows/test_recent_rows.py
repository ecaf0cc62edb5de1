"""Recent rows against plain Python: nearest neighbours and naive Bayes."""

import numpy as np
import pytest
from naive_recent import NaiveRecent

from spanboost.compiling.kernels import Caller
from spanboost.rows.block import Cells, Rows, block_of
from spanboost.rows.recent_classes import (
    FADE,
    KEPT,
    LEAST,
    new_recent_classes,
    widen_classes,
)
from spanboost.rows.recent_rows import MOST, NEAREST, WINDOW, new_recent_rows

SUDDEN = WINDOW + 120  # the row after which the stream changes


def vote_and_learn(rows, classes, X, own, labels, votes, chances):
    """Predict every row, then learn it."""
    for t in range(own.shape[0]):
        rows.load_row(X.row(t))
        rows.vote(own[t], votes[t])
        if classes.weight.shape[0] > 0:
            classes.find_probabilities(rows, own[t], chances[t])
            classes.learn_trust(chances[t], int(labels[t]))
        rows.learn_row(X.row(t), labels[t])
        if classes.weight.shape[0] > 0:
            if t == SUDDEN:
                classes.forget()
            classes.learn_class(rows, int(labels[t]))


def make_stream(number, classes, seed=0):
    rng = np.random.default_rng(seed)
    numbers = (rng.normal(size=(number, 3)) * [1, 10, 0.1] + [0, 100, 0]).astype(np.float32)
    numbers[rng.random((number, 3)) < 0.05] = np.nan
    numbers[0] = 0  # the mean is not known yet
    codes = rng.integers(-1, 3, (number, 2))
    if classes:
        labels = (numbers[:, 0] > 0).astype(float) + (rng.random(number) < 0.2)
        own = rng.dirichlet(np.ones(classes), number)
    else:
        labels = rng.normal(size=number)
        own = rng.normal(size=(number, 1))
    return numbers, codes, labels, own


@pytest.mark.parametrize("classes", [0, 3])
def test_votes_and_probabilities_are_as_defined(classes):
    number = WINDOW + 150
    numbers, codes, labels, own = make_stream(number, classes)
    state, sums = new_recent_rows(5), new_recent_classes(classes, 5)
    votes, chances = np.zeros_like(own), np.zeros_like(own)
    X = Cells(*block_of(Rows(numbers, codes), np.float32, None))
    Caller()(vote_and_learn, state, sums, X, own, labels, votes, chances)
    naive = NaiveRecent(WINDOW, NEAREST, FADE, LEAST)
    for t in range(number):
        if t < 100 or t > number - 60:
            expected = naive.vote(numbers[t], codes[t], own[t])
            np.testing.assert_allclose(votes[t], expected, rtol=2e-4, atol=2e-5)
        if classes:
            expected = naive.bayes(numbers[t], own[t])
            np.testing.assert_allclose(chances[t], expected, rtol=1e-6, atol=1e-9)
            naive.learn_trust(expected, labels[t])
            if t == SUDDEN:
                naive.forget(KEPT)
        naive.learn(numbers[t], codes[t], labels[t])
    if classes:
        assert naive.trust < 0.99  # else nothing was learned about it
        assert sums.trust[0] == pytest.approx(naive.trust, rel=1e-6)


def test_columns_of_sparse_rows_get_coordinates_as_they_appear():
    state = new_recent_rows(2)
    X = Cells(*block_of(np.array([[0, 5.0, 0], [1.0, 0, 2.0]], np.float32), np.float32, None))
    state.learn_row(X.row(0), 1.0)
    assert state.used[0] == 2  # the third column has no room
    wide = state.widened(3)
    wide.learn_row(X.row(1), 2.0)
    assert wide.used[0] == 3
    np.testing.assert_array_equal(wide.values[:, :2], [[0, 1], [5, 0], [0, 2]])
    assert wide.sound


def test_wider_sums_are_the_same():
    sums = new_recent_classes(2, 3)
    sums.weight[:], sums.mean[:], sums.square[:], sums.trust[:] = 1, 2, 3, 0.4
    wide = widen_classes(sums, 4, 5)
    np.testing.assert_array_equal(wide.weight, [1, 1, 0, 0])
    assert wide.mean[:2, :3].min() == 2
    assert wide.square.sum() == sums.square.sum()
    assert wide.trust[0] == 0.4


def test_dependent_columns_lower_the_trust_in_naive_bayes():
    """One column, twelve times: the densities without a power are as sure as twelve columns."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 2500).astype(float)
    column = (labels + rng.normal(0, 1, 2500)).astype(np.float32)
    X = Cells(*block_of(np.repeat(column[:, None], 12, axis=1), np.float32, None))
    own, chances = np.full((2500, 2), 0.5), np.zeros((2500, 2))
    sums = new_recent_classes(2, 12)
    Caller()(vote_and_learn, new_recent_rows(12), sums, X, own, labels, np.zeros_like(own), chances)
    right = chances[np.arange(2500), labels.astype(int)][500:]
    best = 1 / (1 + np.exp((0.5 - column[500:]) * (2 * labels[500:] - 1)))  # of both normal classes
    assert 0.05 <= sums.trust[0] < 0.15
    assert -np.log(right).mean() < -np.log(best).mean() + 0.02


def test_wild_rows_leave_naive_bayes_sound():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 3000).astype(float)
    values = (labels[:, None] + rng.normal(0, 1, (3000, 2))).astype(np.float32)
    values[1500], values[1501] = [3e38, -3e38], [np.nan, 1e30]
    X = Cells(*block_of(values, np.float32, None))
    own, chances = np.full((3000, 2), 0.5), np.zeros((3000, 2))
    sums = new_recent_classes(2, 2)
    Caller()(vote_and_learn, new_recent_rows(2), sums, X, own, labels, np.zeros_like(own), chances)
    assert sums.sound
    assert np.isfinite(chances).all()


def test_extreme_values_give_finite_votes():
    state = new_recent_rows(2)
    values = np.array([[1e38, -1e38], [-1e38, 1e38], [0, 0], [3e38, -3e38]], np.float32)
    X, own, out = Cells(*block_of(values, np.float32, None)), np.zeros(1), np.zeros(1)
    with np.errstate(over="ignore"):  # as in compiled code
        for t in range(4):
            state.load_row(X.row(t))
            state.vote(own, out)
            assert np.isfinite(out).all()
            state.learn_row(X.row(t), 1e308)


def test_only_the_first_columns_are_coordinates():
    wide = np.ones((1, 3 * MOST), np.float32)
    state = new_recent_rows(MOST)
    X = Cells(*block_of(wide, np.float32, None))
    state.learn_row(X.row(0), 0.0)
    assert state.used[0] == MOST
    assert state.sound
    state.place[0] = MOST + 1
    assert not state.sound
