"""Prediction intervals of the estimators for scikit-learn and River."""

import copy
import pickle

import numpy as np
import pytest
from river import compose, conf, preprocessing
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from spanboost import Intervals, LinearSGD, SpanBoost, load, river, save, sklearn

ROWS = 1200


def stream(rows=ROWS, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (rows, 2))
    return X, X[:, 0] + (1.1 + X[:, 1]) * rng.normal(size=rows)


def regressor(**given):
    return sklearn.BoostingRegressor(
        "linear", n_estimators=2, intervals=True, random_state=0, **given
    )


def covered(intervals, y):
    return ((intervals[:, 0] <= y) & (y <= intervals[:, 1])).mean()


def test_intervals_have_the_shapes_of_mapie():
    X, y = stream()
    model = regressor().fit(X, y)
    predictions, intervals = model.predict_interval(X, coverage=[0.5, 0.8, 0.9])
    assert (predictions == model.predict(X)).all()
    assert intervals.shape == (ROWS, 2, 3)
    assert (intervals[:, 0] <= intervals[:, 1]).all()
    widths = intervals[:, 1] - intervals[:, 0]
    assert (np.diff(widths, axis=1) >= 0).all()
    assert model.predict_interval(X)[1].shape == (ROWS, 2, 1)
    quantiles = model.predict_quantiles(X, [0.05, 0.5, 0.95])
    np.testing.assert_array_equal(quantiles[:, [0, 2]], intervals[:, :, 2])


@pytest.mark.parametrize("n_epochs", ["auto", 1, 3])
def test_intervals_cover_rows_that_were_not_learned(n_epochs):
    X, y = stream(4000)
    model = regressor(n_epochs=n_epochs).fit(X[:2000], y[:2000])
    _, intervals = model.predict_interval(X[2000:], coverage=0.9)
    assert abs(covered(intervals[:, :, 0], y[2000:]) - 0.9) < 0.05


def wavy(rows, seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (rows, 4))
    return X, 2 * np.sin(3 * X[:, 0]) + X[:, 1] + 0.2 * (1.2 + X[:, 2]) * rng.normal(size=rows)


def test_the_coverage_after_several_passes_has_no_bias():
    found, passes = [], []
    for seed in range(30):
        X, y = wavy(4000, seed)
        model = sklearn.BoostingRegressor(
            "trees", n_estimators=20, intervals=True, random_state=seed
        ).fit(X[:2000], y[:2000])
        _, intervals = model.predict_interval(X[2000:], coverage=[0.9, 0.5])
        found.append([covered(intervals[:, :, k], y[2000:]) for k in (0, 1)])
        passes.append(model.n_epochs_)
    assert np.mean(passes) > 2
    np.testing.assert_allclose(np.mean(found, axis=0), [0.9, 0.5], atol=0.012)


@pytest.mark.parametrize("n_epochs", ["auto", 3])
def test_the_coverage_varies_little_between_small_data_sets(n_epochs):
    found = []
    for seed in range(20):
        X, y = wavy(5000, seed)
        model = sklearn.BoostingRegressor(
            "trees", n_estimators=10, intervals=True, n_epochs=n_epochs, random_state=seed
        ).fit(X[:1000], y[:1000])
        _, intervals = model.predict_interval(X[1000:])
        found.append(covered(intervals[:, :, 0], y[1000:]))
    assert abs(np.mean(found) - 0.9) < 0.01
    assert np.std(found) < 0.017
    assert min(found) > 0.87


def test_one_level_is_a_list_of_one():
    X, y = stream(300)
    model = regressor().fit(X, y)
    assert (model.predict_quantiles(X, 0.5) == model.predict_quantiles(X, [0.5])).all()
    with pytest.raises(ValueError, match=r"levels must be numbers between 0 and 1 \(got 'half'\)"):
        model.predict_quantiles(X, "half")


