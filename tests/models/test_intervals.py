"""Prediction intervals: coverage, order, identity over blocks and files, and robustness."""

import math
import pickle
import warnings

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from spanboost import AutoBoost, HullBoost, Intervals, LinearSGD, SpanBoost, Trees, load, save
from spanboost.compiling.kernels import plain
from spanboost.compiling.random_numbers import scramble
from spanboost.errors import ParameterError
from spanboost.models.files import from_bytes, to_bytes
from spanboost.models.quantiles.asked_levels import interpolate_levels, levels_to_read
from spanboost.models.quantiles.cells import EQUAL, FORECASTS, ROOTS, ROWS
from spanboost.models.quantiles.curves import find_place, new_points
from spanboost.models.quantiles.forecaster import EVERY, learn_quantiles, new_forecaster
from spanboost.models.quantiles.levels import LIMIT, STEP, new_levels
from spanboost.models.quantiles.sorted_window import WINDOW, count_below, new_window, read_share
from spanboost.sklearn import BoostingRegressor
from spanboost.theory.coverage import coverage_bound

LEVELS = (0.05, 0.5, 0.95)
HALF = [math.log(p / (1 - p)) for p in (0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.975, 0.99, 0.995)]
GRID = np.array([-8, -6.5, *[-odds for odds in reversed(HALF)], 0, *HALF, 6.5, 8])
EACH = (0.01, 0.05, 0.1, 0.3, 0.5, 0.7, 0.9, 0.95, 0.99)


def stream(rows=3000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (rows, 3))
    return X, X[:, 0] + (1.1 + X[:, 1]) * rng.normal(size=rows)


def linear():
    return Intervals(SpanBoost(LinearSGD(), n=4, label_range="auto"))


def copied_by_pickle(model):
    return pickle.loads(pickle.dumps(model))


def covered(intervals, y):
    return (intervals[:, 0] <= y) & (y <= intervals[:, 1])


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9, 0.95])
def test_intervals_cover_the_share_that_was_asked_for(coverage):
    X, y = stream(6000)
    intervals = linear().learn_intervals(X, y, coverage)
    assert abs(covered(intervals, y)[1000:].mean() - coverage) < 0.01


def test_intervals_are_wide_where_the_noise_is():
    X, y = stream(6000)
    model = linear()
    model.learn_many(X, y)
    quiet, loud = model.predict_interval([[0, -0.8, 0], [0, 0.8, 0]])
    assert loud[1] - loud[0] > 2 * (quiet[1] - quiet[0])


def test_intervals_follow_a_variance_that_jumps():
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (6000, 2))
    y = X[:, 0] + np.where(np.arange(6000) < 3000, 0.1, 1.0) * rng.normal(size=6000)
    inside = covered(linear().learn_intervals(X, y), y)
    assert abs(inside[3500:].mean() - 0.9) < 0.03


@given(st.integers(0, 2**32), st.lists(st.floats(0.005, 0.995), min_size=2, max_size=6))
@settings(max_examples=20, deadline=None)
def test_quantiles_never_cross(seed, levels):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (300, 3))
    y = rng.standard_cauchy(300)
    model = linear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        learned = model.learn_quantiles(X, y, sorted(levels))
    for quantiles in (learned, model.predict_quantiles(X, sorted(levels))):
        assert (quantiles[:, 1:] >= quantiles[:, :-1]).all()


@pytest.mark.parametrize(("coverage", "residuals"), [(0.6, 4), (0.8, 9), (0.9, 19), (0.98, 99)])
def test_intervals_are_infinite_until_there_are_enough_labels(coverage, residuals):
    X, y = stream(150)
    intervals = linear().learn_intervals(X, y, coverage)
    rows = residuals + 1  # the first row has no residual: the model predicts it without a label
    assert np.isinf(intervals[:rows]).all()
    assert np.isfinite(intervals[rows:]).all()


