"""Weights of classes: given for each class, or such that all classes count equally."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from spanboost.compiling.arrays import Array

BALANCED = "balanced"


class ClassWeights:
    """Weights of rows by their class.

    weights: None gives all rows the weight 1. "balanced" gives a row of class c the weight
        n / (K n_c), where n_c of the n rows so far, the row included, are of class c, and K is the
        number of classes so far. A dictionary has the weight of each label; other labels have
        weight 1.
    counts: how many rows of each label were learned before.

    >>> weights = ClassWeights("balanced")
    >>> weights.of(["a", "a", "a", "b"])  # the fourth row: n = 4, K = 2, n_b = 1
    array([1., 1., 1., 2.])
    """

    def __init__(self, weights: Any, counts: Mapping[Any, int] | None = None) -> None:
        weights = {} if weights is None else weights
        if not (weights == BALANCED or (isinstance(weights, Mapping) and _are_weights(weights))):
            raise ValueError(
                "class_weight must be None, 'balanced' or a dictionary of weights of at least 0 "
                f"(got {weights!r:.60})"
            )
        self._weights, self.counts = weights, dict(counts or {})

    def of(self, labels: list[Any]) -> Array:
        """Return the weights of rows that are learned next; nothing changes."""
        if self._weights != BALANCED:
            return np.array([self._weights.get(label, 1.0) for label in labels], np.float64)
        counts, rows, weights = dict(self.counts), sum(self.counts.values()), np.ones(len(labels))
        for t, label in enumerate(labels):
            counts[label] = counts.get(label, 0) + 1
            weights[t] = (rows + t + 1) / (len(counts) * counts[label])
        return weights

    def add(self, labels: Iterable[Any]) -> None:
        """Count the labels of rows that were learned."""
        for label in labels:
            self.counts[label] = self.counts.get(label, 0) + 1


def whole_weights(weights: Any, y: Array) -> Array:
    """Return the weights of all rows of a data set: "balanced" counts all of its labels."""
    if weights != BALANCED:
        return ClassWeights(weights).of(y.tolist())
    _, classes, counts = np.unique(y, return_inverse=True, return_counts=True)
    return np.asarray(len(y) / (len(counts) * counts[classes]))


def refuse_unknown_classes(weights: Any, classes: Iterable[Any]) -> None:
    """Raise a ValueError if the weights name an unknown class, but not all that there are.

    Weights of all classes may have more of them: y may be a part of the data that lacks a class.
    """
    known = dict.fromkeys(classes)  # a set in order
    given = weights if isinstance(weights, Mapping) else ()
    unknown = [label for label in given if label not in known]
    if unknown and any(label not in given for label in known):
        names = ", ".join(map(repr, list(known)[:10])) + ", ..." * (len(known) > 10)
        raise ValueError(
            f"class_weight has the class {unknown[0]!r:.40}, which is not in y (classes: {names})"
        )


def _are_weights(weights: Mapping[Any, Any]) -> bool:
    numbers = list(weights.values())
    return all(isinstance(one, int | float) and 0 <= one < np.inf for one in numbers)
