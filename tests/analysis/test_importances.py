"""Feature importances: against plain permutation importance, and on data of known importance."""

import frozen_models
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.stats import spearmanr
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.inspection import permutation_importance
from sklearn.linear_model import SGDRegressor

from spanboost import (
    AutoBoost,
    HullBoost,
    LinearBall,
    LinearSGD,
    Rows,
    SpanBoost,
    Stumps,
    Trees,
    feature_importances,
    load,
    river,
    save,
)
from spanboost.analysis import importances
from spanboost.cli.main import main
from spanboost.losses import Softmax, SquaredEuclidean
from spanboost.parallel.team import Team
from spanboost.sklearn import BoostingClassifier, BoostingRegressor


def stream(rows, seed=0):
    rng = np.random.default_rng(seed)
    X, codes = rng.uniform(-1, 1, (rows, 3)), rng.integers(0, 4, (rows, 2))
    X[rng.random(X.shape) < 0.1] = np.nan
    y = 0.6 * np.sign(np.nan_to_num(X[:, 2])) + np.where(codes[:, 1] == 2, 0.3, 0)
    return X, codes, y


def friedman(rows, seed=0):
    """Return Friedman's first function without noise; features 5 to 9 do not matter."""
    X = np.random.default_rng(seed).uniform(0, 1, (rows, 10))
    waves = 10 * np.sin(np.pi * X[:, 0] * X[:, 1])
    return X, waves + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]


def plain(model, X, y, columns, put):
    """Return shares as the oracle computes them: one prediction of all rows for every shuffle."""
    keys = importances.hash_integers(np.arange(1, importances.REPEATS + 1, dtype=np.uint64))
    places = np.arange(len(y), dtype=np.uint64)
    base = np.mean((model.predict_many(X) - y) ** 2)
    rise = {}
    for name in columns:
        each = []
        for key in keys:
            order = np.argsort(importances.hash_integers(places + key))
            each.append(np.mean((model.predict_many(put(name, order)) - y) ** 2) - base)
        rise[name] = sum(each)
    total = sum(value for value in rise.values() if value > 0)
    return {name: max(value, 0) / total for name, value in rise.items()}


@pytest.mark.parametrize("learner", [LinearSGD(), Trees(), LinearSGD(bits=8)], ids=str)
def test_numbers_and_codes_against_a_plain_oracle(learner):
    X, codes, y = stream(600)
    model = SpanBoost(learner, 3)
    model.learn_many(Rows(X, codes), y)

    def put(name, order):
        numbers, others = X[:300].copy(), codes[:300].copy()
        part, j = (others, int(name[5:])) if isinstance(name, str) else (numbers, name)
        part[:, j] = part[order, j]
        return Rows(numbers, others)

    found = feature_importances(model, Rows(X[:300], codes[:300]), y[:300])
    expected = plain(model, Rows(X[:300], codes[:300]), y[:300], [0, 1, 2, "code 0", "code 1"], put)
    assert found == pytest.approx(expected, rel=1e-4, abs=1e-6)
    assert list(found)[:2] == [2, "code 1"]
    assert sum(found.values()) == pytest.approx(1)
    assert list(found.values()) == sorted(found.values(), reverse=True)


def test_sparse_rows_against_a_plain_oracle():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (500, 6)) * (rng.random((500, 6)) < 0.3)
    y = 0.5 * X[:, 1] - 0.3 * X[:, 4]
    model = SpanBoost(LinearSGD(), 3)
    model.learn_many(sparse.csr_matrix(X), y)

    def put(j, order):
        changed = X[:200].copy()
        changed[:, j] = changed[order, j]
        return sparse.csr_matrix(changed)

    found = feature_importances(model, sparse.csr_matrix(X[:200]), y[:200])
    expected = plain(model, sparse.csr_matrix(X[:200]), y[:200], range(6), put)
    assert found == pytest.approx(expected, rel=1e-4, abs=1e-6)


