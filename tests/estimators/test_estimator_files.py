"""Estimators in files, and explanations of their predictions."""

import datetime as dt
import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from forged import read_file
from safetensors.numpy import load_file, save_file
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.linear_model import SGDRegressor
from sklearn.model_selection import GridSearchCV

from spanboost import (
    AutoBoost,
    LinearSGD,
    ModelFileError,
    Network,
    Ridge,
    Trees,
    explain,
    load,
    river,
    save,
)
from spanboost.losses import Huber
from spanboost.models import files
from spanboost.models.plain_data import decode, encode
from spanboost.sklearn import BoostingClassifier, BoostingRegressor

X, y = load_diabetes(return_X_y=True)
FLOWERS, SPECIES = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])[SPECIES]
SMALL = {"n_estimators": 4, "random_state": 0, "n_epochs": 1}


def mixed(rows=120):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "city": rng.choice(["Ulm", "Bonn", None], rows),
            "floor": pd.Categorical(rng.integers(0, 3, rows)),
            "area": rng.uniform(20, 200, rows),
            "when": pd.date_range("2024-01-01", periods=rows, freq="7h"),
        }
    )
    return frame, 3 * frame["area"].to_numpy() + 200.0 * (frame["city"] == "Ulm")


def saved(model, folder):
    save(model, folder / "model.sb")
    return load(folder / "model.sb")


def assert_same(model, twin, rows):
    assert type(twin) is type(model)
    np.testing.assert_array_equal(twin.predict(rows), model.predict(rows))
    vectors = {name: value for name, value in model.get_params().items() if name != "learner"}
    assert {name: twin.get_params()[name] for name in vectors} == vectors


@pytest.mark.parametrize(
    "parameters", [{}, {"loss": Huber()}, {"n_epochs": "auto", "label_range": (-500, 1500)}]
)
def test_regressors_of_scikit_learn(parameters, tmp_path):
    model = BoostingRegressor("linear", **SMALL | parameters).fit(X, y)
    twin = saved(model, tmp_path)
    assert_same(model, twin, X)
    assert twin.n_epochs_ == model.n_epochs_
    assert_same(model.partial_fit(X, y), twin.partial_fit(X, y), X)
    assert_same(clone(model).fit(X, y), clone(twin).fit(X, y), X)


def test_frames_keep_their_columns_and_categories(tmp_path):
    frame, price = mixed()
    model = BoostingRegressor(Trees(depth=3), **SMALL).fit(frame, price)
    twin = saved(model, tmp_path)
    assert_same(model, twin, frame)
    assert list(twin.feature_names_in_) == list(frame.columns)
    new = frame.assign(city="Kiel")
    assert_same(model.partial_fit(new, price), twin.partial_fit(new, price), new)
    with pytest.raises(ValueError, match="feature names"):
        twin.predict(frame.rename(columns={"area": "size"}))


def test_classifiers_keep_their_classes(tmp_path):
    named = BoostingClassifier("linear", **SMALL, class_weight={"setosa": 2.0}).fit(FLOWERS, NAMES)
    twin = saved(named, tmp_path)
    assert twin.classes_.tolist() == named.classes_.tolist()
    np.testing.assert_array_equal(twin.predict_proba(FLOWERS), named.predict_proba(FLOWERS))
    grows = BoostingClassifier("linear", **SMALL, class_weight="balanced")
    grows.partial_fit(FLOWERS[100:40:-1], NAMES[100:40:-1])
    twin = saved(grows, tmp_path)
    for one in (grows, twin):
        one.partial_fit(FLOWERS, NAMES)  # a third class
    assert_same(grows, twin, FLOWERS)
    np.testing.assert_array_equal(twin.predict_proba(FLOWERS), grows.predict_proba(FLOWERS))


def test_several_targets_are_several_models_in_one_file(tmp_path):
    model = BoostingRegressor("linear", **SMALL).fit(X, np.column_stack([y, -y]))
    assert_same(model, saved(model, tmp_path), X)
    one = BoostingRegressor("linear", **SMALL).fit(X, y[:, None])
    assert saved(one, tmp_path).predict(X).shape == (len(y), 1)


