"""The coverage of the service's intervals over time, and the last intervals."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanboost.service.storage.running_intervals import MAX_POINTS, MAX_ROWS, RunningIntervals


def some_rows(n, seed=0):
    rng = np.random.default_rng(seed)
    y, predictions = rng.normal(size=n), rng.normal(size=n)
    intervals = np.column_stack([predictions - 1, predictions + 1])
    intervals[:20] = -np.inf, np.inf
    return y, (rng.random(n) < 0.9).astype(float), predictions, intervals


@given(st.lists(st.integers(0, 400), min_size=1, max_size=8), st.integers(0, 8))
@settings(max_examples=20, deadline=None)
def test_blocks_and_restarts_do_not_change_the_figures(sizes, stop):
    rows = some_rows(sum(sizes))
    whole, parts = RunningIntervals(), RunningIntervals()
    whole.add(*rows)
    ends = np.cumsum([0, *sizes])
    for k in range(len(sizes)):
        if k == stop:
            parts = RunningIntervals(json.loads(json.dumps(parts.state())))
        parts.add(*(part[ends[k] : ends[k + 1]] for part in rows))
    assert parts.state() == whole.state()


def test_the_figures_are_those_of_a_plain_count():
    y, weights, predictions, intervals = some_rows(30_000)
    found = RunningIntervals()
    found.add(y, weights, predictions, intervals)
    kept = weights > 0
    inside = ((intervals[:, 0] <= y) & (y <= intervals[:, 1]))[kept]
    assert (found.rows, found.inside) == (kept.sum(), inside.sum())
    assert MAX_POINTS / 2 <= len(found.curve) <= MAX_POINTS
    for rows, covered in found.curve:
        assert rows % found.stride == 0
        assert covered == inside[:rows].sum()
    expected = np.column_stack([predictions, y, intervals])[kept][-MAX_ROWS:]
    assert (np.array(found.last) == expected).all()


def test_there_is_nothing_before_the_first_row():
    empty = RunningIntervals()
    assert RunningIntervals(empty.state()).rows == 0
    with pytest.raises(IndexError):
        empty.last[0]
