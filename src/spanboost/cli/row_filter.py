"""A filter for rows that are valid data but that a model cannot read."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import numpy as np

from spanboost.data.batch import Batch
from spanboost.data.kinds import SAMPLE_ROWS
from spanboost.data.problems import Problems, StreamError
from spanboost.errors import DataError, did_you_mean, list_names
from spanboost.learners.ball import LinearBall
from spanboost.models.model import Model
from spanboost.parallel.team import Team
from spanboost.rows.block import Rows
from spanboost.rows.feature_names import FeatureNames, are_named


def row_filter(
    models: Sequence[Model | Team], problems: Problems, *, learn: bool = True
) -> Callable[[Batch], Batch]:
    """Return a function that leaves out the rows of a batch that a model cannot read.

    learn: the models learn the rows that are kept.
    """
    learners = [getattr(model, "learner", None) for model in models]
    first: Any = models[0]
    known = first.names if isinstance(first, Team) else first.encoder.names
    names = deepcopy(known)  # the reader is ahead of the models
    files = set[str]()
    categories = {} if names is None or learn else names.categories()

    def keep_readable(batch: Batch) -> Batch:
        if names is not None and not learn and are_named(batch.X):
            problems.unknown.watch_rows(batch.X, categories)
            if batch.file not in files:
                files.add(batch.file)
                note_absent_keys(batch, names, problems)
        for learner in learners:
            if isinstance(learner, LinearBall):
                batch = leave_out_long_rows(batch, learner, problems)
        if names is not None and problems.skip and are_named(batch.X):
            batch = leave_out_mistakes(batch, names, problems, learn)
        return batch

    return keep_readable


def note_absent_keys(batch: Batch, names: FeatureNames, problems: Problems) -> None:
    """Add a note on keys that the model has learned, but that the first rows do not have."""
    rows = batch.X[:SAMPLE_ROWS]
    keys = {name for row in rows for name in row}
    absent = names.absent(keys)
    sparse = len(absent) > len(keys) and any(row.keys() != keys for row in rows)
    if absent and not sparse:
        what = "key" if len(absent) == 1 else "keys"
        near = did_you_mean(absent[0], keys - names.columns.keys())
        problems.note(
            f"{batch.file}: no {what} {list_names(absent)} in the first rows, which the model has "
            f"learned{near}"
        )


def leave_out_mistakes(batch: Batch, names: FeatureNames, problems: Problems, learn: bool) -> Batch:
    """Return the batch without rows whose values do not fit the earlier ones of their keys."""
    while batch.rows:
        try:
            _, new = names.read(batch.X)
        except DataError as error:
            problems.report(batch.file, int(batch.lines[error.row]), error.what)
            batch = batch.take(np.delete(np.arange(batch.rows), error.row))
            continue
        if learn:
            names.add(new)
        break
    return batch


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