@given(st.integers(0, 2**32), st.lists(st.floats(0.005, 0.995), min_size=1, max_size=5))
@settings(max_examples=20, deadline=None)
def test_quantiles_stay_within_a_fixed_range_and_lose_no_label(seed, levels):
    """Without limits, the same forecaster gives the quantiles to compare with."""
    rng = np.random.default_rng(seed)
    X, levels = rng.uniform(-1, 1, (300, 2)), sorted(levels)
    y = np.clip(0.5 + X[:, 0] / 2 + rng.normal(size=300) / 4, 1e-9, 1 - 1e-9)  # close to the ends
    models = [Intervals(SpanBoost(LinearSGD(), n=4, label_range=(0, 1))) for _ in range(2)]
    models[1].labels.limits = -math.inf, math.inf
    for quantiles, free in (
        [model.learn_quantiles(X, y, levels) for model in models],
        [model.predict_quantiles(X, levels) for model in models],
    ):
        assert ((quantiles >= 0) & (quantiles <= 1)).all()
        assert (quantiles == np.clip(free, 0, 1)).all()
        labels = y[:, None]
        for clipped, before in (
            (labels <= quantiles, labels <= free),
            (labels >= quantiles, labels >= free),
        ):
            assert (clipped == before).all()  # no label is lost


@pytest.mark.parametrize("base", [linear, lambda: Intervals(AutoBoost(budget="fast"))])
def test_labels_that_are_all_the_same_have_intervals_of_width_0(base):
    X, y = stream(6000)
    y[1000:4000] = 5.0
    constant, learned = base(), base()
    found = constant.learn_quantiles(X, np.full(6000, 5.0), LEVELS)
    assert (found[100:] == 5).all()
    assert (constant.predict_quantiles(X[:9], constant.levels) == 5).all()
    assert (constant.sample(X[:9], n=9, seed=0) == 5).all()
    inside = covered(learned.learn_intervals(X, y), y)
    for first in range(4500, 6000, 500):  # after the change
        assert 0.85 < inside[first : first + 500].mean() < 0.97


@pytest.mark.parametrize("end", [0.0, 1.0])
def test_labels_at_an_end_of_their_range_have_quantiles_there(end):
    X, _ = stream(1000)
    model = Intervals(SpanBoost(LinearSGD(), n=4, label_range=(0, 1)))
    model.learn_many(X, np.full(1000, end))
    assert (model.predict_quantiles(X, model.levels) == end).all()
    own = np.log(model.levels) - np.log1p(-np.array(model.levels))
    np.testing.assert_allclose(model.forecaster.levels.h, own, atol=20 * STEP)  # they do not drift


@pytest.mark.parametrize("zeros", [0.3, 0.5, 0.7])
@pytest.mark.parametrize("loss", ["poisson", "tweedie:1.5"])
def test_the_distribution_of_counts_has_their_share_of_zeros(zeros, loss):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (12_000, 2))
    y = (rng.random(12_000) >= zeros) * (1.0 + rng.poisson(4, 12_000))
    model = Intervals(SpanBoost(LinearSGD(), n=2, loss=loss, D=6, label_range="auto"))
    quantiles, found = model.learn_quantiles(X[:10_000], y[:10_000], model.levels), []
    bound = coverage_bound(10_000, STEP, LIMIT, len(model.levels))
    assert (np.mean(y[:10_000, None] < quantiles, axis=0) <= np.array(model.levels) + bound).all()
    assert (np.mean(y[:10_000, None] <= quantiles, axis=0) >= np.array(model.levels) - bound).all()
    for first in range(10_000, 12_000, 100):
        part = slice(first, first + 100)
        found.append(model.predict_cdf(X[part], [0.0, 1e9]))
        model.learn_many(X[part], y[part])
    assert np.mean(found, axis=(0, 1)) == pytest.approx([zeros, 1], abs=0.1)


@pytest.mark.parametrize("blocks", [1, 7, 300])
def test_labels_with_ties_give_the_same_bits_in_all_blocks_and_after_loading(blocks):
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (600, 2)), rng.poisson(0.5, 600).astype(float)
    whole, parts = (
        Intervals(SpanBoost(LinearSGD(), n=2, loss="poisson", D=6, label_range="auto"))
        for _ in range(2)
    )
    expected, found = whole.learn_intervals(X, y), []
    for first in range(0, 600, blocks):
        part = slice(first, first + blocks)
        found.append(parts.learn_intervals(X[part], y[part]))
        parts = from_bytes(to_bytes(parts)) if first % 100 == 0 else parts
    assert np.concatenate(found).tobytes() == expected.tobytes()
    assert to_bytes(parts) == to_bytes(whole)


