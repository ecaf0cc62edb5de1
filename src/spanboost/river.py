"""Estimators for River: `BoostingRegressor` and `BoostingClassifier`."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.losses import resolve
from spanboost.models.estimators import (
    check_regression_loss,
    constructor,
    new_model,
    probabilities,
)
from spanboost.models.model import Model

try:
    import pandas as pd
    from river import base
except ImportError as error:
    raise ImportError("spanboost.river needs River: pip install 'spanboost[river]'") from error


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
    """Online gradient boosting for two classes, False and True (or 0 and 1), by logistic loss.

    For more classes, wrap it in `river.multiclass.OneVsRestClassifier`. The parameters are those of
    `BoostingRegressor` without `loss` and `label_range`, which are fixed.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from spanboost.river import BoostingClassifier
    >>> auc = metrics.ROCAUC()
    >>> evaluate.progressive_val_score(datasets.Phishing(), BoostingClassifier(), auc)
    ROCAUC: 95...%
    """

    __init__ = constructor(_CLASSIFIER_NAMES, keyword_only_after="budget", then="_begin")

    def _begin(self) -> None:
        self._model = new_model(self, _CLASSIFIER_NAMES, loss="logistic")

    @property
    def _multiclass(self) -> bool:
        return False

    def learn_one(self, x: dict[Any, Any], y: Any, w: float = 1.0) -> None:
        """Learn one row with importance weight w."""
        self._model.learn_one(x, _sign(y), w)

    def predict_proba_one(self, x: dict[Any, Any]) -> dict[Any, float]:
        """Return the probabilities of both classes."""
        false, true = probabilities(np.array([self._model.predict_one(x)]))[0].tolist()
        return {False: false, True: true}

    def learn_many(self, X: pd.DataFrame, y: pd.Series, w: Any = 1.0) -> None:
        """Learn a block of rows, in order; w is one weight for all rows, or one for each."""
        if len(X):
            self._model.learn_many(_rows(X), [_sign(label) for label in y], _weights(w, len(X)))

    def predict_proba_many(self, X: pd.DataFrame) -> pd.DataFrame:
        """Return the probabilities of both classes for a block of rows."""
        shares = probabilities(self._predict_rows(X))
        return pd.DataFrame(shares, index=X.index, columns=[False, True])

    def predict_many(self, X: pd.DataFrame) -> pd.Series:
        """Return the more probable class of each row of a block."""
        return pd.Series(self._predict_rows(X) > 0, index=X.index)


def _rows(X: pd.DataFrame) -> list[dict[Any, Any]]:
    """Return rows as dictionaries, so that blocks and single rows give the same model."""
    return X.to_dict("records")


def _weights(w: Any, rows: int) -> Any:
    return w if np.ndim(w) else np.full(rows, w)


def _sign(y: Any) -> float:
    if y not in (0, 1):
        raise ValueError(
            f"the label {y!r} is neither False nor True: for other labels, wrap the model in "
            "river.multiclass.OneVsRestClassifier"
        )
    return 1.0 if y else -1.0