STREAM = [
    ({"a": k % 5, "b": "xyz"[k % 3], "t": dt.datetime(2024, 1, 1 + k % 9)}, k % 4)
    for k in range(60)
]


@pytest.mark.parametrize("classes", [2, 4])
def test_estimators_of_river(classes, tmp_path):
    for model, label in (
        (river.BoostingRegressor("linear", n_models=4), float),
        (river.BoostingMultiTargetRegressor("linear", n_models=4), lambda k: {"p": k, 2: -k}),
        (river.BoostingClassifier("linear", n_models=4), lambda k: ("class", k % classes)),
    ):
        for x, k in STREAM:
            model.learn_one(x, label(k))
        twin = saved(model, tmp_path)
        assert type(twin) is type(model)
        assert repr(twin) == repr(model)
        for x, k in STREAM[:20]:
            model.learn_one(x, label(k + (k == 3)))  # with a third class if there were two
            twin.learn_one(x, label(k + (k == 3)))
            assert twin.predict_one(x) == model.predict_one(x)


def test_a_third_class_is_learned_from_the_saved_recent_rows(tmp_path):
    model = river.BoostingClassifier("linear", n_models=4)
    for x, k in STREAM:
        model.learn_one(x, k % 2)
    twin = saved(model, tmp_path)
    for one in (model, twin):
        one.learn_one(STREAM[0][0], "third")
    assert twin.predict_proba_one(STREAM[5][0]) == model.predict_proba_one(STREAM[5][0])


def test_code_cannot_be_saved(tmp_path):
    model = BoostingRegressor(SGDRegressor(random_state=0), n_estimators=2, n_epochs=1)
    with pytest.raises(ValueError, match="is code, not data"):
        save(model.fit(X[:30], y[:30]), tmp_path / "model.sb")
    random = BoostingRegressor("linear", random_state=np.random.RandomState(0), n_epochs=1)
    with pytest.raises(ValueError, match="is code, not data"):
        save(random.fit(X[:30], y[:30]), tmp_path / "model.sb")
    assert list(tmp_path.iterdir()) == []


def test_other_readers_name_the_estimator(tmp_path):
    save(BoostingRegressor("linear", **SMALL).fit(X, y), tmp_path / "model.sb")
    with pytest.raises(ModelFileError, match=r"the estimator spanboost\.sklearn\.Boosting"):
        files.load(tmp_path / "model.sb")


def forge(path, change):
    """Change the header of a file, and write it with the right checksum."""
    header, arrays = read_file(path)
    header.pop("checksum")
    change(header, arrays)
    path.write_bytes(files.pack(header, arrays))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda h, a: h.update(estimator="os.system"), "does not know the estimator 'os.system'"),
        (lambda h, a: h.update(estimator="sklearn.BoostingEstimator"), "does not know"),
        (lambda h, a: h.update(state=encode({"parameters": {}})), "do not match each other"),
        (lambda h, a: h.update(state={"part": {"class": "Popen", "fields": {}}}), "not know"),
        (lambda h, a: h.update(state={"array": ["V8", [1], [0]]}), "is not data"),
        (lambda h, a: a.update({"model.1": np.zeros(3, np.uint8)}), "not a model file"),
        (lambda h, a: a.clear(), "do not match each other"),
    ],
)
def test_forged_files_are_refused(change, message, tmp_path):
    path = tmp_path / "model.sb"
    save(BoostingRegressor("linear", **SMALL).fit(X, y), path)
    forge(path, change)
    with pytest.raises(ModelFileError, match=message):
        load(path)


def test_a_damaged_file_is_refused(tmp_path):
    path = tmp_path / "model.sb"
    save(BoostingRegressor("linear", **SMALL).fit(X, y), path)
    arrays = load_file(path)
    header, _ = files.read(path)
    arrays["model.0"][-1] ^= 1
    save_file(arrays, path, {"spanboost": json.dumps(header)})
    with pytest.raises(ModelFileError, match="the checksum does not match"):
        load(path)