def test_samples_and_bounds_stay_within_a_fixed_range():
    X, y = stream(300)
    model = Intervals(AutoBoost(budget="fast", label_range=(-1, 1)))
    assert model.learn_intervals(X[:5], np.sign(y[:5]), 0.9).tolist() == [[-1.0, 1.0]] * 5
    model.learn_many(X, np.clip(y, -1, 1))
    assert np.abs(model.sample(X, n=50, seed=0)).max() == 1
    assert model.predict_bound(X, 0.99).max() == 1
    assert (model.predict_cdf(X, [-1.01, 1.0]) == [0, 1]).all()


@pytest.mark.parametrize("loss", ["poisson", "gamma"])
@pytest.mark.parametrize("label_range", ["auto", (0, 9)])
def test_quantiles_of_counts_and_positive_numbers_are_not_negative(loss, label_range):
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (400, 1))
    y = np.minimum(1 + rng.poisson(3 * X[:, 0]), 9)
    model = Intervals(SpanBoost(LinearSGD(), n=4, loss=loss, label_range=label_range))
    learned = model.learn_intervals(X, y, 0.99)
    low, high = np.vstack([learned, model.predict_interval(X, 0.99)]).T
    assert low.min() == 0
    assert (high.max() == 9) == (label_range != "auto")


def test_a_model_with_labels_has_no_intervals_before_their_residuals():
    X, y = stream(100)
    model = SpanBoost(LinearSGD(), n=4, label_range="auto")
    model.learn_many(X, y)
    quantiles = Intervals(model).predict_quantiles(X[:1], [0.1, 0.5, 0.9])
    assert quantiles.tolist() == [[-math.inf, model.predict_one(X[0]), math.inf]]


def test_the_first_medians_are_near_the_labels():
    model = Intervals(AutoBoost(budget="fast"))
    for x, y in (([1.0, 2], 7), ([2.0, 1], 9), ([3.0, 1], 8), ([1.0, 1], 8)):
        ((median,),) = model.predict_quantiles([x], [0.5])
        prediction = model.learn_one(x, y)
        assert abs(median - prediction) <= 2


def test_the_place_of_the_labels_does_not_matter():
    X, y = stream(300)
    near, far = linear().learn_intervals(X, y), linear().learn_intervals(X, y + 4096)
    np.testing.assert_allclose(far - 4096, near, rtol=1e-3, atol=1e-3)


def test_held_out_rows_calibrate_the_quantiles():
    X, y = stream(1400)
    model = linear()
    model.learn_many(X[:1000], y[:1000])
    held, labels = X[1000:], y[1000:]
    before = model.predict_many(held)
    alone = SpanBoost(LinearSGD(), n=4, label_range="auto")
    alone.learn_many(X, y)
    model.learn_held_out(held, labels)
    assert (model.predict_many(X) == alone.predict_many(X)).all()  # the rows are learned
    offsets = model.predict_quantiles(held, LEVELS) - model.predict_many(held)[:, None]
    shares = (labels[:, None] <= before[:, None] + offsets).mean(axis=0)
    np.testing.assert_allclose(shares, LEVELS, atol=1.5 / 400)  # of the residuals before
    model.learn_intervals(X, y)  # it continues
    other = linear()
    other.learn_many(X[:1000], y[:1000])
    other.learn_held_out(held, labels, forecasts=before + 5)
    shift = other.predict_quantiles(held, [0.5]) - model.predict_quantiles(held, [0.5])
    assert np.median(shift) < -4  # the residuals are those of the given forecasts


def test_late_labels_calibrate_when_they_arrive():
    X, y = stream(4000)
    model, late, inside = linear(), 40, []
    for t in range(0, 4000, late):  # labels arrive after the next block is predicted
        part, before = slice(t, t + late), slice(max(t - late, 0), t)
        low, high = model.predict_interval(X[part], 0.8).T if t else np.full((2, late), np.nan)
        inside.append((low <= y[part]) & (y[part] <= high))
        if t:
            model.learn_many(X[before], y[before])
    assert abs(np.concatenate(inside)[500:].mean() - 0.8) < 0.02


@pytest.mark.parametrize(("side", "level"), [("upper", 0.9), ("lower", 0.1)])
def test_one_sided_intervals_have_one_end(side, level):
    X, y = stream(4000)
    model = linear()
    learned = model.learn_quantiles(X, y, [level])[1000:, 0]
    beyond = learned >= y[1000:] if side == "upper" else learned <= y[1000:]
    assert abs(beyond.mean() - 0.9) < 0.01
    found = model.predict_bound(X, 0.9, side)
    assert (found == model.predict_quantiles(X, level)[:, 0]).all()
    with pytest.raises(ValueError, match='side must be "upper" or "lower"'):
        model.predict_bound(X, 0.9, "left")


