"""River's checks and typical uses: pipelines, streams of dictionaries, mini-batches."""

import copy
import datetime as dt
import pickle

import numpy as np
import pandas as pd
import pytest
from river import checks, compose, datasets, evaluate, linear_model, metrics, optim, preprocessing

from spanboost import HullBoost, LabelWarning, LinearSGD, SpanBoost, Trees
from spanboost.losses import Softmax
from spanboost.models.model_spec import ModelSpec
from spanboost.river import BoostingClassifier, BoostingRegressor

LEARNERS = ["trees", "linear", "stumps", "stumps-intercept", "network"]
STREAM = [(x, y) for x, y in datasets.TrumpApproval().take(200)]


def every_check():
    for model in (BoostingRegressor(), BoostingClassifier(), BoostingRegressor("linear")):
        assert model._unit_test_skips() == set()
        for k, check in enumerate(checks.yield_checks(model)):
            name = f"{type(model).__name__}-{model.learner}-{check.__name__}-{k}"
            yield pytest.param(model, check, id=name)


@pytest.mark.slow
@pytest.mark.parametrize(("model", "check"), [*every_check()])
def test_rivers_checks(model, check):
    check(model.clone())


@pytest.mark.parametrize("booster", ["span", "hull"])
@pytest.mark.parametrize("learner", LEARNERS)
def test_every_learner_learns_pickles_and_copies(learner, booster):
    model = BoostingRegressor(learner, booster=booster, n_models=8)
    own = (SpanBoost if booster == "span" else HullBoost)(
        model._model.learner, n=8, label_range="auto"
    )
    for x, y in STREAM[:150]:
        assert model.predict_one(x) == own.learn_one(x, y)
        assert model.learn_one(x, y) is None
    twins = copy.deepcopy(model), pickle.loads(pickle.dumps(model))
    for x, y in STREAM[150:]:
        want = own.learn_one(x, y)
        for each in (model, *twins):
            assert each.predict_one(x) == want
            each.learn_one(x, y)
    fresh = model.clone()
    assert fresh.predict_one(STREAM[0][0]) == 0 != model.predict_one(STREAM[0][0])
    assert repr(fresh) == repr(model)


def test_blocks_and_single_rows_give_identical_models():
    one, many = BoostingRegressor("trees", n_models=8), BoostingRegressor("trees", n_models=8)
    weights = np.random.default_rng(0).choice([0.0, 1.0, 2.5], 200)
    for (x, y), w in zip(STREAM, weights.tolist(), strict=True):
        one.learn_one(x, y, w=w)
    X, y = pd.DataFrame([x for x, _ in STREAM]), pd.Series([y for _, y in STREAM])
    for rows in np.array_split(np.arange(200), 7):
        many.learn_many(X.iloc[rows], y.iloc[rows], w=weights[rows])
    X.index = X.index + 1000
    answers = many.predict_many(X)
    assert answers.index.equals(X.index)
    assert answers.tolist() == [one.predict_one(x) for x, _ in STREAM]
    assert many.predict_many(X.iloc[:0]).empty


def test_rows_of_weight_zero_are_not_learned():
    with_it, without = BoostingRegressor("linear"), BoostingRegressor("linear")
    for t, (x, y) in enumerate(STREAM):
        if t % 2:
            without.learn_one(x, y)
        with_it.learn_one(x, y, w=float(t % 2))
    assert with_it.predict_one(STREAM[0][0]) == without.predict_one(STREAM[0][0])


def test_pipelines_and_progressive_validation():
    model = preprocessing.StandardScaler() | BoostingRegressor("stumps")
    own = evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE())
    assert own.get() < 0.4
    encoded = compose.SelectType(str) | preprocessing.OneHotEncoder()
    mixed = (encoded + compose.SelectType(float)) | BoostingClassifier("linear")
    rows = [({"a": float(t % 5), "b": "xy"[t % 2]}, t % 2 == 0) for t in range(400)]
    assert evaluate.progressive_val_score(rows, mixed, metrics.Accuracy()).get() > 0.95