@pytest.mark.parametrize(("side", "level"), [("upper", 0.9), ("lower", 0.1)])
def test_bounds_are_quantiles(side, level):
    X, y = stream()
    model = regressor().fit(X, y)
    bounds = model.predict_bound(X, 0.9, side=side)
    assert (bounds == model.predict_quantiles(X, level)[:, 0]).all()
    online = river.BoostingRegressor("linear", n_models=2, intervals=True)
    for row, label in zip(X[:100].tolist(), y[:100].tolist(), strict=True):
        online.learn_one(dict(enumerate(row)), label)
    x = dict(enumerate(X[0].tolist()))
    interval = online.predict_one(x, with_interval=True, coverage=0.8)
    expected = interval.upper if side == "upper" else interval.lower
    assert online.predict_bound_one(x, 0.9, side) == expected
    for predict, row in ((model.predict_bound, X), (online.predict_bound_one, x)):
        with pytest.raises(ValueError, match='side must be "upper" or "lower"'):
            predict(row, 0.9, "left")


def test_further_passes_do_not_calibrate():
    X, y = stream(300)
    model = Intervals(SpanBoost(LinearSGD(), n=2, label_range="auto"))
    model.learn_many(X, y)
    before = copy.deepcopy(model.forecaster)
    expected = copy.deepcopy(model.model).learn_again(X, y)
    assert (model.learn_again(X, y) == expected).all()
    assert (model.forecaster.levels.h == before.levels.h).all()
    assert (model.forecaster.residuals.ring == before.residuals.ring).all()


def test_partial_fit_is_the_model_itself():
    X, y = stream(500)
    model = regressor()
    model.partial_fit(X[:200], y[:200]).partial_fit(X[200:], y[200:])
    assert isinstance(model.model_, Intervals)
    alone = sklearn.BoostingRegressor("linear", n_estimators=2, random_state=0)
    alone.partial_fit(X, y)
    assert (model.predict(X) == alone.predict(X)).all()


def test_threads_reach_the_model():
    X, y = stream(100)
    model = regressor(n_jobs=2).partial_fit(X, y)
    assert model.model_.model.threads == 2


def test_copies_pickles_and_files_have_the_same_intervals(tmp_path):
    X, y = stream(400)
    model = regressor().fit(X, y)
    expected = model.predict_interval(X)[1]
    save(model, tmp_path / "model.sb")
    for other in (load(tmp_path / "model.sb"), pickle.loads(pickle.dumps(model))):
        other.partial_fit(X, y)
        fresh = copy.deepcopy(model).partial_fit(X, y)
        assert (other.predict_interval(X)[1] == fresh.predict_interval(X)[1]).all()
    assert (model.predict_interval(X)[1] == expected).all()
    assert clone(model).get_params() == model.get_params()
    pipeline = make_pipeline(StandardScaler(), regressor()).fit(X, y)
    assert pipeline[-1].predict_interval(pipeline[0].transform(X))[1].shape == (400, 2, 1)


def test_what_does_not_fit_is_refused():
    X, y = stream(50)
    plain = sklearn.BoostingRegressor("linear").fit(X, y)
    assert not hasattr(plain, "predict_interval")
    with pytest.raises(
        AttributeError, match=r"BoostingRegressor.predict_interval needs intervals="
    ):
        plain.predict_interval(X)
    plain.intervals = True
    with pytest.raises(ValueError, match="fitted without intervals=True; fit it again"):
        plain.predict_interval(X)
    with pytest.raises(ValueError, match=r"one target.*2 columns"):
        regressor().fit(X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match="intervals must be True or False"):
        sklearn.BoostingRegressor("linear", intervals=0.9).fit(X, y)
    with pytest.raises(ValueError, match="coverage must be between 0 and 1"):
        regressor().fit(X, y).predict_interval(X, coverage=[0.9, 90])
    fitted = regressor().fit(X, y)
    for call in (
        lambda: fitted.predict_interval(X, coverage=[0.9, 0.9999]),
        lambda: fitted.predict_bound(X, coverage=0.9999),
        lambda: fitted.predict_quantiles(X, 0.9999),
    ):
        with pytest.raises(ValueError, match=r"must be .* 0.99.* \(got 0.9999\)"):
            call()


