"""Label ranges that follow the labels: `label_range="auto"` and `"auto-zero"`."""

import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_labels import NaiveRange

from spanboost import LabelWarning
from spanboost.compiling.kernels import plain
from spanboost.losses import Squared, SquaredEuclidean
from spanboost.rows.breathing_labels import BreathingLabels
from spanboost.rows.labels import GrowingLabels, LabelHealth

checked = settings(max_examples=60, deadline=None, derandomize=True)
pytestmark = pytest.mark.filterwarnings("ignore::spanboost.LabelWarning")

NAMES = st.sampled_from(["auto", "auto-zero"])
ABSURD = [300.0, -1e4, 1e9, -1e12]


def new_labels(label_range="auto", d=1):
    return BreathingLabels(Squared() if d == 1 else SquaredEuclidean(d), d, label_range)


def noise(T, seed=0):
    return np.random.default_rng(seed).normal(size=T)


def follow(labels, y, weights=None):
    """Learn a block; return the learned labels, and (row, centre, half, exact) of the changes."""
    weights = np.ones(len(y)) if weights is None else weights
    rows = labels.rows
    plan = labels.plan(y, weights)
    labels.count(weights, plan.after, plan.ends)
    for new in plan.changes:
        labels.change(new)
    changes = [(rows + new.row, *new.centre, new.half, new.exact) for new in plan.changes]
    return plan.learned, changes


def follow_naive(y, weights, around_first):
    """Do the same with the naive rule."""
    naive, learned, changes = NaiveRange(around_first), np.array(y), []
    for row, (label, weight) in enumerate(zip(y.tolist(), weights, strict=True)):
        if weight > 0:
            learned[row], new = naive.learn(label)
            changes += [(row, *one) for one in new]
    return naive, learned, changes


def equal_states(one, other):
    assert (one.centre, one.half) == (other.centre, other.half)
    assert (one.rows, one.seen) == (other.rows, other.seen)
    for a, b in zip(one.history[:5], other.history[:5], strict=True):
        np.testing.assert_array_equal(a, b)


@st.composite
def segments(draw):
    """Draw a stretch of labels: level, scale, trend, how many are absurd."""
    T, seed = draw(st.integers(1, 500)), draw(st.integers(0, 2**32))
    rng = np.random.default_rng(seed)
    level = draw(st.sampled_from([0.0, 10.0, -1e3, 1e6]))
    scale = 10.0 ** draw(st.integers(-4, 6)) * draw(st.sampled_from([0.0, 1.0, 1.0, 1.0]))
    y = level + scale * draw(
        st.sampled_from(
            [
                rng.normal(size=T),
                rng.normal(size=T).cumsum(),
                0.3 * np.arange(T),
                rng.random(T) < 0.1,
            ]
        )
    )
    absurd = rng.random(T) < draw(st.sampled_from([0.0, 0.0, 0.01, 0.1, 0.5]))
    return np.where(absurd, draw(st.sampled_from(ABSURD)) * rng.choice([1, 0.5], T), y)


RUNS = st.lists(  # runs of equal labels, most of them short or longer than the recent labels
    st.tuples(st.sampled_from([0.0, 3.0, 1e9]), st.sampled_from([1, 1, 1, 2, 64, 1100])),
    min_size=1,
    max_size=8,
).map(lambda runs: np.concatenate([np.full(number, label) for label, number in runs]))
STREAMS = st.lists(segments(), min_size=1, max_size=6).map(np.concatenate) | RUNS


# --------------------------------------------------------------------------------------------
# The rule


@checked
@given(STREAMS, NAMES, st.integers(0, 2**32))
def test_the_range_follows_the_rule_label_by_label(y, label_range, seed):
    weights = np.random.default_rng(seed).choice([0.0, 0.5, 1.0], len(y), p=[0.05, 0.05, 0.9])
    labels = new_labels(label_range)
    learned, changes = follow(labels, y, weights)
    naive, expected, naive_changes = follow_naive(y, weights, label_range == "auto")
    close = 1e-6 * max(naive.half, abs(naive.centre))
    np.testing.assert_allclose(learned[:, 0], expected, rtol=1e-9, atol=close)
    assert [(row, exact) for row, _, _, exact in changes] == [
        (row, exact) for row, _, _, exact in naive_changes
    ]
    got = np.array([change[1:3] for change in changes])
    wanted = np.array([change[1:3] for change in naive_changes])
    np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-6 * np.abs(wanted).max(initial=0))
    assert labels.health.clipped == naive.clipped


