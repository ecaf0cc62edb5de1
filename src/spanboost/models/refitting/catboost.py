"""The estimator of `Refitted` named "catboost": settings that depend on the loss alone.

Its trees ask the same question at every node of a level. They differ most from those of LightGBM,
so both together predict better than either. Every fit runs in one thread.
"""

from typing import Any

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.losses import Absolute, Gamma, Logistic, Poisson, Quantile, Softmax, Tweedie
from spanboost.models.refitting.libraries import CATBOOST, import_library

_NEAR_GAMMA = 1.99  # CatBoost has no gamma loss; that of Tweedie approaches it at a power of 2
_SETTINGS = {
    "iterations": 1000,
    "thread_count": 1,
    "verbose": False,
    "allow_writing_files": False,
}


def fit_catboost(X: Any, y: Array, weights: Array, loss: Any, seed: int) -> Any:
    """Return a model of CatBoost, fitted to a matrix; None if nothing can be learned from it.

    y: numbers, or class numbers from 0 on. Categories are read as their numbers: the statistics
    that CatBoost computes of categories take many times as long.
    """
    if (y == y[0]).all() or not _varies(X):
        return None  # CatBoost would raise an error
    catboost = import_library(CATBOOST)
    settings = _SETTINGS | {"loss_function": _objective(loss, y), "random_seed": seed % 2**31}
    return catboost.CatBoost(settings).fit(X, y, sample_weight=weights)


def _varies(X: Any) -> bool:
    """Return whether any column of a matrix has two different values."""
    low, high = X.min(axis=0), X.max(axis=0)
    if not isinstance(X, np.ndarray):  # a sparse matrix
        low, high = low.toarray(), high.toarray()
    return bool((low != high).any())  # NaN differs from everything


def _objective(loss: Any, y: Array) -> str:
    """Return the objective for a loss; least squares, if CatBoost does not have it."""
    if isinstance(loss, Logistic | Softmax):
        return "MultiClass" if y.max() > 1 else "Logloss"
    if isinstance(loss, Quantile):
        return f"Quantile:alpha={float(loss.tau)}"
    if isinstance(loss, Tweedie | Gamma):
        power = _NEAR_GAMMA if isinstance(loss, Gamma) else float(loss.power)
        return f"Tweedie:variance_power={power}"
    return {Absolute: "MAE", Poisson: "Poisson"}.get(type(loss), "RMSE")
