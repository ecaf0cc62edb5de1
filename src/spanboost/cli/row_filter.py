"""A filter for rows that are valid data but that a learner cannot read."""

from collections.abc import Callable, Iterable

import numpy as np

from spanboost.data.batch import Batch
from spanboost.data.problems import Problems, StreamError
from spanboost.learners.ball import LinearBall
from spanboost.models.model import Model
from spanboost.rows.block import Rows


def row_filter(models: Iterable[Model], problems: Problems) -> Callable[[Batch], Batch]:
    """Return a function that leaves out the rows of a batch that a model cannot read."""
    learners = [getattr(model, "learner", None) for model in models]

    def keep_readable(batch: Batch) -> Batch:
        for learner in learners:
            if isinstance(learner, LinearBall):
                batch = leave_out_long_rows(batch, learner, problems)
        return batch

    return keep_readable


def leave_out_long_rows(batch: Batch, learner: LinearBall, problems: Problems) -> Batch:
    """Return the batch without rows longer than the learner allows; count those as bad rows."""
    if isinstance(batch.X, Rows):
        raise StreamError(
            f"{batch.file}: --learner ball needs numeric features, but this file has categories"
        )
    complaints = learner.complaints(np.nan_to_num(batch.X, nan=0.0).astype(np.float64))
    for row, what in complaints.items():
        problems.report(batch.file, int(batch.lines[row]), what)
    if not complaints:
        return batch
    return batch.take(np.delete(np.arange(batch.rows), list(complaints)))