def river_rows(rows=ROWS):
    X, y = stream(rows)
    return [{"a": a, "b": b} for a, b in X.tolist()], y.tolist()


def test_river_intervals_are_those_of_its_conformal_wrappers():
    model, inside = river.BoostingRegressor("linear", n_models=2, intervals=True), 0
    rows, labels = river_rows()
    for x, y in zip(rows, labels, strict=True):
        interval = model.predict_one(x, with_interval=True)
        assert isinstance(interval, conf.Interval)
        inside += y in interval
        model.learn_one(x, y)
    assert abs(inside / ROWS - 0.9) < 0.02
    narrow = model.predict_one(x, with_interval=True, coverage=0.5)
    assert interval.lower < narrow.lower < narrow.upper < interval.upper
    assert isinstance(model.predict_one(x), float)


def test_river_models_with_intervals_can_be_saved_cloned_and_put_in_pipelines(tmp_path):
    rows, labels = river_rows(200)
    model = river.BoostingRegressor("linear", n_models=2, intervals=True)
    pipeline = compose.Pipeline(preprocessing.StandardScaler(), model.clone())
    for x, y in zip(rows, labels, strict=True):
        model.learn_one(x, y)
        pipeline.learn_one(x, y)
    assert pipeline.predict_one(rows[0], with_interval=True).width > 0
    save(model, tmp_path / "model.sb")
    again = load(tmp_path / "model.sb")
    for one in (again, pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert one.predict_one(x, with_interval=True) == model.predict_one(x, with_interval=True)


def test_a_river_model_without_intervals_says_what_to_do():
    with pytest.raises(ValueError, match=r"need BoostingRegressor\(intervals=True\)"):
        river.BoostingRegressor("linear").predict_one({"a": 1}, with_interval=True)


def test_a_coverage_of_river_beyond_the_calibrated_ones_is_refused():
    model = river.BoostingRegressor("linear", intervals=True)
    model.learn_one({"a": 1.0}, 2.0)
    with pytest.raises(ValueError, match=r"coverage must be at most 0.99, .*\(got 0.9999\)"):
        model.predict_one({"a": 1.0}, with_interval=True, coverage=0.9999)
    with pytest.raises(ValueError, match=r"between 0.005 and 0.995, .*\(got 0.9999\)"):
        model.predict_bound_one({"a": 1.0}, coverage=0.9999)
    classifier = river.BoostingClassifier("linear", sets=True)
    classifier.learn_one({"a": 1.0}, "rose")
    with pytest.raises(ValueError, match=r"coverage must be at most 0.995, .*\(got 0.9999\)"):
        classifier.predict_set_one({"a": 1.0}, coverage=0.9999)


def labels_of(X, y):
    return np.array(["rose", "lily", "iris"])[np.digitize(X[:, 0] + 0.2 * y, [-0.3, 0.3])]


def test_sets_after_several_passes_cover_rows_that_were_not_learned():
    found = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-1, 1, (6000, 5))
        scores = [2 * X[:, 0], 2 * np.sin(3 * X[:, 1]), 3 * X[:, 2] * X[:, 3], 0 * X[:, 0]]
        y = (np.transpose(scores) + rng.gumbel(scale=0.5, size=(6000, 4))).argmax(axis=1)
        model = sklearn.BoostingClassifier(budget="fast", sets=True, n_epochs=5, random_state=seed)
        _, sets = model.fit(X[:3000], y[:3000]).predict_set(X[3000:], coverage=0.9)
        found.append(sets[np.arange(3000), y[3000:], 0].mean())
    assert abs(np.mean(found) - 0.9) < 0.025


