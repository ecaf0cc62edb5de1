"""Several targets: 2-D labels in scikit-learn, dictionaries of labels in River."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from river import checks
from sklearn.datasets import load_diabetes
from sklearn.metrics import r2_score
from sklearn.multioutput import MultiOutputRegressor
from sklearn.utils.estimator_checks import check_estimator

from spanboost import river
from spanboost.sklearn import BoostingClassifier, BoostingRegressor

X, y = load_diabetes(return_X_y=True)
BOTH = np.column_stack([y, 1000 - 0.001 * y**2])  # targets of different scales


def linear(**parameters):
    return BoostingRegressor("linear", n_estimators=4, random_state=0, **parameters)


def test_every_target_has_the_model_of_this_target_alone():
    model = linear().fit(X, BOTH)
    expected = MultiOutputRegressor(linear()).fit(X, BOTH)
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))
    assert model.n_epochs_ == [one.n_epochs_ for one in expected.estimators_]
    assert model.score(X, BOTH) == r2_score(BOTH, model.predict(X))
    assert repr(model.model_).startswith("<2 models, one for each target: [<SpanBoost(LinearSGD(")
    assert model.model_._repr_html_().count("loss function") == 2
    frame = pd.DataFrame(BOTH, columns=["a", "b"])
    np.testing.assert_array_equal(linear().fit(X, frame).predict(X), model.predict(X))
    twin = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(twin.predict(X), model.predict(X))


def test_streams_of_several_targets():
    model, first = linear(), linear()
    for rows in np.array_split(np.arange(len(y)), 3):
        model.partial_fit(X[rows], BOTH[rows], sample_weight=np.ones(len(rows)))
        first.partial_fit(X[rows], BOTH[rows, 0])
    np.testing.assert_array_equal(model.predict(X)[:, 0], first.predict(X))
    before = model.predict(X)
    bad = BOTH.copy()
    bad[7, 1] = np.nan  # valid for the first target
    with pytest.raises(ValueError, match=r"^row 7: the label in column 1 of y is missing"):
        model.partial_fit(X, bad)
    text = BOTH.astype(object)
    text[7, 1] = "abc"
    with pytest.raises(ValueError, match=r"^row 7: the label 'abc' in column 1 of y is not a num"):
        model.partial_fit(X, text)
    with pytest.raises(ValueError, match=r"y must have the shape \[rows, 2\], .* \(got \[rows\]\)"):
        model.partial_fit(X, y)
    with pytest.raises(ValueError, match=r"shape \[rows, 2\], .* \(got \[rows, 3\]\)"):
        model.set_params(warm_start=True).fit(X, np.column_stack([BOTH, y]))
    with pytest.raises(ValueError, match=r"^row 7: the label in column 1 of y is missing"):
        model.fit(X, bad)
    np.testing.assert_array_equal(model.predict(X), before)
    again = copy.deepcopy(model).set_params(n_epochs=1, shuffle=False).fit(X, BOTH)
    np.testing.assert_array_equal(again.predict(X), model.partial_fit(X, BOTH).predict(X))


def test_one_column_is_one_target_with_two_dimensions():
    model = linear().fit(X, y[:, None])
    assert model.predict(X).shape == (len(y), 1)
    np.testing.assert_array_equal(model.predict(X)[:, 0], linear().fit(X, y).predict(X))


def test_importances_and_stages_of_several_targets():
    model = BoostingRegressor("trees", n_estimators=4, random_state=0).fit(X, BOTH)
    each = [
        BoostingRegressor("trees", n_estimators=4, random_state=0).fit(X, target)
        for target in BOTH.T
    ]
    shares = np.mean([one.feature_importances_ for one in each], axis=0)
    np.testing.assert_allclose(model.feature_importances_, shares)
    stages = list(model.staged_predict(X))
    np.testing.assert_array_equal(stages[-1], model.predict(X))
    np.testing.assert_array_equal(stages[1][:, 1], list(each[1].staged_predict(X))[1])


def test_tags_say_which_estimators_take_several_targets():
    assert BoostingRegressor().__sklearn_tags__().target_tags.multi_output
    assert not BoostingClassifier().__sklearn_tags__().target_tags.multi_output


@pytest.mark.slow
def test_scikit_learns_checks_of_a_small_model():
    weights = "check_sample_weight_equivalence_on_{}_data"
    failures = {weights.format(kind): "as for SGDRegressor" for kind in ("dense", "sparse")}
    check_estimator(linear(n_epochs=1), expected_failed_checks=failures, on_skip=None)


STREAM = [({"a": k % 7, "b": "xyz"[k % 3]}, k) for k in range(150)]


def test_targets_of_river_are_single_regressors():
    model = river.BoostingMultiTargetRegressor("linear", n_models=4)
    sums, late = (river.BoostingRegressor("linear", n_models=4) for _ in range(2))
    assert model.predict_one(STREAM[0][0]) == {}
    for x, k in STREAM:
        labels = {"sum": x["a"] + k} | ({"late": -k} if k > 50 and k % 2 else {})
        assert model.predict_one(x).get("sum", 0.0) == sums.predict_one(x)
        model.learn_one(x, labels, w=1.0)
        sums.learn_one(x, labels["sum"])
        if "late" in labels:
            late.learn_one(x, labels["late"])
    x = STREAM[3][0]
    expected = {"sum": sums.predict_one(x), "late": late.predict_one(x)}
    assert model.predict_one(x) == expected
    assert pickle.loads(pickle.dumps(model)).predict_one(x) == expected
    with pytest.raises(ValueError, match=r"^row 0: target 'late': the label 'abc' is not a number"):
        model.learn_one(x, {"sum": 1.0, "late": "abc"})
    with pytest.raises(ValueError, match=r"y must be a dictionary of targets and .* \(got 1.0\)"):
        model.learn_one(x, 1.0)
    assert model.predict_one(x) == expected
    with pytest.raises(ValueError, match="n_models does not apply to learner 'auto'"):
        river.BoostingMultiTargetRegressor(n_models=3)


def test_blocks_of_several_targets_are_learned_as_their_rows():
    rows = pd.DataFrame([x for x, _ in STREAM])
    targets = pd.DataFrame({"sum": rows["a"] + 1.5, "late": [np.nan] * 50 + [*range(100)]})
    weights = np.linspace(0.5, 2, len(rows))
    whole, single = (river.BoostingMultiTargetRegressor("linear", n_models=4) for _ in range(2))
    whole.learn_many(rows, targets.assign(never=None), w=weights)
    for t, (x, _) in enumerate(STREAM):
        late = None if t < 50 else float(t - 50)
        single.learn_one(x, {"sum": targets["sum"][t], "late": late}, w=weights[t])
    found = whole.predict_many(rows)
    assert [*found.columns] == ["sum", "late"]
    assert found.to_dict("records") == [single.predict_one(x) for x, _ in STREAM]
    with pytest.raises(ValueError, match=r"^row 60: target 'late': the label 'abc' is not a numb"):
        whole.learn_many(rows, targets.astype(object).replace({"late": {10.0: "abc"}}))
    with pytest.raises(ValueError, match="150 rows but 2 rows of labels"):
        whole.learn_many(rows, targets[:2])
    with pytest.raises(TypeError, match=r"y must be a pandas DataFrame \(got Series\)"):
        whole.learn_many(rows, targets["sum"])
    pd.testing.assert_frame_equal(whole.predict_many(rows), found)


@pytest.mark.slow
def test_rivers_checks_of_several_targets():
    # the counts of flares are mostly 0, so others would be far outside an automatic range
    model = river.BoostingMultiTargetRegressor("linear", n_models=4, label_range="growing")
    for check in checks.yield_checks(model):
        check(model.clone())
