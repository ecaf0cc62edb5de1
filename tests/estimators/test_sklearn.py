"""scikit-learn's checks and typical uses: data frames, pipelines, searches, streams."""

import copy
import pickle
import warnings
from typing import ClassVar

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import SGDRegressor
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.estimator_checks import parametrize_with_checks

from spanboost import HullBoost, LabelWarning, LinearBall, SpanBoost, Trees, load, save
from spanboost.losses import Logistic, Quantile, Softmax, SquaredEuclidean
from spanboost.models.class_weights import refuse_unknown_classes
from spanboost.sklearn import BoostingClassifier, BoostingRegressor

WEIGHTS = "a row of weight 2 is learned in one step, which differs a little from learning it twice"
EXPECTED = {  # the same checks that scikit-learn's SGDRegressor fails
    "check_sample_weight_equivalence_on_dense_data": WEIGHTS,
    "check_sample_weight_equivalence_on_sparse_data": WEIGHTS,
}
LEARNERS = ["trees", "linear", "stumps", "stumps-intercept", "network"]


def named(learner, **parameters):
    parameters = {"n_epochs": 1} | parameters
    return BoostingRegressor(learner, n_estimators=8, random_state=0, **parameters)


@pytest.mark.slow
@parametrize_with_checks(
    [BoostingRegressor(), BoostingClassifier()],
    expected_failed_checks=lambda estimator: EXPECTED,
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def test_the_expected_failures_are_those_of_sgd_regressor():
    from sklearn.utils._test_common.instance_generator import PER_ESTIMATOR_XFAIL_CHECKS

    assert set(EXPECTED) <= set(PER_ESTIMATOR_XFAIL_CHECKS[SGDRegressor])
    for estimator in (BoostingRegressor(), BoostingClassifier()):
        tags = estimator.__sklearn_tags__()
        assert not tags.non_deterministic
        assert not (tags.regressor_tags or tags.classifier_tags).poor_score


@pytest.fixture(scope="module")
def diabetes():
    return load_diabetes(return_X_y=True)


@pytest.fixture(scope="module")
def mixed():
    """Columns with missing numbers, text, categories and booleans, and labels made of them."""
    rng = np.random.default_rng(0)
    city, floor = rng.choice(["Ulm", "Bonn", "Jena"], 600), rng.integers(0, 4, 600)
    area, lift = rng.uniform(20, 200, 600), rng.random(600) < 0.5
    price = 3 * area + 200.0 * (city == "Ulm") + 50.0 * (floor == 3)
    area[::17] = np.nan
    return {"city": city, "area": area, "floor": floor, "lift": lift}, price


def as_pandas(columns):
    return pd.DataFrame(columns).astype({"floor": "category"})


def as_polars(columns):
    frame = pl.DataFrame(columns)
    floors = pl.col("floor").cast(pl.String).cast(pl.Categorical)  # text alone would be numbers
    return frame.with_columns(pl.col("city").cast(pl.Categorical), floors)


@pytest.mark.parametrize("learner", [*LEARNERS, Trees(depth=3), "auto"], ids=str)
def test_every_learner_fits(learner, diabetes):
    X, y = diabetes
    auto = BoostingRegressor(budget="fast", random_state=0)
    model = auto if learner == "auto" else named(learner)
    assert model.fit(X, y).score(X, y) > 0.1
    twins = copy.deepcopy(model), pickle.loads(pickle.dumps(model))
    want = model.partial_fit(X[:50], y[:50]).predict(X)
    for twin in twins:
        np.testing.assert_array_equal(twin.partial_fit(X[:50], y[:50]).predict(X), want)


@pytest.mark.parametrize(
    ("learner", "booster"),
    [*zip(LEARNERS, ["span", "hull", "span", "span", "hull"], strict=True)],
)
def test_every_learner_tells_classes_apart(learner, booster):
    X, y = load_breast_cancer(return_X_y=True)
    names = np.array(["malignant", "benign"])[y]
    model = BoostingClassifier(learner, booster=booster, random_state=0).fit(X, names)
    assert model.score(X, names) > 0.85
    assert model.classes_.tolist() == ["benign", "malignant"]
    twin = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(twin.predict_proba(X), model.predict_proba(X))


def test_replay_is_that_of_the_library(diabetes):
    X, y = diabetes
    model = named("trees", replay=2, memory=100, shuffle=False).fit(X, y)
    seed = model.model_.seed
    own = SpanBoost(Trees(), n=8, label_range="auto", replay=2, memory=100, seed=seed)
    own.learn_many(X, y)
    np.testing.assert_array_equal(model.predict(X), own.predict_many(X))
    assert (model.predict(X) != named("trees", shuffle=False).fit(X, y).predict(X)).any()


@pytest.mark.parametrize("learner", ["stumps", LinearBall()], ids=str)
def test_both_boosters_are_those_of_the_library(learner, diabetes):
    X, y = diabetes
    for booster, kind in (("span", SpanBoost), ("hull", HullBoost)):
        model = named(learner, booster=booster, shuffle=False).fit(X, y)
        own = kind(model.model_.learner, n=8, label_range="auto", seed=model.model_.seed)
        own.learn_many(X, y)
        np.testing.assert_array_equal(model.predict(X), own.predict_many(X))


def test_partial_fit_is_fit_in_parts(diabetes):
    X, y = diabetes
    whole = named("trees", shuffle=False).fit(X, y)
    parts = named("trees")
    for rows in np.array_split(np.arange(len(y)), 7):
        parts.partial_fit(X[rows], y[rows])
    np.testing.assert_array_equal(parts.predict(X), whole.predict(X))


def test_each_epoch_shuffles_the_rows(diabetes):
    X, y = diabetes
    once = named("trees").fit(X, y).score(X, y)
    assert named("trees", n_epochs=5).fit(X, y).score(X, y) > once + 0.1
    plain = named("linear", n_epochs=2, shuffle=False).fit(X, y)
    stream = named("linear").partial_fit(X, y).partial_fit(X, y)
    np.testing.assert_array_equal(plain.predict(X), stream.predict(X))
    assert (named("linear", n_epochs=2).fit(X, y).predict(X) != plain.predict(X)).any()


def test_weights_and_classes_of_streams():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])
    order = np.random.default_rng(0).permutation(150)
    model = BoostingClassifier("linear", random_state=0)
    for rows in np.array_split(order, 5):
        model.partial_fit(X[rows], names[y[rows]], classes=names, sample_weight=np.ones(len(rows)))
    assert model.score(X, names[y]) > 0.8
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    np.testing.assert_array_equal(names[model.predict_proba(X).argmax(axis=1)], model.predict(X))
    twin = copy.deepcopy(model)
    model.partial_fit(
        X, names[y], sample_weight=np.arange(150) < 9
    )  # only the first 9 rows have weight
    twin.partial_fit(X[:9], names[y[:9]])
    np.testing.assert_array_equal(model.predict_proba(X), twin.predict_proba(X))
    with pytest.raises(ValueError, match="the label rose is not one of the classes"):
        model.partial_fit(X[:1], ["rose"])
    with pytest.raises(ValueError, match=r"classes must be .*, as in the first call \(got"):
        model.partial_fit(X[:1], names[:1], classes=["setosa", "rose"])


