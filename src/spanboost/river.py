"""Estimators for River: `BoostingRegressor` and `BoostingClassifier`."""

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.errors import install_hint
from spanboost.losses import Logistic, resolve
from spanboost.models.class_table import ClassTable
from spanboost.models.estimators import (
    check_regression_loss,
    constructor,
    new_model,
)
from spanboost.models.model import Model
from spanboost.models.predictions import probabilities

try:
    import pandas as pd
    from river import base
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
}
_CLASSIFIER_NAMES = {
    name: own for name, own in _NAMES.items() if name not in ("loss", "label_range")
}

_TWO = 2  # classes of a model with one output
_RECENT = 1000  # rows that a model for more classes learns first


class _Boosting:
    """Base class of the regressor and the classifier."""

    learner: Any
    loss: Any
    _model: Model
    # names of ModelSpec parameters: names here

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        for learner in ("auto", "trees", "linear", "stumps", "network"):
            yield {"learner": learner, "budget": "fast"}

    def _predict_rows(self, X: pd.DataFrame) -> Array:
        return np.asarray(self._model.predict_many(_rows(X))) if len(X) else np.zeros(0)


class BoostingRegressor(_Boosting, base.MiniBatchRegressor):
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
        Number of copies of the learner. None is 100 for trees, 32 for other learners; "auto"
        chooses it from the stream (docs/online-choice.md).
    learning_rate
        The step eta of Algorithm 1, from 1 / n_models to 1. None is ln(n) / n; "auto" chooses it
        from the stream.
    loss
        "squared", "absolute", or another loss of `spanboost.losses`.
    budget
        Size of learner="auto": "fast", "default" or "thorough".
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

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from spanboost.river import BoostingRegressor
    >>> mae = metrics.MAE()
    >>> evaluate.progressive_val_score(datasets.TrumpApproval(), BoostingRegressor(), mae)
    MAE: 0.2...
    """

    __init__ = constructor(_NAMES, keyword_only_after="label_range", then="_begin")

    def _begin(self) -> None:
        check_regression_loss(resolve(self.loss))
        self._model = new_model(self, _NAMES)

    def learn_one(self, x: dict[Any, Any], y: Any, w: float = 1.0) -> None:
        """Learn one row with importance weight w."""
        self._model.learn_one(x, y, w)

    def predict_one(self, x: dict[Any, Any]) -> float:
        """Return the prediction for one row; 0 before the first label."""
        return float(self._model.predict_one(x))

    def learn_many(self, X: pd.DataFrame, y: pd.Series, w: Any = 1.0) -> None:
        """Learn a block of rows, in order; w is one weight for all rows, or one for each."""
        if len(X):
            self._model.learn_many(_rows(X), np.asarray(y), _weights(w, len(X)))

    def predict_many(self, X: pd.DataFrame) -> pd.Series:
        """Return the predictions for a block of rows."""
        return pd.Series(self._predict_rows(X), index=X.index)


class BoostingClassifier(_Boosting, base.MiniBatchClassifier):
    """Online gradient boosting for classification.

    Labels are strings, integers, booleans or other hashable values. New classes may appear at any
    time. The model starts with one output, for two classes. When the third class appears, a model
    with an output for each class replaces it, and learns the last 1,000 rows first. The parameters
    are those of `BoostingRegressor` without `loss` and `label_range`, which are fixed.

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

    __init__ = constructor(_CLASSIFIER_NAMES, keyword_only_after="budget", then="_begin")

    def _begin(self) -> None:
        self._classes = ClassTable()
        self._model = new_model(self, _CLASSIFIER_NAMES, loss="logistic")
        self._recent: deque[_Example] = deque(maxlen=_RECENT)  # while there are two classes

    @property
    def _multiclass(self) -> bool:
        return True

    @property
    def _binary(self) -> bool:
        return isinstance(self._model.loss_, Logistic)

    def learn_one(self, x: dict[Any, Any], y: Any, w: float = 1.0) -> None:
        """Learn one row with importance weight w."""
        self._learn(
            [_Example(dict(x), y, w)], lambda model, code: model.learn_one(x, code[0], weight=w)
        )

    def predict_proba_one(self, x: dict[Any, Any]) -> dict[Any, float]:
        """Return the probability of each class so far; empty before the first label."""
        if not self._classes.labels:
            return {}
        shares = self._probabilities(np.array([self._model.predict_one(x)]))[0].tolist()
        return dict(zip(self._classes.labels, shares, strict=True))

    def learn_many(self, X: pd.DataFrame, y: pd.Series, w: Any = 1.0) -> None:
        """Learn a block of rows, in order; w is one weight for all rows, or one for each."""
        triples = zip(_rows(X), y.tolist(), _weights(w, len(X)).tolist(), strict=True)
        examples = [_Example(*one) for one in triples]
        codes = self._codes(examples)
        third = next((k for k, code in enumerate(codes) if code >= _TWO), len(codes))
        for part in (examples[:third], examples[third:]) if self._binary else (examples,):
            if part:
                self._learn(part, partial(_learn_block, part))

    def predict_proba_many(self, X: pd.DataFrame) -> pd.DataFrame:
        """Return the probabilities of the classes, a column for each, for a block of rows."""
        known = len(X) and self._classes.labels
        shares = self._probabilities(self._predict_rows(X)) if known else None
        return pd.DataFrame(shares, index=X.index, columns=self._classes.labels)

    def predict_many(self, X: pd.DataFrame) -> pd.Series:
        """Return the most probable class of each row of a block; None before the first label."""
        if not (len(X) and self._classes.labels):
            return pd.Series([None] * len(X), index=X.index, dtype="object")
        return self.predict_proba_many(X).idxmax(axis="columns")

    def _learn(self, examples: list["_Example"], learn: Callable[[Model, list[Any]], Any]) -> None:
        """Learn rows with the model for their classes; a refused row changes nothing."""
        labels, codes = [one.y for one in examples], self._codes(examples)
        if self._binary and max(codes) < _TWO:
            learn(self._model, [2.0 * code - 1 for code in codes])
            self._recent.extend(examples)
        else:
            model = self._new_softmax() if self._binary else self._model
            learn(model, codes)
            self._model = model
            self._recent.clear()
        self._classes.add(labels)

    def _codes(self, examples: list["_Example"]) -> list[int]:
        return self._classes.encode([one.y for one in examples])

    def _new_softmax(self) -> Model:
        """Return a model for any number of classes that has learned the last rows."""
        model, recent = new_model(self, _CLASSIFIER_NAMES, loss="softmax"), list(self._recent)
        if recent:
            _learn_block(recent, model, self._codes(recent))
        return model

    def _probabilities(self, scores: Array) -> Array:
        known = probabilities(scores)[:, : len(self._classes.labels)]  # a model starts with two
        return np.asarray(known / known.sum(axis=1, keepdims=True))


class _Example(NamedTuple):
    x: dict[Any, Any]
    y: Any
    w: float


def _learn_block(examples: list[_Example], model: Model, codes: list[Any]) -> None:
    model.learn_many([one.x for one in examples], codes, np.array([one.w for one in examples]))


def _rows(X: pd.DataFrame) -> list[dict[Any, Any]]:
    """Return rows as dictionaries, so that blocks and single rows give the same model."""
    return X.to_dict("records")


def _weights(w: Any, rows: int) -> Any:
    return w if np.ndim(w) else np.full(rows, w)
