"""Which class follows which, against plain Python."""

import numpy as np
import pytest
from naive_past_classes import NaivePastClasses

from spanboost.compiling.kernels import Caller
from spanboost.rows.past_classes import (
    correct_and_learn_classes,
    correct_classes,
    new_past_classes,
    widen_past_classes,
)


def make_stream(rows, classes, seed=0):
    """Return log-probabilities, sources with missing ones, and classes that often repeat."""
    rng = np.random.default_rng(seed)
    y = np.zeros(rows, np.int64)
    for t in range(1, rows):
        y[t] = y[t - 1] if rng.random() < 0.7 else rng.integers(0, classes)
    own = np.log(rng.dirichlet(np.ones(classes), rows))
    own[::50, 0] = -690.0  # a forecast that rules out a class
    last = np.concatenate([[np.nan], y[:-1]])
    season = np.where(rng.random(rows) < 0.2, np.nan, np.concatenate([[np.nan] * 7, y[:-7]]))
    return own, np.stack([last, season], axis=1).astype(float), y


def test_corrections_are_as_defined():
    own, sources, y = make_stream(1500, 4)
    state, out = new_past_classes(2, 4), np.zeros((1500, 4, 2))
    Caller()(correct_and_learn_classes, state, own, sources, y, np.ones(1500), out)
    naive = NaivePastClasses(2)
    for t in range(1500):
        np.testing.assert_allclose(out[t], naive.correct(own[t], sources[t]), rtol=1e-9, atol=1e-9)
        naive.learn(sources[t], y[t])
    np.testing.assert_allclose(state.weights, naive.weights, rtol=1e-9)
    assert state.weights[1] > 0.5  # the last label helps
    assert state.weights[0] < 0.2  # the forecast is noise
    assert state.sound


def test_rows_of_weight_0_and_predictions_change_nothing():
    own, sources, y = make_stream(300, 3)
    state, out = new_past_classes(2, 3), np.zeros((300, 3, 2))
    call = Caller()
    call(correct_and_learn_classes, state, own, sources, y, np.ones(300), out)
    before = [part.copy() for part in state[:-1]]
    again, ahead = np.zeros_like(out), np.zeros_like(out)
    call(correct_and_learn_classes, state, own, sources, y, np.zeros(300), again)
    call(correct_classes, state, own, sources, ahead)
    np.testing.assert_array_equal(again, ahead)
    for old, new in zip(before, state, strict=False):
        np.testing.assert_array_equal(old, new)


def test_room_for_more_classes_changes_no_bit():
    own, sources, y = make_stream(400, 3)
    wide_own = np.hstack([own, np.full((400, 2), -690.0)])
    call, out, wide_out = Caller(), np.zeros((400, 3, 2)), np.zeros((400, 5, 2))
    state = new_past_classes(2, 3)
    call(correct_and_learn_classes, state, own, sources, y, np.ones(400), out)
    call(
        correct_and_learn_classes,
        new_past_classes(2, 5),
        *(wide_own, sources, y, np.ones(400), wide_out),
    )
    np.testing.assert_array_equal(wide_out[:, :3], out)
    wide = widen_past_classes(state, 5)
    np.testing.assert_array_equal(wide.counts[:, :3, :3], state.counts)
    np.testing.assert_array_equal(wide.weights, state.weights)
    assert wide.totals[3:].sum() == 0


def test_one_surprise_does_little_harm():
    """A class that the forecast had ruled out moves no weight to the end of its range."""
    own, sources, y = make_stream(1000, 3, seed=1)
    good = np.full_like(own, np.log(0.05))
    good[np.arange(1000), y] = np.log(0.9)
    good[500] = -690.0
    good[500, (y[500] + 1) % 3] = 0.0
    state, out = new_past_classes(2, 3), np.zeros((1000, 3, 2))
    Caller()(correct_and_learn_classes, state, good, sources, y, np.ones(1000), out)
    right = out[np.arange(1000), y, 1]
    assert right[501:560].mean() > -0.6
    assert right[700:].mean() > right[300:500].mean() - 0.05


@pytest.mark.parametrize("name", ["counts", "totals", "weights", "curvature"])
def test_unsound_numbers_are_recognised(name):
    state = new_past_classes(2, 3)
    assert state.sound
    getattr(state, name).flat[0] = -1
    assert not state.sound