def test_class_weights_are_factors_of_sample_weights():
    X, y = load_iris(return_X_y=True)
    keep = np.r_[0:50, 50:60, 100:105]  # 50, 10 and 5 rows
    X, y = X[keep], y[keep]

    def fit(class_weight=None, sample_weight=None, way="fit"):
        model = BoostingClassifier(
            "linear", n_estimators=4, random_state=0, class_weight=class_weight
        )
        return getattr(model, way)(X, y, sample_weight=sample_weight).predict_proba(X)

    balanced = compute_sample_weight("balanced", y)
    np.testing.assert_array_equal(fit("balanced"), fit(sample_weight=balanced))
    assert not np.array_equal(fit("balanced"), fit())
    given = {0: 2.0, 2: 0.5}
    each = np.array([given.get(label, 1.0) for label in y.tolist()])
    ones = np.linspace(1, 2, len(y))
    np.testing.assert_array_equal(fit(given, ones), fit(sample_weight=each * ones))
    so_far = [compute_sample_weight("balanced", y[: t + 1])[-1] for t in range(len(y))]
    online = fit("balanced", way="partial_fit")
    np.testing.assert_allclose(online, fit(sample_weight=so_far, way="partial_fit"), rtol=1e-9)
    blocks = BoostingClassifier("linear", n_estimators=4, random_state=0, class_weight="balanced")
    for part in (slice(0, 3), slice(3, 58), slice(58, None)):
        blocks.partial_fit(X[part], y[part])
    np.testing.assert_array_equal(blocks.predict_proba(X), online)
    for wrong in ("even", {0: -1.0}, 3):
        with pytest.raises(ValueError, match="class_weight must be None, 'balanced' or a dict"):
            fit(wrong)


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
@pytest.mark.parametrize("way", ["fit", "partial_fit"])
def test_a_missing_class_names_its_row(way, missing):
    X, y = np.eye(4), pd.Series(["a", "b", missing, "a"], dtype="object")
    model = BoostingClassifier("linear", n_estimators=4)
    with pytest.raises(
        ValueError, match=r"^row 2: the label is missing .*leave out rows without a label$"
    ):
        getattr(model, way)(X, y)
    assert not hasattr(model, "model_")


