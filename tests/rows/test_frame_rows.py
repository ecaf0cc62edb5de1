"""Data frames in the core API: the same model as from dictionaries."""

import datetime as dt
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from spanboost import AutoBoost, DataError, HullBoost, LinearSGD, SpanBoost, Trees, explain
from spanboost.rows.frame_rows import frame_to_dicts, is_numeric_frame
from spanboost.sklearn import BoostingRegressor

ROWS = [
    {"city": "Ulm", "area": 50.0, "when": dt.datetime(2024, 1, 31, 12), "lift": 1.0, "floor": "1"},
    {"city": "Bonn", "area": np.nan, "when": dt.datetime(2024, 5, 1), "lift": 0.0, "floor": "2"},
    {"area": 70.0, "lift": 1.0, "floor": "1"},
]


def as_pandas(rows):
    frame = pd.DataFrame(rows, columns=["city", "area", "when", "lift", "floor"])
    return frame.astype({"floor": "category", "lift": bool})


def as_polars(rows):
    frame = pl.DataFrame(rows, schema=["city", "area", "when", "lift", "floor"])
    return frame.with_columns(pl.col("floor").cast(pl.Categorical), pl.col("lift").cast(pl.Boolean))


def as_arrow(rows):
    return pa.Table.from_pandas(as_pandas(rows))


@pytest.mark.parametrize("read", [as_pandas, as_polars, as_arrow])
def test_rows_of_frames_are_dictionaries(read):
    answers = frame_to_dicts(read(ROWS))
    assert [set(row) for row in answers] == [set(row) for row in ROWS]
    for row, expected in zip(answers, ROWS, strict=True):
        for name, value in expected.items():
            assert row[name] == value or (name == "area" and np.isnan([row[name], value]).all())
            assert type(row[name]) is type(value) or name == "when"


def test_types_of_columns():
    assert is_numeric_frame(pd.DataFrame({"a": [1], "b": [True], "c": [0.5]}))
    assert is_numeric_frame(pl.DataFrame({"a": [1], "b": [True], "c": [0.5]}))
    assert is_numeric_frame(pa.table({"a": [1], "b": [True], "c": [0.5]}))
    nullable = pd.DataFrame(
        {"n": pd.array([1, None], "Int64"), "s": pd.array(["a", None], "string")}
    )
    assert not is_numeric_frame(nullable)
    first, second = frame_to_dicts(nullable)
    assert first == {"n": 1.0, "s": "a"}
    assert list(second) == ["n"]
    assert np.isnan(second["n"])
    whole = pd.DataFrame({"c": pd.Categorical([3, 4]), "d": pd.to_timedelta([1, 2], "min")})
    assert frame_to_dicts(whole) == [{"c": "3", "d": 60.0}, {"c": "4", "d": 120.0}]


@pytest.mark.parametrize(
    "new",
    [
        lambda: SpanBoost(LinearSGD(), n=4, label_range="auto"),
        lambda: HullBoost(LinearSGD(), n=4, label_range="auto"),
        lambda: AutoBoost(budget="fast"),
    ],
)
def test_frames_and_dictionaries_give_the_same_model(new):
    rows, labels = ROWS * 20, np.arange(60.0)
    frame, plain = new(), new()
    for part in (slice(0, 7), slice(7, 60)):
        answers = frame.learn_many(as_pandas(rows[part]), labels[part])
        np.testing.assert_array_equal(answers, plain.learn_many(rows[part], labels[part]))
    for read in (as_pandas, as_polars, as_arrow):
        np.testing.assert_array_equal(
            frame.predict_many(read(rows[:3])), plain.predict_many(rows[:3])
        )
    assert frame.predict_one(rows[0]) == plain.predict_one(rows[0])
    assert explain(frame, as_pandas(rows[:1])) == explain(plain, rows[0])


