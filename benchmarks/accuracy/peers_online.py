"""River and CapyMOA, row by row: predicted, then learned, with their defaults.

Categories are given one-hot: River's regression trees have linear models in their leaves, which
refuse strings, and the trees of MOA that CapyMOA's regressors grow pass over nominal attributes.
"""

from typing import Any

from benchmarks.accuracy.datasets import SEED, Data
from benchmarks.accuracy.stream import Run, one_by_one


def river(kind: str, data: Data, limit: float) -> Run:
    """A regressor of River on dictionaries made beforehand."""
    from river import ensemble, forest, tree

    makers = {
        "hoeffding": tree.HoeffdingTreeRegressor,
        "arf": lambda: forest.ARFRegressor(seed=SEED),
        "srp": lambda: ensemble.SRPRegressor(seed=SEED),
    }
    model = makers[kind]()
    names, X = data.one_hot()

    def make(part: slice) -> list[Any]:
        rows = (dict(zip(names, x, strict=True)) for x in X[part].tolist())
        return list(zip(rows, data.y[part].tolist(), strict=True))

    def step(example: Any) -> float | None:
        answer = model.predict_one(example[0])
        model.learn_one(*example)
        return answer

    return one_by_one(len(data.y), make, step, limit)


def capymoa(kind: str, data: Data, limit: float) -> Run:
    """A regressor of CapyMOA on instances made beforehand."""
    from capymoa import regressor
    from capymoa.stream import NumpyStream

    makers = {
        "sgbr": regressor.StreamingGradientBoostedRegression,
        "soknl": regressor.SOKNL,
        "arf": regressor.AdaptiveRandomForestRegressor,
    }
    _, X = data.one_hot()
    stream = NumpyStream(X.astype(float), data.y, target_type="numeric")
    model = makers[kind](schema=stream.get_schema(), random_seed=SEED + 1)  # its default

    def make(part: slice) -> list[Any]:
        return [stream.next_instance() for _ in range(part.start, part.stop)]

    def step(instance: Any) -> float | None:
        answer = model.predict(instance)
        model.train(instance)
        return answer

    return one_by_one(len(data.y), make, step, limit)