def test_files_of_unreleased_intervals_are_refused_with_a_reason():
    X, y = stream(30)
    model = linear()
    model.learn_many(X, y)
    tensors = {name: value for name, value in model.tensors() if ".cells." not in name}
    with pytest.raises(ValueError, match=r"unreleased version.*train the model again"):
        Intervals.restore(model.header(), tensors)


def test_one_row_has_one_interval():
    X, y = stream(200)
    model = linear()
    model.learn_many([{"a": a, "b": b} for a, b in X[:, :2].tolist()], y)
    low, high = model.predict_interval_one({"a": 0.5, "b": 0.1}, coverage=0.8)
    assert [[low, high]] == model.predict_interval([{"a": 0.5, "b": 0.1}], 0.8).tolist()
    with pytest.raises(
        ValueError, match=r"expected several rows.*got one dictionary.*pass \[row\]"
    ):
        model.predict_interval({"a": 0.5})


def test_predictions_are_those_of_the_model():
    X, y = stream(500)
    model, alone = linear(), SpanBoost(LinearSGD(), n=4, label_range="auto")
    assert (model.learn_many(X, y) == alone.learn_many(X, y)).all()
    assert (model.predict_many(X) == alone.predict_many(X)).all()
    assert model.predict_one(X[0]) == alone.predict_one(X[0])


@pytest.mark.parametrize("blocks", [1, 7, 250])
def test_blocks_do_not_change_the_bits(blocks):
    X, y = stream(500)
    whole, parts = linear(), linear()
    expected = whole.learn_intervals(X, y)
    found = [
        parts.learn_intervals(X[a : a + blocks], y[a : a + blocks])
        for a in range(0, len(y), blocks)
    ]
    assert np.concatenate(found).tobytes() == expected.tobytes()
    assert to_bytes(parts) == to_bytes(whole)


@pytest.mark.parametrize(
    "base",
    [
        lambda: HullBoost(LinearSGD(), n=3, label_range="auto"),
        lambda: SpanBoost(Trees(depth=3), n=4, label_range="auto"),
        lambda: AutoBoost(budget="fast"),
    ],
)
def test_a_loaded_model_goes_on_as_if_it_had_never_been_saved(base, tmp_path):
    X, y = stream(400)
    model = Intervals(base())
    model.learn_many(X[:200], y[:200])
    save(model, tmp_path / "model.sb")
    again = load(tmp_path / "model.sb")
    assert isinstance(again, Intervals)
    expected, found = (one.learn_intervals(X[200:], y[200:]) for one in (model, again))
    assert expected.tobytes() == found.tobytes()
    assert to_bytes(again) == to_bytes(model)


@pytest.mark.parametrize("weights", [[1.0], [0.0, 2.0, 0.0], [0.0]])
@pytest.mark.parametrize("copied", [lambda model: from_bytes(to_bytes(model)), copied_by_pickle])
def test_a_model_of_at_most_one_learned_row_can_be_loaded_and_continues(weights, copied):
    X, y = stream(200)
    model, first = linear(), len(weights)
    model.learn_many(X[:first], y[:first], weights)
    again = copied(model)
    assert to_bytes(again) == to_bytes(model)
    expected, found = (one.learn_intervals(X[first:], y[first:], 0.5) for one in (model, again))
    assert np.isfinite(found[10:]).all()
    assert found.tobytes() == expected.tobytes()


def test_missing_values_do_not_make_a_model_ill():
    X, y = stream(300)
    X[::5, 1] = np.nan
    model = Intervals(AutoBoost(budget="fast"))
    model.learn_many(X, y)
    assert model.health.nans == 0


def test_a_fresh_model_can_be_saved(tmp_path):
    save(linear(), tmp_path / "model.sb")
    assert not load(tmp_path / "model.sb").started


def test_rows_of_weight_0_are_predicted_and_not_learned():
    X, y = stream(400)
    model, other = linear(), linear()
    weights = np.tile([1.0, 0.0], 200)
    model.learn_many(X, y, weights)
    other.learn_many(X[::2], y[::2])
    assert (model.predict_interval(X) == other.predict_interval(X)).all()