def test_numeric_frames_are_arrays_unless_the_model_reads_dictionaries():
    X = np.random.default_rng(0).uniform(size=(20, 2))
    frame = pd.DataFrame(X, columns=["a", "b"])
    arrays, frames = (SpanBoost(LinearSGD(), n=4) for _ in range(2))
    arrays.learn_many(X, X[:, 0])
    frames.learn_many(frame, X[:, 0])
    np.testing.assert_array_equal(frames.predict_many(frame), arrays.predict_many(X))
    named = SpanBoost(LinearSGD(), n=4)
    named.learn_many(frame.to_dict("records"), X[:, 0])
    answers = named.predict_many(frame)
    np.testing.assert_array_equal(answers, named.predict_many(frame.to_dict("records")))
    with pytest.raises(ValueError, match="rows must be numbers"):
        arrays.predict_many(frame.assign(b="text"))


@pytest.mark.parametrize(
    "make",
    [lambda: SpanBoost(Trees(), 3, label_range="auto"), lambda: AutoBoost(budget="fast")],
    ids=["trees", "AutoBoost"],
)
def test_dictionaries_with_the_columns_of_a_frame_of_numbers_are_its_rows(make):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(300, 3)), columns=["a", "b", "c"])
    y, model, again = frame["a"] + frame["b"], make(), make()
    model.learn_many(frame, y)
    again.learn_many(frame[:200], y[:200])
    rows = [dict(reversed(row.items())) for row in frame.to_dict("records")]
    for row, label in zip(rows[200:], y[200:], strict=True):
        again.learn_one(row, label)
    expected = model.predict_many(frame[:20])
    np.testing.assert_array_equal(again.predict_many(rows[:20]), expected)
    np.testing.assert_array_equal([model.predict_one(row) for row in rows[:20]], expected)
    gap = model.predict_many(frame[:1].assign(b=np.nan))
    assert model.predict_one(rows[0] | {"b": None}) == gap
    for wrong, text in (
        ({"a": 1.0, "bb": 2.0, "c": 1.0}, "the row has no 'b', .*; did you mean 'bb'?"),
        ({"a": 1.0, "b": "x", "c": 1.0}, "'b' is 'x', but the model expects a number"),
        (rows[0] | {"d": 1.0}, "the model does not know 'd'; remove it from the row"),
    ):
        for call in (model.predict_one, lambda row: model.predict_many([row])):
            with pytest.raises(ValueError, match=text):
                call(wrong)


@pytest.mark.parametrize("numeric", [False, True])
def test_rows_of_a_frame_are_series(numeric):
    frame = sample_frame()
    frame = frame[["size", "rooms"]] if numeric else frame
    y = np.linspace(-1, 1, len(frame))
    model = SpanBoost(LinearSGD(), 2)
    model.learn_many(frame[:-1], y[:-1])
    expected = model.predict_many(frame)
    for t in (0, len(frame) - 1):
        row = frame.iloc[t]
        assert model.predict_one(row) == expected[t]
        assert model.predict_one(row[::-1]) == expected[t]
    np.testing.assert_array_equal(model.predict_many([frame.iloc[0], frame.iloc[1]]), expected[:2])
    twin = SpanBoost(LinearSGD(), 2)
    twin.learn_many(frame, y)
    model.learn_one(frame.iloc[-1], y[-1])
    np.testing.assert_array_equal(model.predict_many(frame), twin.predict_many(frame))


def test_periods_count_as_their_starts():
    months = pd.DataFrame({"month": pd.period_range("2023-11", periods=30, freq="M"), "x": 1.0})
    starts = months.assign(month=months["month"].dt.to_timestamp())
    y = np.linspace(-1, 1, 30)
    model, twin = SpanBoost(LinearSGD(), 2), SpanBoost(LinearSGD(), 2)
    model.learn_many(months, y)
    twin.learn_many(starts, y)
    np.testing.assert_array_equal(model.predict_many(months), twin.predict_many(starts))
    assert frame_to_dicts(months[:1]) == [{"month": pd.Timestamp("2023-11-01"), "x": 1.0}]
    regressor, other = BoostingRegressor("linear"), BoostingRegressor("linear")
    regressor.partial_fit(months, y)
    other.partial_fit(starts, y)
    np.testing.assert_array_equal(regressor.predict(months), other.predict(starts))