def flats(rows, seed=0):
    """Return a frame with numbers, categories and times, and labels that depend on all of them."""
    rng = np.random.default_rng(seed)
    days = rng.integers(0, 700, rows)
    frame = pd.DataFrame(
        {
            "city": rng.choice(["Bonn", "Jena", "Ulm"], rows),
            "area": rng.uniform(0, 2, rows),
            "sold": pd.Timestamp("2024-01-01") + pd.to_timedelta(days, "D"),
        }
    )
    price = frame["area"] + 1.0 * (frame["city"] == "Ulm") + 0.001 * days
    return frame, price.to_numpy()


def test_categories_and_times_against_a_plain_oracle():
    frame, y = flats(600)
    model = SpanBoost(Trees(), 20, 0.2, label_range="auto")
    model.learn_many(frame, y)
    part, labels = frame[:300].reset_index(drop=True), y[:300]

    def put(name, order):
        return part.assign(**{name: part[name].to_numpy()[order]})

    found = feature_importances(model, part, labels)
    assert found == pytest.approx(plain(model, part, labels, frame.columns, put), rel=1e-4)
    assert set(found) == {"city", "area", "sold"}


def test_frames_dictionaries_estimators_and_files_have_the_same_columns(tmp_path):
    frame, y = flats(3000)
    models = [AutoBoost(budget="fast") for _ in range(3)]
    models[0].learn_many(frame, y)
    models[1].learn_many(frame.to_dict("records"), y)
    estimator = BoostingRegressor(budget="fast", n_epochs=1, shuffle=False, random_state=0)
    found = [feature_importances(one) for one in models[:2]]
    found.append(feature_importances(estimator.fit(frame, y)))
    frame.assign(sold=frame["sold"].dt.strftime("%Y-%m-%d"), price=y).to_csv(
        tmp_path / "flats.csv", index=False
    )
    words = ["train", str(tmp_path / "flats.csv"), "-o", str(tmp_path / "flats.sb")]
    assert main([*words, "--budget", "fast", "--quiet"]) == 0
    found.append(feature_importances(load(tmp_path / "flats.sb")))
    assert found[0] == found[1]
    for one in found[1:]:
        assert one == pytest.approx(found[0], abs=0.03)
        assert set(one) == {"city", "area", "sold"}


def test_columns_without_effect_have_share_0():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=400), "b": 1.0, "c": rng.choice(["x", "y"], 400)})
    y = frame["a"].to_numpy() / 4
    model = SpanBoost(Stumps(), 4)
    model.learn_many(frame, y)
    found = feature_importances(model)
    assert next(iter(found)) == "a"
    assert found.keys() == {"a", "b", "c"}
    assert found["b"] == 0
    assert sum(found.values()) == pytest.approx(1)
    constant = SpanBoost(Stumps(), 4)
    constant.learn_many(frame, 0 * y)
    assert feature_importances(constant) == {"a": 0, "b": 0, "c": 0}


def test_columns_of_frames_of_numbers_have_names():
    X = pd.DataFrame(np.random.default_rng(0).uniform(-1, 1, (500, 2)), columns=["a", "b"])
    model = SpanBoost(LinearSGD(), 2)
    model.learn_many(X, 0.5 * X["b"])
    assert next(iter(feature_importances(model))) == "b"


def test_estimators_of_river_and_of_several_targets_have_importances():
    frame, y = flats(400)
    single = river.BoostingRegressor("linear")
    single.learn_many(frame, pd.Series(y))
    assert set(feature_importances(single)) <= set(frame.columns)
    several = BoostingRegressor("linear", random_state=0).fit(frame, np.column_stack([y, -y]))
    assert sum(feature_importances(several).values()) == pytest.approx(1)
    numbers = BoostingRegressor("linear", random_state=0).fit(frame[["area"]].to_numpy(), y)
    assert feature_importances(numbers) == {0: 1.0}
    with pytest.raises(ValueError, match="use permutation_importance of scikit-learn"):
        feature_importances(several, frame, y)


