"""The predictions of a model for the rows of requests."""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from spanboost.checks import finite_or_none
from spanboost.compiling.arrays import Array
from spanboost.errors import DataError
from spanboost.losses import predicts_scores
from spanboost.models.intervals import Intervals
from spanboost.models.model import Model
from spanboost.models.past_model import PastModel
from spanboost.models.predictions import prediction_table
from spanboost.models.quantiles.asked_levels import End
from spanboost.service.request_rows import Row, prediction_batches, split_by_cells

MAX_SINGLE_ROWS = 6  # up to here it is faster to predict rows one by one


class NoIntervalsError(Exception):
    """Intervals were requested, but the model has none."""


class Forecasts(NamedTuple):
    """The predictions of a model for some rows."""

    predictions: Array
    past: Array | None  # [rows, columns] what they knew about past labels, if the model uses them


def predict_rows(model: Model, rows: Sequence[Row], ends: tuple[End, ...] = ()) -> Forecasts:
    """Return the model's predictions; DataError names the first row that it cannot read.

    With ends of intervals, they are [rows, 1 + ends]: prediction, and the ends.
    """
    past = list[Array]()
    if not ends:
        predict = model.predict_many
    elif isinstance(model, Intervals):
        predict = partial(_predict_ends, model, [end.level for end in ends])
    else:
        raise NoIntervalsError
    if isinstance(model, PastModel) and model.past_stage is not None:
        predict = partial(_predict_with_past, model, past)
    elif not ends and model.schema.columns is None and len(rows) <= MAX_SINGLE_ROWS:
        answers = [_predict_row(model, t, row) for t, row in enumerate(rows)]
        return Forecasts(np.array(answers), None)
    answers = list[Array]()
    for first, last in split_by_cells(rows, 0, len(rows)):
        try:
            batches = prediction_batches(model.schema, rows[first:last])
            answers += [predict(batch.X) for batch in batches]
        except DataError as error:
            raise DataError(first + error.row, error.what, error.field) from None
    return Forecasts(np.concatenate(answers), np.concatenate(past) if past else None)


def _predict_with_past(model: PastModel, past: list[Array], X: Any) -> Array:
    """Predict rows with what is known about past labels, and add that to a list."""
    known: Any = model.with_past(X)
    past.append(known.past)
    return model.predict_many(known)


def _predict_row(model: Model, t: int, row: Row) -> Any:
    try:
        return model.predict_one(row)
    except DataError as error:
        raise DataError(t, error.what, error.field) from None


def _predict_ends(model: Intervals, levels: list[float], X: Any) -> Array:
    return np.column_stack(model.predict_both(X, levels))


def prediction_columns(
    model: Model, predictions: Any, ends: tuple[End, ...] = ()
) -> dict[str, list[Any]]:
    """Return predictions in the columns that `spanboost predict` writes.

    An end of an interval that is infinite is None.
    """
    if ends:
        names = ("prediction", *(end.name for end in ends))
        columns = zip(names, predictions.T.tolist(), strict=True)
        return {name: [*map(finite_or_none, values)] for name, values in columns}
    if not predicts_scores(model.loss_):
        values = predictions.tolist()
        finite = np.isfinite(predictions).all()
        return {"prediction": values if finite else [*map(finite_or_none, values)]}
    return prediction_table(model, predictions).to_pydict()
