"""Partial sums: the predictions of a booster's first copies, for each number of copies."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spanboost.compiling.arrays import Array
from spanboost.core.loop import BoosterState, predict_row
from spanboost.models.model import Model
from spanboost.models.one_at_a_time import lock_of
from spanboost.models.row_losses import losses_of
from spanboost.rows.user_types import RowsLike


def partial_predictions(model: Model, X: Any) -> Array:
    """Return the partial sums y^1, ..., y^N of every row, [N, rows(, d)].

    They are in the units of predictions; the last of them are the predictions. The model does not
    learn.

    >>> from spanboost import LinearBall, SpanBoost
    >>> model = SpanBoost(LinearBall(), n=4)
    >>> prediction = model.learn_one([1.0], 0.5)
    >>> partial_predictions(model, [[1.0]])[-1] == model.predict_many([[1.0]])
    array([ True])
    """
    booster = model.as_booster()
    booster.check_fixed("partial_predictions")
    with lock_of(booster):
        core = booster.core
        rows = core.encoder.read(X)
        out = np.empty((core.task.n, rows.number, core.d), core.dtype)
        core.call(_partial_sums, core.prepare(rows, 0), rows.rows, out)
        return np.stack([core.labels.to_user(stage) for stage in out])


def moves_and_losses(model: Model, X: RowsLike, y: ArrayLike) -> tuple[Array, Array]:
    """Return how far each stage moves the prediction, and the loss if it were the last stage.

    Both are means over the rows, [N].

    >>> from spanboost import LinearBall, SpanBoost
    >>> model = SpanBoost(LinearBall(), n=4)
    >>> prediction = model.learn_one([1.0], 0.5)
    >>> moves, losses = moves_and_losses(model, [[1.0]], [0.5])
    >>> losses[-1] == (model.predict_one([1.0]) - 0.5) ** 2
    np.True_
    """
    sums = partial_predictions(model, X)
    start = model.labels.to_user(np.zeros((1, model.labels.d)))
    steps = np.diff(np.concatenate([np.broadcast_to(start, sums[:1].shape), sums]), axis=0)
    steps = np.abs(steps) if steps.ndim == 2 else np.sqrt((steps**2).sum(axis=2))
    losses = np.array([losses_of(model, y, stage).mean() for stage in sums])
    return steps.mean(axis=1), losses


def _partial_sums(model: BoosterState, X: Any, out: Array) -> None:
    """Set out[i, t] = y_t^{i+1}."""
    for t in range(out.shape[1]):
        predict_row(model, X.row(t))
        for k in range(out.shape[2]):
            for i in range(1, out.shape[0]):
                out[i - 1, t, k] = model.trace.before[k, i]
            out[out.shape[0] - 1, t, k] = model.trace.y[k]
