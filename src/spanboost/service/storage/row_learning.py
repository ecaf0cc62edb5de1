"""Learning of rows that the journal contains; a row that the model rejects is skipped."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.data.batch import Batch
from spanboost.errors import DataError
from spanboost.models.intervals import Intervals
from spanboost.models.model import Model
from spanboost.models.row_losses import losses_of
from spanboost.service.storage.running_intervals import LEVELS


class LearnedRows(NamedTuple):
    """Rows that a model has predicted and then learned."""

    positions: Array  # [rows] in the block
    y: Array
    weights: Array
    predictions: Array
    intervals: Array | None  # [rows, 2] of a model that has intervals

    def losses(self, model: Model) -> Array:
        """Return the loss of each row."""
        return losses_of(model, self.y, self.predictions)


def learn_batch(model: Model, batch: Batch) -> Iterator[LearnedRows]:
    """Learn a batch; skip a row that the model rejects, in the same way at every replay."""
    try:
        predictions, intervals = _learn(model, batch)
    except DataError as error:
        for first, last in ((0, error.row), (error.row + 1, batch.rows)):
            if first < last:
                yield from learn_batch(model, batch.part(first, last))
        return
    assert batch.y is not None
    weights = np.ones(batch.rows) if batch.weights is None else batch.weights
    yield LearnedRows(batch.lines, batch.y, weights, predictions, intervals)


def _learn(model: Model, batch: Batch) -> tuple[Array, Array | None]:
    rows = batch.X, batch.labels
    if isinstance(model, Intervals):
        return model.learn_both(*rows, LEVELS, batch.weights)
    return model.learn_many(*rows, batch.weights), None