@checked
@given(STREAMS, NAMES, st.integers(0, 2**32))
def test_blocks_of_any_size_and_single_labels_give_the_same_range(y, label_range, seed):
    rng = np.random.default_rng(seed)
    weights = rng.choice([0.0, 1.0], len(y), p=[0.1, 0.9])
    whole, split = new_labels(label_range), new_labels(label_range)
    expected, changes = follow(whole, y, weights)
    learned, found, t = np.empty_like(expected), [], 0
    while t < len(y):
        label = split.single(float(y[t]))
        if label is not None and weights[t] == 1 and rng.random() < 0.7:
            assert split.plan(y[t : t + 1], weights[t : t + 1]).labels.tolist() == [[label]]
            learned[t] = y[t]
            split.count_single(float(y[t]))
            t += 1
            continue
        last = t + int(rng.integers(1, 100))
        learned[t:last], new = follow(split, y[t:last], weights[t:last])
        found += new
        t = min(last, len(y))
    np.testing.assert_array_equal(learned, expected)
    assert found == changes
    equal_states(split, whole)


@pytest.mark.parametrize("label_range", ["auto", "auto-zero"])
def test_equal_labels_count_the_rows_of_each_other(label_range):
    y = noise(400)
    one, other, alone = (new_labels(label_range) for _ in range(3))
    for labels in (one, other, alone):
        follow(labels, y[:70])
    for t in range(70, 300):
        label = one.single(float(y[t]))
        if label is None:
            for labels in (one, other, alone):
                follow(labels, y[t : t + 1])
            continue
        one.count_single(float(y[t]))
        other.count_as(one)
        assert alone.single(float(y[t])) == label
        alone.count_single(float(y[t]))
    equal_states(other, alone)
    assert other.ends == alone.ends
    follow(one, y[300:])  # a block no longer counts for both
    equal_states(other, alone)


@settings(parent=checked, max_examples=20)
@given(STREAMS, NAMES)
def test_compiled_and_plain_agree_bit_for_bit(y, label_range):
    compiled, oracle = new_labels(label_range), new_labels(label_range)
    got = follow(compiled, y)
    with plain():
        expected = follow(oracle, y)
    np.testing.assert_array_equal(got[0], expected[0])
    assert got[1] == expected[1]
    equal_states(compiled, oracle)


@settings(parent=checked, max_examples=20)
@given(STREAMS, NAMES)
def test_a_plan_changes_nothing_and_labels_lie_in_the_range(y, label_range):
    labels = new_labels(label_range)
    before = pickle.dumps(labels)
    plan = labels.plan(y, np.ones(len(y)))
    labels.warned = labels.warned_of_units = False  # a plan warns only once
    assert pickle.dumps(labels) == before
    assert (np.abs(plan.labels) <= 1).all()


@settings(parent=checked, max_examples=20)
@given(STREAMS, NAMES, st.integers(-30, 30))
def test_other_units_of_the_labels_change_nothing_else(y, label_range, power):
    here, there, a = new_labels(label_range), new_labels(label_range), 2.0**power
    learned, changes = follow(here, y)
    got, scaled = follow(there, a * y)
    np.testing.assert_array_equal(got, a * learned)
    assert scaled == [(row, a * centre, a * half, exact) for row, centre, half, exact in changes]


# --------------------------------------------------------------------------------------------
# Ordinary streams


CLEAN = {
    "normal": lambda rng, T: rng.normal(5, 2, T),
    "uniform": lambda rng, T: rng.random(T),
    "skewed": lambda rng, T: rng.gamma(2, 3, T),
    "ages": lambda rng, T: np.round(9 + 3 * rng.normal(size=T)).clip(1, 29),
    "rare": lambda rng, T: (rng.random(T) < 0.003).astype(float),
    "daily": lambda rng, T: np.sin(np.arange(T) / 20) + 0.1 * rng.normal(size=T),
    "constant": lambda rng, T: np.full(T, 7.0),
}