@pytest.mark.parametrize(
    ("y", "where"),
    [(["1", "2", "low"], ""), ([[1, 2], [3, 4], [5, "low"]], " in column 1 of y")],
)
def test_a_regressor_says_that_text_needs_a_classifier(y, where):
    for labels in (y, np.array(y), np.array(y, object)):
        message = rf"^row 2: the label 'low'{where} is not .*BoostingClassifier"
        with pytest.raises(ValueError, match=message):
            BoostingRegressor("linear", n_estimators=4).fit(np.eye(3), labels)


def test_weights_of_all_classes_may_have_more_of_them():
    refuse_unknown_classes({"a": 1, "b": 2, "rare": 3}, ["a", "b"])
    with pytest.raises(ValueError, match="'rare', which is not in y"):
        refuse_unknown_classes({"a": 1, "rare": 3}, ["a", "b"])


def test_fit_refuses_weights_of_unknown_classes():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    wrong = BoostingClassifier("linear", n_estimators=4, class_weight={"setosa": 2, "rose": 20})
    with pytest.raises(ValueError, match=r"has the class 'rose', which is not in y \(classes: 'se"):
        wrong.fit(X, names)
    assert not hasattr(wrong, "model_")
    with pytest.raises(ValueError, match="has the class '1', which is not in y"):
        wrong.set_params(class_weight={"1": 2.0}).fit(X, y)
    wrong.set_params(class_weight={1.0: 2.0}).fit(X, y)  # 1 and 1.0 are the same class
    later = BoostingClassifier("linear", n_estimators=4, class_weight={"virginica": 2.0})
    later.partial_fit(X[:100], names[:100])  # this class may follow
    later.set_params(warm_start=True).fit(X, names)
    later.fit(X[:50], names[:50])  # known from the rows before
    with pytest.raises(ValueError, match="has the class 'rose', which is not in y"):
        later.set_params(class_weight={"rose": 2.0}).fit(X, names)


def test_partial_fit_adds_classes_that_were_not_named():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = BoostingClassifier("linear", n_estimators=4, random_state=0)
    order = np.random.default_rng(0).permutation(100)
    model.partial_fit(X[order], names[order])  # the first two classes
    assert model.classes_.tolist() == ["setosa", "versicolor"]
    assert model.decision_function(X).shape == (150,)
    assert (model.predict(X[:100]) == names[:100]).mean() > 0.9
    for _ in range(3):
        every = np.random.default_rng(1).permutation(150)[::-1]
        model.partial_fit(X[every], names[every])
    assert model.classes_.tolist() == ["setosa", "versicolor", "virginica"]
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    assert model.score(X, names) > 0.6
    backwards = clone(model).partial_fit(X[::-1], names[::-1])  # virginica comes first
    assert backwards.classes_.tolist() == model.classes_.tolist()
    assert backwards.predict(X[:50]).tolist() == ["setosa"] * 50
    with pytest.raises(ValueError, match="loss='hinge' needs classes in the first partial_fit"):
        BoostingClassifier("linear", loss="hinge").partial_fit(X, names)


