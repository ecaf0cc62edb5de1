"""The methods: each predicts every row before it learns it."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from benchmarks.accuracy.stream import Clock, blocks
from benchmarks.drift.streams import Stream
from spanboost import AutoBoost

BLOCK = 1_000
LIMIT = 600.0  # seconds of processor time after which a library stops
OURS = ("fast", "default", "thorough")
CAPYMOA = {
    "capymoa arf": ("AdaptiveRandomForestClassifier", "AdaptiveRandomForestRegressor"),
    "capymoa srp": ("StreamingRandomPatches", None),
    "capymoa sgbt": ("StreamingGradientBoostedTrees", "StreamingGradientBoostedRegression"),
}
RIVER = ("river arf", "river srp")
ESTIMATOR = "spanboost river"  # the estimator for River, without past labels
METHODS = (*OURS, ESTIMATOR, *CAPYMOA, *RIVER)


class Run(NamedTuple):
    """The predictions, as classes or numbers, and the time that they took."""

    predictions: np.ndarray
    cpu: float


def run(method: str, stream: Stream, seed: int) -> Run | None:
    """Run a method on a stream; None if the library has no such method for numbers."""
    if method in OURS:
        return _ours(method, stream, seed)
    step = (_capymoa if method in CAPYMOA else _river)(method, stream, seed)
    return None if step is None else _one_by_one(step, len(stream.y))


def _ours(budget: str, stream: Stream, seed: int) -> Run:
    classes = stream.classes
    loss = {0: "squared", 2: "logistic"}.get(classes, "softmax")
    model, clock, answers = AutoBoost(loss, budget=budget, seed=seed), Clock(), []
    model.threads = 1
    y = 2 * stream.y - 1 if classes == 2 else stream.y.astype(int) if classes else stream.y
    with clock:
        for part in blocks(len(y), BLOCK):
            found = model.learn_many(stream.X[part], y[part])
            if classes > 2:
                found = np.pad(found, ((0, 0), (0, classes - found.shape[1])))
            answers.append(found)
    joined = np.concatenate(answers)
    if classes:
        joined = joined.argmax(axis=1) if classes > 2 else (joined > 0).astype(int)
    return Run(joined, clock.cpu)


def _capymoa(method: str, stream: Stream, seed: int) -> Callable[[int], Any] | None:
    """Return the step for row t, with the default settings of CapyMOA."""
    from capymoa import classifier, regressor
    from capymoa.core import LabeledInstance, RegressionInstance
    from capymoa.stream import Schema

    name = CAPYMOA[method][0 if stream.classes else 1]
    if name is None:
        return None
    columns = [f"x{j}" for j in range(stream.X.shape[1])]
    values = {"label": [str(c) for c in range(stream.classes)]} if stream.classes else {}
    schema = Schema.from_custom(
        features=[*columns, "label"], target="label", categories=values, name="stream"
    )
    module = classifier if stream.classes else regressor
    model = getattr(module, name)(schema=schema, random_seed=seed + 1)
    X = stream.X.astype(float)

    def step(t: int) -> Any:
        if stream.classes:
            row: Any = LabeledInstance.from_array(schema, X[t], int(stream.y[t]))
        else:
            row = RegressionInstance.from_array(schema, X[t], float(stream.y[t]))
        answer = model.predict(row)
        model.train(row)
        return answer

    return step


def _river(method: str, stream: Stream, seed: int) -> Callable[[int], Any]:
    """Return the step for row t, with the default settings of River, or of our estimators."""
    from river import ensemble, forest

    from spanboost.river import BoostingClassifier, BoostingRegressor

    makers = {
        ("river arf", True): lambda: forest.ARFClassifier(seed=seed),
        ("river arf", False): lambda: forest.ARFRegressor(seed=seed),
        ("river srp", True): lambda: ensemble.SRPClassifier(seed=seed),
        ("river srp", False): lambda: ensemble.SRPRegressor(seed=seed),
        (ESTIMATOR, True): lambda: BoostingClassifier(seed=seed),
        (ESTIMATOR, False): lambda: BoostingRegressor(seed=seed),
    }
    model: Any = makers[method, stream.classes > 0]()
    X, y = stream.X.tolist(), stream.y.tolist()
    names = [f"x{j}" for j in range(stream.X.shape[1])]

    def step(t: int) -> Any:
        row, label = dict(zip(names, X[t], strict=True)), int(y[t]) if stream.classes else y[t]
        answer = model.predict_one(row)
        model.learn_one(row, label)
        return answer

    return step


def _one_by_one(step: Callable[[int], Any], rows: int) -> Run | None:
    """Process all rows; None if that takes longer than the limit."""
    answers: list[float] = []
    clock = Clock()
    for part in blocks(rows):
        with clock:
            found = [step(t) for t in range(part.start, part.stop)]
        answers += [-1.0 if answer is None else float(answer) for answer in found]
        if clock.cpu > LIMIT:
            return None
    return Run(np.array(answers), clock.cpu)
