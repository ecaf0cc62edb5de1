"""Errors about features name the column, for every source of rows."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from spanboost import AutoBoost, DataError, LinearBall, LinearSGD, SpanBoost, river
from spanboost.rows.validation import FeatureError
from spanboost.sklearn import BoostingRegressor

X = np.random.default_rng(0).uniform(-1, 1, (60, 2))
Y = X[:, 0]
FRAME = pd.DataFrame(X, columns=["a", "b"])
INFINITE = FRAME.assign(b=np.where(np.arange(60) == 41, np.inf, X[:, 1]))
LARGE = FRAME.assign(b=np.where(np.arange(60) == 41, 1e300, X[:, 1]))


def linear(**options):
    return SpanBoost(LinearSGD(**options), 2, label_range="auto")


def dicts(frame):
    return frame.to_dict("records")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (INFINITE, "row 41: column 'b' is infinite"),
        (LARGE, "row 41: column 'b' is too large for float32"),
        (INFINITE.to_numpy(), "row 41: column 1 is infinite"),
        (LARGE.to_numpy(), "row 41: column 1 is too large for float32"),
        (dicts(INFINITE), "row 41: 'b' is infinite or too large for float32"),
        (dicts(INFINITE.assign(c="x")), "row 41: 'b' is infinite or too large for float32"),
        (INFINITE.assign(c="x"), "row 41: 'b' is infinite or too large for float32"),
    ],
)
@pytest.mark.parametrize("new", [linear, lambda: AutoBoost(budget="fast")])
def test_models_name_the_column(rows, message, new):
    model = new()
    with pytest.raises(DataError, match=f"^{message}$"):
        model.learn_many(rows, Y)
    assert not model.started
    with pytest.raises(DataError, match=message.partition(": ")[2]):
        model.predict_many(rows)


def test_hashed_features_have_no_names():
    with pytest.raises(DataError, match="row 0: a feature is infinite"):
        linear(bits=8).learn_one({"a": np.inf}, 1.0)


def test_learners_of_arrays_and_of_your_own_name_the_column():
    with pytest.raises(DataError, match="row 41: column 1 is infinite"):
        SpanBoost(LinearBall(), 2).learn_many(INFINITE.to_numpy(), Y)

    class Constant:
        def predict(self, x):
            return 0.0

        def update(self, x, loss):
            pass

    model = SpanBoost(Constant(), 1)
    for row, name in (({"a": 1.0, "b": np.inf}, "'b'"), ([1.0, np.inf], "column 1")):
        with pytest.raises(DataError, match=f"row 0: {name} is infinite"):
            model.learn_many([row], [0.5])
    with pytest.raises(DataError, match="row 0: column 1 is infinite"):
        model.learn_many(np.array([[1.0, np.inf]]), [0.5])


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("read", [lambda frame: frame, pl.from_pandas, pa.Table.from_pandas])
def test_estimators_name_the_column(read, mixed):
    def frame(rows):
        return read(rows.assign(c="x") if mixed else rows)

    message = "^row 41: column 'b' is infinite$"
    with pytest.raises(DataError, match=message):
        BoostingRegressor("linear").fit(frame(INFINITE), Y)
    model = BoostingRegressor("linear").fit(frame(FRAME), Y)
    with pytest.raises(DataError, match=message):
        model.predict(frame(INFINITE))


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (FRAME[[]], "the frame has no columns"),
        (pl.DataFrame(), "the frame has no columns"),
        (pd.concat([FRAME, FRAME], axis=1), "two columns 'a'; give them different names"),
        (FRAME.assign(z=1j), "column 'z' has type complex128, but numbers must be real"),
        (FRAME.assign(city="Bonn", z=1j), "column 'z' has type complex128"),
        (
            pl.from_pandas(FRAME).lazy(),
            r"a lazy frame has no rows yet; call its method collect\(\)",
        ),
    ],
)
def test_frames_that_no_model_can_read(frame, message):
    uses = [BoostingRegressor("linear").fit, linear().learn_many]
    if isinstance(frame, pd.DataFrame):
        uses.append(lambda rows, labels: river.BoostingRegressor("linear").learn_many(rows, labels))
    for use in uses:
        with pytest.raises(ValueError, match=message):
            use(frame, Y)
    model = BoostingRegressor("linear").fit(FRAME, Y)
    with pytest.raises(ValueError, match=message):
        model.predict(frame)


def test_no_rows_and_single_values_are_refused():
    for rows, message in (([], "there are no rows"), (3.0, "expected several rows, such as a li")):
        with pytest.raises(ValueError, match=message):
            linear().predict_many(rows)


def test_errors_about_features_can_be_sent_to_other_processes():
    error = pickle.loads(pickle.dumps(FeatureError(3, 1, "is infinite")))
    assert (error.row, error.column, str(error)) == (3, 1, "row 3: column 1 is infinite")