@pytest.mark.parametrize("learner", ["trees", "stumps"])
def test_stages_are_the_predictions_of_fewer_copies(learner, diabetes):
    X, y = diabetes
    model = named(learner, learning_rate=0.5, shuffle=False).fit(X, y)
    stages = list(model.staged_predict(X))
    assert len(stages) == 8
    np.testing.assert_array_equal(stages[-1], model.predict(X))
    fewer = clone(model).set_params(n_estimators=3).fit(X, y)
    np.testing.assert_array_equal(stages[2], fewer.predict(X))
    with pytest.raises(AttributeError):
        BoostingRegressor().staged_predict  # noqa: B018


def test_stages_of_classes():
    X, y = load_breast_cancer(return_X_y=True)
    model = BoostingClassifier("stumps", n_estimators=8, random_state=0).fit(X, y)
    stages = list(model.staged_predict(X))
    np.testing.assert_array_equal(stages[-1], model.predict(X))
    assert model.score(X, y) > 0.85
    assert (model.decision_function(X) > 0).tolist() == model.predict(X).tolist()


def test_sparse_rows_are_dense_rows_to_linear_functions(diabetes):
    X, y = diabetes
    X = np.where(np.abs(X) < 0.03, 0, X)
    dense = named("linear").fit(X, y)
    for form in (sparse.csr_array, sparse.csc_matrix):
        model = named("linear").fit(form(X), y)
        np.testing.assert_array_equal(model.predict(form(X)), dense.predict(X))
        np.testing.assert_array_equal(
            model.predict(X), dense.predict(X)
        )  # the rows may change between sparse and dense
        np.testing.assert_array_equal(dense.predict(form(X)), dense.predict(X))


def test_frames_have_categories(mixed):
    columns, price = mixed
    scores = {}
    for read in (as_pandas, as_polars):
        frame = read(columns)
        model = BoostingRegressor("trees", random_state=0, n_epochs=3).fit(frame, price)
        scores[read] = model.score(frame, price)
        assert list(model.feature_names_in_) == ["city", "area", "floor", "lift"]
        shares = dict(zip(columns, model.feature_importances_, strict=True))
        assert sum(shares.values()) == pytest.approx(1)
        assert shares["city"] > 0.1
        assert shares["area"] > 0.1 > shares["lift"]
    assert scores[as_pandas] > 0.9
    assert scores[as_polars] == scores[as_pandas]


def test_new_categories_are_missing_and_learned_when_they_come(mixed):
    columns, price = mixed
    frame = as_pandas(columns)
    model = named("linear").fit(frame, price)
    rows = frame.iloc[:40].assign(city="Kiel")
    missing = model.predict(rows.assign(city=None))
    with pytest.warns(UserWarning, match="no value of column 'city' is known"):
        before = model.predict(rows)
    np.testing.assert_array_equal(before, missing)
    for _ in range(20):
        model.partial_fit(rows, np.full(40, 1000.0))
    assert (model.predict(rows) > before).all()
    with pytest.raises(ValueError, match=r"pass a data frame \(got ndarray\)"):
        model.predict(np.zeros((1, 4)))
    with pytest.raises(ValueError, match=r"'area' contains text, but was numeric .*; convert"):
        model.predict(rows.assign(area="large"))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(rows.rename(columns={"area": "size"}))


def test_columns_of_intervals_are_categories_and_arrow_tables_are_frames(mixed):
    columns, price = mixed
    frame = as_pandas(columns).assign(size=pd.cut(columns["area"], 4))
    model = named("linear").fit(frame, price)
    text = frame["size"].astype(str).where(frame["size"].notna(), None)
    twin = named("linear").fit(frame.assign(size=text), price)
    np.testing.assert_array_equal(model.predict(frame), twin.predict(frame.assign(size=text)))
    table = pa.Table.from_pandas(frame.drop(columns="size"))
    plain = named("linear").fit(frame.drop(columns="size"), price)
    arrow = named("linear").fit(table, price)
    assert list(arrow.feature_names_in_) == ["city", "area", "floor", "lift"]
    np.testing.assert_array_equal(arrow.predict(table), plain.predict(frame.drop(columns="size")))