def test_dictionaries_of_any_keys_and_own_learners():
    X, _, y = stream(800)
    X = np.nan_to_num(X)
    names = [{"a": a, "b": b} for a, b in X[:, 1:].tolist()]
    named = SpanBoost(LinearSGD(), 3)
    named.learn_many(names, y)
    assert next(iter(feature_importances(named))) == "b"
    own = SpanBoost(SGDRegressor(), 2)
    own.learn_many(X[:200], y[:200])
    assert next(iter(feature_importances(own))) == 2
    ball = SpanBoost(LinearBall(), 2)
    ball.learn_many(X / 2, y)
    assert next(iter(feature_importances(ball))) == 2

    class ByKey:
        def __init__(self):
            self.w = 0.0

        def predict(self, x):
            return self.w * x["b"] if "b" in x else 0.0

        def update(self, x, loss):
            self.w -= 0.1 * loss.slope(loss.h) * x.get("b", 0)

    rows = [row if k % 5 else {"a": row["a"]} for k, row in enumerate(names[:200])]
    own = SpanBoost(ByKey(), 2)
    own.learn_many(rows, y[:200])
    assert feature_importances(own) == {"b": 1.0, "a": 0.0}


def test_rows_without_features_are_refused():
    class Constant:
        def predict(self, x):
            return 0.0

        def update(self, x, loss):
            pass

    own = SpanBoost(Constant(), 1)
    own.learn_one("a text", 0.0)
    with pytest.raises(ValueError, match="rows that are dictionaries or sequences"):
        feature_importances(own)


def test_single_rows_blocks_and_files_have_the_same_importances(tmp_path):
    X, codes, y = stream(1500)
    for new in (lambda: SpanBoost(LinearSGD(), 2), lambda: AutoBoost(budget="fast")):
        whole, parts = new(), new()
        whole.learn_many(X, y)
        parts.learn_many(X[:700], y[:700])
        save(parts, tmp_path / "model.sb")
        parts = load(tmp_path / "model.sb")
        for x, label in zip(X[700:], y[700:], strict=True):
            parts.learn_one(x, label)
        assert feature_importances(parts) == feature_importances(whole)
        kept = [one.core.sample is not None for one in parts.boosters()]
        assert kept == [True] + [False] * (len(kept) - 1)
    rows = Rows(X, codes)
    whole, (first, second) = (
        SpanBoost(Stumps(), 2),
        (rows.take(slice(0, 9)), rows.take(slice(9, None))),
    )
    whole.learn_many(first, y[:9])
    whole.learn_many(second, y[9:])
    other = SpanBoost(Stumps(), 2)
    other.learn_many(rows, y)
    assert feature_importances(whole) == feature_importances(other)


