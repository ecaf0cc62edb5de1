"""Input that does not fit a model gets one sentence that says what to do, and changes nothing."""

import math
from inspect import signature

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from spanboost import (
    AutoBoost,
    DataError,
    LinearSGD,
    SpanBoost,
    Trees,
    compare,
    evaluate,
    explain,
    export,
    feature_importances,
    load,
    save,
)
from spanboost.models.files import from_bytes, to_bytes
from spanboost.sklearn import BoostingRegressor

X = np.random.default_rng(0).uniform(-1, 1, (60, 3))
Y = X @ [3.0, 2.0, 1.0]
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])
READERS = {"pandas": lambda frame: frame, "polars": pl.from_pandas, "arrow": pa.table}


def linear(**options):
    return SpanBoost(LinearSGD(), n=2, **options)


def fitted(frame=FRAME):
    model = linear(label_range="auto")
    model.learn_many(frame, Y)
    return model


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_the_columns_of_a_frame_of_numbers_may_have_any_order(read):
    model = fitted(read(FRAME))
    turned = read(FRAME[["c", "a", "b"]])
    expected = model.predict_many(X)
    np.testing.assert_array_equal(model.predict_many(turned), expected)
    np.testing.assert_array_equal(model.predict_many(read(FRAME)), expected)
    twin = from_bytes(to_bytes(model))
    np.testing.assert_array_equal(twin.predict_many(turned), expected)
    np.testing.assert_array_equal(twin.learn_many(turned, Y), model.learn_many(X, Y))


@pytest.mark.parametrize("rows", [X[:2], X[:1], FRAME[:2]])
def test_several_rows_are_not_one_row(rows):
    model = fitted()
    expected = rf"expected one row \(got {len(rows)} x 3 values\); for several rows, use predict_"
    with pytest.raises(ValueError, match=expected):
        model.predict_one(rows)
    with pytest.raises(ValueError, match=expected):
        model.learn_one(rows, 1.0)


def test_a_single_value_is_not_a_row():
    with pytest.raises(ValueError, match=r"\(got shape \(1,\)\); each row is a list of values"):
        linear().learn_one(3.0, 1.0)


def test_several_rows_cannot_be_explained_at_once():
    with pytest.raises(ValueError, match=r"explain expects one row \(got 60\); call it for each"):
        explain(fitted(), FRAME)


def test_auto_boost_knows_the_columns_too():
    model = AutoBoost(budget="fast")
    model.learn_many(FRAME, Y)
    expected = model.predict_many(X)
    for one in (model, from_bytes(to_bytes(model))):
        np.testing.assert_array_equal(one.predict_many(FRAME[["b", "c", "a"]]), expected)


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_other_columns_are_refused(read):
    model = fitted(read(FRAME))
    with pytest.raises(
        ValueError, match=r"^the frame has no column 'c', which the model expects; did you mean 'C'"
    ):
        model.predict_many(read(FRAME.rename(columns={"c": "C"})))
    with pytest.raises(
        ValueError, match=r"^the model does not know the column 'd' of the frame; remove it$"
    ):
        model.predict_many(read(FRAME.assign(d=1.0)))


def test_arrays_and_columns_without_names_have_an_order_only():
    frame = pd.DataFrame(X)
    np.testing.assert_array_equal(fitted(frame).predict_many(FRAME), fitted().predict_many(X))
    np.testing.assert_array_equal(fitted(X).predict_many(FRAME), fitted().predict_many(frame))


def test_a_refused_frame_is_not_remembered():
    model = linear(label_range="auto")
    with pytest.raises(DataError):
        model.learn_many(FRAME, np.full(60, np.nan))
    model.learn_many(FRAME.rename(columns=str.upper), Y)
    with pytest.raises(ValueError, match="the frame has no column 'A'"):
        model.predict_many(FRAME)


@pytest.mark.parametrize(
    ("labels", "row"), [(["a"] * 60, 0), (np.array(["b"] * 60), 0), ([*Y[:5], "high", *Y[6:]], 5)]
)
def test_a_label_that_is_text_is_named(labels, row):
    with pytest.raises(DataError) as error:
        linear().learn_many(X, labels)
    assert error.value.row == row
    assert error.value.what == (
        f"the label {str(labels[row])!r} is not a number; for named classes, use "
        "BoostingClassifier of spanboost.sklearn or spanboost.river"
    )


def test_classes_are_named_as_they_were_given():
    model = linear(loss="softmax")
    with pytest.raises(
        DataError, match=r"the label 'a' is not a class number from 0 to 999; for named"
    ):
        model.learn_many(X, np.array(["a"] * 60))
    with pytest.raises(DataError, match=r"the label 0\.5 is not a class number from 0 to 999$"):
        model.learn_many(X, np.full(60, 0.5))


def test_an_estimator_is_not_a_model(tmp_path):
    other, wanted = BoostingRegressor(), r"needs a model such as AutoBoost\(\) or SpanBoost"
    for call in (
        lambda: evaluate(other, X, Y),
        lambda: compare(other, linear(), X, Y),
    ):
        with pytest.raises(TypeError, match=rf"{wanted}.* \(got an estimator\); scikit-learn has "):
            call()
    with pytest.raises(NotFittedError):
        export(other, tmp_path / "m.c")
    with pytest.raises(TypeError, match=rf"{wanted}.* \(got 'int'\)$"):
        feature_importances(3)
    with pytest.raises(TypeError, match=rf"^explain {wanted}.* \(got 'int'\)$"):
        explain(3, X[0])
    with pytest.raises(TypeError, match=rf"^save {wanted}.* \(got 'dict'\)$"):
        save({"a": 1}, tmp_path / "m.sb")
    assert list(tmp_path.iterdir()) == []