def test_times_are_features_of_every_frame(mixed):
    area = mixed[0]["area"]
    when = pd.Series(pd.date_range("2024-03-01", periods=600, freq="37min")).mask(area > 190)
    y = np.where(when.isna(), 10, when.dt.hour)
    frame = pd.DataFrame({"when": when, "area": area})
    model = named("trees").fit(frame, y)
    expected = model.predict(frame)
    assert np.abs(expected - y).mean() < 0.5 * np.abs(y - y.mean()).mean()
    assert model.feature_importances_.argmax() == 0
    assert model.n_features_in_ == len(model.feature_importances_) == 2
    text = when.dt.strftime("%Y-%m-%dT%H:%M:%S").astype(object).where(when.notna(), None)
    texts = frame.assign(when=text)
    note = r"column 'when' contains times; features: days, hour, weekday"
    with pytest.warns(UserWarning, match=note) as caught:
        twin = named("trees").fit(texts, y)
    assert caught[0].filename == __file__
    for one in (twin, model):
        np.testing.assert_array_equal(one.predict(texts), expected)
    for same in (
        frame.assign(when=when.dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo")),
        pl.from_pandas(frame),
        pa.Table.from_pandas(frame),
    ):
        np.testing.assert_array_equal(named("trees").fit(same, y).predict(same), expected)
        np.testing.assert_array_equal(model.predict(same), expected)
    with pytest.raises(ValueError, match="'when' has type int64, but contained times"):
        model.predict(frame.assign(when=1))
    with pytest.raises(ValueError, match="row 3: column 'when': 'soon' is not a date or time"):
        model.predict(frame.assign(when=[*text[:3], "soon", *text[4:]]))


@pytest.mark.parametrize("read", [pd.DataFrame, pl.DataFrame])
def test_identifiers_are_hashed_with_a_warning(read, mixed):
    columns, price = mixed
    ids = [None if k % 50 == 3 else f"flat {k}" for k in range(600)]
    frame = read({"id": ids, "area": columns["area"]})
    model = named("linear")
    with pytest.warns(UserWarning, match="column 'id' has a different value in most rows"):
        model.fit(frame, price)
    assert np.isfinite(model.predict(read({"id": ["new", None], "area": [1.0, 2.0]}))).all()
    assert model.model_.encoder.kind.shape == (1, 1)
    assert model._reader.frame.codes == {0: {}}


@pytest.mark.parametrize(
    ("text", "what"),
    [("1/2/2024", "dates like '1/2/2024' may have the day"), ("1,5", "numbers like '1,5' have")],
)
def test_dates_and_numbers_that_are_read_as_categories_give_a_warning(text, what):
    frame = pd.DataFrame({"a": [text] * 20, "b": range(20)})
    with pytest.warns(UserWarning, match=f"column 'a' is read as categories, because {what}"):
        named("linear").fit(frame, np.arange(20.0))


def test_times_and_durations_are_numbers_for_any_learner():
    days = pd.DataFrame({"day": pd.date_range("2024-01-01", periods=40)})
    frame = days.assign(length=pd.to_timedelta(range(40), unit="s"))
    model = BoostingRegressor(SGDRegressor(random_state=0), n_estimators=1)
    assert np.isfinite(model.fit(frame, np.arange(40.0)).predict(frame)).all()
    seconds = pd.DataFrame({"length": np.arange(40.0)})
    for lengths in (frame[["length"]], pl.from_pandas(frame[["length"]])):
        found, expected = (
            named("linear").fit(one, np.arange(40.0)).predict(one) for one in (lengths, seconds)
        )
        np.testing.assert_array_equal(found, expected)


def test_columns_that_cannot_be_read_are_named(mixed):
    columns, price = mixed
    frame = as_pandas(columns)
    when = frame[["area"]].assign(when=[[1]] * len(frame))
    with pytest.raises(ValueError, match=r"^column 'when' has type list"):
        named("linear").fit(when, price)
    several = frame.assign(floor=[1, "two"] * 300)
    with pytest.raises(ValueError, match=r"mixes types.*column floor"):
        named("linear").fit(several, price)
    with pytest.raises(ValueError, match=r"mixes types.*column floor"):
        named("linear").fit(frame, price).predict(several)
    text = r"column 'city' contains categories, .* to SGDRegressor .*SpanBoost\(SGDRegressor\("
    with pytest.raises(ValueError, match=text):
        named(SGDRegressor()).fit(frame, price)


class Kinds:
    """A learner that records the types of its rows."""

    seen: ClassVar[set[type]] = set()

    def predict_one(self, x):
        self.seen.add(type(x))
        return 0.0

    def learn_one(self, x, y):
        pass


def test_your_own_learner_gets_arrays_from_an_estimator_and_dictionaries_from_a_model():
    frame, y = pd.DataFrame({"a": [0.0, 1.0] * 10, "b": [2.0] * 20}), np.arange(20.0)
    BoostingRegressor(Kinds(), n_estimators=1, n_epochs=1).fit(frame, y)
    assert Kinds.seen == {np.ndarray}
    Kinds.seen.clear()
    SpanBoost(Kinds(), n=1, label_range="auto").learn_many(frame, y)
    assert Kinds.seen == {dict}


def test_pipelines_searches_and_frames_from_transformers(diabetes):
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    pipeline = make_pipeline(StandardScaler(), named("trees")).set_output(transform="pandas")
    search = GridSearchCV(
        pipeline,
        {
            "boostingregressor__learner": ["linear", Trees(depth=2)],
            "boostingregressor__n_epochs": [1, 2],
        },
        cv=2,
    )
    search.fit(X, y)
    assert search.best_score_ > 0.3
    assert list(search.best_estimator_[-1].feature_names_in_) == list(X.columns)


def test_the_model_is_one_of_the_library(diabetes, tmp_path):
    X, y = diabetes
    model = named("trees").fit(X, y)
    save(model.model_, tmp_path / "model.sb")
    np.testing.assert_array_equal(load(tmp_path / "model.sb").predict_many(X), model.predict(X))


def test_losses_have_scikit_learns_names(diabetes):
    X, y = diabetes
    high, low = (named("trees", loss=Quantile(tau), n_epochs=3).fit(X, y) for tau in (0.9, 0.1))
    assert np.mean(y < low.predict(X)) < 0.3
    assert np.mean(y < high.predict(X)) > 0.7
    for loss in ("absolute_error", "huber"):
        assert named("trees", loss=loss, n_epochs=3).fit(X, y).score(X, y) > 0.2
    X, y = load_breast_cancer(return_X_y=True)
    hinge = BoostingClassifier("linear", loss="hinge").fit(X, y)
    assert hinge.score(X, y) > 0.85
    with pytest.raises(AttributeError):
        hinge.predict_proba  # noqa: B018


def test_the_default_is_accurate_after_one_pass(diabetes):
    X, y = diabetes
    assert cross_val_score(BoostingRegressor(random_state=0), X, y).mean() > 0.38


def test_a_quantile_is_a_loss_by_name(diabetes):
    by_name = named("linear", loss="quantile:0.9").fit(*diabetes)
    by_object = named("linear", loss=Quantile(0.9)).fit(*diabetes)
    assert np.array_equal(by_name.predict(diabetes[0]), by_object.predict(diabetes[0]))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"loss": "quantile:2"}, "loss must be .*'quantile:TAU' with TAU between 0 and 1"),
        ({"learner": "forest"}, "learner must be 'auto', 'linear'.*got 'forest'"),
        ({"booster": "span2"}, "booster must be 'span' or 'hull' .got 'span2'"),
        ({"loss": "squared"}, "loss must be 'squared_error'.*got 'squared'"),
        ({"n_estimators": 5}, "n_estimators does not apply to learner 'auto'"),
        (
            {"learner": "trees", "booster": "hull", "learning_rate": 0.5},
            "learning_rate is for Algorithm 1 only",
        ),
        (
            {"learner": "trees", "n_estimators": 0},
            "n_estimators must be a positive integer or 'auto' .got 0",
        ),
        (
            {"learner": "trees", "n_estimators": 5, "learning_rate": 0.1},
            "learning_rate must be between 1/n = 0.2 and 1 .got 0.1",
        ),
        ({"replay": 2}, "replay does not apply to learner 'auto'"),
        ({"loss": Softmax(3)}, "use BoostingClassifier for classes"),
        ({"loss": SquaredEuclidean(2)}, "SpanBoost for vectors"),
        ({"n_epochs": 0}, "n_epochs must be 'auto' or a positive integer .got 0"),
        (
            {"budget": "huge"},
            "budget must be 'fast', 'default', 'thorough' or 'exhaustive' .got 'huge'",
        ),
    ],
)
def test_invalid_parameters_are_named(parameters, message, diabetes):
    with pytest.raises(ValueError, match=message):
        BoostingRegressor(**parameters).fit(*diabetes)


