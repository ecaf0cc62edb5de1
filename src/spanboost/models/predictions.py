"""Predictions as tables: numbers, or labels with their probabilities."""

from typing import Any

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.data.target import BinaryTarget, Target
from spanboost.losses import Logistic, Softmax, predicts_scores
from spanboost.models.model import Model


def prediction_table(model: Model, answers: Array, *, learning: bool = False) -> Any:
    """Return predictions as a table: numbers, or the most probable label and the probabilities.

    learning: the model is still learning, so the names of some classes may be unknown. The table
        then has only the most probable class and its probability.
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
    """Return the labels of a classification model, in the order of its classes."""
    target: Target = model.schema.target
    if isinstance(model.loss_, Softmax):
        return _all_class_names(target.values, model.loss_.d)
    return list(_binary_labels(target))


def _all_class_names(values: list[str], classes: int) -> list[str]:
    """Return the names of all classes; a class that was not seen yet is "unseen" and its number."""
    known = [*values]  # a copy: a service may add classes while it predicts
    return known + [f"unseen {k}" for k in range(len(known), classes)]


def _binary_labels(target: Target) -> tuple[str, str]:
    """Return the labels that stand for -1 and +1."""
    if isinstance(target, BinaryTarget) and target.positive is not None:
        return f"not {target.positive}", target.positive
    if set(target.values) <= {"-1", "0", "1"}:
        return ("0" if "0" in target.values else "-1"), "1"
    negative, positive = _all_class_names(target.values, 2)
    return negative, positive