@pytest.mark.parametrize("wild", [1e3, 1e9, 1e30])
def test_one_wild_label_does_no_lasting_harm(wild):
    X, y = stream(4000)
    spoilt = y.copy()
    spoilt[1500] = wild
    widths = []
    for labels in (y, spoilt):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            intervals = linear().learn_intervals(X, labels)
        widths.append(np.mean(np.diff(intervals[2000:], axis=1)))
    assert widths[1] < 1.1 * widths[0]


def test_levels_in_between_are_interpolated():
    X, y = stream(1000)
    model = linear()
    model.learn_many(X, y)
    low, between, high = model.predict_quantiles(X, [0.05, 0.07, 0.1]).T
    assert ((low < between) & (between < high)).all()
    for side, levels in (("lower", [0.02, 0.01]), ("upper", [0.98, 0.99])):
        bounds = [model.predict_bound(X, coverage, side) for coverage in (0.98, 0.99)]
        assert (model.predict_quantiles(X, levels) == np.array(bounds).T).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m, X, y: m.predict_interval(X, 0.9999), r"coverage must be at most 0.99, .*0.9999"),
        (lambda m, X, y: m.predict_interval_one(X[0], 1 - 1e-13), "coverage must be at most 0.99,"),
        (lambda m, X, y: m.learn_intervals(X, y, 0.995), "coverage must be at most 0.99,"),
        (lambda m, X, y: m.predict_bound(X, 0.999), "coverage must be between 0.005 and 0.995"),
        (lambda m, X, y: m.predict_bound(X, 0.996, "lower"), "between 0.005 and 0.995"),
        (lambda m, X, y: m.predict_bound(X, 0.001), "coverage must be between 0.005 and 0.995"),
        (lambda m, X, y: m.predict_quantiles(X, 0.999), "levels must be between 0.005 and 0.995"),
        (lambda m, X, y: m.predict_quantiles(X, [0.5, 0.001]), r"levels must be .*\(got 0.001\)"),
        (lambda m, X, y: m.learn_quantiles(X, y, [0.001]), "levels must be between"),
        (lambda m, X, y: m.learn_both(X, y, [0.9999]), "levels must be between"),
    ],
)
def test_levels_beyond_the_calibrated_ones_are_refused(call, message):
    X, y = stream(30)
    model = linear()
    with pytest.raises(ParameterError, match=message) as caught:
        call(model, X, y)
    assert str(caught.value).endswith("; Intervals(levels=...) in Python calibrates more")
    assert not model.started


def test_the_outermost_calibrated_coverages_are_allowed():
    X, y = stream(300)
    model = linear()
    assert model.learn_intervals(X, y, 0.99).shape == (300, 2)
    assert model.predict_interval(X, 0.99).shape == (300, 2)
    assert (model.predict_bound(X, 0.995) == model.predict_quantiles(X, 0.995)[:, 0]).all()
    for level in (0.1, 0.3, 1 / 3, 0.123456):
        own = Intervals(linear().model, levels=[level, 1 - level])
        assert own.predict_interval(X, 1 - 2 * level).shape == (300, 2)
        assert own.predict_bound(X, 1 - level, "lower").shape == (300,)
        assert own.predict_bound(X, level, "upper").shape == (300,)


def test_an_interval_needs_calibrated_levels_on_both_sides_of_the_median():
    X, _ = stream(30)
    for levels in ([0.5], [0.6, 0.9], [0.1, 0.2]):
        model = Intervals(linear().model, levels=levels)
        with pytest.raises(ParameterError, match=r"coverage cannot be calibrated .*\(got 0.9\)"):
            model.predict_interval(X)