def changing_columns(seed, before=10_000, after=2000):
    """Return rows whose label is column 1 at first, and column 3 later."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (before + after, 5))
    y = np.where(np.arange(len(X)) < before, X[:, 1], X[:, 3])
    return X, y + 0.1 * rng.normal(size=len(y))


@pytest.mark.parametrize(
    ("model", "rows"),
    [
        (lambda: SpanBoost(LinearSGD(), 4, label_range="auto"), 500),
        (lambda: SpanBoost(Trees(), 20, label_range="auto"), 2000),
        (lambda: AutoBoost(budget="fast"), 500),
    ],
    ids=["linear", "trees", "auto"],
)
def test_importances_follow_a_change_of_the_column_that_matters(model, rows):
    for seed in range(2):
        X, y = changing_columns(seed, after=rows)
        boosted = model()
        boosted.learn_many(X, y)
        found = feature_importances(boosted)
        assert next(iter(found)) == 3
        assert found[3] > 2 * found[1]


def test_all_rows_count_in_a_stream_sorted_by_its_labels():
    X = np.random.default_rng(0).uniform(-1, 1, (8000, 3))
    y = X[:, 1] > 0
    order = np.argsort(y, kind="stable")
    model = SpanBoost(Trees(), 20, loss="logistic", D=3.0, B=6.0)
    model.learn_many(X[order], np.where(y[order], 1.0, -1.0))
    assert next(iter(feature_importances(model))) == 1


def test_classes_vectors_and_emerging_classes(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (900, 3))
    y = np.digitize(X[:, 1], [-0.3, 0.3])
    y[:400] = np.minimum(y[:400], 1)
    fixed, growing = (
        SpanBoost(LinearSGD(), 2, loss=loss, D=6.0) for loss in (Softmax(3), "softmax")
    )
    for model in (fixed, growing):
        model.learn_many(X, y)
        assert next(iter(feature_importances(model))) == 1
        save(model, tmp_path / "model.sb")
        assert feature_importances(load(tmp_path / "model.sb")) == feature_importances(model)
    vectors = HullBoost(LinearSGD(), 2, loss=SquaredEuclidean(2))
    vectors.learn_many(X, np.column_stack([X[:, 2], 0.1 * X[:, 0]]) / 2)
    assert list(feature_importances(vectors))[:2] == [2, 0]


@pytest.mark.parametrize("learner", ["trees", "auto"])
def test_the_order_of_friedmans_features(learner):
    X, y = friedman(6000)
    model = (
        AutoBoost(budget="fast")
        if learner == "auto"
        else SpanBoost(Trees(), 50, 0.1, label_range="auto")
    )
    model.learn_many(X, y)
    found = feature_importances(model)
    assert set(list(found)[:5]) == {0, 1, 2, 3, 4}
    test, labels = friedman(3000, seed=1)
    other = feature_importances(model, test, labels)
    both = [[one.get(j, 0.0) for j in range(10)] for one in (found, other)]
    assert spearmanr(*both).statistic > 0.8
    assert np.abs(np.subtract(*both)).max() < 0.05


@pytest.mark.parametrize(
    ("estimator", "data"),
    [
        (BoostingRegressor(budget="fast", random_state=0), load_diabetes),
        (BoostingRegressor("linear", n_estimators=4, random_state=0), load_diabetes),
        (BoostingClassifier(budget="fast", random_state=0), load_breast_cancer),
    ],
    ids=["diabetes", "diabetes linear", "breast cancer"],
)
def test_estimators_agree_with_scikit_learns_permutation_importance(estimator, data):
    X, y = data(return_X_y=True)
    X = X[:, :10]
    estimator.fit(X, y)
    found = estimator.feature_importances_
    assert found.shape == (10,)
    assert found.sum() == pytest.approx(1)
    scoring = "neg_log_loss" if hasattr(estimator, "classes_") else "neg_mean_squared_error"
    exact = permutation_importance(estimator, X, y, scoring=scoring, n_repeats=10, random_state=0)
    assert spearmanr(found, exact.importances_mean).statistic > 0.85
    assert found.argmax() == exact.importances_mean.argmax()


def test_a_committee_averages_its_members(tmp_path):
    X, _, y = stream(900)
    team = Team(SpanBoost(Trees(depth=3), 3), workers=2)
    team.learn_many(X, y)
    committee = team.model()
    each = [feature_importances(member) for member in committee.members]
    mean = {j: np.mean([one.get(j, 0.0) for one in each]) for j in feature_importances(committee)}
    assert feature_importances(committee) == pytest.approx(mean)


def test_models_without_kept_rows_say_what_to_do():
    with pytest.raises(ValueError, match=r"has kept no rows: give X and y"):
        feature_importances(SpanBoost(Trees(), 5))
    X, y = frozen_models.MODELS["span-trees-replay"][1]()
    old = load(frozen_models.FOLDER / "span-trees-replay.sb")  # its rows for replay are used
    assert sum(feature_importances(old).values()) == pytest.approx(1)
    name = "span-linear-named-auto-range"
    old = load(frozen_models.FOLDER / f"{name}.sb")
    with pytest.raises(ValueError, match=r"has kept no rows: give X and y"):
        feature_importances(old)
    X, y = frozen_models.MODELS[name][1]()
    assert sum(feature_importances(old, X, y).values()) == pytest.approx(1)
    old.learn_many(X, y)
    assert sum(feature_importances(old).values()) == pytest.approx(1)
    with pytest.raises(ValueError, match="needs y"):
        feature_importances(old, X)
    with pytest.raises(ValueError, match="weights of all rows are 0"):
        feature_importances(old, X, y, np.zeros(len(y)))