def test_two_classes_have_one_output():
    model = BoostingClassifier("linear", n_models=8)
    rows = list(datasets.Phishing().take(600))
    for x, y in rows:
        model.learn_one(x, y)
    X = pd.DataFrame([x for x, _ in rows])
    assert model.predict_many(X).tolist() == [model.predict_one(x) for x, _ in rows]
    assert np.mean(model.predict_many(X) == [y for _, y in rows]) > 0.8
    assert BoostingClassifier("linear").predict_one(rows[0][0]) is None


SEGMENTS = list(datasets.ImageSegments().take(300))
TWO = sorted({y for _, y in SEGMENTS})[:2]


def classify(rows, labels, sizes=None):
    """Learn rows one by one, or in blocks of these sizes."""
    model, first = BoostingClassifier("linear", n_models=4), 0
    if sizes is None:
        for (x, _), y in zip(rows, labels, strict=True):
            model.learn_one(x, y)
        return model
    for size in sizes:
        part = slice(first, first := first + size)
        frame = pd.DataFrame([x for x, _ in rows[part]])
        model.learn_many(frame, pd.Series(labels[part], dtype="object"))
    return model


def test_classes_of_any_kind_may_appear_at_any_time():
    # two classes at first, so that the model for more classes learns the rows before
    early = [one for one in SEGMENTS if one[1] in TWO][:40]
    rows = early + SEGMENTS
    names = [y for _, y in rows]
    kinds = (names, [names.index(y) for y in names], [(y, 1) for y in names])
    for labels in kinds:
        single = classify(rows, labels)
        shares = single.predict_proba_one(rows[0][0])
        assert list(shares) == list(dict.fromkeys(labels))
        assert abs(sum(shares.values()) - 1) < 1e-12
        right = [single.predict_one(x) == y for (x, _), y in zip(rows, labels, strict=True)]
        assert np.mean(right) > 0.6
    blocks = classify(rows, names, (7, 100, 1, len(rows) - 108))
    assert blocks.predict_proba_one(rows[0][0]) == classify(rows, names).predict_proba_one(
        rows[0][0]
    )
    frame = pd.DataFrame([x for x, _ in rows])
    assert blocks.predict_many(frame).tolist() == [blocks.predict_one(x) for x, _ in rows]


def test_a_refused_row_adds_no_class():
    model = classify(SEGMENTS[:50], [y for _, y in SEGMENTS[:50]])
    x, twin = SEGMENTS[0][0], copy.deepcopy(model)
    for bad, label in ((x, None), (x, float("nan")), ({"a": [1]}, "new")):
        with pytest.raises((ValueError, TypeError)):
            model.learn_one(bad, label)
    assert model.predict_proba_one(x) == twin.predict_proba_one(x)


def test_predictions_know_the_classes_so_far():
    model = BoostingClassifier("linear", n_models=4)
    frame = pd.DataFrame([{"a": 1.0}])
    assert model.predict_proba_one({"a": 1.0}) == {}
    assert model.predict_proba_many(frame).shape == (1, 0)
    assert model.predict_many(frame).tolist() == [None]
    model.learn_one({"a": 1.0}, "first")
    assert model.predict_one({"a": 1.0}) == "first"


def test_learners_and_losses_with_parameters():
    model = BoostingRegressor(Trees(depth=2), n_models=4, learning_rate=0.5, loss="absolute")
    for x, y in STREAM:
        model.learn_one(x, y)
    assert abs(model.predict_one(STREAM[-1][0]) - STREAM[-1][1]) < 3
    assert model.clone().learner == Trees(depth=2)
    with pytest.raises(ValueError, match="n_models does not apply to learner 'auto'"):
        BoostingRegressor(n_models=3)


def test_a_loss_of_river_is_refused_with_advice():
    wrong = r"'quantile:0.9', or a loss object of spanboost.losses \(got river.optim.*Quantile\)"
    with pytest.raises(ValueError, match=wrong):
        BoostingRegressor(loss=optim.losses.Quantile(0.9))


