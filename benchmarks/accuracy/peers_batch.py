"""LightGBM, XGBoost and CatBoost: fitted once, refitted repeatedly, and continued chunk by chunk.

All use the default settings, except for `TunedLightGBM`, and one thread. Categorical columns are
declared as such.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.accuracy.datasets import Data
from benchmarks.accuracy.stream import Clock, Run, blocks

CHUNK = 1_000
REFITS = 10
TREES = 100  # the default of both libraries


class LightGBM:
    """Boosted trees of LightGBM; learning adds to the existing trees."""

    def __init__(self, categorical: list[int]) -> None:
        import lightgbm

        self.library, self.categorical = lightgbm, categorical
        self.model: Any = None

    def learn(self, X: np.ndarray, y: np.ndarray, trees: int) -> None:
        """Add trees fitted to these rows."""
        parameters = {"objective": "regression", "num_threads": 1, "verbose": -1}
        rows = self.library.Dataset(
            X, y, categorical_feature=self.categorical, free_raw_data=False, params=parameters
        )
        self.model = self.library.train(
            parameters, rows, trees, init_model=self.model, keep_training_booster=True
        )

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Predict with all trees so far."""
        return np.asarray(self.model.predict(X, num_threads=1))


class TunedLightGBM:
    """LightGBM with small steps, whose number of trees is chosen by early stopping.

    The last tenth of the rows decides; then all rows are fitted with that number.
    """

    most, patience = 3_000, 50

    def __init__(self, categorical: list[int]) -> None:
        import lightgbm

        self.library, self.categorical = lightgbm, categorical
        self.model: Any = None
        self.parameters = {
            "objective": "regression",
            "learning_rate": 0.05,
            "num_leaves": 63,
            "bagging_fraction": 0.8,
            "bagging_freq": 1,
            "feature_fraction": 0.8,
            "num_threads": 1,
            "verbose": -1,
            "seed": 0,
        }

    def learn(self, X: np.ndarray, y: np.ndarray, trees: int) -> None:
        """Fit these rows; the number of trees is not the given one."""
        start = len(y) - len(y) // 10
        stopping = self.library.early_stopping(self.patience, verbose=False)
        whole, part, rest = (self._rows(X[rows], y[rows]) for rows in _parts(start))
        tried = self.library.train(
            self.parameters, part, self.most, valid_sets=[rest], callbacks=[stopping]
        )
        self.model = self.library.train(self.parameters, whole, tried.best_iteration)

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Predict with the fitted trees."""
        return np.asarray(self.model.predict(X, num_threads=1))

    def _rows(self, X: np.ndarray, y: np.ndarray) -> Any:
        # a set for early stopping takes the bins of its own rows
        return self.library.Dataset(
            X, y, categorical_feature=self.categorical, params=self.parameters, free_raw_data=False
        )


def _parts(start: int) -> tuple[slice, slice, slice]:
    return slice(None), slice(start), slice(start, None)


class CatBoost:
    """Boosted trees of CatBoost: 1,000 of them, its default."""

    def __init__(self, categorical: list[int]) -> None:
        import catboost

        self.library, self.categorical = catboost, categorical
        quiet = {"verbose": False, "allow_writing_files": False}
        self.model = catboost.CatBoostRegressor(thread_count=1, random_seed=0, **quiet)

    def learn(self, X: np.ndarray, y: np.ndarray, trees: int) -> None:
        """Fit these rows; the number of trees is not the given one."""
        self.model.fit(self.library.Pool(self._features(X), y, thread_count=1))

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Predict with the fitted trees."""
        return np.asarray(self.model.predict(self._features(X), thread_count=1))

    def _features(self, X: np.ndarray) -> Any:
        numbers = [j for j in range(X.shape[1]) if j not in self.categorical]
        codes = X[:, self.categorical].astype(np.int64).astype(bytes).astype(object)
        return self.library.FeaturesData(
            num_feature_data=np.ascontiguousarray(X[:, numbers], np.float32) if numbers else None,
            cat_feature_data=codes if self.categorical else None,
        )


class XGBoost:
    """Boosted trees of XGBoost; learning adds to the existing trees."""

    def __init__(self, categorical: list[int], **parameters: Any) -> None:
        import xgboost

        self.library, self.categorical = xgboost, set(categorical)
        self.parameters = {"objective": "reg:squarederror", "nthread": 1, **parameters}
        self.model: Any = None

    def learn(self, X: np.ndarray, y: np.ndarray, trees: int) -> None:
        """Add trees fitted to these rows."""
        rows = self._rows(X, y)
        self.model = self.library.train(self.parameters, rows, trees, xgb_model=self.model)

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Predict with all trees so far."""
        return np.asarray(self.model.predict(self._rows(X)))

    def _rows(self, X: np.ndarray, y: np.ndarray | None = None) -> Any:
        types = ["c" if j in self.categorical else "q" for j in range(X.shape[1])]
        return self.library.DMatrix(X, y, feature_types=types, enable_categorical=True, nthread=1)


New = Callable[[list[int]], LightGBM | TunedLightGBM | CatBoost | XGBoost]


def batch(new: New, data: Data, limit: float) -> Run:
    """Fit the whole first half and predict the second."""
    return refitted(new, data, limit, times=1)


def refitted(new: New, data: Data, limit: float, times: int = REFITS) -> Run:
    """Fit all rows seen so far from scratch, `times` times over the second half."""
    X, y = data.matrix(), data.y
    marks = np.linspace(len(y) // 2, len(y), times + 1).astype(int)
    predictions, clock = np.zeros(len(y)), Clock()
    for first, end in pairwise(marks.tolist()):
        model = new(data.categorical)
        with clock:
            model.learn(X[:first], y[:first], TREES)
            predictions[first:end] = model.predict(X[first:end])
        if clock.cpu > limit:
            raise TimeoutError(f"exceeded {limit:g} s after {end} of {len(y)} rows")
    return Run(predictions, clock.seconds, len(y), cpu=clock.cpu)


def chunked(new: New, trees: int, data: Data, limit: float) -> Run:
    """Predict a chunk, then add trees fitted to it; predict 0 for the first chunk."""
    X, y = data.matrix(), data.y
    predictions = np.zeros(len(y))
    model, clock, done = new(data.categorical), Clock(), 0
    for part in blocks(len(y), CHUNK):
        with clock:
            if part.start:
                predictions[part] = model.predict(X[part])
            model.learn(X[part], y[part], trees)
        done = part.stop
        if clock.cpu > limit:
            break
    return Run(predictions[:done], clock.seconds, done, cpu=clock.cpu)