@pytest.mark.parametrize("name", CLEAN)
@pytest.mark.parametrize("seed", range(5))
def test_on_ordinary_streams_the_range_only_grows(name, seed):
    y = CLEAN[name](np.random.default_rng(seed), 5000)
    labels, growing = new_labels(), GrowingLabels(Squared(), 1, "growing")
    learned, changes = follow(labels, y)
    np.testing.assert_array_equal(learned[:, 0], y)
    expected = growing.plan(y, np.ones(len(y))).changes
    assert changes == [(new.row, *new.centre, new.half, True) for new in expected]


STEPS = {
    "counter": lambda rng, T: np.cumsum(rng.uniform(0.5, 1.5, T)),
    "falling": lambda rng, T: -np.cumsum(rng.uniform(0.5, 1.5, T)),
    "walk": lambda rng, T: np.cumsum(rng.normal(size=T)),
    "growth": lambda rng, T: 1.01 ** np.arange(T),
    "decay": lambda rng, T: 0.99 ** np.arange(T),
    "noisy growth": lambda rng, T: np.exp(np.cumsum(rng.normal(0.01, 0.02, T))),
}


@checked
@given(st.sampled_from(list(STEPS)), st.integers(0, 2**32), NAMES)
def test_no_label_of_a_trend_or_a_random_walk_is_wild(name, seed, label_range):
    y = STEPS[name](np.random.default_rng(seed), 3000)
    labels = new_labels(label_range)
    _, changes = follow(labels, y)
    assert labels.health.clipped == 0
    assert all(exact for *_, exact in changes)


# --------------------------------------------------------------------------------------------
# Wild labels

PLACES = {
    "one": lambda T: [2000],
    "fifty in a row": lambda T: np.arange(2000, 2050),
    "one in 1000": lambda T: np.arange(999, T, 1000),
    "at random": lambda T: np.flatnonzero(np.random.default_rng(9).random(T) < 0.001)[1:],
    "one of the first": lambda T: [30],
    "the first": lambda T: [0],
    "the last of the first chunk": lambda T: [63],
    "the one before": lambda T: [62],
    "the one after": lambda T: [64],
}


@pytest.mark.parametrize("size", [1e4, 1e9, -1e30, 1e300])
@pytest.mark.parametrize("place", [0, 5, 62, 63, 64])
@pytest.mark.parametrize("label_range", ["auto", "auto-zero"])
def test_an_absurd_label_has_no_influence_after_the_first_chunk(size, place, label_range):
    y = 10 + 3 * noise(65)
    y[place] = size
    labels = new_labels(label_range)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        follow(labels, y)
    assert 5 < labels.half < 200


@pytest.mark.parametrize("size", [300.0, 1e4, 1e9, 1e30, 1e300])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("label_range", ["auto", "auto-zero"])
def test_absurd_labels_leave_the_range_alone(size, place, label_range):
    T = 40_000
    clean = 10 + 3 * noise(T)
    at = PLACES[place](T)
    y = clean.copy()
    y[at] = size
    labels = new_labels(label_range)
    learned, _ = follow(labels, y)
    assert 5 < labels.half < 200
    later = np.setdiff1d(np.arange(64, T), at)
    np.testing.assert_array_equal(learned[later, 0], clean[later])
    assert (np.abs(learned[64:]) < 30).all()
    assert labels.health.clipped == np.count_nonzero(np.asarray(at) >= 64)