def test_files_with_extreme_levels_of_earlier_versions_load():
    X, y = stream(300)
    model = linear()
    model.forecaster = new_forecaster(np.array([0.0005, 0.5, 0.9]))
    model.learn_many(X, y)
    again = from_bytes(to_bytes(model))
    assert again.levels == (0.0005, 0.5, 0.9)
    assert to_bytes(again) == to_bytes(model)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model": AutoBoost(loss="logistic")}, "must predict one number"),
        ({"model": 3}, r"must be AutoBoost\(\) or a booster"),
        ({"model": BoostingRegressor()}, "not an estimator for scikit-learn .* BoostingRegressor"),
        ({"levels": [0.5, 0.4]}, "increasing"),
        ({"levels": []}, "not empty"),
        ({"levels": [0.0, 0.5]}, "between 0 and 1"),
        ({"levels": [0.0005, 0.5]}, r"between 1/1001 and 1000/1001 \(got 0.0005\).* no finite"),
        ({"levels": [0.5, 0.9995]}, r"between 1/1001 and 1000/1001 \(got 0.9995\).* no finite"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Intervals(**arguments)


@pytest.mark.parametrize("coverage", [0, 1, -1, "0.9", math.nan])
def test_a_coverage_outside_0_and_1_is_refused_and_nothing_is_learned(coverage):
    X, y = stream(10)
    model = linear()
    with pytest.raises(ValueError, match="coverage must be between 0 and 1"):
        model.learn_intervals(X, y, coverage)
    assert not model.started


@given(st.lists(st.integers(-5, 5) | st.floats(-1e300, 1e300), max_size=60), st.integers(1, 20))
def test_a_window_holds_the_last_values_in_order(values, rows):
    window = new_window(rows)
    for t, value in enumerate(values):
        window.add_value(value)
        kept = sorted(max(min(v, 1e100), -1e100) for v in values[max(0, t + 1 - rows) : t + 1])
        assert window.ordered[: window.counts[0]].tolist() == kept


@given(st.lists(st.integers(-9, 9), max_size=70), st.integers(-10, 10))
def test_values_below_another_one_are_counted(values, value):
    ordered = np.sort(np.array([*values, 99.0, -99.0]))
    ordered[len(values) :] = 0  # the rest of the array does not count
    ordered[: len(values)] = sorted(values)
    assert count_below(ordered, len(values), value) == sum(one < value for one in values)


@given(
    st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=40),
    st.lists(st.floats(1e-4, 1 - 1e-4), min_size=2, max_size=40),
)
def test_quantiles_of_a_window_do_not_fall_where_shares_rise(values, shares):
    ordered = np.sort(np.array(values))
    found = [read_share(ordered, len(values), share) for share in sorted(shares)]
    assert found == sorted(found)


@given(st.sets(st.floats(0.01, 0.99), min_size=1), st.lists(st.floats(0.001, 0.999), min_size=1))
@example({0.01, 0.010000000000000002}, [0.5])  # different levels with the same log-odds
def test_some_levels_are_enough_to_interpolate(own, asked):
    own, asked = sorted(own), [*asked, min(own)]
    values = np.cumsum(np.arange(2.0 * len(own)).reshape(2, -1), axis=1)
    values[0, 0], values[1, -1] = -np.inf, np.inf
    read = levels_to_read(own, asked)
    found = interpolate_levels(values[:, read], [own[k] for k in read], asked)
    assert found.tobytes() == interpolate_levels(values, own, asked).tobytes()


@pytest.mark.parametrize("kind", ["smooth", "tied", "wild", "exact", "clipped"])
def test_levels_move_by_the_place_of_the_label_among_their_quantiles(kind):
    rng = np.random.default_rng(0)
    state, every = new_forecaster(np.array(EACH)), np.arange(len(EACH))
    limits = np.array([-1.0, 1.0] if kind == "clipped" else [-math.inf, math.inf])
    own, ties = np.log(EACH) - np.log1p(-np.array(EACH)), 0
    for _ in range(300):
        forecast, root = rng.normal(size=(2, 1))
        label = {
            "smooth": rng.normal(size=1),
            "tied": rng.integers(-1, 2, 1) + forecast,
            "wild": rng.standard_cauchy(1) ** 3,
            "exact": forecast + (rng.random(1) < 0.2),
            "clipped": np.clip(rng.normal(size=1) * 2, -1, 1),
        }[kind]
        before, out = state.levels.h.copy(), np.empty((1, len(EACH)))
        learn_quantiles(state, forecast, np.abs(root), label, np.ones(1), limits, every, out)
        out = np.clip(out[0], *limits)
        moves = STEP * (np.array(EACH) - (label < out))
        back = np.clip(own - before, STEP * (np.array(EACH) - 1), STEP * np.array(EACH))
        moved = before + np.where(label == out, back, moves)
        np.testing.assert_allclose(state.levels.h, moved, atol=1e-12)
        ties += (label == out).sum()
    assert (ties > 100) == (kind in ("exact", "clipped"))


def test_levels_out_of_order_are_pooled_as_in_isotonic_regression():
    from sklearn.isotonic import isotonic_regression

    rng = np.random.default_rng(0)
    levels = new_levels(np.linspace(0.1, 0.9, 7))
    for _ in range(200):
        levels.h[...] = rng.normal(size=7).round(1)
        levels.put_in_order()
        np.testing.assert_allclose(levels.used, isotonic_regression(levels.h), atol=1e-12)


