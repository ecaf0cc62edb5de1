"""River and CapyMOA with default settings, predicting and then learning row by row.

Categories are one-hot encoded, except for SGBR, which gets nominal attributes. River's regression
trees have linear models in their leaves, which reject strings. The trees of SOKNL and ARF-Reg
ignore nominal attributes: if such an attribute alone determines the label, their error is still the
variance.
"""

from typing import Any

from benchmarks.accuracy.datasets import SEED, Data
from benchmarks.accuracy.stream import Run, one_by_one


def river(kind: str, data: Data, limit: float) -> Run:
    """Run a River regressor on dictionaries prepared in advance."""
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
    """Run a CapyMOA regressor on instances prepared in advance."""
    from capymoa import regressor
    from capymoa.core import RegressionInstance
    from capymoa.stream import Schema

    makers = {
        "sgbr": regressor.StreamingGradientBoostedRegression,
        "soknl": regressor.SOKNL,
        "arf": regressor.AdaptiveRandomForestRegressor,
    }
    names, X = data.one_hot()
    nominal = {}
    if kind == "sgbr":
        names, X = [column.name for column in data.columns], data.matrix()
        nominal = {names[j]: list(data.columns[j].categories or ()) for j in data.categorical}
    schema = Schema.from_custom(
        features=[*names, "label"], target="label", categories=nominal, name="stream"
    )
    model = makers[kind](schema=schema)  # with its default random seed
    X = X.astype(float)

    def make(part: slice) -> list[Any]:
        given = zip(X[part], data.y[part].tolist(), strict=True)
        return [RegressionInstance.from_array(schema, x, y) for x, y in given]

    def step(instance: Any) -> float | None:
        answer = model.predict(instance)
        model.train(instance)
        return answer

    return one_by_one(len(data.y), make, step, limit)