def test_attributes_that_do_not_apply_are_missing(diabetes):
    with pytest.raises(ValueError, match=r"loss=\'hinge\' supports two classes only \(got 3\)"):
        BoostingClassifier(loss="hinge").fit(*load_iris(return_X_y=True))
    with pytest.raises(
        ValueError, match=r"loss must be 'log_loss' or 'hinge' \(got Logistic\(\)\)"
    ):
        BoostingClassifier(loss=Logistic()).fit(*load_iris(return_X_y=True))


def test_bad_rows_are_named_as_they_were_given(diabetes):
    """The message has the row's position in the input, although rows are shuffled."""
    X, y = diabetes
    with pytest.raises(ValueError, match=r"^row 7: the label is missing"):
        named("linear").fit(X, np.where(np.arange(len(y)) == 7, np.nan, y))
    weights = np.where(np.arange(len(y)) == 5, -1.0, 1.0)
    with pytest.raises(ValueError, match=r"^row 5: the weight must be between 0 and .* \(got -1\)"):
        named("linear").fit(X, y, sample_weight=weights)


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("label_range", ["auto", "growing"])
def test_fit_warns_about_the_label_of_the_row_as_it_was_given(diabetes, shuffle, label_range):
    X, y = diabetes
    wild = np.where(np.arange(len(y)) == 300, 1e9, y)
    model = named("linear", shuffle=shuffle, n_epochs=2, label_range=label_range)
    with pytest.warns(LabelWarning, match=r"^row 300: the label 1000000000 is ") as caught:
        model.fit(X, wild)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert (model.model_.labels.half < 1000) == (label_range == "auto")
    model.fit(X, y)  # no warning: it would be an error


