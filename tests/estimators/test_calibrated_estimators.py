"""Calibrated probabilities of the estimators for scikit-learn and River."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import log_loss

from spanboost import Calibrated, explain, load, river, save, sklearn

ROWS = 2000


def stream(classes):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (ROWS, 2))
    names = np.array(["rose", "lily", "iris"])[:classes]
    return X, names[np.digitize(X[:, 0] + 0.1 * rng.normal(size=ROWS), [0, 0.4][: classes - 1])]


def classifier(calibrated):
    return sklearn.BoostingClassifier(
        "linear", n_estimators=4, calibrated=calibrated, random_state=0
    )


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("passes", [1, "auto"])
def test_probabilities_of_held_out_rows_are_better(classes, passes, tmp_path):
    X, y = stream(classes)
    losses = []
    for calibrated in (False, True):
        model = classifier(calibrated).set_params(n_epochs=passes).fit(X[:1000], y[:1000])
        chances = model.predict_proba(X[1000:])
        np.testing.assert_allclose(chances.sum(axis=1), 1)
        losses.append(log_loss(y[1000:], chances, labels=model.classes_))
        name = "probability before calibration" if calibrated else "probability"
        assert f", {name} 0." in repr(explain(model, X[0]))
    assert losses[1] < (1.02 if classes == 2 else 0.9) * losses[0]  # from 100 held-out rows
    assert isinstance(model.model_, Calibrated)
    assert clone(model).calibrated is True
    save(model, tmp_path / "model.sb")
    for other in (load(tmp_path / "model.sb"), pickle.loads(pickle.dumps(model))):
        assert (other.predict_proba(X) == model.predict_proba(X)).all()


@pytest.mark.parametrize("classes", [2, 3])
def test_river_probabilities_are_better(classes):
    X, y = stream(classes)
    losses = []
    for calibrated in (False, True):
        model, chances = river.BoostingClassifier("linear", n_models=4, calibrated=calibrated), []
        for (a, b), name in zip(X.tolist(), y.tolist(), strict=True):
            chances.append(model.predict_proba_one({"a": a, "b": b}).get(name, 1.0))
            model.learn_one({"a": a, "b": b}, name)
        losses.append(-np.log(chances[1000:]).mean())
    assert losses[1] < 0.95 * losses[0]
    assert model.clone().calibrated is True


def test_what_does_not_fit_is_refused():
    X, y = stream(2)
    for given, why in (
        ({"calibrated": True, "loss": "hinge"}, "calibrated=True needs loss='log_loss'"),
        ({"calibrated": 0.9}, "calibrated must be True or False"),
        ({"calibrated": True, "sets": True}, "cannot be combined with calibrated=True"),
    ):
        with pytest.raises(ValueError, match=why):
            sklearn.BoostingClassifier("linear", **given).fit(X, y)
    with pytest.raises(ValueError, match="cannot be combined with calibrated=True"):
        river.BoostingClassifier("linear", calibrated=True, sets=True)
