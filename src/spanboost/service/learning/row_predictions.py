"""The predictions of a model for the rows of requests."""

from typing import Any

import numpy as np

from spanboost.checks import finite_or_none
from spanboost.compiling.arrays import Array
from spanboost.errors import DataError
from spanboost.losses import predicts_scores
from spanboost.models.model import Model
from spanboost.models.predictions import prediction_table
from spanboost.service.request_rows import Row, prediction_batches, split_by_cells

MAX_SINGLE_ROWS = 6  # up to here it is faster to predict rows one by one


def predict_rows(model: Model, rows: list[Row]) -> Array:
    """Return the model's predictions; DataError names the first row that it cannot read."""
    if model.schema.columns is None and len(rows) <= MAX_SINGLE_ROWS:
        return np.array([_predict_row(model, t, row) for t, row in enumerate(rows)])
    answers = list[Array]()
    for first, last in split_by_cells(rows, 0, len(rows)):
        try:
            batches = prediction_batches(model.schema, rows[first:last])
            answers += [model.predict_many(batch.X) for batch in batches]
        except DataError as error:
            raise DataError(first + error.row, error.what) from None
    return np.concatenate(answers)


def _predict_row(model: Model, t: int, row: Row) -> Any:
    try:
        return model.predict_one(row)
    except DataError as error:
        raise DataError(t, error.what) from None


def prediction_columns(model: Model, predictions: Any) -> dict[str, list[Any]]:
    """Return predictions in the columns that `spanboost predict` writes."""
    if not predicts_scores(model.loss_):
        return {"prediction": list(map(finite_or_none, predictions.tolist()))}
    return prediction_table(model, predictions).to_pydict()
