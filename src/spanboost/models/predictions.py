"""Predictions as tables: numbers, or labels with their probabilities."""

from typing import Any

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.data.target import BinaryTarget, ClassTarget, Target
from spanboost.losses import Logistic, Softmax, predicts_scores
from spanboost.models.model import Model

_SIGNS = {"-1", "0", "1"}  # labels whose meaning is known before both have appeared


def prediction_table(model: Model, answers: Array) -> Any:
    """Return predictions as a table: numbers, or classes and probabilities.

    For classes, it has the most probable class in the column "prediction" and a column "p_NAME"
    with the probability of each class. For hinge loss, it has the score of the second class.
    A model that adds classes as they appear has only the classes so far; before the first label,
    the prediction is null.
    """
    import pyarrow as pa

    if not predicts_scores(model.loss_):
        return pa.table({"prediction": answers})
    scores = answers if answers.ndim > 1 else np.column_stack([np.zeros_like(answers), answers])
    if not has_chances(model):
        best = _best_classes(class_names(model), scores)
        return pa.table({"prediction": best, "score": answers})
    known = {k: name for k, name in _known_outputs(model).items() if k < scores.shape[1]}
    if not known:
        return pa.table({"prediction": pa.nulls(len(scores), pa.string())})
    names, scores = [*known.values()], scores[:, [*known]]
    shares = probabilities(scores)
    each = {f"p_{name}": shares[:, k] for k, name in enumerate(names)}
    return pa.table({"prediction": _best_classes(names, scores)} | each)


def has_chances(model: Model) -> bool:
    """Return whether a model predicts the probability of each class."""
    return isinstance(model.loss_, Logistic | Softmax)


def _best_classes(names: list[str], scores: Array) -> Any:
    import pyarrow as pa

    return pa.array([names[k] for k in scores.argmax(axis=1)], pa.string())


def probabilities(scores: Array) -> Array:
    """Return probabilities [rows, classes] from log-odds of the second class or scores of all."""
    if scores.ndim == 1:
        scores = np.column_stack([np.zeros_like(scores), scores])
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def class_names(model: Model) -> list[str]:
    """Return the labels of a classification model, in the order of its classes."""
    target: Target = model.schema.target
    if isinstance(model.loss_, Softmax):
        return _all_class_names(target.values, model.loss_.d)
    return list(binary_labels(target))


def known_classes(model: Model) -> list[str]:
    """Return the labels of the classes, without outputs for classes that may appear later."""
    return [*_known_outputs(model).values()]


def _known_outputs(model: Model) -> dict[int, str]:
    """Return the labels of the classes so far, by the numbers of their outputs."""
    target: Target = model.schema.target
    if isinstance(target, ClassTarget) and target.classes is None:
        return dict(enumerate([*target.values]))  # a copy: a service may add classes meanwhile
    if not isinstance(target, BinaryTarget) or target.positive is not None:
        return dict(enumerate(class_names(model)))
    affirmed, values = target.affirmed, [*target.values]
    if not values:
        return {}
    if len(values) == 1 and values[0] not in _SIGNS:
        return {int(affirmed): values[0]}
    return dict(enumerate(_binary_names(values, affirmed)))


def _all_class_names(values: list[str], classes: int) -> list[str]:
    """Return the names of all classes; a class that was not seen yet is "unseen" and its number."""
    known = [*values]  # a copy: a service may add classes while it predicts
    return known + [f"unseen {k}" for k in range(len(known), classes)]


def binary_labels(target: Target) -> tuple[str, str]:
    """Return the labels that stand for -1 and +1."""
    affirmed = isinstance(target, BinaryTarget) and target.affirmed
    values = [*target.values]  # read once: a service may add a label meanwhile
    if isinstance(target, BinaryTarget) and target.positive is not None:
        return (values[0] if len(values) == 1 else f"not {target.positive}"), target.positive
    return _binary_names(values, affirmed)


def _binary_names(values: list[str], affirmed: bool) -> tuple[str, str]:
    """Return the labels that stand for -1 and +1, given those so far.

    affirmed: whether a single label stands for +1. A second label withdraws that after it is in the
        list, so readers take it before the list.
    """
    if set(values) <= _SIGNS:
        return ("0" if "0" in values else "-1"), "1"
    negative, positive = _all_class_names(values, 2)
    return ("unseen 0", negative) if affirmed and len(values) == 1 else (negative, positive)