def test_compiled_code_plain_code_and_a_plain_oracle_agree():
    rng = np.random.default_rng(0)
    rows = 2500  # windows are full, and take one row in four
    forecasts, labels = rng.normal(size=rows), rng.normal(size=rows) * 3
    roots, weights = rng.uniform(0, 2, rows), np.ones(rows)
    outs = []
    for compiled in (True, False):
        state, out = new_forecaster(np.array(LEVELS)), np.empty((rows, 3))
        limits = np.array([-math.inf, math.inf])
        arguments = state, forecasts, roots, labels, weights, limits, np.arange(3), out
        if compiled:
            from spanboost.compiling.kernels import Caller

            Caller()(learn_quantiles, *arguments)
        else:
            with plain():
                learn_quantiles(*arguments)
        outs.append(out)
    np.testing.assert_allclose(outs[0], outs[1], rtol=1e-12)
    np.testing.assert_allclose(outs[0], oracle(forecasts, roots, labels), rtol=1e-9, atol=1e-9)


def oracle(forecasts, roots, labels):
    """Compute the quantiles by sorting everything for each row; shares no code with the package."""
    from sklearn.isotonic import isotonic_regression

    h = np.array([math.log(p / (1 - p)) for p in LEVELS])
    out, past, cells, seen = [], [], {}, []
    medians, loss = np.ones(3), np.zeros(3)
    for t, (forecast, root, label) in enumerate(zip(forecasts, roots, labels, strict=True)):
        same, own = medians[0], medians[1] * root
        scales = np.array([same, min(max(own, same / 7), 7 * same), medians[2]])
        weights = np.exp(-(loss - loss.min()))
        scale = math.exp(np.dot(weights, np.log(scales)) / weights.sum()) if t else 1.0
        used = isotonic_regression(h)
        place = [
            located([one[j] for one in seen[-ROWS:]], cells_along, value)
            for j, (cells_along, value) in enumerate(((FORECASTS, forecast), (ROOTS, root)))
        ]
        windows = [*neighbours(place, cells), (1.0, past[-WINDOW:])]  # the rest is that of all
        curve = mixed(windows)
        due = scramble(t) / 2**32 < 1 / EVERY
        read = zip(LEVELS, used, strict=True)
        quantiles = [forecast + scale * read_off(curve, len(past), *pair) for pair in read]
        out.append(quantiles)
        h += STEP * (np.array(LEVELS) - (label <= np.array(quantiles)))
        size = abs(label - forecast)
        value = (label - forecast) / (scale if t else size)
        cell = math.floor(place[0] + 0.5), math.floor(place[1] + 0.5)
        for window, kept, most in (
            (past, value, WINDOW),
            (cells.setdefault(cell, []), value, ROWS),
            (seen, (forecast, root), ROWS),
        ):
            if due or len(window) < most:
                window.append(kept)
        if t:
            loss = 0.995 * loss + np.log(scales / same) + np.minimum(size / scales, 20)
        else:
            medians = np.array([size, size / root, size])
        moves = np.maximum(min(1, 6 / (t + 1)), [0.01, 0.01, 0.1])
        larger = size > medians * [1, root, 1]
        medians *= np.exp(moves * (larger - 0.5))
    return out


@pytest.mark.parametrize("levels", [EACH, (0.0001, 0.33, 0.999)])
def test_a_curve_holds_the_quantiles_of_a_window_of_any_size(levels):
    rng, points = np.random.default_rng(0), new_points(levels)
    for size in range(1, WINDOW + 1):
        ordered = np.append(np.sort(rng.normal(size=size)), -1e9)  # the last one does not count
        curve = np.empty(len(points.odds))
        points.fill_curve(ordered, size, curve)
        shares = 1 / (1 + np.exp(-points.odds))
        expected = [read_share(ordered, size, share) for share in shares]
        np.testing.assert_allclose(curve, expected, rtol=1e-9, atol=1e-9)
        assert (np.diff(curve) >= 0).all()
        asked = [-7.999, -1.3, 0.0, 2.6, math.nextafter(8, 0)]
        np.testing.assert_allclose(
            [points.read_curve(curve, size % len(levels), odds) for odds in asked],
            np.interp(asked, points.odds, curve),
            rtol=1e-9,
            atol=1e-9,
        )


