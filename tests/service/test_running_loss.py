"""The loss curve, the recent loss and the drift test of the service."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanboost import LinearSGD, SpanBoost
from spanboost.service.storage.running_loss import MAX_PAIRS, MAX_POINTS, RunningLoss

MODEL = SpanBoost(LinearSGD(), n=1)  # only its loss is used


def add_rows(y, predictions, cuts=(), weights=None, progress=None):
    """Add rows in blocks that end at the cuts."""
    progress = progress or RunningLoss()
    weights = np.ones(len(y)) if weights is None else weights
    ends = sorted({*cuts, len(y)} - {0})
    for first, last in zip([0, *ends], ends, strict=False):
        part = slice(first, last)
        progress.add(MODEL, y[part], weights[part], predictions[part], 0.0)
    return progress


def noise(rows, seed=0):
    return np.random.default_rng(seed).normal(size=rows)


@given(st.lists(st.integers(0, 3000), max_size=8), st.integers(0, 3000))
@settings(max_examples=20, deadline=None)
def test_blocks_and_restarts_do_not_change_the_state(cuts, stop):
    y, predictions = noise(3000), noise(3000, 1)
    weights = np.abs(noise(3000, 2)).round(1)
    whole = add_rows(y, predictions, (), weights)
    first = (
        add_rows(y[:stop], predictions[:stop], [c for c in cuts if c < stop], weights[:stop])
        if stop
        else RunningLoss()
    )
    again = RunningLoss(first.state())
    if stop < 3000:
        again = add_rows(
            y[stop:],
            predictions[stop:],
            [c - stop for c in cuts if c > stop],
            weights[stop:],
            again,
        )
    assert again.state() == whole.state()


def test_losses_match_the_rows():
    y, predictions = noise(2500), noise(2500, 1)
    weights = np.abs(noise(2500, 2))
    progress = add_rows(y, predictions, range(0, 2500, 77), weights)
    each = (y - predictions) ** 2
    assert progress.loss == pytest.approx(np.average(each, weights=weights))
    steps = [
        np.average(each[k : k + 100], weights=weights[k : k + 100]) for k in range(1500, 2500, 100)
    ]
    assert progress.recent == pytest.approx(np.mean(steps))
    assert list(progress.pairs) == list(zip(predictions[-MAX_PAIRS:], y[-MAX_PAIRS:], strict=True))
    assert len(progress.curve) <= MAX_POINTS
    for rows, weight, loss, _ in progress.curve:
        row = int(rows)
        assert weight == pytest.approx(weights[:row].sum())
        assert loss == pytest.approx((weights * each)[:row].sum())


def test_all_drifts_are_counted_but_only_the_last_are_kept():
    progress = RunningLoss({"drifts": list(range(100)), "drifted": 250})
    y = np.where(np.arange(10_000) < 5000, 1.0, 9.0) + 0.1 * noise(10_000)
    add_rows(y, np.zeros(10_000), progress=progress)
    assert (len(progress.drifts), progress.drifted) == (100, 251)
    assert RunningLoss(progress.state()).drifted == 251


def test_a_drift_is_detected_only_when_the_loss_rises():
    for seed in range(5):
        same = add_rows(noise(30_000, seed), np.zeros(30_000))
        assert same.drifts == []
    y = noise(20_000)
    y[10_000:] *= 2
    marks = add_rows(y, np.zeros(20_000)).drifts
    assert len(marks) == 1
    assert 10_000 < marks[0] <= 10_500
    y = noise(20_000)
    y[:10_000] *= 2  # an improvement is not a drift
    assert add_rows(y, np.zeros(20_000)).drifts == []


def test_infinite_losses_can_be_saved():
    with np.errstate(over="ignore", invalid="ignore"):
        progress = add_rows(np.array([1e200, 1.0]), np.zeros(2))
    assert progress.loss == np.inf
    assert RunningLoss(progress.state()).loss == np.inf