def test_a_warning_turned_into_an_error_leaves_the_estimator_unfitted(diabetes):
    X, y = diabetes
    model = named("linear")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(LabelWarning, match=r"^row 300: "):
            model.fit(X, np.where(np.arange(len(y)) == 300, 1e9, y))
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_partial_fit_warns_and_numbers_rows_from_the_start(diabetes):
    X, y = diabetes
    model = named("linear").partial_fit(X[:200], y[:200])
    with pytest.warns(LabelWarning, match=r"^row 300: the label 1000000000 is ") as caught:
        model.partial_fit(X[200:], np.where(np.arange(200, len(y)) == 300, 1e9, y[200:]))
    assert caught[0].filename == __file__


class Noisy:
    """A learner that issues a warning of its own."""

    def predict(self, x):
        return 0.0

    def update(self, x, loss):
        warnings.warn("too warm", RuntimeWarning, stacklevel=1)


def test_fit_keeps_the_warnings_of_learners(diabetes):
    X, y = diabetes
    model = BoostingRegressor(Noisy(), n_estimators=1, label_range=(0, 400))
    with pytest.warns(RuntimeWarning, match="too warm"):
        model.fit(X[:3], y[:3])


def test_an_invalid_first_block_leaves_the_estimator_unfitted():
    X, y = load_iris(return_X_y=True)
    model = BoostingClassifier("linear", n_estimators=4, random_state=0)
    with pytest.raises(ValueError, match="the label 2 is not one of the classes"):
        model.partial_fit(X[:, :2], y, classes=[0, 1])
    with pytest.raises(ValueError, match=r"the weight must be between 0 and .* \(got -1\)"):
        model.partial_fit(X[:, :2], y, classes=[0, 1, 2], sample_weight=-np.ones(150))
    model.partial_fit(X, y, classes=[0, 1, 2])
    fresh = clone(model).partial_fit(X, y, classes=[0, 1, 2])
    np.testing.assert_array_equal(model.predict_proba(X), fresh.predict_proba(X))


