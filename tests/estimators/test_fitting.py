"""How the scikit-learn estimators fit: number of passes, threads, progress, warm starts."""

import copy

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes, load_iris

from spanboost import WeightWarning
from spanboost.models import auto
from spanboost.sklearn import BoostingClassifier, BoostingRegressor

X, Y = load_diabetes(return_X_y=True)
FLOWERS, SPECIES = load_iris(return_X_y=True)


def linear(**parameters):
    return BoostingRegressor("linear", n_estimators=4, random_state=0, **parameters)


def test_the_number_of_passes_is_chosen_by_default_and_is_deterministic():
    model = linear().fit(X, Y)
    assert 1 <= model.n_epochs_ <= 10
    np.testing.assert_array_equal(linear(n_epochs="auto").fit(X, Y).predict(X), model.predict(X))
    assert linear(n_epochs=3).fit(X, Y).n_epochs_ == 3
    with pytest.raises(ValueError, match=r"n_epochs must be 'auto' or a positive integer \(got 'a"):
        linear(n_epochs="all").fit(X, Y)


def test_small_data_with_clear_classes_get_several_passes():
    model = BoostingClassifier("trees", n_estimators=8, random_state=0).fit(FLOWERS, SPECIES)
    once = BoostingClassifier("trees", n_estimators=8, random_state=0, n_epochs=1)
    assert model.n_epochs_ > 1
    assert model.score(FLOWERS, SPECIES) > once.fit(FLOWERS, SPECIES).score(FLOWERS, SPECIES)


def test_a_warm_start_continues():
    plain = {"n_epochs": 1, "shuffle": False}
    warm = linear(warm_start=True, **plain).fit(X[:200], Y[:200]).fit(X[200:], Y[200:])
    stream = linear().partial_fit(X[:200], Y[:200]).partial_fit(X[200:], Y[200:])
    np.testing.assert_array_equal(warm.predict(X), stream.predict(X))
    cold = linear(**plain).fit(X[:200], Y[:200]).fit(X[200:], Y[200:])
    np.testing.assert_array_equal(cold.predict(X), linear(**plain).fit(X[200:], Y[200:]).predict(X))
    with pytest.raises(ValueError, match="features"):
        warm.fit(X[:, :3], Y)


def test_a_warm_start_keeps_the_classes():
    model = BoostingClassifier(
        "linear", n_estimators=4, random_state=0, warm_start=True, n_epochs=1, shuffle=False
    )
    model.fit(FLOWERS, SPECIES)
    twin = copy.deepcopy(model).partial_fit(FLOWERS[:50], SPECIES[:50])
    model.fit(FLOWERS[:50], SPECIES[:50])  # one class only
    assert model.classes_.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(model.predict_proba(FLOWERS), twin.predict_proba(FLOWERS))
    with pytest.raises(ValueError, match="the label 3 is not one of the classes"):
        model.fit(FLOWERS, SPECIES + 1)
    np.testing.assert_array_equal(model.predict_proba(FLOWERS), twin.predict_proba(FLOWERS))


def test_a_refused_warm_start_changes_nothing():
    frame = pd.DataFrame({"city": ["Ulm", "Bonn"] * 60, "area": np.arange(120.0)})
    model = linear(warm_start=True).fit(frame, np.arange(120.0))
    twin = copy.deepcopy(model)
    new = frame.assign(city="Kiel")
    with pytest.raises(ValueError, match="row 7: the label is missing"):
        model.fit(new, np.where(np.arange(120) == 7, np.nan, 1.0))
    for one in (model, twin):
        one.partial_fit(frame.assign(city="Jena"), np.arange(120.0))
    known = frame.assign(city="Jena")
    np.testing.assert_array_equal(model.predict(known), twin.predict(known))
    assert model._reader.frame.codes == twin._reader.frame.codes


