"""The methods that are compared. Each returns [rows, coverages, 2] intervals of a data set."""

from collections.abc import Callable
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from benchmarks.accuracy.datasets import Data
from spanboost import AutoBoost, Intervals
from spanboost.models.quantiles.asked_levels import interval_levels

COVERAGES = (0.8, 0.9, 0.95)
WINDOW = 1000  # residuals that River's wrapper keeps


def spanboost_intervals(data: Data) -> np.ndarray:
    """Return intervals of spanboost, each made before its label is learned."""
    levels = [level for one in COVERAGES for level in interval_levels(one)]
    found = Intervals(AutoBoost()).learn_quantiles(data.rows(), data.y, levels)
    return found.reshape(-1, len(COVERAGES), 2)


def lightgbm_intervals(data: Data) -> np.ndarray:
    """Return intervals of conformalised quantile regression; those of the first half are NaN."""
    import lightgbm

    X, y, half = data.matrix(), data.y, len(data.y) // 2
    fitted, found = half - half // 10, np.full((len(y), len(COVERAGES), 2), np.nan)
    for k, coverage in enumerate(COVERAGES):
        ends = []
        for level in interval_levels(coverage):
            model = lightgbm.LGBMRegressor(objective="quantile", alpha=level, verbose=-1, n_jobs=1)
            model.fit(X[:fitted], y[:fitted], categorical_feature=data.categorical)
            ends.append(model.predict(X[fitted:]))
        low, high = np.sort(ends, axis=0)  # quantiles may cross
        size = half - fitted
        scores = np.maximum(low[:size] - y[fitted:half], y[fitted:half] - high[:size])
        share = min(1.0, np.ceil((size + 1) * coverage) / size)
        margin = np.quantile(scores, share, method="higher")
        found[half:, k] = np.column_stack([low[size:] - margin, high[size:] + margin])
    return found


def river_intervals(data: Data) -> np.ndarray:
    """Return intervals of River's wrapper around a forest; one wrapper for each coverage."""
    from river import conf, forest

    names, matrix = data.one_hot()
    model = forest.ARFRegressor(seed=0)
    wrappers = [
        conf.RegressionJackknife(_Forecast(), confidence_level=one, window_size=WINDOW)
        for one in COVERAGES
    ]
    found = np.empty((len(data.y), len(COVERAGES), 2))
    for t, (values, label) in enumerate(zip(matrix.tolist(), data.y.tolist(), strict=True)):
        x = dict(zip(names, values, strict=True))
        forecast = {"forecast": model.predict_one(x) or 0.0}  # one forest for all wrappers
        for k, wrapper in enumerate(wrappers):
            interval = wrapper.predict_one(forecast, with_interval=True)
            found[t, k] = interval.lower, interval.upper
            wrapper.learn_one(forecast, label)
        model.learn_one(x, label)
    return found


class _Forecast:
    """A regressor whose forecast is a feature."""

    def predict_one(self, x: dict[str, float]) -> float:
        return x["forecast"]

    def learn_one(self, x: dict[str, float], y: float) -> None:
        pass


def mve_intervals(data: Data) -> np.ndarray:
    """Return intervals of CapyMOA's MVE around its default, an adaptive random forest.

    Both ends are a normal quantile times one standard deviation away from the forecast, so one run
    has the intervals of all coverages.
    """
    (ends,) = capymoa_intervals("MVE", data, COVERAGES[:1])
    middle, half = ends.mean(axis=1), np.diff(ends, axis=1)[:, 0] / 2
    normal = [NormalDist().inv_cdf(0.5 + one / 2) for one in COVERAGES]
    halves = np.outer(half, normal) / normal[0]
    return np.stack([middle[:, None] - halves, middle[:, None] + halves], axis=2)


def adapi_intervals(data: Data) -> np.ndarray:
    """Return intervals of CapyMOA's AdaPI around its default, an adaptive random forest."""
    return np.stack(capymoa_intervals("AdaPI", data, COVERAGES), axis=1)


def capymoa_intervals(kind: str, data: Data, coverages: tuple[float, ...]) -> list[np.ndarray]:
    """Return the intervals of a learner of CapyMOA, [rows, 2] for each coverage."""
    from capymoa import uncertainty
    from capymoa.core import RegressionInstance
    from capymoa.stream import Schema

    names, matrix = data.one_hot()
    schema = Schema.from_custom(
        features=[*names, "label"], target="label", categories={}, name="stream"
    )
    models = [getattr(uncertainty, kind)(schema=schema, confidence_level=one) for one in coverages]
    found = np.empty((len(models), len(data.y), 2))
    rows = zip(matrix.astype(float), data.y.tolist(), strict=True)
    for t, (values, label) in enumerate(rows):
        instance = RegressionInstance.from_array(schema, values, label)
        for k, model in enumerate(models):
            low, _, high = model.predict(instance)
            found[k, t] = low, high
            model.train(instance)
    return list(found)


class Method(NamedTuple):
    """A method and the packages whose versions are recorded with its results."""

    find: Callable[[Data], Any]
    packages: tuple[str, ...]


METHODS = {
    "spanboost": Method(spanboost_intervals, ("spanboost",)),
    "lightgbm": Method(lightgbm_intervals, ("lightgbm",)),
    "river": Method(river_intervals, ("river",)),
    "capymoa-mve": Method(mve_intervals, ("capymoa",)),
    "capymoa-adapi": Method(adapi_intervals, ("capymoa",)),
}
