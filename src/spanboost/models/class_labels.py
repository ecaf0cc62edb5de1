"""The classes of a scikit-learn classifier: their codes, their order and their weights."""

from typing import Any, Self

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.losses import Hinge, Logistic, Softmax
from spanboost.models.class_table import ClassTable
from spanboost.models.class_weights import ClassWeights
from spanboost.models.estimators import class_codes, named_loss

LOSSES = {"log_loss": None, "hinge": Hinge()}  # None: by the number of classes


class ClassLabels:
    """The labels of a classifier.

    classes: the labels, sorted.
    table: the labels in order of appearance, if classes are added as they appear; else None.
    weights: the weights of classes, with their frequencies so far.
    """

    def __init__(self, class_weight: Any, classes: Any = None) -> None:
        """Start without rows; `classes` are all classes, None if they are not known."""
        self.weights = ClassWeights(class_weight)
        self.table = ClassTable() if classes is None else None
        self.classes: Array = np.zeros(0) if classes is None else np.unique(classes)

    def state(self) -> dict[str, Any]:
        """Return the classes and their frequencies as plain values."""
        table = None if self.table is None else self.table.labels
        return {"classes": self.classes, "table": table, "counts": self.weights.counts}

    @classmethod
    def restore(cls, class_weight: Any, state: dict[str, Any]) -> Self:
        """Return the labels of a state."""
        labels = cls(class_weight, None if state["table"] is not None else state["classes"])
        labels.weights = ClassWeights(class_weight, state["counts"])
        labels.classes = state["classes"]
        if labels.table is not None:
            labels.table.add(state["table"])
        return labels

    def numbered(self) -> list[Any]:
        """Return the labels in the order of the numbers that the model learns."""
        return self.classes.tolist() if self.table is None else [*self.table.labels]

    def encode(self, y: Array) -> Array:
        """Return labels as the model learns them."""
        if self.table is not None:
            return np.array(self.table.encode(y.tolist()))
        return class_codes(self.classes, y)

    def add(self, y: Array) -> None:
        """Count labels that were learned."""
        labels = y.tolist()
        self.weights.add(labels)
        if self.table is not None:
            self.table.add(labels)
            self.classes = np.unique(np.array(self.table.labels))

    def in_order(self, scores: Array) -> Array:
        """Return the scores of the classes in the order of `classes`; for two, of the second."""
        table = self.table
        return scores if table is None else table.select(scores, self.classes.tolist())

    def columns(self, values: Array) -> Array:
        """Return values of the classes [rows, classes] in the order of `classes`."""
        return values if self.table is None else values[:, self.table.encode(self.classes.tolist())]

    def most_probable(self, scores: Array) -> Array:
        """Return the class with the largest score of each row, given scores in order."""
        best = scores.argmax(axis=1) if scores.ndim > 1 else (scores > 0).astype(int)
        return np.asarray(self.classes[best])

    def loss(self, name: Any) -> Any:
        """Return the loss of this name for these classes."""
        loss = named_loss(name, LOSSES)
        if self.table is not None:
            if loss is not None:
                raise ValueError(f"loss={name!r} needs classes in the first partial_fit")
            return "softmax"
        number = len(self.classes)
        if loss is not None and number > 2:
            raise ValueError(f"loss={name!r} supports two classes only (got {number})")
        return loss or (Logistic() if number == 2 else Softmax(number))
