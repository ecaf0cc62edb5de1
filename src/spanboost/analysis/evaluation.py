"""Progressive validation of one model on rows in memory."""

from __future__ import annotations

from contextlib import closing
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from spanboost.analysis.metrics.tape import OutcomeTape
from spanboost.analysis.metrics.titles import TITLES, describe
from spanboost.analysis.row_bar import with_bar
from spanboost.compiling.arrays import Array
from spanboost.data.batch import as_batch
from spanboost.models.html import rounded, section, table
from spanboost.models.model import Model, require_model
from spanboost.models.row_losses import losses_of
from spanboost.models.widening import ABSENT
from spanboost.rows.user_types import RowsLike


class Evaluation(NamedTuple):
    """The result of `evaluate`.

    `Metrics` describes the metrics; one that is undefined is None.
    """

    predictions: Array  # [rows] each made before its label was learned; [rows, d] for vectors
    losses: Array  # [rows] in the units of the labels, without the weights
    loss: float  # the average loss
    metrics: dict[str, float | None]  # over all rows
    first_half: dict[str, float | None]  # over the first floor(n / 2) rows
    second_half: dict[str, float | None]
    last_window: dict[str, float | None]  # about the last twentieth of the rows
    labels: Array  # [rows] as given; [rows, d] for vectors

    def __repr__(self) -> str:
        metrics = describe(self.metrics)
        rows = f"{len(self.losses):,} rows, average loss {self.loss:z.4g}"
        return f"<Evaluation: {rows}{'; ' if metrics else ''}{metrics}>"

    def _repr_html_(self) -> str:
        title = f"average loss {self.loss:z.6g}, {len(self.losses):,} rows"
        parts = (self.metrics, self.first_half, self.second_half, self.last_window)
        rows = [
            (TITLES[key], *(rounded(part[key]) for part in parts))
            for key in self.metrics
            if key in TITLES
        ]
        head = ("metric", "whole stream", "first half", "second half", "last window")
        return section(title, table(rows, head))


def evaluate(
    model: Model,
    X: RowsLike,
    y: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    learn: bool = True,
    progress: bool = False,
) -> Evaluation:
    """Predict each row, let the model learn from it, and return the loss and the metrics.

    learn: False evaluates the model as it is.
    progress: show a bar with the rows so far and their speed, in notebooks and terminals.

    Use `Metrics` for a stream that arrives in blocks.

    >>> import numpy as np
    >>> from spanboost import SpanBoost, Stumps
    >>> X = np.random.default_rng(0).uniform(-1, 1, (3000, 2))
    >>> found = evaluate(SpanBoost(Stumps(), n=8, loss="logistic"), X, np.sign(X[:, 0]))
    >>> found.metrics["accuracy"] > 0.9, found.second_half["roc_auc"] > 0.99
    (True, True)
    """
    require_model(model, "evaluate")
    answers = (_with_bar if progress else _at_once)(model, X, y, weights, learn)
    if not len(answers):
        raise ValueError("there are no rows to evaluate")
    losses = losses_of(model, y, answers)
    weights = np.ones(len(losses)) if weights is None else np.asarray(weights, np.float64)
    with closing(OutcomeTape(model.loss_, 1)) as tape:
        tape.extend(y, [answers], weights)
        parts = {name: metrics.results() for name, (metrics,) in tape.parts(model.loss_).items()}
    weight = float(weights.sum())
    loss = float(weights @ losses) / weight if weight > 0 else np.nan
    return Evaluation(answers, losses, loss, parts.pop("whole"), **parts, labels=np.asarray(y))


def _at_once(model: Model, X: Any, y: Any, weights: Any, learn: bool) -> Array:
    return model.learn_many(X, y, weights) if learn else model.predict_many(X)


def _with_bar(model: Model, X: Any, y: Any, weights: Any, learn: bool) -> Array:
    """Learn in blocks, which gives the same model, and show how many rows are done."""
    if learn:
        model.check(X, y, weights)  # an invalid row must not be found after others were learned
    with with_bar(as_batch(X, y, weights)) as parts:
        return _join([_at_once(model, part.X, part.y, part.weights, learn) for part in parts])


def _join(answers: list[Array]) -> Array:
    """Return the predictions of all blocks; later ones have more columns if classes appeared."""
    if answers[0].ndim == 1:
        return np.concatenate(answers)
    joined = np.full((sum(map(len, answers)), answers[-1].shape[1]), ABSENT)
    first = 0
    for block in answers:
        joined[first : first + len(block), : block.shape[1]] = block
        first += len(block)
    return joined
