"""Estimators for scikit-learn: `BoostingRegressor` and `BoostingClassifier`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from spanboost.analysis.conditional_methods import unless
from spanboost.analysis.explanations import ExplainedRows
from spanboost.compiling.arrays import Array
from spanboost.errors import install_hint
from spanboost.models.class_labels import ClassLabels
from spanboost.models.class_weights import refuse_unknown_classes, whole_weights
from spanboost.models.estimator_files import EstimatorParts
from spanboost.models.estimators import constructor, sklearn_regression_loss
from spanboost.models.intervals import Intervals
from spanboost.models.model import Model
from spanboost.models.model_spec import AUTO
from spanboost.models.one_at_a_time import serve_one
from spanboost.models.predictions import probabilities
from spanboost.models.quantiles.asked_levels import interval_levels
from spanboost.models.sets import PredictionSets, with_classes
from spanboost.rows.user_types import RowsLike

__all__ = ["BoostingClassifier", "BoostingRegressor"]

try:
    from sklearn.base import ClassifierMixin, RegressorMixin
    from sklearn.utils.validation import _check_sample_weight

    from spanboost.analysis.boosting_estimator import (
        FITTING,
        NAMES,
        BoostingEstimator,
        with_shared_parameters,
    )
    from spanboost.data.estimator_rows import parse_classes, parse_targets
except ImportError as error:
    raise ImportError(
        f"spanboost.sklearn needs scikit-learn 1.6 or newer: {install_hint('sklearn')}"
    ) from error


def _no_single_booster(estimator: Any) -> str | None:
    auto = isinstance(estimator.learner, str) and estimator.learner == AUTO
    return "needs a single booster, such as learner='trees'; 'auto' has many" if auto else None


def _no_probabilities(estimator: Any) -> str | None:
    if estimator.loss == "log_loss":
        return None
    return f"needs loss='log_loss' (got loss={estimator.loss!r})"


def _no_intervals(estimator: Any) -> str | None:
    return None if estimator.intervals else "needs intervals=True in the constructor, before fit"


def _no_sets(estimator: Any) -> str | None:
    return None if estimator.sets else "needs sets=True in the constructor, before fit"


@with_shared_parameters
class BoostingRegressor(RegressorMixin, BoostingEstimator):
    """Online gradient boosting for regression.

    Labels y are numbers [rows], or [rows, targets]: then every target has its own model, the same
    as if it were the only one, and predictions are [rows, targets].

    Parameters
    ----------
    {shared_parameters}
    loss : "squared_error", "absolute_error", "huber", "quantile:TAU", "poisson", "gamma", \
            "tweedie:POWER" or a loss object
        "quantile:0.9" estimates the quantile 0.9; ``intervals=True`` estimates several, and keeps
        their shares of the labels on any stream. "poisson", "gamma" and "tweedie:1.5" are for
        counts and positive numbers, and predict their mean (docs/counts.md). A loss object is one
        of ``spanboost.losses``, or your own.
    label_range : "auto", "auto-zero", "growing", "growing-zero" or (low, high)
        Range of the labels. "auto" follows the labels; a label far outside the others is learned
        as if it were closer. "growing" grows to include every label. The others do so around 0.
    intervals : bool
        Whether the model also learns prediction intervals, for one target: see
        ``predict_interval`` and docs/intervals.md. AutoBoost then takes up to 1.5 times as long,
        and ``fit`` may train further models to calibrate with (docs/scikit-learn.md).

    Attributes
    ----------
    n_epochs_ : int or list of int
        Number of passes that ``fit`` made; a list of them for several targets.
    model_ : Model
        The fitted spanboost model. For several targets, ``model_.models`` has one for each.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Permutation importances on a sample of the training rows, as shares of 1. For several
        targets, they are the averages.
    n_features_in_ : int
        Number of columns that ``fit`` has seen.
    feature_names_in_ : ndarray of str
        Names of these columns, if X was a data frame.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.model_selection import cross_val_score
    >>> from spanboost.sklearn import BoostingRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> bool(cross_val_score(BoostingRegressor(budget="fast", random_state=0), X, y).mean() > 0.4)
    True
    """

    intervals: bool
    names: ClassVar = {**NAMES, "label_range": "label_range"}
    __init__ = constructor(
        names, keyword_only_after="learner", loss="squared_error", intervals=False, **FITTING
    )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: RowsLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train on all rows; discard what was learned before, unless ``warm_start`` is set.

        X : rows, an array, a sparse matrix, a data frame or an Arrow table. Text is a category, and
            missing values are allowed.
        y : labels, numbers [rows] or [rows, targets].
        sample_weight : weights of the rows [rows]; None are ones.
        """
        return self._fit(X, self._parse(y), sample_weight, self._loss())

    def partial_fit(
        self, X: RowsLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn more rows, once, in the order given; the parameters are those of ``fit``."""
        return self._learn(X, self._parse(y), sample_weight, self._loss())

    def predict(self, X: RowsLike) -> Array:
        """Return the predictions, [rows] or [rows, targets].

        X : rows with the columns that ``fit`` has seen, in the same order.
        """
        return self._predict(X)

    @unless(_no_intervals)
    @serve_one
    def predict_interval(
        self, X: RowsLike, coverage: float | Sequence[float] = 0.9
    ) -> tuple[Array, Array]:
        """Return predictions [rows] and intervals [rows, 2, coverages], in the shapes of MAPIE.

        coverage : share of the labels that the intervals cover, or a list of such shares.
        """
        shares = np.atleast_1d(coverage).tolist()
        rows, model = self._read(X), self._with_intervals()
        levels = [level for one in shares for level in interval_levels(one, model.levels)]
        predictions, ends = model.predict_both(rows, levels)
        return predictions, ends.reshape(len(ends), len(shares), 2).transpose(0, 2, 1)

    @unless(_no_intervals)
    def predict_bound(self, X: RowsLike, coverage: float = 0.9, side: str = "upper") -> Array:
        """Return one end of a one-sided interval, [rows].

        coverage : share of the labels at or below the bound (side="upper"), or at or above it
            (side="lower").
        """
        rows = self._read(X)
        return self._with_intervals().predict_bound(rows, coverage, side)

    @unless(_no_intervals)
    def predict_quantiles(self, X: RowsLike, levels: float | Sequence[float]) -> Array:
        """Return the quantiles of these levels, [rows, levels]; they never cross."""
        rows = self._read(X)
        return self._with_intervals().predict_quantiles(rows, levels)

    def _with_intervals(self) -> Intervals:
        if not isinstance(self.model_, Intervals):
            raise ValueError("the model was fitted without intervals=True; fit it again")
        return self.model_

    def _new_model(self, loss: Any, random: Any, recent: bool | None) -> Model:
        model = super()._new_model(loss, random, recent)
        return Intervals(model) if self.intervals else model

    def _parse(self, y: Any) -> Array:
        """Return checked labels."""
        if self.intervals not in (True, False):
            raise ValueError(f"intervals must be True or False (got {self.intervals!r})")
        labels = parse_targets(y)
        if self.intervals and labels.ndim > 1:
            raise ValueError(
                "intervals=True supports one target; fit one estimator for each column of y (got "
                f"{labels.shape[1]} columns)"
            )
        return labels

    @unless(_no_single_booster)
    def staged_predict(self, X: RowsLike) -> Iterator[Array]:
        """Yield the predictions of the first copy, of the first two copies, and so on."""
        yield from self._staged_predictions(X)

    def _loss(self) -> Any:
        return sklearn_regression_loss(self.loss)


@with_shared_parameters
class BoostingClassifier(ClassifierMixin, BoostingEstimator):
    """Online gradient boosting for classification.

    Parameters
    ----------
    {shared_parameters}
    loss : "log_loss" or "hinge"
        "log_loss" estimates probabilities for any number of classes; "hinge" is for two.
    sets : bool
        Whether the model also learns sets of classes that contain the label (``predict_set``,
        docs/intervals.md), with loss="log_loss". ``fit`` may then train further models to
        calibrate with (docs/scikit-learn.md).
    calibrated : bool
        Whether the labels calibrate the probabilities of ``predict_proba`` (docs/intervals.md),
        with loss="log_loss".
    class_weight : None, "balanced" or dict of label and weight
        Factors of the sample weights. "balanced" gives all classes the same total weight: in
        ``fit`` by their frequencies in y, in ``partial_fit`` by their frequencies so far. A class
        that is missing in a dictionary has weight 1. In ``fit``, every class of the dictionary
        must be in y.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    n_epochs_ : int
        Number of passes that ``fit`` made.
    model_ : Model
        The fitted spanboost model, which ``spanboost.save`` can write to a file.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Permutation importances on a sample of the training rows, as shares of 1.
    n_features_in_ : int
        Number of columns that ``fit`` has seen.
    feature_names_in_ : ndarray of str
        Names of these columns, if X was a data frame.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import cross_val_score
    >>> from spanboost.sklearn import BoostingClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> bool(cross_val_score(BoostingClassifier(budget="fast", random_state=0), X, y).mean() > 0.85)
    True
    """

    sets: bool
    calibrated: bool
    class_weight: Mapping[Any, float] | str | None
    classes_: Array
    _labels: ClassLabels
    __init__ = constructor(
        NAMES,
        keyword_only_after="learner",
        loss="log_loss",
        class_weight=None,
        sets=False,
        calibrated=False,
        **FITTING,
    )

    def fit(self, X: RowsLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train on all rows; discard what was learned before, unless ``warm_start`` is set.

        X : rows, an array, a sparse matrix, a data frame or an Arrow table. Text is a category, and
            missing values are allowed.
        y : labels [rows]: text, integers or booleans.
        sample_weight : weights of the rows [rows]; None are ones.
        """
        y = parse_classes(y)
        labels = self._labels if self._continues else ClassLabels(self.class_weight, y)
        refuse_unknown_classes(self.class_weight, [*labels.classes.tolist(), *y.tolist()])
        factors = whole_weights(self.class_weight, y)
        weights = _check_sample_weight(sample_weight, y) * factors
        self._fit(X, labels.encode(y), weights, labels.loss(self.loss))
        return self._add(labels, y)

    def partial_fit(
        self,
        X: RowsLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn more rows, once, in the order given; the other parameters are those of ``fit``.

        classes : all classes, in the first call; None if they are not known. The model then adds
            classes as they appear. If there are two, naming them gives better probabilities.
        """
        y, first = parse_classes(y), not hasattr(self, "model_")
        labels = ClassLabels(self.class_weight, classes) if first else self._labels
        if classes is not None and not np.array_equal(labels.classes, np.unique(classes)):
            raise ValueError(
                f"classes must be {labels.classes}, as in the first call (got {classes!r})"
            )
        weights = _check_sample_weight(sample_weight, y) * labels.weights.of(y.tolist())
        self._learn(X, labels.encode(y), weights, labels.loss(self.loss))
        return self._add(labels, y)

    def _add(self, labels: ClassLabels, y: Array) -> Self:
        labels.add(y)
        self._labels, self.classes_ = labels, labels.classes
        return self

    def to_parts(self) -> EstimatorParts:
        """Return the fitted estimator as data, for ``spanboost.save``."""
        parts = super().to_parts()
        state = parts.state | {"labels": self._labels.state()}
        return parts._replace(state=state, classes=self._labels.numbered())

    @classmethod
    def from_parts(cls, parts: EstimatorParts) -> Self:
        """Return the estimator that `to_parts` described."""
        estimator = super().from_parts(parts)
        estimator._labels = ClassLabels.restore(estimator.class_weight, parts.state["labels"])
        estimator.classes_ = estimator._labels.classes
        return estimator

    def explained_rows(self, x: Any) -> ExplainedRows:
        """Return how ``spanboost.explain`` explains the scores of one row."""
        rows = super().explained_rows(x)
        return rows._replace(in_order=self._labels.in_order, classes=self.classes_.tolist())

    def decision_function(self, X: RowsLike) -> Array:
        """Return the scores of all classes; for two classes, the score of the second only.

        The score of the second class is positive where it is more probable.
        """
        scores = self._predict(X)
        return self._labels.in_order(scores)

    def predict(self, X: RowsLike) -> Array:
        """Return the most probable class of each row, [rows].

        X : rows with the columns that ``fit`` has seen, in the same order.
        """
        scores = self.decision_function(X)  # first: it checks that the model is fitted
        return self._labels.most_probable(scores)

    @unless(_no_probabilities)
    @serve_one
    def predict_proba(self, X: RowsLike) -> Array:
        """Return the probabilities [rows, classes], in the order of ``classes_``.

        X : rows with the columns that ``fit`` has seen, in the same order.
        """
        return probabilities(self.decision_function(X))

    @unless(_no_sets)
    @serve_one
    def predict_set(
        self, X: RowsLike, coverage: float | Sequence[float] = 0.9
    ) -> tuple[Array, Array]:
        """Return classes [rows] and sets [rows, classes, coverages], in the shapes of MAPIE.

        A set is True for each class that it contains, in the order of ``classes_``.

        coverage : share of the labels that the sets contain at least, or a list of such shares.
        """
        shares = np.atleast_1d(coverage).tolist()
        rows = self._read(X)
        if not isinstance(self.model_, PredictionSets):
            raise ValueError("the model was fitted without sets=True; fit it again")
        sets = [self._labels.columns(self.model_.predict_set(rows, one)) for one in shares]
        return self.predict(X), np.stack(sets, axis=2)

    def _new_model(self, loss: Any, random: Any, recent: bool | None) -> Model:
        for name in ("sets", "calibrated"):
            if getattr(self, name) not in (True, False):
                raise ValueError(f"{name} must be True or False (got {getattr(self, name)!r})")
            if getattr(self, name) and self.loss != "log_loss":
                raise ValueError(f"{name}=True needs loss='log_loss' (got loss={self.loss!r})")
        return with_classes(super()._new_model(loss, random, recent), self.sets, self.calibrated)

    @unless(_no_probabilities)
    def predict_log_proba(self, X: RowsLike) -> Array:
        """Return the logarithms of the probabilities of the classes."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    @unless(_no_single_booster)
    def staged_predict(self, X: RowsLike) -> Iterator[Array]:
        """Yield the predictions of the first copy, of the first two copies, and so on."""
        for scores in self._staged_predictions(X):
            yield self._labels.most_probable(self._labels.in_order(scores))
