"""The sample of learned rows: the same for blocks of any size, bounded, uniform and recent."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spanboost import LinearSGD
from spanboost.rows import row_sample
from spanboost.rows.block import ObjectRows
from spanboost.rows.row_sample import (
    LARGEST,
    SMALLEST,
    STEP,
    WIDEST,
    WINDOW,
    RowMemory,
    RowSample,
)
from spanboost.rows.validation import Sparse


def encoded(X):
    return LinearSGD().encode(X, 1.0)


def offered(sizes, weights, number=0, new=RowSample):
    """Offer numbered rows in blocks; return the sample."""
    sample, start = new(), 0
    for size in sizes:
        part = weights[start : start + size]
        rows = np.arange(start, start + size, dtype=float)[:, None]
        sample.offer(encoded(rows), rows, part, number)
        start, number = start + size, number + np.count_nonzero(part)
    return sample


def kept(sample):
    return sample.labels[: sample.kept, 0].tolist()


@given(
    st.lists(st.integers(1, 400), min_size=1, max_size=8),
    st.integers(0, 2**32),
    st.sampled_from([0, 3000]),
)
def test_blocks_of_any_size_keep_the_same_rows(sizes, seed, number):
    total = sum(sizes)
    weights = np.random.default_rng(seed).integers(0, 3, total).astype(float)
    one, many = offered([total], weights, number), offered(sizes, weights, number)
    assert kept(one) == kept(many)
    assert kept(one) == kept(offered([1] * total, weights, number))
    np.testing.assert_array_equal(one.rows.X, many.rows.X)
    np.testing.assert_array_equal(one.rows.X[: one.kept, 0], kept(one))
    assert all(weights[int(t)] > 0 for t in kept(one))
    assert (one.weights[: one.kept] == [weights[int(t)] for t in kept(one)]).all()


def test_a_sample_that_was_saved_keeps_the_same_rows():
    rows = np.arange(5000, dtype=float)[:, None]
    whole = offered([5000], np.ones(5000))
    first, again = offered([3000], np.ones(3000)), RowSample()
    state = first.state()
    again.restore(encoded(state["X"]), state["labels"], state["weights"])
    again.offer(encoded(rows[3000:]), rows[3000:], np.ones(2000), 3000)
    assert kept(again) == kept(whole)


def test_no_row_is_kept_that_need_not_be_offered():
    whole, some, offers = offered([5000], np.ones(5000)), RowSample(), 0
    for t in range(5000):
        if some.may_keep(t):
            row = np.full((1, 1), float(t))
            some.offer(encoded(row), row, np.ones(1), t)
            offers += 1
    assert kept(some) == kept(whole)
    assert offers < 3000


def test_half_of_the_sample_is_uniform_and_later_forgets():
    half = LARGEST // 2
    early = np.array(kept(offered([WINDOW], np.ones(WINDOW))))
    assert len(set(early)) == LARGEST
    counts = np.histogram(early[:half], bins=8, range=(0, WINDOW))[0]
    assert abs(counts - half / 8).max() < 4 * np.sqrt(half / 8)
    late = np.array(kept(offered([10 * WINDOW], np.ones(10 * WINDOW))))
    assert (late[:half] > 5 * WINDOW).mean() > 0.97


def test_half_of_the_sample_is_recent_after_any_number_of_rows():
    for rows in (4000, WINDOW + 3, 4 * WINDOW):
        recent = np.array(kept(offered([rows], np.ones(rows)))[LARGEST // 2 :])
        assert (recent >= rows - LARGEST // 2 * STEP - STEP).mean() > 0.93
        assert len(set(recent % STEP)) == STEP  # no period of the stream is left out
    small = RowSample()
    for t in range(0, 2000, 100):
        X = np.tile(np.arange(t, t + 100.0)[:, None], (1, 2**15))
        small.offer(X, X[:, :1], np.ones(100), t)
    assert small.size == SMALLEST
    assert min(kept(small)[SMALLEST // 2 :]) >= 2000 - (SMALLEST // 2 + 1) * STEP


def test_rows_for_fits_are_uniform_or_the_last_ones():
    uniform = kept(offered([700] * 20, np.ones(14_000), new=lambda: RowMemory(1000, False)))
    counts = np.histogram(uniform, bins=7, range=(0, 14_000))[0]
    assert abs(counts - 1000 / 7).max() < 4 * np.sqrt(1000 / 7)
    last = kept(offered([700] * 20, np.ones(14_000), new=lambda: RowMemory(1000, True)))
    assert sorted(last) == list(range(13_000, 14_000))


def test_the_sample_is_bounded():
    assert RowSample().size_for(encoded(np.zeros((1, 3)))) == LARGEST
    assert RowSample().size_for(encoded(np.zeros((1, 1024)))) == row_sample.CELLS // 1024
    assert RowSample().size_for(np.zeros((1, 2**20))) == SMALLEST
    assert RowSample().size_for(ObjectRows(["anything"])) == LARGEST
    widths = [WIDEST, WIDEST + 1, 1]
    indptr = np.cumsum([0, *widths])
    columns = np.concatenate([np.arange(width) for width in widths])
    rows = encoded(Sparse(indptr, columns, np.ones(len(columns)), (3,)))
    sample = RowSample()
    sample.offer(rows, np.arange(3.0)[:, None], np.ones(3), 0)
    assert kept(sample) == [0, 2]