def test_an_extreme_label_warns():
    model = BoostingRegressor(LinearSGD(), n_models=2)
    for x, y in STREAM[:100]:
        model.learn_one(x, y)
    frame = pd.DataFrame([x for x, _ in STREAM[100:110]])
    labels = pd.Series([1e6 if k == 7 else y for k, (_, y) in enumerate(STREAM[100:110])])
    twin = copy.deepcopy(model)
    with pytest.warns(LabelWarning, match=r"^row 107: the label 1000000") as caught:
        twin.learn_many(frame, labels)
    assert caught[0].filename == __file__
    for k in range(7):
        model.learn_one(STREAM[100 + k][0], labels[k])
    with pytest.warns(LabelWarning, match=r"^row 107: the label 1000000") as caught:
        model.learn_one(STREAM[107][0], 1e6)
    assert caught[0].filename == __file__


def test_replay_is_that_of_the_library():
    model = BoostingRegressor("trees", n_models=4, replay=2, memory=50)
    own = SpanBoost(Trees(), n=4, label_range="auto", replay=2, memory=50)
    for x, y in STREAM:
        assert model.predict_one(x) == own.learn_one(x, y)
        model.learn_one(x, y)
    twin = copy.deepcopy(model)
    for x, y in STREAM[:20]:
        model.learn_one(x, y)
        twin.learn_one(x, y)
        assert twin.predict_one(x) == model.predict_one(x)


def test_errors_use_the_names_of_river():
    X, y = pd.DataFrame([x for x, _ in STREAM]), pd.Series([y for _, y in STREAM])
    with pytest.raises(ValueError, match="200 rows but 3 weights"):
        BoostingRegressor("linear").learn_many(X, y, w=np.ones(3))
    with pytest.raises(
        ValueError, match=r"n_models must be a positive integer or 'auto' \(got 0\)"
    ):
        BoostingRegressor("linear", n_models=0)
    with pytest.raises(ValueError, match="use BoostingClassifier for classes"):
        BoostingRegressor("linear", loss=Softmax(3))


def test_wrong_blocks_and_labels_get_a_sentence():
    X, y = pd.DataFrame([x for x, _ in STREAM]), [y > 43 for _, y in STREAM]
    for model in (BoostingRegressor("linear"), BoostingClassifier("linear")):
        for call in (
            lambda m: m.learn_many(X.to_numpy(), y),
            lambda m: m.predict_many(X.to_numpy()),
        ):
            with pytest.raises(TypeError, match=r"^X must be a pandas DataFrame \(got ndarray\)$"):
                call(model)
    model = BoostingClassifier("linear", n_models=2)
    with pytest.raises(ValueError, match=r"^200 rows but 3 labels$"):
        model.learn_many(X, pd.Series(y[:3]))
    with pytest.raises(
        ValueError, match=r"the label must be text, a number or a boolean \(got list"
    ):
        model.learn_one(STREAM[0][0], [1])
    assert model.predict_proba_one(STREAM[0][0]) == {}
    model.learn_many(X, y)  # a list of labels
    assert set(model.predict_proba_one(STREAM[0][0])) == {False, True}
    with pytest.raises(
        ValueError, match=r"the label 'x' is not a number; .* use BoostingClassifier of"
    ):
        BoostingRegressor("linear").learn_one(STREAM[0][0], "x")


def test_times_are_features():
    hours = [dt.datetime(2024, 1, 1) + dt.timedelta(hours=k) for k in range(300)]
    stream = [({"when": hour, "x": 1.0}, float(hour.hour)) for hour in hours]
    single, block = (BoostingRegressor("trees", n_models=8) for _ in range(2))
    for x, y in stream:
        single.learn_one(x, y)
    X, y = pd.DataFrame([x for x, _ in stream]), pd.Series([y for _, y in stream])
    block.learn_many(X, y)
    later = [{"when": dt.datetime(2024, 2, 1, hour), "x": 1.0} for hour in (2, 20)]
    low, high = (single.predict_one(x) for x in later)
    assert low < high
    assert block.predict_many(pd.DataFrame(later)).tolist() == [low, high]
    assert np.isfinite(single.predict_one({"when": pd.NaT, "x": 1.0}))