def test_jobs_are_threads_and_change_no_number(monkeypatch):
    used, plain = [], auto.run_in_threads

    def run(task, items, threads):
        used.append(threads)
        return plain(task, items, threads)

    monkeypatch.setattr(auto, "run_in_threads", run)
    answers = []
    for jobs in (None, 1, 3):
        model = BoostingRegressor(budget="fast", n_epochs=1, random_state=0, n_jobs=jobs)
        answers.append(model.fit(X, Y).predict(X))
    assert set(used) == {3}
    np.testing.assert_array_equal(answers[0], answers[1])
    np.testing.assert_array_equal(answers[0], answers[2])
    with pytest.raises(ValueError, match="n_jobs == 0"):
        model.set_params(n_jobs=0).fit(X, Y)


def test_verbose_prints_a_line_for_each_pass(capsys):
    linear().fit(X, Y)
    assert capsys.readouterr().out == ""
    linear(verbose=1, n_epochs=2).fit(X, Y)
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("Pass 1 of 2: loss ")
    assert second.startswith("Pass 2 of 2: loss ")
    model = linear(verbose=1).fit(X, Y)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Pass 1: held-out loss ")
    assert len(lines) in (model.n_epochs_, model.n_epochs_ + 1)


def test_columns_without_a_known_category_get_a_warning(recwarn):
    frame = pd.DataFrame({"x": X[:100, 0], "city": ["Ulm", "Bonn"] * 50})
    for kind in (str, "category"):
        model = linear(n_epochs=1).fit(frame.astype({"city": kind}), Y[:100])
        recwarn.clear()
        model.predict(frame.astype({"city": kind}).assign(city=["Kiel", "Ulm"] * 50))
        model.predict(frame[:1].assign(city="Kiel"))  # a single row says nothing
        model.predict(frame.assign(city=pd.Series([None] * 100, dtype=str)))
        assert not recwarn.list
        with pytest.warns(UserWarning, match="no value of column 'city' is known to the model"):
            model.predict(frame.assign(city="Kiel").astype({"city": kind}))


@pytest.mark.parametrize("learner", ["auto", "linear"])
def test_a_common_factor_of_the_weights_changes_nothing(learner):
    """Nor does one of the weights of classes."""
    budget = {"budget": "fast"} if learner == "auto" else {}
    weights = np.random.default_rng(0).uniform(0.5, 3, len(Y))

    def regress(sample_weight):
        model = BoostingRegressor(learner, random_state=0, n_epochs=2, **budget)
        return model.fit(X, Y, sample_weight).predict(X)

    def classify(factor, sample_weight=None):
        weights = {0: factor, 1: 2 * factor, 2: factor}
        model = BoostingClassifier(
            learner, random_state=0, n_epochs=2, class_weight=weights, **budget
        )
        return model.fit(FLOWERS, SPECIES, sample_weight).predict_proba(FLOWERS)

    plain = regress(weights)
    for factor in (1e-3, 1 / 3, 500):
        np.testing.assert_array_equal(regress(np.full(len(Y), factor)), regress(None))
        np.testing.assert_array_equal(regress(weights * factor), plain)
        np.testing.assert_array_equal(classify(factor), classify(1))
    np.testing.assert_array_equal(classify(1, np.full(len(SPECIES), 0.1)), classify(1))


def test_a_learner_without_weights_takes_equal_ones_in_fit():
    class Mean:
        weighted = False

        def __init__(self):
            self.sum = self.rows = 0

        def predict_one(self, x):
            return self.sum / max(self.rows, 1)

        def learn_one(self, x, y):
            self.sum, self.rows = self.sum + y, self.rows + 1

    models = [BoostingRegressor(Mean(), n_estimators=1, n_epochs=1, random_state=0) for _ in "ab"]
    for model, weight in zip(models, (1.0, 7.0), strict=True):
        model.fit(X, Y, np.where(np.arange(len(Y)) % 2, weight, 0.0))
    np.testing.assert_array_equal(models[0].predict(X), models[1].predict(X))


def test_streams_warn_of_large_weights_and_fit_does_not():
    weights = np.where(np.arange(len(Y)) < 5, 1e5, 1.0)  # the mean of the first rows is large
    linear(shuffle=False).fit(X, Y, weights)
    with pytest.warns(WeightWarning, match="^row 99: the mean of the weights so far is 5001, and "):
        linear().partial_fit(X, Y, weights)
