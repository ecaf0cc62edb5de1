"""Predictions in the words of the data: numbers, or labels with their probabilities."""

from typing import Any

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.data.target import BinaryTarget, Target
from spanboost.losses import Logistic, Softmax, predicts_scores
from spanboost.models.model import Model


def prediction_table(model: Model, answers: Array, *, learning: bool = False) -> Any:
    """Predictions as columns: a number; or the likelier label, and how probable labels are.

    While it is learning, classes may not have their names yet: only that of the likeliest is given.
    """
    import pyarrow as pa

    if isinstance(model.loss_, Softmax):
        names = class_names(model)
        shares = np.exp(answers - answers.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        best = {"prediction": pa.array([names[k] for k in answers.argmax(axis=1)], pa.string())}
        if learning:
            return pa.table(best | {"probability": shares.max(axis=1)})
        each = {f"probability_{name}": shares[:, k] for k, name in enumerate(names)}
        return pa.table(best | each)
    if not predicts_scores(model.loss_):
        return pa.table({"prediction": answers})
    negative, positive = class_names(model)
    columns: dict[str, Any] = {"prediction": np.where(answers > 0, positive, negative)}
    if isinstance(model.loss_, Logistic):
        with np.errstate(over="ignore"):
            return pa.table(columns | {"probability": 1 / (1 + np.exp(-answers))})
    return pa.table(columns | {"score": answers})


def class_names(model: Model) -> list[str]:
    """The labels of a model of classes, in their order."""
    target: Target = model.schema.target
    if isinstance(model.loss_, Softmax):
        return _filled(target.values, model.loss_.d)
    return list(_two(target))


def _filled(values: list[str], classes: int) -> list[str]:
    """The names of all classes; one that has not been met has none."""
    known = [*values]  # at once: a service meets more of them while it predicts
    return known + [f"unseen {k}" for k in range(len(known), classes)]


def _two(target: Target) -> tuple[str, str]:
    """The labels that are -1 and +1."""
    if isinstance(target, BinaryTarget) and target.positive is not None:
        return f"not {target.positive}", target.positive
    if set(target.values) <= {"-1", "0", "1"}:
        return ("0" if "0" in target.values else "-1"), "1"
    negative, positive = _filled(target.values, 2)
    return negative, positive
