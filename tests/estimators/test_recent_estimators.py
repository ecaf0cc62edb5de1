"""Recent rows correct the predictions of the estimators for scikit-learn and River."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from small_experts import set_small_experts

from spanboost import AutoBoost, load, river, save, sklearn


@pytest.fixture(autouse=True)
def small_experts(monkeypatch):
    set_small_experts(monkeypatch)


def moving(rows):
    """Return points near centres that move, and the class of each centre."""
    rng = np.random.default_rng(0)
    centres, direction = rng.uniform(-1, 1, (12, 3)), rng.normal(size=(12, 3))
    which = rng.integers(0, 12, rows)
    moved = centres[which] + 0.002 * np.arange(rows)[:, None] * direction[which]
    return np.sin(moved) + 0.05 * rng.normal(size=(rows, 3)), which % 3


def river_mistakes(model, X, y):
    """Return the share of wrong predictions, each made before the label is learned."""
    wrong = 0
    for x, label in zip(X.tolist(), y.tolist(), strict=True):
        row = dict(zip("abc", x, strict=True))
        wrong += model.predict_one(row) != label
        model.learn_one(row, label)
    return wrong / len(y)


def test_a_river_classifier_follows_drift():
    X, y = moving(1500)
    mistakes = [
        river_mistakes(river.BoostingClassifier(recent=recent), X, y) for recent in (None, False)
    ]
    assert mistakes[0] < 0.8 * mistakes[1]


def test_a_river_regressor_predicts_as_autoboost():
    X, y = moving(120)
    estimator, model = river.BoostingRegressor(), AutoBoost(past=False)
    for x, label in zip(X.tolist(), y.tolist(), strict=True):
        row = dict(zip("abc", x, strict=True))
        assert estimator.predict_one(row) == model.predict_one(row)
        estimator.learn_one(row, label)
        model.learn_one(row, label)


@pytest.mark.parametrize("module", [river, sklearn])
def test_recent_is_a_parameter(module, tmp_path):
    X, y = moving(200)
    estimators = [module.BoostingRegressor(recent=recent) for recent in (None, False)]
    if module is river:
        assert estimators[1].clone().recent is False
        for one in estimators:
            for x, label in zip(X.tolist(), y.tolist(), strict=True):
                one.learn_one(dict(enumerate(x)), label)
        predicted = [one.predict_one({0: 0.5, 1: 0.5}) for one in estimators]
    else:
        assert clone(estimators[1]).recent is False
        predicted = [one.partial_fit(X, y).predict(X).tolist() for one in estimators]
    assert predicted[0] != predicted[1]
    for one in estimators:
        save(one, tmp_path / "estimator.sb")
        assert load(tmp_path / "estimator.sb").recent is one.recent


@pytest.mark.parametrize("recent", [None, True, False])
def test_fit_has_no_recent_rows_by_default(recent):
    X, y = moving(200)
    model = sklearn.BoostingRegressor(recent=recent, n_epochs=1, random_state=0)
    assert [*model.fit(X, y).model_.stages] == (["recent"] if recent else [])
    online = sklearn.BoostingRegressor(recent=recent).partial_fit(X, y)
    assert [*online.model_.stages] == ([] if recent is False else ["recent"])


def test_scikit_learn_estimators_keep_recent_rows_in_pickles():
    X, y = moving(300)
    model = sklearn.BoostingClassifier(random_state=0)
    model.partial_fit(X[:200], y[:200], classes=[0, 1, 2])
    again = pickle.loads(pickle.dumps(model))
    for one in (model, again):
        one.partial_fit(X[200:], y[200:])
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_a_learner_of_its_own_has_no_recent_rows():
    with pytest.raises(ValueError, match="recent needs learner 'auto'"):
        river.BoostingRegressor("trees", recent=True)
