"""Rows that a learner cannot read are bad ones, however well they are written."""

from collections.abc import Callable, Iterable

import numpy as np

from spanboost.data.batch import Batch
from spanboost.data.problems import Problems, StreamError
from spanboost.learners.ball import LinearBall
from spanboost.models.model import Model
from spanboost.rows.block import Rows


def row_filter(models: Iterable[Model], problems: Problems) -> Callable[[Batch], Batch]:
    """Leaves out the rows of a batch that are too long for one of the models."""
    learners = [getattr(model, "learner", None) for model in models]

    def fit(batch: Batch) -> Batch:
        for learner in learners:
            if isinstance(learner, LinearBall):
                batch = short_rows(batch, learner, problems)
        return batch

    return fit


def short_rows(batch: Batch, learner: LinearBall, problems: Problems) -> Batch:
    """The rows that the learner can read; the others are bad ones."""
    if isinstance(batch.X, Rows):
        raise StreamError(f"{batch.file}: --learner ball reads numbers, and there are categories")
    complaints = learner.complaints(np.nan_to_num(batch.X, nan=0.0).astype(np.float64))
    for row, what in complaints.items():
        problems.report(batch.file, int(batch.lines[row]), what)
    if not complaints:
        return batch
    return batch.take(np.delete(np.arange(batch.rows), list(complaints)))
