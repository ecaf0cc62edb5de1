"""Compile or load the code of a model before requests would have to wait for it."""

import numpy as np

from spanboost.analysis.comparison import Comparison
from spanboost.data.target import NumberTarget, Target
from spanboost.models.intervals import Intervals
from spanboost.models.model import Model
from spanboost.service.request_rows import learning_batches, prediction_batches
from spanboost.service.storage.running_loss import RunningLoss


def warm_up(copy: Model) -> None:
    """Learn and predict a row with a copy of a model, which is of no use afterwards."""
    for batch in learning_batches(copy.schema, [{}], [_any_label(copy.schema.target)], None):
        predictions = copy.learn_many(batch.X, batch.labels, batch.weights)
        RunningLoss().add(copy, np.asarray(batch.y), np.ones(1), predictions, 0.0)
    for batch in prediction_batches(copy.schema, [{}]):
        copy.predict_many(batch.X)
        if isinstance(copy, Intervals):
            copy.predict_interval(batch.X)


def warm_up_challenger(copy: Model) -> None:
    """Do the same for the model of a challenger, and for its comparison."""
    warm_up(copy)
    Comparison().add([1.0], [0.0])


def _any_label(target: Target) -> float | str:
    """Return a label that the target accepts."""
    if isinstance(target, NumberTarget):
        return float(target.limits[1]) if target.limits else 1.0
    return target.values[0] if target.values else "1"
