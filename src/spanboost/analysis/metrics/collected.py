"""All metrics that fit a loss, over the rows added so far."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from spanboost.analysis.metrics.of_classes import ClassMetrics, new_class_metrics
from spanboost.analysis.metrics.of_means import MeanMetrics, new_mean_metrics
from spanboost.analysis.metrics.of_numbers import NumberMetrics, new_number_metrics
from spanboost.analysis.metrics.of_quantiles import (
    LevelMetrics,
    complete_level_state,
    new_level_metrics,
)
from spanboost.analysis.metrics.of_scores import (
    LogOddsMetrics,
    ScoreMetrics,
    new_log_odds_metrics,
    new_score_metrics,
)
from spanboost.analysis.metrics.states import fill_state, merge_states, state_to_json
from spanboost.analysis.metrics.titles import TITLES, describe
from spanboost.checks import is_integer
from spanboost.compiling.arrays import Array
from spanboost.losses import (
    Logistic,
    Loss,
    Quantile,
    Softmax,
    VectorLoss,
    has_log_link,
    on_vectors,
    predicts_scores,
    resolve,
)
from spanboost.models.html import rounded, section, table

LIMIT = 1 << 20  # most classes that a state may claim, so that a wrong number costs no memory


class Metrics:
    """The metrics of predictions, updated row by row in constant memory.

    loss: the loss of the model, which tells what its predictions mean: a name or a loss object,
        usually `model.loss_`.
    state: what `state` returned, to continue.

    `results` returns the metrics by name:

    - numbers: rmse, mae, r2
    - one quantile: at_or_below (the share of labels at or below the prediction), rmse, mae
    - counts and positive numbers, with a log link: deviance (the mean), rmse, mae, r2
    - two classes: accuracy, roc_auc, roc_auc_error, f1 (of the positive label), kappa; with
      logistic loss also log_loss and calibration_error
    - more classes: accuracy, log_loss, macro_f1, kappa, calibration_error

    `roc_auc` comes from a histogram of the scores; the exact value differs from it by at most
    `roc_auc_error`. A metric that is undefined is None, for example the area under the ROC curve
    while all labels are equal. Rows count with their weights. New classes may appear at any time.

    The sum of two `Metrics` has the metrics of all their rows.

    >>> metrics = Metrics("logistic")
    >>> metrics.add([1, 1, -1, -1], np.array([2.0, 0.5, 0.1, -3.0]))
    >>> metrics.results()["accuracy"], metrics.results()["roc_auc"]
    (0.75, 1.0)
    >>> metrics.confusion()  # rows are labels, columns are predictions
    array([[1., 1.],
           [0., 2.]])
    >>> (metrics + metrics).rows
    8
    """

    def __init__(self, loss: str | Loss | VectorLoss, state: dict[str, Any] | None = None) -> None:
        self.loss, self.rows = resolve(loss), 0
        self._state: Any = _new_state(self.loss)
        if state is not None:
            self._restore(state)

    @property
    def columns(self) -> int:
        """How many numbers `record` returns for each row."""
        return self._state.columns

    def add(self, y: ArrayLike, predictions: ArrayLike, weights: ArrayLike | None = None) -> None:
        """Add rows: their labels, the predictions, and their weights."""
        records = self.record(y, np.asarray(predictions, np.float64))
        weights = np.ones(len(records)) if weights is None else np.asarray(weights, np.float64)
        self.add_records(weights, records)

    def record(self, y: ArrayLike, predictions: Array) -> Array:
        """Return what the metrics need of rows, for `add_records`: [rows, columns]."""
        with np.errstate(all="ignore"):
            return self._state.record(y, predictions)

    def add_records(self, weights: Array, records: Array) -> None:
        """Add rows that `record` has returned."""
        if len(records):
            if isinstance(self._state, ClassMetrics):  # there may be new classes
                self._state = self._state.grown(1 + int(records[:, :2].max()))
            with np.errstate(all="ignore"):  # the metrics of labels such as 1e300 are undefined
                self._state.add(weights, records)
            self.rows += len(records)

    def __add__(self, other: Self) -> Metrics:
        classes = isinstance(self.loss, Softmax)  # their number may differ
        if type(self.loss) is not type(other.loss) or (self.loss != other.loss and not classes):
            raise ValueError(f"the metrics are of different losses: {self.loss} and {other.loss}")
        both = Metrics(self.loss)
        both._state, both.rows = merge_states(self._state, other._state), self.rows + other.rows
        return both

    def __repr__(self) -> str:
        metrics = describe(self.results())
        return f"<Metrics: {self.rows:,} rows{'; ' if metrics else ''}{metrics}>"

    def _repr_html_(self) -> str:
        rows = [(TITLES[key], rounded(x)) for key, x in self.results().items() if key in TITLES]
        return section(f"metrics of {self.rows:,} rows", table(rows))

    def results(self) -> dict[str, float | None]:
        """Return the metrics by name; None if undefined."""
        with np.errstate(all="ignore"):
            return self._state.results()

    def confusion(self) -> Array | None:
        """Return the summed weights by label and prediction, [K, K].

        It is None for numbers, and for more than 100 classes.
        """
        if isinstance(self._state, NumberMetrics | MeanMetrics | LevelMetrics):
            return None
        counts = self._state.classes.confusion
        return counts.copy() if len(counts) else None

    def reliability(self) -> Array | None:
        """Return [bins, 3]: mean predicted probability, frequency of the event, summed weight.

        The event is the positive label; with more than two classes, that the predicted class is
        the label. Bins without rows are left out. It is None without probabilities.
        """
        if isinstance(self._state, LogOddsMetrics | ClassMetrics):
            return self._state.reliability.curve()
        return None

    def state(self) -> dict[str, Any]:
        """Return everything as JSON values, to continue later."""
        found = {"rows": self.rows, "sums": state_to_json(self._state)}
        if isinstance(self._state, ClassMetrics):
            found["classes"] = len(self._state.classes.hits)
        return found

    def _restore(self, state: dict[str, Any]) -> None:
        """Continue from what `state` returned; a ValueError if it does not fit the loss."""
        if isinstance(self._state, ClassMetrics):
            classes: Any = state.get("classes")
            if not (is_integer(classes) and 0 < classes <= LIMIT):
                raise ValueError(f"invalid state of metrics: {classes!r} classes")
            known = new_class_metrics(classes)
            fill_state(known, state.get("sums"))
            self._state = known.grown(self.loss.d)
        else:
            sums = state.get("sums")
            if isinstance(self._state, LevelMetrics):
                sums = complete_level_state(sums)
            fill_state(self._state, sums)
        self.rows = int(state["rows"])


def _new_state(
    loss: Any,
) -> NumberMetrics | MeanMetrics | LevelMetrics | ScoreMetrics | LogOddsMetrics | ClassMetrics:
    if isinstance(loss, Softmax):
        return new_class_metrics(loss.d)
    if has_log_link(loss):
        return new_mean_metrics(loss.power)
    if isinstance(loss, Quantile):
        return new_level_metrics()
    d = on_vectors(loss).d
    if not predicts_scores(loss):
        return new_number_metrics(d)
    if d > 1:
        raise ValueError(f"there are no metrics for {type(loss).__name__}")
    return new_log_odds_metrics() if isinstance(loss, Logistic) else new_score_metrics()