def test_columns_that_were_never_learned_get_a_warning(recwarn):
    frame = sample_frame()
    model = SpanBoost(LinearSGD(), 2)
    model.learn_many(frame, np.zeros(len(frame)))
    model.predict_many(frame)
    model.predict_many(frame.assign(city=None, size=np.nan))  # missing, but not left out
    model.predict_many([{"new": 1.0}])  # dictionaries may have any keys
    assert not recwarn.list
    with pytest.warns(UserWarning, match="'Size' of the frame was never learned.*mean 'size'"):
        model.predict_many(frame.rename(columns={"size": "Size"}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.learn_many(frame.assign(garden=1.0), np.zeros(len(frame)))  # a new feature
        model.predict_many(frame.assign(garden=2.0))


@pytest.mark.parametrize("learner", [LinearSGD(), Trees()])
def test_columns_without_a_known_category_get_a_warning(learner, recwarn):
    frame = sample_frame()
    model = SpanBoost(learner, 2)
    model.learn_many(frame, np.zeros(len(frame)))
    recwarn.clear()
    other = frame.assign(city="Kiel")
    model.predict_many(other.iloc[:1])  # a single row says nothing
    model.predict_many(pd.concat([frame, other]))
    model.predict_many(other.to_dict("records"))  # dictionaries may have any values
    assert not recwarn.list
    with pytest.warns(UserWarning, match="^no value of column 'city' is known to the model; all"):
        model.predict_many(other)


def test_learned_columns_that_a_frame_leaves_out_get_one_warning(recwarn):
    frame = sample_frame()
    frame["a=b"] = "c"  # the name of a column can look like a category
    model = SpanBoost(LinearSGD(), 2)
    model.learn_many(frame, np.zeros(len(frame)))
    model.predict_many(frame)
    model.predict_many([{"size": 1.0}])  # dictionaries may leave out any key
    model.predict_one({"size": 1.0})
    model.learn_many(frame.drop(columns="city"), np.zeros(len(frame)))
    assert not recwarn.list
    for left_out, message in {
        ("size",): "the frame has no column 'size', which the model has learned; it counts",
        ("city",): "the frame has no column 'city', which the model has learned; it counts",
        ("rooms", "sold"): "no columns 'rooms', 'sold', which the model has learned; they count",
    }.items():
        for rest in (frame.drop(columns=[*left_out]), pl.from_pandas(frame).drop(*left_out)):
            with pytest.warns(UserWarning, match=message) as caught:
                model.predict_many(rest)
            assert len(caught) == 1


def test_auto_boost_warns_once_about_columns_that_are_left_out(recwarn):
    frame = sample_frame()
    model = AutoBoost(budget="fast")
    model.learn_many(frame, np.zeros(len(frame)))
    recwarn.clear()
    model.predict_many(frame.drop(columns="city"))
    assert [str(one.message)[:26] for one in recwarn.list] == ["the frame has no column 'c"]


def sample_frame():
    """Return a frame with numbers, text and times, some of them missing."""
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "city": rng.choice(["Ulm", "Bonn", None], 40),
            "size": rng.uniform(0, 1, 40),
            "rooms": rng.integers(1, 5, 40),
            "sold": pd.date_range("2024-01-01", periods=40),
        }
    )


def test_text_for_a_model_of_numbers_names_column_and_row():
    numbers = pd.DataFrame(np.random.default_rng(0).uniform(size=(50, 3)), columns=[*"abc"])
    model = SpanBoost(LinearSGD(), n=2)
    model.learn_many(numbers, np.zeros(50))
    expected = model.predict_many(numbers)
    objects = numbers.astype(object)
    np.testing.assert_array_equal(model.predict_many(objects), expected)
    objects.loc[3, "b"] = "north"
    for given in (objects, pl.DataFrame({name: ["north"] * 4 for name in "abc"})):
        with pytest.raises(DataError, match=r"rows must be numbers, but column '[ab]' is 'north'"):
            model.predict_many(given)