def test_sets_of_many_classes_cover_although_new_rows_make_the_model_surer():
    found, passes = [], []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        centres, y = rng.normal(size=(20, 8)), rng.integers(0, 20, 2300)
        X = centres[y] + 0.5 * rng.normal(size=(2300, 8))
        model = sklearn.BoostingClassifier(budget="fast", sets=True, random_state=seed)
        _, sets = model.fit(X[:300], y[:300]).predict_set(X[300:], coverage=[0.9, 0.95, 0.99])
        found.append(sets[np.arange(2000), y[300:]].mean(axis=0))
        passes.append(model.n_epochs_)
    assert np.mean(passes) > 2
    np.testing.assert_allclose(np.mean(found, axis=0), [0.9, 0.95, 0.99], atol=0.025)


@pytest.mark.parametrize("known", [True, False])
def test_classifiers_have_sets_in_the_shapes_of_mapie(known, tmp_path):
    X, y = stream()
    names = labels_of(X, y)
    model = sklearn.BoostingClassifier("linear", n_estimators=2, sets=True, random_state=0)
    model.partial_fit(X, names, classes=sorted({*names}) if known else None)
    classes, sets = model.predict_set(X, coverage=[0.8, 0.95])
    assert (classes == model.predict(X)).all()
    assert sets.shape == (ROWS, 3, 2)
    places = np.searchsorted(model.classes_, names)
    inside = sets[np.arange(ROWS), places].mean(axis=0)
    assert (inside > [0.75, 0.92]).all()  # the most probable class is always in the set
    assert (sets[:, :, 0] <= sets[:, :, 1]).all()
    assert not sets[:, :, 1].all()
    assert sets[np.arange(ROWS), np.searchsorted(model.classes_, classes)].all()
    save(model, tmp_path / "model.sb")
    for other in (load(tmp_path / "model.sb"), pickle.loads(pickle.dumps(model))):
        assert (other.predict_set(X, [0.8, 0.95])[1] == sets).all()


def test_sets_that_do_not_fit_are_refused():
    X, y = stream(50)
    names = labels_of(X, y)
    assert not hasattr(sklearn.BoostingClassifier(), "predict_set")
    with pytest.raises(AttributeError, match=r"BoostingClassifier.predict_set needs sets=True in"):
        sklearn.BoostingClassifier().predict_set(X)
    with pytest.raises(ValueError, match="needs loss='log_loss'"):
        sklearn.BoostingClassifier("linear", sets=True, loss="hinge").fit(X, names == "rose")
    with pytest.raises(ValueError, match="sets must be True or False"):
        sklearn.BoostingClassifier("linear", sets=0.9).fit(X, names)
    with pytest.raises(ValueError, match=r"need BoostingClassifier\(sets=True\)"):
        river.BoostingClassifier("linear").predict_set_one({"a": 1})


def test_river_classifiers_have_sets_of_labels():
    X, y = stream()
    names, inside = labels_of(X, y), []
    model = river.BoostingClassifier("linear", n_models=2, sets=True)
    assert model.predict_set_one({"a": 1.0}) == set()
    for (a, b), name in zip(X.tolist(), names.tolist(), strict=True):
        x = {"a": a, "b": b}
        inside.append(name in model.predict_set_one(x, coverage=0.9))
        model.learn_one(x, name)
    assert abs(np.mean(inside[200:]) - 0.9) < 0.03
    assert model.clone().sets is True


@pytest.mark.parametrize("rows", range(2, 16))
@pytest.mark.parametrize("n_epochs", ["auto", 1, 3])
def test_a_few_rows_are_enough_to_fit(rows, n_epochs):
    X, y = np.arange(2.0 * rows).reshape(rows, 2), np.arange(rows)
    model = regressor(n_epochs=n_epochs).fit(X, y)
    predictions, intervals = model.predict_interval(X)
    assert np.isfinite(predictions).all()
    assert (intervals[:, 0] <= intervals[:, 1]).all()
    classes = sklearn.BoostingClassifier(
        "linear", n_estimators=2, sets=True, n_epochs=n_epochs, random_state=0
    ).fit(X, y % 2)
    assert classes.predict_set(X)[1].any(axis=1).all()