def test_a_wild_label_is_learned_as_the_end_of_the_recent_labels():
    y = noise(3000)
    y[2000], y[2500] = 1e9, -50
    learned, _ = follow(new_labels(), y)
    # the recent labels: 16 chunks and the current one
    assert learned[2000, 0] == y[2000 // 64 * 64 - 1024 : 2000].max()
    assert learned[2500, 0] == y[2500 // 64 * 64 - 1024 : 2500].min()


def test_nothing_is_wild_after_equal_labels():
    learned, _ = follow(new_labels(), np.r_[np.full(500, 3.0), 1e6, np.full(10, 3.0)])
    assert learned[500, 0] == 1e6


@pytest.mark.parametrize("place", [0, 63, 500])
def test_a_single_label_among_equal_ones_is_forgotten(place):
    y = np.full(3000, 3.0)
    y[place] = 1e9
    labels = new_labels()
    _, changes = follow(labels, y)
    (row, centre, half, _), *others = [change for change in changes if not change[3]]
    assert (centre, half) == (3.0, 1e-300)
    assert place + 1024 <= row <= place + 1024 + 64
    assert others == []
    assert follow(labels, np.array([5.0]))[1] == [(3000, 3.0, 2.0, True)]


@pytest.mark.parametrize("places", [[10, 20], [10, 11], range(500), range(500, 1000)])
def test_two_labels_among_equal_ones_are_not_forgotten(places):
    y = np.full(3000, 3.0)
    y[places] = 1e9
    labels = new_labels()
    follow(labels, y)
    assert labels.half >= 1e9 - 3
    assert labels.changes_of_units == 0


def test_a_new_level_is_accepted_after_56_rows():
    y = np.r_[noise(1000), 60 + noise(1000, 1)]
    labels = new_labels()
    learned, changes = follow(labels, y)
    assert labels.health.clipped == 56
    np.testing.assert_array_equal(learned[1056:, 0], y[1056:])
    assert all(exact for *_, exact in changes)  # what was learned is rescaled, not moved


def test_frequent_wild_labels_are_accepted_after_8_chunks():
    y, rows = noise(3200), np.arange(1024, 3200, 20)
    y[rows] = 40 + noise(len(rows), 1)
    labels = new_labels()
    learned, _ = follow(labels, y)
    assert (learned[rows[rows < 1024 + 512], 0] < 6).all()
    assert (learned[rows[rows >= 1024 + 512], 0] > 36).all()


@pytest.mark.parametrize(("every", "accepted"), [(40, False), (10, True)])
def test_absurd_labels_are_accepted_only_if_there_are_many(every, accepted):
    y = noise(6400)
    y[1024::every] = 1e9
    labels = new_labels()
    follow(labels, y)
    assert (labels.half > 1e8) == accepted


# --------------------------------------------------------------------------------------------
# New units


@pytest.mark.parametrize("factor", [1e3, -1e3, 1e6, 1e200])
def test_larger_units_are_recognised_after_64_rows(factor):
    y = np.r_[10 + 3 * noise(2000), factor * (10 + 3 * noise(1000, 3))]
    labels = new_labels()
    learned, changes = follow(labels, y)
    ((row, centre, half, _),) = [change for change in changes if not change[3]]
    assert row == 2063
    (_, old_centre, old_half, _) = next(change for change in reversed(changes) if change[0] < 2000)
    # level and spread keep their places in the units of the model
    assert (10 * factor - centre) / half == pytest.approx((10 - old_centre) / old_half, abs=0.1)
    assert abs(factor) / half == pytest.approx(1 / old_half, rel=0.25)
    np.testing.assert_array_equal(learned[2064:, 0], y[2064:])
    assert labels.health.clipped == 64


@pytest.mark.parametrize("factor", [1e-3, 1e-6, 1e-200])
@pytest.mark.parametrize("label_range", ["auto", "auto-zero"])
def test_smaller_units_are_recognised_after_few_chunks(factor, label_range):
    y = np.r_[10 + 3 * noise(2000), factor * (10 + 3 * noise(1000, 3))]
    labels = new_labels(label_range)
    _, changes = follow(labels, y)
    ((row, centre, half, _),) = [change for change in changes if not change[3]]
    assert row == 2000 // 64 * 64 + 2 * 64 - 1
    (_, old_centre, old_half, _) = next(change for change in reversed(changes) if change[0] < 2000)
    assert (10 * factor - centre) / half == pytest.approx((10 - old_centre) / old_half, abs=0.1)
    assert factor / half == pytest.approx(1 / old_half, rel=0.25)


def test_a_far_level_is_reached_without_a_change_of_scale():
    y = np.r_[noise(2000), 1e6 + noise(1000, 3)]
    labels = new_labels()
    before = new_labels()
    follow(before, y[:2000])
    follow(labels, y)
    assert labels.half == pytest.approx(before.half, rel=0.25)
    assert labels.centre[0] == pytest.approx(1e6 + before.centre[0], abs=0.5)


def test_a_constant_far_level_keeps_the_width():
    y = np.r_[noise(2000), np.full(1000, 1e6)]
    labels, before = new_labels(), new_labels()
    follow(before, y[:2000])
    follow(labels, y)
    assert labels.half == before.half
    assert labels.centre[0] == pytest.approx(1e6 + before.centre[0], abs=0.5)


def test_a_quiet_slow_wave_is_not_a_change_of_units():
    t = np.arange(120_000)
    for sigma in (1e-6, 1e-5, 3e-5, 1e-4, 1e-3):
        y = np.sin(2 * np.pi * t / 50_000) + sigma * noise(len(t))
        for label_range in ("auto", "auto-zero"):
            labels = new_labels(label_range)
            _, changes = follow(labels, y)
            assert all(exact for *_, exact in changes)


def test_labels_that_become_small_now_and_then_do_not_have_new_units():
    """A machine runs for 600 rows and rests for 600 rows, with some noise."""
    running = np.arange(60_000) // 600 % 2 == 0
    y = np.where(running, 1000 + 100 * noise(60_000), 0.1 * noise(60_000, 1))
    labels = new_labels()
    learned, changes = follow(labels, y)
    assert sum(not exact for *_, exact in changes) <= 8
    np.testing.assert_array_equal(learned[9000:, 0], y[9000:])


@pytest.mark.parametrize("seed", range(3))
def test_rare_amounts_keep_their_units(seed):
    """Most labels are 0, the others differ by several orders of magnitude."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(100_000) < 0.05, np.exp(rng.normal(5, 2, 100_000)), 0.0)
    labels = new_labels()
    _, changes = follow(labels, y)
    assert all(exact or row < 64 for row, *_, exact in changes)
    assert labels.health.clipped_share < 3e-3


# --------------------------------------------------------------------------------------------
# Shrinking


@pytest.mark.parametrize("label_range", ["auto", "auto-zero"])
def test_a_range_that_is_hardly_used_is_halved_now_and_then(label_range):
    y = np.r_[0.0, 16 * np.sin(np.arange(500)), np.sin(np.arange(9000))]
    labels = new_labels(label_range)
    _, changes = follow(labels, y)
    halves = [half for row, _, half, _ in changes if row > 1000]
    widest = next(half for row, _, half, _ in reversed(changes) if row < 1000)
    assert halves == [widest / 2, widest / 4, widest / 8]
    assert 1 <= 2 * labels.half < 8
    rows = [row for row, *_ in changes if row > 1000]
    assert (np.diff(rows) >= 1024).all()
    assert labels.health.shrunk == rows[-1] + 1
    assert all(exact for *_, exact in changes)


# --------------------------------------------------------------------------------------------
# Vectors


def test_a_wild_vector_keeps_its_direction():
    y = np.random.default_rng(0).normal([5, 0, -5], size=(500, 3))
    y[300] = [5e9, 0, -1e9]
    labels = new_labels(d=3)
    learned, changes = follow(labels, y)
    offset, given_offset = learned[300] - y[0], y[300] - y[0]
    recent = np.linalg.norm(y[:300] - y[0], axis=1).max()
    assert np.linalg.norm(offset) == pytest.approx(recent)
    direction = given_offset / np.linalg.norm(given_offset)
    np.testing.assert_allclose(offset / recent, direction, atol=1e-9)
    np.testing.assert_array_equal(np.delete(learned, 300, 0), np.delete(y, 300, 0))
    expected = GrowingLabels(SquaredEuclidean(3), 3, "growing").plan(
        np.delete(y, 300, 0), np.ones(499)
    )
    assert [change[-2] for change in changes] == [new.half for new in expected.changes]


@checked
@given(STREAMS, NAMES)
def test_vectors_follow_the_rule_of_their_distances(y, label_range):
    vectors = np.c_[y, 0 * y]
    labels = new_labels(label_range, d=2)
    learned, changes = follow(labels, vectors)
    centre = y[0] if label_range == "auto" else 0.0
    naive, found = NaiveRange(vectors=True), []
    for row, label in enumerate(np.abs(y - centre).tolist()):
        expected, new = naive.learn(label)
        found += [(row, half, exact) for _, half, exact in new]
        assert abs(learned[row, 0] - centre) == pytest.approx(
            expected, rel=1e-6, abs=1e-9 * abs(centre)
        )
    got = [(row, half, exact) for row, *_, half, exact in changes[label_range == "auto" :]]
    assert [(row, exact) for row, _, exact in got] == [(row, exact) for row, _, exact in found]
    np.testing.assert_allclose([half for _, half, _ in got], [half for _, half, _ in found], 1e-6)


# --------------------------------------------------------------------------------------------
# Warnings, counts, extremes


def test_the_first_wild_label_warns():
    labels, y = new_labels(), noise(200)
    follow(labels, y[:150])
    y[170], y[180] = 1e9, -1e9
    sentence = (
        r"^row 170: the label 1000000000 is far outside the range of recent labels, so it is "
        r"learned as if it were [\d.]+\. If such labels are correct, use label_range='growing'"
    )
    with pytest.warns(LabelWarning, match=sentence) as caught:
        follow(labels, y[150:])
    assert len(caught) == 1
    assert labels.warned


def test_new_units_warn_once():
    labels = new_labels()
    y = np.r_[10 + noise(500), 1e4 + 1e3 * noise(500), 1e-3 * noise(500)]
    with pytest.warns(LabelWarning) as caught:
        follow(labels, y[:1000])
    assert [str(one.message).partition(":")[0] for one in caught] == ["row 500", "row 563"]
    assert "the labels seem to have new units" in str(caught[1].message)
    follow(labels, y[1000:])
    assert len(caught) == 2


def test_absurd_first_labels_warn_and_new_units_still_do():
    labels, y = new_labels(), noise(1000)
    y[10] = 1e9
    y[500:] *= 1e6
    with pytest.warns(LabelWarning) as caught:
        follow(labels, y)
    rows, texts = zip(*(str(one.message).split(": ", 1) for one in caught), strict=True)
    assert rows == ("row 500", "row 63", "row 563")
    assert texts[1].startswith("a few of the first 64 labels are far outside the range of the")
    assert texts[2].startswith("the labels seem to have new units")


@pytest.mark.parametrize("size", [1, 7, 100])
def test_the_warning_names_the_wild_one_of_the_first_labels(size):
    labels, y = new_labels(), 10 + noise(100)
    y[0], y[63] = 1e300, 4.0  # the last one is outside the range of the others, but not wild
    blocks = np.split(y, range(size, len(y), size))
    with pytest.warns(LabelWarning) as caught:
        [follow(labels, block) for block in blocks]
    [text] = [str(one.message) for one in caught]
    assert text.startswith(
        "row 63: a few of the first 64 labels are far outside the range of the others (label 1 is "
        "1e+300), so the label range is now from "
    )


@pytest.mark.parametrize("number", [1, 80])
def test_a_warning_turned_into_an_error_changes_nothing_and_comes_once(number):
    labels, y = new_labels(), np.full(number, 1e9)
    follow(labels, noise(1000))
    before = pickle.dumps(labels)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(1 if number == 1 else 2):  # of a wild label, and of new units
            with pytest.raises(LabelWarning):
                labels.plan(y, np.ones(number))
        labels.plan(y, np.ones(number))
    labels.warned = labels.warned_of_units = False
    assert pickle.dumps(labels) == before


def test_health_counts_labels_and_names_the_last_changes():
    labels = new_labels()
    assert labels.health == LabelHealth(0)
    y = np.r_[noise(500), 50.0, 5e4 + noise(500)]
    y[300:310] = 0.0
    weights = np.ones(len(y))
    weights[300:310] = 0
    follow(labels, y, weights)
    health = labels.health
    assert (health.learned, health.clipped, health.shrunk) == (991, 64, None)
    assert health.new_units == 554
    assert health.widened is not None
    assert health.clipped_share == 64 / 991


def test_rows_of_weight_0_change_nothing():
    labels, twin, y = new_labels(), new_labels(), noise(500)
    follow(labels, y)
    follow(twin, y)
    plan = labels.plan(np.full(200, 1e9), np.zeros(200))
    assert (plan.labels == 0).all()
    labels.count(np.zeros(200), plan.after, plan.ends)
    labels.rows -= 200
    equal_states(labels, twin)


@pytest.mark.parametrize("label_range", ["auto", "auto-zero"])
def test_extreme_sizes_stay_finite(label_range):
    pieces = [noise(300), 1e300 * np.sign(noise(300)), 1e-300 * noise(300), noise(300)]
    for order in ([0, 1, 2, 3], [2, 1, 0, 3], [1, 2, 1, 0], [2, 0, 1, 2]):
        y = np.concatenate([pieces[k] for k in order])
        labels = new_labels(label_range)
        with plain():  # NumPy reports overflows
            plan = labels.plan(y, np.ones(len(y)))
        assert np.isfinite(plan.labels).all()
        assert all(np.isfinite([*new.centre, new.half]).all() for new in plan.changes)
        assert all(new.half >= 1e-300 for new in plan.changes[1:])