def test_a_learner_is_an_object():
    with pytest.raises(TypeError, match=r"^learner must be an object, such as Trees\(\)"):
        SpanBoost("trees", n=2)


def test_errors_of_files_name_the_file(tmp_path):
    path = tmp_path / "missing" / "m.sb"
    for call in (lambda: save(fitted(), path), lambda: load(path)):
        with pytest.raises(FileNotFoundError) as error:
            call()
        assert error.value.filename == str(path)


def test_a_model_names_only_the_parameters_that_were_changed():
    assert repr(linear()) == "SpanBoost(LinearSGD(), n=2)"
    model = SpanBoost(Trees(depth=3), n=1)
    assert repr(model) == "SpanBoost(Trees(depth=3), n=1)"
    double = SpanBoost(LinearSGD(dtype=np.float64), n=2)
    assert repr(double) == "SpanBoost(LinearSGD(dtype=np.float64), n=2)"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: SpanBoost(Trees(), n_estimators=9), "has no parameter 'n_estimators'; use n"),
        (lambda: SpanBoost(Trees(), learning_rate=0.1), "'learning_rate'; use eta"),
        (lambda: SpanBoost(Trees(), max_depth=3), "'max_depth'; use learner=Trees"),
        (lambda: AutoBoost(random_state=1), "AutoBoost has no parameter 'random_state'; use seed"),
        (lambda: AutoBoost(budgt="fast"), "'budgt'; did you mean 'budget'"),
        (lambda: AutoBoost(max_depth=3), "AutoBoost has no parameter 'max_depth'; its experts are"),
        (lambda: AutoBoost(n_estimators=3), "'n_estimators'; its experts are given, and a larger"),
        (lambda: evaluate(BoostingRegressor(), [[1.0]], [1.0]), "has cross_validate"),
        (lambda: save(make_pipeline(BoostingRegressor()), "m.sb"), "a pipeline.*its last step"),
    ],
)
def test_names_of_other_libraries_get_a_hint(call, message):
    with pytest.raises(TypeError, match=message):
        call()


def test_constructors_keep_their_signatures():
    assert list(signature(SpanBoost).parameters)[:3] == ["learner", "n", "eta"]
    assert list(signature(AutoBoost).parameters) == [
        "loss",
        "budget",
        "label_range",
        "seed",
        "bits",
        "recent",
        "past",
        "key",
        "refit",
        "experts",
    ]
    with pytest.raises(TypeError, match=r"SpanBoost.__init__\(\) missing 1 required"):
        SpanBoost()


DAYS = pd.Series(pd.date_range("2024-01-01", periods=60))


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (DAYS, "labels are dates or times; convert them to numbers, for example to days"),
        (DAYS.dt.tz_localize("UTC"), "labels are dates or times"),
        (DAYS.to_numpy(), "labels are dates or times"),
        ([day.date() for day in DAYS], "labels are dates or times"),
        (DAYS - DAYS[0], "labels are durations; convert them to numbers, for example to seconds"),
        (pd.DataFrame({"a": DAYS, "b": 1.0}), "labels are dates or times"),
    ],
)
def test_times_are_no_labels(labels, message):
    for learn in (linear(label_range="auto").learn_many, BoostingRegressor("linear").fit):
        with pytest.raises(ValueError, match=message):
            learn(X, labels)
    model = linear(label_range="auto")
    if not isinstance(labels, pd.DataFrame):
        with pytest.raises(ValueError, match=message):
            model.learn_one(X[0], next(iter(labels)))
    assert not model.started


def test_several_targets_need_several_models():
    for model in (linear(), AutoBoost(budget="fast")):
        with pytest.raises(ValueError, match=r"for several targets, use one model for each of the"):
            model.learn_many(X, np.column_stack([Y, Y]))
        assert not model.started


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ("333.63", r"row 0: the label '333.63' is text; convert it to a number with float\(\)"),
        (10**400, "labels must be numbers of at most 64 bits"),
    ],
)
def test_a_label_that_is_not_a_number_says_what_to_do(y, message):
    model = linear(label_range="auto")
    with pytest.raises(ValueError, match=message):
        model.learn_one(X[0], y)
    assert model.labels.rows == 0


def test_a_label_that_is_none_is_missing():
    missing = r"row 0: the label is missing \(None or NaN\); leave out rows without a label"
    for y in (None, math.nan):
        with pytest.raises(DataError, match=missing):
            linear().learn_one(X[0], y)
    with pytest.raises(DataError, match=r"row 0: the label must be finite \(got inf\)"):
        linear().learn_one(X[0], math.inf)


def test_labels_that_are_one_text_are_refused():
    with pytest.raises(DataError, match="row 0: the label 'abc' is not a number"):
        linear().learn_many(X, "abc")


def test_a_row_that_is_none_is_named():
    with pytest.raises(DataError, match="row 0: the row is None"):
        fitted(X).predict_one(None)


@pytest.mark.parametrize("name", ["s2.csv", "rows.JSONL", "table.parquet"])
def test_a_model_does_not_replace_data(name, tmp_path):
    (tmp_path / name).write_text("x,y\n1,2\n")
    with pytest.raises(ValueError, match=r"has the name of a data file; models are \.sb files"):
        save(SpanBoost(Trees(), n=2), tmp_path / name)
    assert (tmp_path / name).read_text() == "x,y\n1,2\n"