def test_plain_data_survive():
    values = {
        1: (None, True, 2, 0.5, "text", float("inf")),
        "set": {1, 2},
        ("a", 1): [np.float32(0.5), np.int64(3), dt.date(2024, 1, 2)],
        "learner": Trees(depth=2),
    }
    twin = decode(json.loads(json.dumps(encode(values), allow_nan=False)))
    assert twin[("a", 1)] == [0.5, 3, np.datetime64("2024-01-02", "us")]
    assert {key: twin[key] for key in (1, "set", "learner")} == {
        key: values[key] for key in (1, "set", "learner")
    }
    assert np.isnan(decode(encode(float("nan"))))
    for array in (np.array(["b", "aa"]), np.array([1, 2]), np.array([True]), np.array([])):
        again = decode(encode(array))
        assert again.dtype == array.dtype
        np.testing.assert_array_equal(again, array)


def parts_of(explanation):
    return explanation.base + sum(explanation.contributions.values()) + explanation.rest


def test_frames_are_explained_by_their_columns():
    frame, price = mixed()
    model = BoostingRegressor("trees", **SMALL).fit(frame, price)
    row = frame.iloc[[5]]
    explanation = explain(model, row)
    assert explanation.prediction == pytest.approx(model.predict(row)[0])
    assert parts_of(explanation) == pytest.approx(explanation.prediction)
    assert set(explanation.contributions) <= set(frame.columns)
    assert next(iter(explanation.contributions)) == "area"
    as_dict = {name: frame[name][5] for name in frame}
    for same in (frame.iloc[5], as_dict, pl.from_pandas(row)):
        assert explain(model, same) == explanation
    without = explain(model, {"area": as_dict["area"]})
    missing = row.assign(city=None, floor=pd.Categorical([None], [0, 1, 2]), when=pd.NaT)
    assert without.prediction == pytest.approx(model.predict(missing)[0])
    with pytest.raises(ValueError, match=r"column 'aera' not found; did you mean 'area'\?"):
        explain(model, {"aera": 1.0})
    with pytest.raises(ValueError, match=r"expected one row \(got 2\)"):
        explain(model, frame.iloc[:2])


def test_arrays_and_numeric_frames_are_explained():
    model = BoostingRegressor("linear", **SMALL).fit(X, y)
    explanation = explain(model, X[3])
    assert explanation.prediction == pytest.approx(model.predict(X[3:4])[0])
    assert explanation == explain(model, X[3:4])
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(10)])
    named = explain(BoostingRegressor("linear", **SMALL).fit(frame, y), frame.iloc[3])
    expected = {f"c{j}": part for j, part in explanation.contributions.items()}
    assert named.contributions == expected


def test_several_targets_are_explained_by_vectors():
    model = BoostingRegressor("linear", **SMALL).fit(X, np.column_stack([y, -y]))
    explanation = explain(model, X[0])
    np.testing.assert_allclose(explanation.prediction, model.predict(X[:1])[0])
    np.testing.assert_allclose(parts_of(explanation), explanation.prediction)
    first = explain(BoostingRegressor("linear", **SMALL).fit(X, y), X[0])
    assert {name: part[0] for name, part in explanation.contributions.items()} == (
        first.contributions
    )


def test_classes_are_explained_in_their_order():
    model = BoostingClassifier("linear", **SMALL)
    model.partial_fit(FLOWERS[::-1], NAMES[::-1])  # virginica is class 0 of the model
    explanation = explain(model, FLOWERS[7])
    scores = model.decision_function(FLOWERS[7:8])[0]
    scores = scores - scores.mean()
    assert explanation.classes == model.classes_.tolist()
    np.testing.assert_allclose(explanation.chances, model.predict_proba(FLOWERS[7:8])[0], rtol=1e-6)
    assert repr(explanation).startswith("<Explanation: prediction setosa, probability 0.")
    np.testing.assert_allclose(explanation.prediction, scores, rtol=1e-6)
    np.testing.assert_allclose(parts_of(explanation), scores, rtol=1e-6, atol=1e-9)
    two = BoostingClassifier("linear", **SMALL).partial_fit(FLOWERS[99::-1], NAMES[99::-1])
    score = explain(two, FLOWERS[7]).prediction
    assert score == pytest.approx(two.decision_function(FLOWERS[7:8])[0])


