"""The bound on coverage: on any sequence, on every interval, and not looser than it must be."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanboost import Intervals, LinearSGD, SpanBoost
from spanboost.models.quantiles.levels import LIMIT, STEP, new_levels
from spanboost.models.quantiles.sorted_window import WINDOW, new_window, read_share
from spanboost.theory.coverage import coverage_bound

LEVELS = np.array([0.05, 0.1, 0.5, 0.9, 0.95])
ROWS = 4096


def read(window, share):
    if share in (0, 1):
        return np.inf if share else -np.inf
    return read_share(window.ordered, window.counts[0], share)


def run(labels, delays=None, chosen=LEVELS, limits=(-np.inf, np.inf)):
    """Return whether each label is below its quantile, and whether it is at most that.

    Both are [rows, levels].

    labels: called with the row number and the quantiles, so it can be an adversary.
    delays: after how many rows each label arrives; None if each arrives at once.
    limits: of the labels; quantiles are clipped to them.
    """
    levels, residuals = new_levels(np.array(chosen)), new_window()
    below, up_to = np.zeros((2, ROWS, len(chosen)), bool)
    waiting = []
    for t in range(ROWS):
        quantiles = np.array([read(residuals, levels.share_at(k)) for k in range(len(chosen))])
        quantiles = np.clip(quantiles, *limits)
        assert (quantiles[1:] >= quantiles[:-1]).all()
        label = labels(t, quantiles)
        below[t], up_to[t] = label < quantiles, label <= quantiles
        waiting.append((t + (0 if delays is None else delays[t]), quantiles, label))
        for due in [one for one in waiting if one[0] <= t]:
            waiting.remove(due)
            levels.move_levels((due[1] < due[2]).sum(), (due[1] <= due[2]).sum())
            residuals.add_value(due[2])
    return below, up_to


def worst(outcomes, levels=LEVELS, pending=0, first=4):
    """Return the largest ratio of an error to its bound, over all intervals of dyadic sizes.

    Labels below a quantile may be too many, and labels at or below it too few.
    """
    below, up_to = (np.cumsum(one - np.array(levels), axis=0) for one in outcomes)
    ratios = []
    for size in (2**k for k in range(first, len(below).bit_length())):
        bound = coverage_bound(size, STEP, LIMIT, len(levels), pending) * size
        for sums in (below, -up_to):
            each = np.vstack([np.zeros(len(levels)), sums])
            ratios.append((each[size:] - each[:-size]).max() / bound)  # every interval of this size
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
    "constant": lambda t, q: 5.0,
    "constant, then noise": lambda t, q: 5.0 + (t > 2048) * np.sin(t * t),
    "equal to the lowest": lambda t, q: finite(q[0]),
    "equal to the median": lambda t, q: finite(q[2]),
    "equal to the highest": lambda t, q: finite(q[4]),
    "equal to each in turn": lambda t, q: finite(q[t % 5]),
    "often 0": lambda t, q: float(max(0, t * t % 10 - 4)),
}


@pytest.mark.parametrize("name", ADVERSARIES)
def test_the_bound_holds_on_every_interval_against(name):
    assert worst(run(ADVERSARIES[name])) <= 1


@pytest.mark.parametrize("name", ADVERSARIES)
def test_the_bound_holds_for_quantiles_that_are_clipped_against(name):
    labels = ADVERSARIES[name]
    assert worst(run(lambda t, q: np.clip(labels(t, q), 0, 3), limits=(0, 3))) <= 1


@pytest.mark.parametrize("name", ADVERSARIES)
@pytest.mark.parametrize("most", [1, 30])
def test_the_bound_holds_with_late_labels_against(name, most):
    delays = np.random.default_rng(most).integers(0, most + 1, ROWS)
    assert worst(run(ADVERSARIES[name], delays), pending=most) <= 1


def test_late_labels_need_the_wider_bound():
    # an adversary that waits for all pending labels before it changes sides
    block = np.arange(ROWS) // 40
    delays = 39 - np.arange(ROWS) % 40  # labels of 40 rows arrive together
    labels = lambda t, q: finite(q[4]) + 1 if block[t] % 2 else finite(q[0]) - 1  # noqa: E731
    outcomes = run(labels, delays)
    assert worst(outcomes, pending=39) <= 1
    assert np.abs(np.cumsum(outcomes[0] - LEVELS, axis=0)).max() > 19  # of 40 rows


def squeeze(t, q):
    """Put most labels between two levels, so that these get out of order."""
    k = (t // 7) % (len(q) - 1)
    return finite(q[k]) / 2 + finite(q[k + 1]) / 2 if t % 7 < 5 else finite(q[-1 - k]) + 1e-9


def test_levels_are_never_further_out_of_order_than_in_the_proof():
    chosen = np.linspace(0.02, 0.98, 19)
    levels, residuals = new_levels(chosen), new_window()
    rng = np.random.default_rng(0)
    for t in range(3000):
        quantiles = np.array([read(residuals, levels.share_at(k)) for k in range(19)])
        label = squeeze(t, quantiles) if rng.random() < 0.8 else rng.normal()
        levels.move_levels((quantiles < label).sum(), (quantiles <= label).sum())
        residuals.add_value(label)
        assert (np.diff(levels.h) >= -STEP - 1e-12).all()
        assert np.abs(levels.h - levels.used).max() <= (19 - 1) / 2 * STEP + 1e-9


@given(st.integers(0, 2**32), st.floats(0, 1), st.sampled_from([1.0, 10.0, 1e6]))
@settings(max_examples=5, deadline=None)
def test_the_bound_holds_on_streams_whose_variance_jumps(seed, mix, jump):
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=ROWS) * np.where(np.arange(ROWS) // 512 % 2, jump, 1)
    aimed = rng.random(ROWS) < mix

    def label(t, q):
        return finite(q[t % 5]) + 1e-9 if aimed[t] else noise[t]

    assert worst(run(label)) <= 1


def drifting(kind, rows=16_384):
    """Return a stream whose labels change in one way."""
    rng = np.random.default_rng(0)
    X, t = rng.uniform(-1, 1, (rows, 3)), np.arange(rows)
    noise = rng.normal(size=rows)
    if kind == "variance that jumps 10 times":
        return X, X[:, 0] + noise * np.where(t // 1000 % 2, 10.0, 1.0)
    if kind == "trend":
        return X, X[:, 0] + noise + t / 100
    sign = np.where(t // 700 % 2, 1.0, -1.0)
    return X, sign * 5 * X[:, 0] + noise + (3 * sign if kind == "sign that flips, of all" else 0)


@pytest.mark.parametrize(
    "kind",
    ["variance that jumps 10 times", "trend", "sign that flips", "sign that flips, of all"],
)
def test_models_keep_the_bound_on_every_dyadic_interval(kind):
    X, y = drifting(kind)
    model = Intervals(SpanBoost(LinearSGD(), n=4, label_range="auto"))
    quantiles = model.learn_quantiles(X, y, model.levels)
    assert worst((y[:, None] < quantiles, y[:, None] <= quantiles), model.levels) <= 1
    low, high = quantiles[:, model.levels.index(0.05)], quantiles[:, model.levels.index(0.95)]
    inside = (low <= y) & (y <= high)
    for size in (2**k for k in range(8, 15)):
        each = inside[: len(y) // size * size].reshape(-1, size).mean(axis=1)
        bound = 2 * coverage_bound(size, STEP, LIMIT, len(model.levels))
        assert np.abs(each - 0.9).max() <= bound
        assert np.abs(each - 0.9).max() <= 0.15 * (256 / size) ** 0.5  # far better in practice


@pytest.mark.filterwarnings("ignore::spanboost.LabelWarning")
def test_models_keep_the_bound_when_residuals_are_forgotten():
    X, y = drifting("trend", 4096)
    y[0] = 1e300
    y[2048:] *= 1e-20
    model = Intervals(SpanBoost(LinearSGD(), n=4, label_range="auto"))
    first = model.learn_quantiles(X[:512], y[:512], model.levels)
    assert model.forecaster.residuals.counts[0] < 450  # it started again
    quantiles = np.concatenate([first, model.learn_quantiles(X[512:], y[512:], model.levels)])
    assert worst((y[:, None] < quantiles, y[:, None] <= quantiles), model.levels) <= 1


@pytest.mark.filterwarnings("ignore::spanboost.LabelWarning")
@pytest.mark.parametrize("end", [0, 1])
@pytest.mark.parametrize("label_range", ["auto", (-3, 3)])
def test_closed_and_open_intervals_keep_their_bounds_if_labels_are_at_an_end(end, label_range):
    """An adversary picks the end itself, where it is finite."""
    model, rng = Intervals(SpanBoost(LinearSGD(), n=2, label_range=label_range)), np.random
    closed, opened, noise = [], [], rng.default_rng(0).uniform(-2, 2, 1500)
    for t in range(1500):
        x = [noise[t - 1], t % 7]
        ends = model.predict_interval_one(x, 0.9)
        y = ends[end] if np.isfinite(ends[end]) else noise[t]
        model.learn_one(x, y)
        closed.append(ends[0] <= y <= ends[1])
        opened.append(ends[0] < y < ends[1])
    bound = 2 * coverage_bound(1500, STEP, LIMIT, len(model.levels))
    assert np.mean(closed) >= 0.9 - bound
    assert np.mean(opened) <= 0.9 + bound


@pytest.mark.parametrize("low", [0.0, 5.0])
def test_clipped_models_of_labels_with_atoms_keep_the_bound(low):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (8192, 2))
    y = np.clip(low + X[:, 0] + rng.normal(size=8192).round(1), low, low + 1)
    model = Intervals(SpanBoost(LinearSGD(), n=4, label_range=(low, low + 1)))
    quantiles = model.learn_quantiles(X, y, model.levels)
    assert worst((y[:, None] < quantiles, y[:, None] <= quantiles), model.levels) <= 1


def test_the_bound_is_reached_within_a_factor():
    # labels beyond the highest quantile drive its log-odds from one limit to the other
    high = run(lambda t, q: (-1e6 - t) if t < 2000 else 1e6 + t)[1][2000:]
    first = int(np.argmax(high[:, 4]))  # until the quantile is infinite, every label is above
    share = abs(high[:first, 4].mean() - LEVELS[4])
    assert 0.6 < share / coverage_bound(first, STEP, LIMIT, len(LEVELS)) <= 1


def test_levels_are_right_on_a_stream_without_change():
    noise = np.random.default_rng(0).normal(size=ROWS)
    _, below = run(lambda t, q: noise[t])
    assert np.abs(below[WINDOW:].mean(axis=0) - LEVELS).max() < 0.01


def test_the_bound_counts_levels_and_pending_rows():
    assert coverage_bound(10_000, 0.1, 8, 5) == pytest.approx(2 * (80 + 3) / 10_000)
    assert coverage_bound(10_000, 0.1, 8, 5, 10) == pytest.approx(2 * (80 + 33 + 10) / 10_000)
    assert coverage_bound(3, 0.1, 8, 5) == 1


@pytest.mark.parametrize(
    ("name", "value"), [("rows", 0), ("step", 0), ("limit", -1), ("levels", 0), ("pending", -1)]
)
def test_arguments_outside_their_range_are_refused(name, value):
    good = {"rows": 10, "step": 0.1, "limit": 8, "levels": 1, "pending": 0}
    with pytest.raises(ValueError, match=name):
        coverage_bound(**good | {name: value})