@given(
    st.lists(st.integers(-5, 5) | st.floats(-1e100, 1e100), min_size=2, max_size=40),
    st.integers(-6, 6) | st.floats(-1e100, 1e100),
)
def test_linear_interpolation_at_the_place_of_a_value_returns_the_value(values, value):
    points = np.sort(np.array(values, float))
    place = find_place(points, value)
    assert 0 <= place <= len(points) - 1
    inside = np.interp(place, range(len(points)), points)
    expected = min(max(value, points[0]), points[-1])
    assert math.isclose(inside, expected, rel_tol=1e-9, abs_tol=1e-9 * np.abs(points).max())


@given(st.integers(1, 300), st.integers(0, 2**40))
def test_full_windows_take_rows_of_every_phase_of_a_stream_that_repeats_itself(period, first):
    state, due = new_forecaster(np.array(LEVELS)), []
    for row in range(first, first + 400 * period, period):
        state.rows[0] = row
        due.append(state.is_due())
    assert abs(sum(due) - 400 / EVERY) < 50  # six standard deviations


def test_files_that_do_not_count_the_rows_of_quantiles_load_and_continue():
    X, y = stream(300)
    model = linear()
    model.learn_many(X, y)
    tensors = {name: value for name, value in model.tensors() if name != "quantiles.rows"}
    again = Intervals.restore(model.header(), tensors)
    assert (again.predict_interval(X) == model.predict_interval(X)).all()
    again.learn_many(X, y)
    assert again.forecaster.rows[0] == 300


def located(past, parts, value):
    """Return the place of a value among the medians of equal parts of past values."""
    if not past:
        return 0.0 if value <= 0 else parts - 1.0
    shares = (np.arange(parts) + 0.5) / parts
    middles = np.interp(shares * len(past) - 0.5, np.arange(len(past)), sorted(past))
    if value > middles[-1]:
        return parts - 1.0
    after = np.flatnonzero(middles >= value)[0]
    if after == 0:
        return 0.0
    low, high = middles[after - 1 : after + 1]
    return after - 1 + (value - low) / (high - low)


def neighbours(place, cells):
    """Return the weights and windows of the four nearest cells."""
    found = []
    for i in range(FORECASTS):
        for j in range(ROOTS):
            share = max(0, 1 - abs(place[0] - i)) * max(0, 1 - abs(place[1] - j))
            window = cells.get((i, j), [])[-ROWS:]
            if share > 0 and window:
                found.append((share * len(window) / (len(window) + EQUAL), window))
    return found


def mixed(windows):
    """Return the mean of the curves of some windows; the last one has the rest of the weights."""
    weights = [weight for weight, _ in windows[:-1]]
    weights.append(1 - sum(weights))
    return np.dot(weights, [empirical(window) for _, window in windows])


def read_off(curve, n, level, odds):
    if min(level, 1 - level) < 1 / (n + 1) - 1e-9 and level != 0.5:
        return math.copysign(math.inf, level - 0.5)
    if abs(odds) >= LIMIT:
        return math.copysign(math.inf, odds)
    return float(np.interp(odds, GRID, curve))


def empirical(past):
    """Return the quantiles of past values at the log-odds of the grid."""
    past, n = np.sort(past), len(past)
    if n == 0:
        return np.zeros(len(GRID))
    share, middle = 1 / (1 + np.exp(-GRID)), past[n // 2]
    low = past[0] + 0.5 * (middle - past[0]) * np.log(share * (n + 1))
    high = past[-1] - 0.5 * (past[-1] - middle) * np.log((1 - share) * (n + 1))
    inner = np.interp(share * (n + 1) - 1, np.arange(n), past)
    return np.where(share * (n + 1) < 1, low, np.where((1 - share) * (n + 1) < 1, high, inner))


@pytest.mark.parametrize("loss", ["poisson", "gamma", "tweedie:1.5"])
def test_intervals_of_counts_are_not_negative(loss):
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (1500, 2))
    y = rng.poisson(np.exp(0.5 * X[:, 0])) + (0.5 if loss == "gamma" else 0)
    model = Intervals(HullBoost(LinearSGD(), n=1, loss=loss, D=6, label_range="auto"))
    learned = model.learn_intervals(X, y, coverage=0.9)
    assert learned.min() == 0
    assert model.predict_interval(X, coverage=0.95).min() >= 0
    inside = (learned[:, 0] <= y) & (y <= learned[:, 1])
    assert inside[500:].mean() > 0.87