def test_counts_have_positive_predictions():
    rng = np.random.default_rng(0)
    model = BoostingRegressor("linear", n_models=4, loss="poisson")
    for x in rng.uniform(-1, 1, 200):
        model.learn_one({"x": x}, rng.poisson(2 * np.exp(x)))
    assert model.predict_one({"x": 1.0}) > model.predict_one({"x": -1.0}) > 0


def four_classes(rows=120):
    """Return rows and labels; the classes appear one after the other."""
    rng = np.random.default_rng(0)
    X = [{"a": a, "b": b} for a, b in rng.normal(size=(rows, 2)).tolist()]
    labels = [2 * (x["a"] > 0) + (x["b"] > 0) for x in X]
    return X, [f"class {min(label, k // 15)}" for k, label in enumerate(labels)]


@pytest.mark.parametrize(
    "options",
    [
        {"learner": linear_model.LinearRegression(), "n_models": 2},
        {"learner": linear_model.LinearRegression()},
        {"learner": "linear", "n_models": "auto"},
    ],
    ids=["own", "own, chosen", "chosen"],
)
def test_models_that_cannot_add_classes_are_replaced(options):
    """Blocks and single rows give the same model, and the last rows are learned again."""
    X, labels = four_classes()
    one, many = BoostingClassifier(**options), BoostingClassifier(**options)
    for x, label in zip(X, labels, strict=True):
        one.learn_one(x, label)
    many.learn_many(pd.DataFrame(X), pd.Series(labels))
    chances = one.predict_proba_one(X[0])
    assert sorted(chances) == [f"class {k}" for k in range(4)]
    assert chances == pytest.approx(many.predict_proba_one(X[0]), rel=1e-12)
    n = options.get("n_models")
    whole = ModelSpec(learner=options["learner"], n=n, loss=Softmax(4)).build()  # knows all classes
    whole.learn_many(X, [[*chances].index(label) for label in labels])
    scores = np.exp(whole.predict_one(X[0]))
    assert [*chances.values()] == pytest.approx(scores / scores.sum(), rel=1e-9)


@pytest.mark.parametrize("model", [BoostingRegressor("linear"), BoostingClassifier("linear")])
def test_debug_one_shows_the_parts_of_a_prediction(model):
    for k in range(60):
        model.learn_one(
            {"a": k % 5, "b": k % 2}, k % 5 if isinstance(model, BoostingRegressor) else k % 5 > 2
        )
    lines = [line.split() for line in model.debug_one({"a": 3, "b": 1}, decimals=8).splitlines()]
    assert [lines[0][1], lines[-1][1]] == [
        "(base)",
        "(sum)" if isinstance(model, BoostingRegressor) else "(sum:",
    ]
    assert {line[1] for line in lines[1:-1]} - {"(rest)"} == {"a", "b"}
    numbers = [float(line[0]) for line in lines]
    assert sum(numbers[:-1]) == pytest.approx(numbers[-1], abs=1e-4)
    piped = compose.Select("a", "b") | model
    assert model.debug_one({"a": 3, "b": 1}) in piped.debug_one({"a": 3, "b": 1})


def test_debug_one_of_three_classes_explains_the_predicted_one():
    model = BoostingClassifier("linear")
    for k in range(60):
        model.learn_one({"a": k % 3}, "xyz"[k % 3])
    assert model.debug_one({"a": 2}).endswith("(sum: score of z)")


def test_debug_one_of_your_own_learner_says_that_there_are_no_parts():
    model = BoostingRegressor(linear_model.LinearRegression(), n_models=2)
    model.learn_one({"a": 1.0}, 2.0)
    assert model.debug_one({"a": 1.0}).startswith("cannot explain")
    assert "Prediction: " in (preprocessing.StandardScaler() | model).debug_one({"a": 1.0})


def test_a_label_with_a_fraction_is_not_a_class():
    model = BoostingClassifier("linear")
    model.learn_one({"a": 1.0}, 0.0)
    model.learn_one({"a": 2.0}, 1.0)
    with pytest.raises(ValueError, match=r"0\.37 is a number with a fraction, not a class; use B"):
        model.learn_one({"a": 1.0}, 0.37)
    assert [*model.predict_proba_one({"a": 1.0})] == [0.0, 1.0]
