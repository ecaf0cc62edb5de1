"""The loss curve, the recent loss and the drift test of the service."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanboost import LinearSGD, SpanBoost
from spanboost.service.storage.exact_sum import HUGE, ExactSum
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
    first = 0
    for rows, weight, loss, _ in progress.curve:
        part, first = slice(first, int(rows)), int(rows)
        assert weight == pytest.approx(weights[part].sum())
        assert loss == pytest.approx((weights * each)[part].sum())


@pytest.mark.parametrize("wild", [1e10, 1e18, 1e300])
def test_a_huge_loss_does_not_change_the_figures_of_other_rows(wild):
    y, predictions = noise(3000), noise(3000, 1)
    y[1234] = wild
    with np.errstate(over="ignore", invalid="ignore"):
        before = RunningLoss(add_rows(y[:1500], predictions[:1500]).state())
        progress = RunningLoss(before.state())
        add_rows(y[1500:], predictions[1500:], range(0, 1500, 77), progress=progress)
        each = (y - predictions) ** 2
    assert progress.recent == pytest.approx(each[2000:].mean(), rel=1e-12)
    assert progress.loss_since(before) == pytest.approx(each[1500:].mean(), rel=1e-12)
    assert progress.loss_since(RunningLoss()) == pytest.approx(each.mean())
    ends = [int(point[0]) for point in progress.curve]
    for first, point in zip([0, *ends], progress.curve, strict=False):
        if not first <= 1234 < point[0]:
            assert point[2] == pytest.approx(each[first : int(point[0])].sum(), rel=1e-12)


@given(st.lists(st.floats(-1e305, 1e305), max_size=20), st.integers(0, 20))
def test_exact_sums_do_not_depend_on_groups_and_have_exact_differences(values, cut):
    whole, parts = ExactSum(values), ExactSum(values[:cut])
    before = ExactSum(parts.parts, parts.huge)
    parts.add(values[cut:])
    assert (parts.parts, parts.huge) == (whole.parts, whole.huge)
    rest = values[cut:]
    huge = any(abs(value) >= HUGE for value in rest)
    assert whole - before == (math.inf if huge else math.fsum(rest))


def test_a_state_of_an_earlier_version_continues():
    y, predictions = noise(2550), noise(2550, 1)
    each = (y - predictions) ** 2
    totals = each.cumsum()
    floats = lambda *values: [float(value).hex() for value in values]  # noqa: E731
    old = {
        "rows": 2050,
        "totals": floats(2050, totals[2049]),
        "stride": 8,
        "curve": [floats(row, row, totals[row - 1], 0.0) for row in range(8, 2051, 8)],
        "steps": floats(*each[:2000].reshape(-1, 100).mean(axis=1)),
        "last_step": floats(2000, totals[1999]),
    }
    progress = RunningLoss(old)
    assert progress.loss == pytest.approx(each[:2050].mean())
    before = RunningLoss(progress.state())
    add_rows(y[2050:], predictions[2050:], progress=progress)
    assert progress.loss_since(before) == pytest.approx(each[2050:].mean())
    assert progress.steps[20] == pytest.approx(each[2000:2100].mean())
    assert sum(point[2] for point in progress.curve) == pytest.approx(totals[2543])


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


@pytest.mark.filterwarnings("error")
def test_the_drift_test_of_wild_labels_issues_no_warning():
    y = noise(4000)
    y[0] = 1e120  # its loss is finite, and the square of that is not
    assert add_rows(y, np.zeros(4000)).drifts == []
