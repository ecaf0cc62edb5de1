"""The estimators of `Refitted` by name: LightGBM with settings that depend on the loss alone.

The number of trees is chosen by early stopping on every tenth row. Then the trees are fitted again
to all rows. All settings are deterministic, and every fit runs in one thread: the trees depend on
neither the machine's processors nor the other work.
"""

from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.losses import (
    Absolute,
    Gamma,
    Logistic,
    Poisson,
    Quantile,
    Softmax,
    Tweedie,
)
from spanboost.models.refitting.libraries import DEFAULT, SHALLOW, import_library

PATIENCE = 50  # trees without an improvement before early stopping
HELD_OUT = 10  # one row in this many
_SETTINGS = {
    "learning_rate": 0.05,
    "bagging_fraction": 0.8,
    "bagging_freq": 1,
    "feature_fraction": 0.8,
    "min_data_in_leaf": 20,
    "deterministic": True,
    "force_col_wise": True,
    "num_threads": 1,
    "verbosity": -1,
}


class Size(NamedTuple):
    """The size of the trees."""

    most: int  # trees
    settings: dict[str, Any]


# Small trees are smoother: they suit noisy labels and functions without sharp steps.
_SIZES = {
    DEFAULT: Size(1000, {"num_leaves": 63}),
    SHALLOW: Size(3000, {"num_leaves": 8, "lambda_l2": 5.0, "min_data_in_leaf": 5}),
}
_OBJECTIVES: dict[type[Any], str] = {
    Absolute: "regression_l1",
    Poisson: "poisson",
    Gamma: "gamma",
    Logistic: "binary",
    Softmax: "binary",
}


def fit_lightgbm(
    name: str, X: Any, y: Array, weights: Array, categories: list[int], loss: Any, seed: int
) -> Any:
    """Return a booster of LightGBM, fitted to a matrix.

    name: DEFAULT or SHALLOW.
    y: numbers, or class numbers from 0 on; categories: columns of X that hold categories.
    """
    lightgbm = import_library("lightgbm")
    most, size = _SIZES[name]
    settings = _SETTINGS | size | _objective(loss, y) | {"seed": seed % 2**31}
    whole = lightgbm.Dataset(
        X, y, weight=weights, categorical_feature=categories, params=settings, free_raw_data=False
    )
    held = np.arange(len(y)) % HELD_OUT == HELD_OUT - 1
    whole.construct()
    part, rest = whole.subset(np.flatnonzero(~held)), whole.subset(np.flatnonzero(held))
    stopping = lightgbm.early_stopping(PATIENCE, first_metric_only=True, verbose=False)
    tried = lightgbm.train(settings, part, most, valid_sets=[rest], callbacks=[stopping])
    trees = tried.best_iteration or most
    return lightgbm.train(settings, whole, trees)


def _objective(loss: Any, y: Array) -> dict[str, Any]:
    """Return the objective for a loss; least squares, if LightGBM does not have it."""
    if isinstance(loss, Softmax) and (classes := 1 + int(y.max())) > 2:
        return {"objective": "multiclass", "num_class": classes}
    if isinstance(loss, Quantile):
        return {"objective": "quantile", "alpha": float(loss.tau)}
    if isinstance(loss, Tweedie):
        return {"objective": "tweedie", "tweedie_variance_power": float(loss.power)}
    return {"objective": _OBJECTIVES.get(type(loss), "regression")}
