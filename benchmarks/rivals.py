"""Speed compared with other libraries: Vowpal Wabbit and River."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks import common
from benchmarks.common import Stream, learner, race
from benchmarks.measure import Row, Setting, learn
from spanboost import SpanBoost


def boosting(setting: Setting) -> Iterator[Row]:
    """Compare boosted linear functions with Vowpal Wabbit's boosting."""
    for name in ("covtype", "a9a"):
        yield against_vw(setting, name, 32, ">= 15", "--boosting", "32")


def single(setting: Setting) -> Iterator[Row]:
    """Compare one linear function with Vowpal Wabbit's SGD."""
    for name in ("covtype", "a9a"):
        yield against_vw(setting, name, 1, ">= 1")


def against_vw(setting: Setting, name: str, n: int, must: str, *options: str) -> Row:
    """Measure rows per second, ours from memory and theirs from a binary cache file."""
    from benchmarks.vw import Vw

    stream = setting.stream(name)
    rows = len(stream.y)
    base = learner("linear")
    model = SpanBoost(base, n=n)
    model.learn_many(stream.X, stream.y)
    with TemporaryDirectory() as folder, TemporaryDirectory() as other:
        vw, empty = Vw(Path(folder), stream), Vw(Path(other), Stream(stream.X[:1], stream.y[:1]))
        ours, theirs, start, check, predict = race(
            setting.repeats,
            lambda: learn(base, n, stream),
            lambda: vw.run(*options),
            lambda: empty.run(*options),
            lambda: base.encode(stream.X, 1.0),
            lambda: model.predict_many(stream.X),
        )
        predictions = vw.predictions(*options)
    errors = [np.mean((p > 0) != (stream.y > 0)) for p in (ours.result, predictions)]
    return Row(
        f"linear n={n}, {name}, against VW {' '.join(options) or 'SGD'}",
        "rows/s",
        rows / ours.seconds,
        rows / theirs.seconds,
        must,
        f"error {errors[0]:.4f}, VW {errors[1]:.4f}; start-up is "
        f"{start.seconds / theirs.seconds:.1%} of VW's time; our time: "
        f"{check.seconds / ours.seconds:.0%} checking rows, "
        f"{(predict.seconds - check.seconds) / ours.seconds:.0%} predicting",
    )


def objects(setting: Setting) -> Iterator[Row]:
    """Compare boosting of compiled copies with boosting of River objects."""
    from river.linear_model import LinearRegression

    stream = common.generated(1000 if setting.quick else 10_000)
    as_dicts = Stream(dicts(stream.X), stream.y)
    ours, theirs = race(
        setting.repeats,
        lambda: learn(learner("linear"), 10, stream),
        lambda: learn(LinearRegression(), 10, as_dicts),
    )
    rows = len(stream.y)
    measure = "linear n=10, compiled, against River's linear model, n=10"
    note = "River's side is plain Python: N objects, each called with its own loss"
    yield Row(measure, "rows/s", rows / ours.seconds, rows / theirs.seconds, ">= 100", note)


def one_row(setting: Setting) -> Iterator[Row]:
    """Measure one row at a time, as a dictionary."""
    from river.linear_model import LinearRegression
    from river.preprocessing import StandardScaler

    stream = common.generated(1000 if setting.quick else 10_000)
    X, y = dicts(stream.X), stream.y.tolist()

    def run(model: Any) -> None:
        for x, label in zip(X, y, strict=True):
            model.predict_one(x)
            model.learn_one(x, label)

    ours, theirs = race(
        setting.repeats,
        lambda: run(SpanBoost(learner("linear"), n=16)),
        lambda: run(StandardScaler() | LinearRegression()),
    )
    us = 1e6 / len(y)
    measure = "linear n=16, learn_one + predict_one of a dict"
    yield Row(measure, "us/row", us * ours.seconds, None, "<= 10")
    yield Row(
        "linear n=16, learn_one + predict_one of a dict, against River's scaled linear model",
        "us/row",
        us * ours.seconds,
        us * theirs.seconds,
        "<= 1",
    )


def dicts(X: np.ndarray) -> list[dict[str, float]]:
    """Convert rows to dictionaries."""
    names = [f"feature{j}" for j in range(X.shape[1])]
    return [dict(zip(names, row, strict=True)) for row in X.tolist()]