@pytest.mark.parametrize("loss", ["poisson", "tweedie:1.5"])
def test_counts_have_positive_predictions(loss):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (400, 2))
    y = rng.poisson(2 * np.exp(X[:, 0]))
    model = BoostingRegressor("linear", n_estimators=4, loss=loss, random_state=0).fit(X, y)
    assert (model.predict(X) > 0).all()
    with pytest.raises(ValueError, match=r"loss needs labels of at least 0 \(got -1\)"):
        model.partial_fit(X[:1], [-1])


@pytest.mark.parametrize("cls", [BoostingRegressor, BoostingClassifier])
def test_all_parameters_are_documented(cls):
    for name in cls().get_params():
        assert cls.__doc__.count(f"\n    {name} : ") == 1, name
    assert "{" not in cls.__doc__


@pytest.mark.parametrize("estimator", [BoostingClassifier("linear"), BoostingRegressor("linear")])
def test_no_rows_are_named(estimator):
    with pytest.raises(ValueError, match=r"Found array with 0 sample\(s\)"):
        estimator.fit(np.empty((0, 3)), [])


def with_times(columns):
    when = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(len(columns["city"])) % 90, "D")
    return as_pandas(columns).assign(when=when)


@pytest.mark.parametrize("frame_of", [as_pandas, with_times])
def test_arrays_of_objects_are_read_as_frames(frame_of, mixed):
    columns, price = mixed
    frame = frame_of(columns).assign(floor=[f"floor {floor}" for floor in columns["floor"]])
    frame.loc[3, "city"] = None
    frame.loc[4, "area"] = np.nan
    rows = frame.to_numpy()
    assert rows.dtype == object
    model = named("linear").fit(rows, price)
    assert model.n_features_in_ == frame.shape[1]
    assert not hasattr(model, "feature_names_in_")
    expected = named("linear").fit(frame, price).predict(frame)
    np.testing.assert_array_equal(model.predict(rows), expected)
    one_by_one = [model.predict(rows[t : t + 1])[0] for t in range(8)]
    np.testing.assert_array_equal(one_by_one, expected[:8])
    with pytest.raises(ValueError, match="has 3 features, but"):
        model.predict(rows[:, :3])
    rows[5, 0] = 7
    with pytest.raises(ValueError, match="column 0 of the array mixes types; make it all numbers"):
        named("linear").fit(rows, price)


def test_the_remainder_of_a_column_transformer_may_contain_text(mixed):
    columns, price = mixed
    frame = as_pandas(columns)
    scaled = ColumnTransformer([("scaled", StandardScaler(), ["area"])], remainder="passthrough")
    assert scaled.fit_transform(frame).dtype == object
    model = make_pipeline(scaled, named("linear")).fit(frame, price)
    assert model.score(frame, price) > 0.8
    assert model[-1].n_features_in_ == 4


def test_frames_with_american_dates_have_times(tmp_path):
    days = pd.Timestamp("2025-01-01") + pd.to_timedelta(np.arange(60), "D")
    frames = [pd.DataFrame({"day": days.strftime(form)}) for form in ("%m/%d/%Y", "%Y-%m-%d")]
    found = []
    for frame in frames:
        with pytest.warns(UserWarning, match="column 'day' contains times"):
            model = named("linear").fit(frame, np.arange(60))
        save(model, tmp_path / "m.sb")
        found += [one.predict(frame[:12]) for one in (model, load(tmp_path / "m.sb"))]
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])


@pytest.mark.parametrize(
    ("column", "what"),
    [(["x"], "contains text"), (pd.to_datetime(["2024-01-01"]), "has type timestamp")],
)
def test_other_columns_than_numbers_name_the_column(column, what):
    frame = pd.DataFrame({"a": np.arange(50.0), "b": 1.0})
    model = BoostingRegressor("linear").fit(frame, np.arange(50.0))
    bad = pd.DataFrame({"a": column, "b": 1.0})
    text = rf"column 'a' {what}.*, but was numeric when the model was fitted"
    for call in (model.predict, lambda rows: model.partial_fit(rows, [1.0])):
        with pytest.raises(ValueError, match=text):
            call(bad)