def test_estimators_of_river_are_explained():
    single = river.BoostingRegressor("linear", n_models=4)
    several = river.BoostingMultiTargetRegressor("linear", n_models=4)
    for x, k in STREAM:
        single.learn_one(x, float(k))
        several.learn_one(x, {"p": float(k), "q": -float(k)})
    x = STREAM[4][0]
    explanation = explain(single, x)
    assert explanation.prediction == single.predict_one(x)
    assert parts_of(explanation) == pytest.approx(explanation.prediction)
    assert explain(single, pd.DataFrame([x])) == explanation
    assert explain(several, x).prediction.tolist() == list(several.predict_one(x).values())


def test_learners_other_than_auto_ignore_the_budget(tmp_path):
    given = {"learner": "linear", "budget": "thorough"}
    plain, model = (BoostingRegressor(**one, **SMALL) for one in ({"learner": "linear"}, given))
    expected = plain.fit(X, y).predict(X)
    assert (model.fit(X, y).predict(X) == expected).all()
    assert saved(model, tmp_path).get_params()["budget"] == "thorough"
    assert (saved(model, tmp_path).predict(X) == expected).all()
    online, other = river.BoostingRegressor("linear"), river.BoostingRegressor(**given)
    for x, k in STREAM:
        online.learn_one(x, k)
        other.learn_one(x, k)
    twin = saved(other, tmp_path)
    for x, _ in STREAM:
        assert twin.predict_one(x) == other.predict_one(x) == online.predict_one(x)


def test_a_search_tries_learners_with_and_without_a_budget():
    model = BoostingRegressor(budget="fast", random_state=0, n_epochs=1)
    search = GridSearchCV(
        model, {"learner": ["auto", "trees", "linear"]}, cv=2, error_score="raise"
    )
    assert len(search.fit(X, y).cv_results_["params"]) == 3
    with pytest.raises(ValueError, match="budget must be 'fast'"):
        BoostingRegressor("linear", budget="huge").fit(X, y)
    with pytest.raises(ValueError, match="n_estimators does not apply to learner 'auto'"):
        BoostingRegressor(n_estimators=4).fit(X, y)


@pytest.mark.parametrize(
    ("cls", "name", "hint"),
    [
        (BoostingRegressor, "max_depth", "; use learner=Trees(depth=...)"),
        (BoostingRegressor, "alpha", '; use loss="quantile:0.9"'),
        (river.BoostingRegressor, "quantile", '; use loss="quantile:0.9"'),
        (BoostingClassifier, "alpha", ""),
        (AutoBoost, "alpha", '; use loss="quantile:0.9"'),
        (Trees, "max_depth", "; use depth"),
        (Trees, "dept", "; did you mean 'depth'?"),
        (Ridge, "alpha", "; use ridge"),
        (LinearSGD, "learning_rate", "; use rate"),
        (Network, "lr", "; use rate"),
        (BoostingRegressor, "n_models", "; use n_estimators"),
        (BoostingClassifier, "eta", "; use learning_rate"),
        (BoostingClassifier, "max_iter", "; use n_epochs"),
        (BoostingRegressor, "early_stopping", '; use n_epochs="auto"'),
        (river.BoostingRegressor, "early_stopping", ""),
        (BoostingRegressor, "budgt", "; did you mean 'budget'?"),
        (BoostingRegressor, "xyz", ""),
        (river.BoostingRegressor, "n_estimators", "; use n_models"),
        (river.BoostingClassifier, "max_iter", ""),
    ],
)
def test_unknown_parameters_get_the_name_that_they_have_here(cls, name, hint):
    with pytest.raises(TypeError) as caught:
        cls(**{name: 3})
    assert str(caught.value) == f"{cls.__name__} has no parameter {name!r}{hint}"
