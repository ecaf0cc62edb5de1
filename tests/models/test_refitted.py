"""Refitted estimators: the same as a plain loop, whatever the blocks, threads and restarts."""

import copy
import json
import math
import pickle
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from spanboost import Refitted, Rows, SpanBoost, Trees, load, save
from spanboost.losses import Huber
from spanboost.models.refitting import libraries

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (3000, 3)).astype(np.float32)
Y = 100 + 50 * np.sign(X[:, 0] * X[:, 1]) + RNG.normal(0, 5, 3000)
CLASSES = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0.5)


def tree():
    return DecisionTreeRegressor(min_samples_leaf=10, random_state=0)


def quick(estimator=None, **given):
    """Return a model that is fitted to few rows."""
    return Refitted(tree() if estimator is None else estimator, **{"first": 100} | given)


def in_blocks(model, X, y, size, weights=None):
    parts = [slice(a, a + size) for a in range(0, len(y), size)]
    given = [None] * len(parts) if weights is None else [weights[part] for part in parts]
    each = zip(parts, given, strict=True)
    return np.concatenate([model.learn_many(X[part], y[part], w) for part, w in each])


def naive(new, X, y, *, first=100, grow=2.0, memory=None):
    """Predict every row with the estimator that is fitted to the rows so far, at fixed rows."""
    fits, start = [], first
    while start < len(y):
        after = max(start + 1, math.ceil(start * grow))
        fits.append((min(start + max(start // 16, 1), after), start))
        start = after
    predictions, fitted = [], None
    for t in range(len(y)):
        for end, start in fits:
            if end == t:
                kept = slice(0, start) if memory is None else slice(max(0, start - memory), start)
                order = np.arange(start)[kept]
                if memory is not None:  # the last rows are in a ring
                    order = order[np.argsort(order % memory)]
                fitted = new().fit(X[order], y[order])
        mean = y[:t].mean() if t else 0.0
        predictions.append(mean if fitted is None else fitted.predict(X[t : t + 1])[0])
    return np.array(predictions)


def test_predictions_are_those_of_a_plain_loop():
    expected = naive(tree, X, Y)
    np.testing.assert_allclose(quick().learn_many(X, Y), expected, rtol=1e-12)
    expected = naive(tree, X, Y, grow=1.05, memory=300)
    model = quick(grow=1.05, memory=300, keep="last")
    np.testing.assert_allclose(model.learn_many(X, Y), expected, rtol=1e-12)


@settings(max_examples=15, deadline=None)
@given(
    size=st.integers(1, 700),
    grow=st.sampled_from([1.01, 1.5, 2.0, 10.0]),
    keep=st.sampled_from(["sample", "last"]),
    memory=st.sampled_from([50, 10_000]),
    seed=st.integers(0, 99),
)
def test_blocks_of_any_size_give_the_same_bits(size, grow, keep, memory, seed):
    weights = np.random.default_rng(seed).integers(0, 3, 800).astype(float)
    given = {"grow": grow, "keep": keep, "memory": memory, "first": 60}
    estimator = DecisionTreeRegressor(max_depth=2, random_state=0)
    whole, parts = (quick(estimator, **given) for _ in range(2))
    expected = whole.learn_many(X[:800], Y[:800], weights)
    found = in_blocks(parts, X[:800], Y[:800], size, weights)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(parts.predict_many(X), whole.predict_many(X))
    assert parts.fits == whole.fits


def test_single_rows_give_the_same_bits():
    one, many = quick(), quick()
    expected = many.learn_many(X[:300], Y[:300])
    found = [one.learn_one(x, y) for x, y in zip(X[:300], Y[:300], strict=True)]
    assert found == expected.tolist()
    assert [one.predict_one(x) for x in X[:20]] == many.predict_many(X[:20]).tolist()


def test_a_fit_is_used_from_its_fixed_row_on():
    class Slow(DecisionTreeRegressor):
        def fit(self, X, y):
            started.set()
            assert go.wait(60)
            return super().fit(X, y)

    started, go = threading.Event(), threading.Event()
    model = quick(Slow(random_state=0))
    model.learn_many(X[:105], Y[:105])
    assert started.wait(60)
    before = model.predict_many(X[:5])  # does not wait
    np.testing.assert_allclose(before, Y[:105].mean())
    go.set()
    model.learn_many(X[105:106], Y[105:106])  # waits
    assert (model.predict_many(X[:5]) != before).all()
    assert model.fits == [(100, 106)]


@pytest.mark.filterwarnings("ignore:the estimator could not be fitted")
def test_an_estimator_that_fails_keeps_the_fit_before():
    class Moody(DecisionTreeRegressor):
        def fit(self, X, y):
            if len(y) == 200:
                raise RuntimeError("not today")
            return super().fit(X, y)

    model, sane = quick(Moody(random_state=0)), quick(DecisionTreeRegressor(random_state=0))
    found, expected = model.learn_many(X[:800], Y[:800]), sane.learn_many(X[:800], Y[:800])
    np.testing.assert_array_equal(found[:212], expected[:212])
    assert (found[212:425] != expected[212:425]).any()
    np.testing.assert_array_equal(found[425:], expected[425:])


def test_an_estimator_that_fails_warns():
    class Failing(DecisionTreeRegressor):
        def fit(self, X, y):
            raise RuntimeError("not today")

    model = quick(Failing())
    with pytest.warns(UserWarning, match="could not be fitted to 100 rows; .* stays: not today"):
        model.learn_many(X[:150], Y[:150])
    assert np.isfinite(model.predict_many(X)).all()


def lightgbm_model(**given):
    pytest.importorskip("lightgbm")
    return Refitted(**{"first": 200} | given)


@pytest.mark.parametrize("every", [97, 450])
def test_a_model_that_is_saved_and_loaded_gives_the_same_bits(tmp_path, every):
    whole, model = lightgbm_model(), lightgbm_model()
    expected, found = whole.learn_many(X[:1000], Y[:1000]), []
    for a in range(0, 1000, every):  # some files are written while a fit is running
        found.append(model.learn_many(X[a : a + every][: 1000 - a], Y[a : a + every][: 1000 - a]))
        save(model, tmp_path / "model.sb")
        model = load(tmp_path / "model.sb")
    np.testing.assert_array_equal(np.concatenate(found), expected)
    save(whole, tmp_path / "whole.sb")
    save(model, tmp_path / "model.sb")
    assert (tmp_path / "whole.sb").read_bytes() == (tmp_path / "model.sb").read_bytes()


def test_copies_continue_alike():
    model = lightgbm_model()
    model.learn_many(X[:410], Y[:410])  # a fit is running
    copies = [copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
    expected = model.learn_many(X[410:700], Y[410:700])
    for one in copies:
        np.testing.assert_array_equal(one.learn_many(X[410:700], Y[410:700]), expected)
    code = quick()
    code.learn_many(X[:210], Y[:210])
    again = pickle.loads(pickle.dumps(code))
    expected = code.learn_many(X[210:300], Y[210:300])
    np.testing.assert_array_equal(again.learn_many(X[210:300], Y[210:300]), expected)


def test_a_compact_model_predicts_the_same_without_rows(tmp_path):
    model = lightgbm_model()
    model.learn_many(X[:500], Y[:500])
    save(model, tmp_path / "full.sb")
    save(model, tmp_path / "small.sb", compact=True)
    small = load(tmp_path / "small.sb")
    np.testing.assert_array_equal(small.predict_many(X), model.predict_many(X))
    assert small.core.fitted is None
    assert (tmp_path / "small.sb").stat().st_size < (tmp_path / "full.sb").stat().st_size
    with pytest.raises(ValueError, match="cannot learn"):
        small.learn_many(X[:1], Y[:1])


def library_estimators():
    return {
        "lightgbm": ("LGBMRegressor", {"n_estimators": 20, "n_jobs": 1, "verbose": -1}),
        "xgboost": ("XGBRegressor", {"n_estimators": 20, "n_jobs": 1}),
        "catboost": (
            "CatBoostRegressor",
            {"iterations": 20, "verbose": 0, "allow_writing_files": False, "thread_count": 1},
        ),
    }


@pytest.mark.parametrize("library", ["lightgbm", "xgboost", "catboost"])
def test_estimators_of_libraries_are_saved_as_data(tmp_path, library):
    module = pytest.importorskip(library)
    name, parameters = library_estimators()[library]
    model = quick(getattr(module, name)(**parameters))
    model.learn_many(X[:230], Y[:230])
    plain = getattr(module, name)(**parameters).fit(X[:200], Y[:200])
    np.testing.assert_allclose(model.predict_many(X[:50]), plain.predict(X[:50]), rtol=1e-5)
    save(model, tmp_path / "model.sb")
    again = load(tmp_path / "model.sb")
    expected = model.learn_many(X[230:500], Y[230:500])
    np.testing.assert_array_equal(again.learn_many(X[230:500], Y[230:500]), expected)
    assert again.title == name


def test_code_is_not_saved(tmp_path):
    model = quick(HistGradientBoostingRegressor(max_iter=5))
    model.learn_many(X[:150], Y[:150])
    with pytest.raises(ValueError, match="is code, not data, so a model with it cannot be saved"):
        save(model, tmp_path / "model.sb")
    assert list(tmp_path.iterdir()) == []
    assert model.health.good


def test_a_library_that_is_missing_is_named(tmp_path, monkeypatch):
    model = lightgbm_model()
    model.learn_many(X[:300], Y[:300])
    save(model, tmp_path / "model.sb")
    monkeypatch.setattr(libraries, "is_installed", lambda library: False)
    with pytest.raises(ValueError, match=r"uses LightGBM, which is not installed; run pip install"):
        load(tmp_path / "model.sb")
    with pytest.raises(ValueError, match=r"uses LightGBM, which is not installed; run pip install"):
        Refitted()


def test_categories_and_missing_values_reach_lightgbm():
    pytest.importorskip("lightgbm")
    rng = np.random.default_rng(1)
    shops = rng.permutation(40)[rng.integers(0, 40, 3000)]
    y = np.sin(shops * 7.3) + (X[:, 0] > 0.3)
    frame = X[:, :1].copy()
    frame[::7] = np.nan
    y[::7] += 3
    texts = [
        {"shop": f"s{shop}", "x": None if np.isnan(x) else float(x)}
        for shop, x in zip(shops, frame[:, 0], strict=True)
    ]
    codes = Rows(frame, shops[:, None])
    for rows in (texts, codes):
        model = lightgbm_model(first=500)
        predictions = model.learn_many(rows, y)
        assert np.mean((predictions - y)[2300:] ** 2) < 0.05 * np.var(y)


def test_columns_that_appear_later_are_used_by_the_next_fit():
    pytest.importorskip("lightgbm")
    model = lightgbm_model(first=300)
    old = [{"a": float(x[0])} for x in X[:400]]
    new = [{"a": float(x[0]), "b": float(x[1]), "c": "uv"[int(x[2] > 0)]} for x in X[400:]]
    y = np.concatenate([4 * X[:400, 0], 3 * np.sign(X[400:, 1]) + np.sign(X[400:, 2])])
    model.learn_many(old, y[:400])
    predictions = model.learn_many(new, y[400:])
    assert np.mean((predictions - y[400:])[2300:] ** 2) < 0.1 * np.var(y)


def test_wide_rows_are_sparse():
    pytest.importorskip("lightgbm")
    words = RNG.integers(0, 4000, (1500, 5))
    rows = [
        {f"w{word}": 1.0 for word in line} | {"x": float(x)}
        for line, x in zip(words, X[:1500, 0], strict=True)
    ]
    model, again = lightgbm_model(), lightgbm_model()
    predictions = model.learn_many(rows, X[:1500, 0])
    assert np.mean((predictions - X[:1500, 0])[700:] ** 2) < 0.05
    np.testing.assert_array_equal(in_blocks(again, rows, X[:1500, 0], 140), predictions)


@pytest.mark.parametrize(
    "loss",
    ["squared", "absolute", "quantile:0.5", Huber(0.1), "poisson", "gamma", "tweedie:1.5"],
)
def test_losses_of_numbers(loss):
    y = np.exp(np.sign(X[:, 0] * X[:, 1]) + 1)
    model = lightgbm_model(loss=loss, first=500)
    predictions = model.learn_many(X, y)
    assert np.mean(abs(predictions - y)[2300:]) < 0.1 * np.mean(abs(y - y.mean()))
    assert model.health.good


def test_classes_give_scores():
    pytest.importorskip("lightgbm")
    binary = Refitted(loss="logistic", first=500).learn_many(X, CLASSES > 0)
    assert np.mean((binary > 0) == (CLASSES > 0)) > 0.9
    scores = Refitted(loss="softmax", first=500).learn_many(X, CLASSES)
    assert np.mean(scores.argmax(axis=1) == CLASSES) > 0.9
    own = Refitted(DecisionTreeClassifier(max_depth=4), loss="softmax", first=500)
    assert np.mean(own.learn_many(X, CLASSES).argmax(axis=1) == CLASSES) > 0.9


def test_classes_may_appear_late():
    y = np.where(np.arange(3000) < 200, CLASSES % 2, CLASSES + 2)
    estimator = DecisionTreeClassifier(max_depth=4, random_state=0)
    whole, parts = (Refitted(estimator, loss="softmax", first=300) for _ in range(2))
    expected = whole.learn_many(X, y)
    found = [parts.learn_many(X[a : a + 250], y[a : a + 250]) for a in range(0, 3000, 250)]
    for a, scores in zip(range(0, 3000, 250), found, strict=True):
        np.testing.assert_array_equal(scores, expected[a : a + 250, : scores.shape[1]])
        assert (expected[a : a + 250, scores.shape[1] :] < -600).all()
    assert np.mean(expected.argmax(axis=1)[2700:] == y[2700:]) > 0.9


@pytest.mark.parametrize("loss", ["squared", "absolute", "quantile:0.5", "poisson", "gamma"])
def test_catboost_learns_losses_of_numbers(tmp_path, loss):
    pytest.importorskip("catboost")
    y = np.exp(np.sign(X[:, 0] * X[:, 1]) + 1)[:1500]
    model = Refitted("catboost", loss=loss, first=500)
    predictions = model.learn_many(X[:1500], y)
    assert np.mean(abs(predictions - y)[1100:]) < 0.15 * np.mean(abs(y - y.mean()))
    save(model, tmp_path / "model.sb")
    again = load(tmp_path / "model.sb").predict_many(X[:50])
    np.testing.assert_array_equal(again, model.predict_many(X[:50]))


def test_catboost_learns_classes():
    pytest.importorskip("catboost")
    binary = Refitted("catboost", loss="logistic", first=500).learn_many(X, CLASSES > 0)
    assert np.mean((binary > 0) == (CLASSES > 0)) > 0.9
    scores = Refitted("catboost", loss="softmax", first=500).learn_many(X, CLASSES)
    assert np.mean(scores.argmax(axis=1) == CLASSES) > 0.9


def test_catboost_is_not_asked_where_there_is_nothing_to_learn(recwarn):
    pytest.importorskip("catboost")
    for rows, y in ((np.ones((300, 2)), Y[:300]), (X[:300], np.full(300, 7.0))):
        model = Refitted("catboost", first=100)
        model.learn_many(rows, y)
        np.testing.assert_allclose(model.predict_many(rows[:3]), y.mean())
    assert not recwarn.list


@pytest.mark.parametrize(
    "path", [("splits", 0, "float_feature_index"), ("splits", 0, "split_index"), ("leaf_values",)]
)
def test_a_forged_model_of_catboost_is_refused(path):
    catboost = pytest.importorskip("catboost")
    estimator = catboost.CatBoost({"iterations": 2, "verbose": 0, "allow_writing_files": False})
    form = libraries.FORMS["catboost"]
    content = json.loads(form.dump(estimator.fit(X[:200], Y[:200])))
    form.load(json.dumps(content).encode())
    *parents, last = path
    part = content["oblivious_trees"][1]
    for step in parents:
        part = part[step]
    part[last] = [0.0] if last == "leaf_values" else 10**6
    with pytest.raises(ValueError, match="the trees of CatBoost are invalid"):
        form.load(json.dumps(content).encode())


def test_one_class_is_no_reason_to_fail():
    model = lightgbm_model(loss="logistic")
    model.learn_many(X[:500], np.ones(500))
    assert (model.predict_many(X) > 3).all()


def test_wrong_parameters_are_refused():
    for changed, text in (
        ({"first": 0}, "first must be a positive integer"),
        ({"grow": 1.0}, "grow must be a number above 1"),
        ({"keep": "all"}, "keep must be 'sample' or 'last'"),
        ({"memory": 0}, "memory must be"),
        ({"loss": "hinge"}, "loss must be one that estimators have"),
        (
            {"estimator": "xgb"},
            "estimator must be an object, or one of 'lightgbm', 'lightgbm sh",
        ),
        ({"estimator": DecisionTreeRegressor}, "estimator must be an object with fit"),
        ({"estimator": object()}, "estimator must be an object with fit"),
        ({"loss": "logistic"}, "estimator must have predict_proba, for classes"),
    ):
        with pytest.raises(ValueError, match=text):
            Refitted(**{"estimator": tree()} | changed)


def test_estimators_that_predict_nonsense_predict_the_mean():
    class Nonsense:
        def fit(self, X, y):
            return self

        def predict(self, X):
            return np.full(len(X), np.nan)

    model = quick(Nonsense())
    model.learn_many(X[:200], Y[:200])
    np.testing.assert_allclose(model.predict_many(X[:3]), Y[:100].mean())


def test_boosters_do_not_keep_rows_for_fits():
    assert SpanBoost(Trees(), n=2).core.fitted is None
    assert quick(memory=500).core.kept_slots == 500
