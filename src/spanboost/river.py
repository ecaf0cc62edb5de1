"""Estimators for River: regressors for one or several targets, and `BoostingClassifier`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from inspect import signature
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from spanboost.analysis.debug_text import describe_prediction
from spanboost.analysis.explanations import ExplainedRows
from spanboost.compiling.arrays import Array
from spanboost.errors import install_hint
from spanboost.losses import Loss, resolve
from spanboost.models.emerging_classes import EmergingClasses, Example
from spanboost.models.estimator_files import EstimatorParts
from spanboost.models.estimators import check_regression_loss, constructor, new_model
from spanboost.models.intervals import Intervals
from spanboost.models.model import Model
from spanboost.models.one_at_a_time import OneAtATime
from spanboost.models.predictions import probabilities
from spanboost.models.sets import PredictionSets, with_classes
from spanboost.models.spec import CHOOSE
from spanboost.models.target_models import TargetModels
from spanboost.rows.user_types import FeatureDict, LabelLike, LearnerLike

__all__ = ["BoostingClassifier", "BoostingMultiTargetRegressor", "BoostingRegressor"]

try:
    import pandas as pd
    from river import base, conf

    from spanboost.data.river_rows import (
        check_frame,
        frame_rows,
        frame_targets,
        plain_row,
        row_weights,
    )
except ImportError as error:
    raise ImportError(f"spanboost.river needs River: {install_hint('river')}") from error


_NAMES = {  # parameters of ModelSpec, and what River calls them
    "learner": "learner",
    "booster": "booster",
    "n": "n_models",
    "step": "learning_rate",
    "loss": "loss",
    "budget": "budget",
    "label_range": "label_range",
    "seed": "seed",
    "recent": "recent",
}
_CLASSIFIER_NAMES = {
    name: own for name, own in _NAMES.items() if name not in ("loss", "label_range")
}


class _Boosting(OneAtATime):
    """Base class of all estimators."""

    learner: LearnerLike
    loss: str | Loss
    _model: Model

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"budget": "fast"}
        for learner in ("trees", "linear", "stumps", "network"):
            yield {"learner": learner}

    def to_parts(self) -> EstimatorParts:
        """Return the estimator as data, for `spanboost.save`."""
        raise NotImplementedError

    def _parts(self, models: Sequence[Model], **state: Any) -> EstimatorParts:
        """Return the estimator as data."""
        names = signature(type(self)).parameters
        given = {"parameters": {name: getattr(self, name) for name in names}}
        return EstimatorParts(f"river.{type(self).__name__}", given | state, models)


class _OneTarget(_Boosting):
    """Base class of the regressor and the classifier."""

    def debug_one(self, x: FeatureDict, decimals: int = 5) -> str:
        """Return the parts of the prediction for one row, the largest first, as lines of text.

        River's pipelines show them in their own `debug_one`. For classes, the parts add up to a
        score: of the second class if there are two, else of the predicted class. For losses with a
        log link, they add up to the logarithm of the prediction.
        """
        return describe_prediction(self, x, decimals)

    def _predict_rows(self, X: pd.DataFrame) -> Array:
        return np.asarray(self._model.predict_many(frame_rows(X))) if len(X) else np.zeros(0)


class BoostingRegressor(_OneTarget, base.MiniBatchRegressor):
    """Online gradient boosting for regression.

    Features are numbers, strings (categories), dates and times (`datetime`, `pandas.Timestamp`), or
    None (missing). Rows may have different features, in any order. Learning a data frame and
    learning its rows one at a time give the same model.

    Parameters
    ----------
    learner
        The learner to boost: "auto" (runs many boosters at once and needs no tuning), "trees",
        "linear", "stumps", "stumps-intercept", "network", a learner of this library with its
        parameters, such as `Trees(depth=4)`, or your own, such as one of River's regressors.
    booster
        "span" for Algorithm 1, "hull" for Algorithm 2.
    n_models
        Number of copies of the learner. "auto" chooses it from the stream
        (docs/online-choice.md). None is "auto" for your own learner, 100 for trees, else 32.
    learning_rate
        The step eta of Algorithm 1, from 1 / n_models to 1. None is ln(n) / n; "auto" chooses it
        from the stream.
    loss
        "squared", "absolute", "poisson" for counts, "gamma" for positive numbers, "tweedie:1.5", or
        another loss of `spanboost.losses`.
    budget
        Size of learner="auto": "fast", "default", "thorough" or "exhaustive". Other learners ignore
        it, so that a search can try several learners.
    label_range
        Range of the labels: "auto" follows the labels; a label far outside the others is learned
        as if it were closer. "growing" grows to include every label. "auto-zero" and
        "growing-zero" do so around 0. Or (low, high).
    replay
        Number of earlier rows to learn again after each row: lower error, more time.
    memory
        Number of recent rows that `replay` draws from.
    replay_weight
        Factor on the importance weight of replayed rows, from 0.001 to 1.
    seed
        Random seed of the learner and of `replay`.
    recent
        Whether the last 1,000 rows correct learner="auto" (docs/drift.md). None: unless "fast".
    intervals
        Whether the model also learns prediction intervals (docs/intervals.md):
        `predict_one(x, with_interval=True)` returns them. AutoBoost then takes up to 1.5 times as
        long.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from spanboost.river import BoostingRegressor
    >>> mae = metrics.MAE()
    >>> evaluate.progressive_val_score(datasets.TrumpApproval(), BoostingRegressor(), mae)
    MAE: 0.2...
    """

    intervals: bool
    __init__ = constructor(_NAMES, keyword_only_after="label_range", then="_begin", intervals=False)

    def _begin(self) -> None:
        check_regression_loss(resolve(self.loss))
        model = new_model(self, _NAMES)
        self._model = Intervals(model) if self.intervals else model

    def learn_one(self, x: FeatureDict, y: float, w: float = 1.0) -> None:
        """Learn one row with importance weight w."""
        self._model.learn_one(x, y, w)

    def predict_one(
        self, x: FeatureDict, with_interval: bool = False, coverage: float = 0.9
    ) -> Any:
        """Return the prediction for one row; 0 before the first label.

        With an interval, it returns a `river.conf.Interval` instead, as River's conformal wrappers
        do. It covers this share of the labels.
        """
        if not with_interval:
            return float(self._model.predict_one(x))
        low, high = self._with_intervals().predict_interval_one(x, coverage)
        return conf.Interval(lower=low, upper=high)

    def predict_bound_one(
        self, x: dict[Any, Any], coverage: float = 0.9, side: str = "upper"
    ) -> float:
        """Return a number that this share of the labels is at or below; `side="lower"`: above."""
        (bound,) = self._with_intervals().predict_bound([x], coverage, side).tolist()
        return float(bound)

    def _with_intervals(self) -> Intervals:
        if not isinstance(self._model, Intervals):
            raise ValueError("intervals need BoostingRegressor(intervals=True)")
        return self._model

    def learn_many(self, X: pd.DataFrame, y: pd.Series, w: ArrayLike = 1.0) -> None:
        """Learn a block of rows, in order; w is one weight for all rows, or one for each."""
        if len(X):
            self._model.learn_many(frame_rows(X), np.asarray(y), row_weights(w, len(X)))

    def predict_many(self, X: pd.DataFrame) -> pd.Series:
        """Return the predictions for a block of rows."""
        return pd.Series(self._predict_rows(X), index=X.index)

    def to_parts(self) -> EstimatorParts:
        """Return the estimator as data, for `spanboost.save`."""
        return self._parts([self._model])

    @classmethod
    def from_parts(cls, parts: EstimatorParts) -> Self:
        """Return the estimator that `to_parts` described."""
        estimator = cls(**parts.state["parameters"])
        (estimator._model,) = parts.models
        return estimator

    def explained_rows(self, x: FeatureDict) -> ExplainedRows:
        """Return how `spanboost.explain` explains the prediction for one row."""
        return ExplainedRows([self._model], [plain_row(x)])


class BoostingMultiTargetRegressor(_Boosting, base.MultiTargetRegressor):
    """Online gradient boosting for several numbers at once.

    Labels are dictionaries of numbers. Every target has its own model, the same as if it were the
    only one. Targets may appear at any time. A target that is absent, None or NaN in a row is not
    learned from it. The parameters are those of `BoostingRegressor` without `intervals`.

    Examples
    --------
    >>> from spanboost.river import BoostingMultiTargetRegressor
    >>> model = BoostingMultiTargetRegressor("linear")
    >>> for k in range(200):
    ...     x = {"a": k % 7, "b": k % 3}
    ...     model.learn_one(x, {"sum": x["a"] + x["b"], "difference": x["a"] - x["b"]})
    >>> {name: round(number) for name, number in model.predict_one({"a": 5, "b": 1}).items()}
    {'sum': 6, 'difference': 4}
    """

    served = frozenset({"learn_one", "learn_many", "predict_one", "predict_many"})
    __init__ = constructor(_NAMES, keyword_only_after="label_range", then="_begin")

    def _begin(self) -> None:
        check_regression_loss(resolve(self.loss))
        self._targets = TargetModels(partial(new_model, self, _NAMES))

    def learn_one(self, x: FeatureDict, y: dict[Any, float], w: float = 1.0) -> None:
        """Learn the targets of one row with importance weight w; a refused row changes nothing."""
        if not isinstance(y, Mapping):
            raise ValueError(f"y must be a dictionary of targets and numbers (got {y!r:.60})")
        self._targets.learn([x], {name: [y[name]] for name in y}, [w])

    def predict_one(self, x: FeatureDict) -> dict[Any, float]:
        """Return the predictions of all targets so far."""
        return {name: float(model.predict_one(x)) for name, model in self._targets.models.items()}

    def learn_many(self, X: pd.DataFrame, y: pd.DataFrame, w: ArrayLike = 1.0) -> None:
        """Learn a block of rows, in order; y has a column for each target."""
        self._targets.learn(frame_rows(X), frame_targets(y, len(X)), row_weights(w, len(X)))

    def predict_many(self, X: pd.DataFrame) -> pd.DataFrame:
        """Return the predictions for a block of rows, with a column for each target so far."""
        return pd.DataFrame(self._targets.predict(frame_rows(X)) if len(X) else {}, index=X.index)

    def to_parts(self) -> EstimatorParts:
        """Return the estimator as data, for `spanboost.save`."""
        models = self._targets.models
        return self._parts([*models.values()], targets=[*models])

    @classmethod
    def from_parts(cls, parts: EstimatorParts) -> Self:
        """Return the estimator that `to_parts` described."""
        estimator = cls(**parts.state["parameters"])
        estimator._targets.models |= zip(parts.state["targets"], parts.models, strict=True)
        return estimator

    def explained_rows(self, x: FeatureDict) -> ExplainedRows:
        """Return how `spanboost.explain` explains the predictions for one row."""
        return ExplainedRows([*self._targets.models.values()], [plain_row(x)], several=True)


class BoostingClassifier(_OneTarget, base.MiniBatchClassifier):
    """Online gradient boosting for classification.

    Labels are strings, integers, booleans or other hashable values. New classes may appear at any
    time. The model starts with one output, for two classes. When the third class appears, a model
    with an output for each class replaces it, and learns the last 1,000 rows first. A model of your
    own learner, or with `n_models="auto"`, is replaced in this way for every further class.

    The parameters are those of `BoostingRegressor` without `loss` and `label_range`, which are
    fixed, and without `intervals`. With `sets=True`, the model also learns sets of classes that
    contain the label (`predict_set_one`). With `calibrated=True`, the labels calibrate its
    probabilities (docs/intervals.md).

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from spanboost.river import BoostingClassifier
    >>> auc = metrics.ROCAUC()
    >>> evaluate.progressive_val_score(datasets.Phishing(), BoostingClassifier(), auc)
    ROCAUC: 95...%
    >>> model = BoostingClassifier(budget="fast")
    >>> for x, y in datasets.ImageSegments().take(500):
    ...     model.learn_one(x, y)
    >>> model.predict_one(x), y
    ('...', '...')
    """

    served = frozenset(
        ["learn_one", "learn_many", "predict_proba_one", "predict_proba_many", "predict_set_one"]
    )
    sets: bool
    calibrated: bool
    __init__ = constructor(
        _CLASSIFIER_NAMES, keyword_only_after="budget", then="_begin", sets=False, calibrated=False
    )

    def _begin(self) -> None:
        chosen = CHOOSE in (self.n_models, self.learning_rate)
        widens = isinstance(self.learner, str) or getattr(self.learner, "widens", False) is True
        self._emerging = EmergingClasses(self._new_model, widens=widens and not chosen)

    @property
    def _multiclass(self) -> bool:
        return True

    @property
    def _model(self) -> Model:  # type: ignore[override]
        return self._emerging.model

    @property
    def _labels(self) -> list[Any]:
        return self._emerging.table.labels

    def learn_one(self, x: FeatureDict, y: LabelLike, w: float = 1.0) -> None:
        """Learn one row with importance weight w."""
        self._emerging.learn([Example(dict(x), y, w)])

    def predict_proba_one(self, x: FeatureDict) -> dict[Any, float]:
        """Return the probability of each class so far; empty before the first label."""
        if not self._labels:
            return {}
        shares = self._probabilities(np.array([self._model.predict_one(x)]))[0].tolist()
        return dict(zip(self._labels, shares, strict=True))

    def predict_set_one(self, x: FeatureDict, coverage: float = 0.9) -> set[Any]:
        """Return a set of classes that contains this share of the labels; needs `sets=True`."""
        if not isinstance(self._model, PredictionSets):
            raise ValueError("sets need BoostingClassifier(sets=True)")
        (inside,) = self._model.predict_set([x], coverage)
        return {label for label, within in zip(self._labels, inside, strict=False) if within}

    def learn_many(self, X: pd.DataFrame, y: pd.Series, w: ArrayLike = 1.0) -> None:
        """Learn a block of rows, in order; w is one weight for all rows, or one for each."""
        rows, labels = frame_rows(X), list(y.tolist() if hasattr(y, "tolist") else y)
        if len(rows) != len(labels):
            raise ValueError(f"{len(rows)} rows but {len(labels)} labels")
        triples = zip(rows, labels, row_weights(w, len(X)).tolist(), strict=True)
        self._emerging.learn([Example(*one) for one in triples])

    def predict_proba_many(self, X: pd.DataFrame) -> pd.DataFrame:
        """Return the probabilities of the classes, a column for each, for a block of rows."""
        check_frame(X)
        known = len(X) and self._labels
        shares = self._probabilities(self._predict_rows(X)) if known else None
        return pd.DataFrame(shares, index=X.index, columns=self._labels)

    def predict_many(self, X: pd.DataFrame) -> pd.Series:
        """Return the most probable class of each row of a block; None before the first label."""
        check_frame(X)
        if not (len(X) and self._labels):
            return pd.Series([None] * len(X), index=X.index, dtype="object")
        return self.predict_proba_many(X).idxmax(axis="columns")

    def _new_model(self, loss: Any) -> Model:
        model = new_model(self, _CLASSIFIER_NAMES, loss=loss)
        return with_classes(model, self.sets, self.calibrated)

    def to_parts(self) -> EstimatorParts:
        """Return the estimator as data, for `spanboost.save`."""
        recent = [tuple(one) for one in self._emerging.recent]
        parts = self._parts([self._model], classes=self._labels, recent=recent)
        return parts._replace(classes=self._labels)

    @classmethod
    def from_parts(cls, parts: EstimatorParts) -> Self:
        """Return the estimator that `to_parts` described."""
        estimator = cls(**parts.state["parameters"])
        emerging = estimator._emerging
        (emerging.model,) = parts.models
        emerging.table.add(parts.state["classes"])
        emerging.recent.extend(Example(*one) for one in parts.state["recent"])
        return estimator

    def explained_rows(self, x: FeatureDict) -> ExplainedRows:
        """Return how `spanboost.explain` explains the scores of one row."""
        return ExplainedRows([self._model], [plain_row(x)], classes=self._labels)

    def _probabilities(self, scores: Array) -> Array:
        known = probabilities(scores)[:, : len(self._labels)]  # a model starts with two
        return np.asarray(known / known.sum(axis=1, keepdims=True))
