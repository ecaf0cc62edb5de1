"""Accuracy, F1, Cohen's kappa and confusion counts: the metrics of predicted classes."""

from typing import NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array

MOST_CLASSES = 100  # with more classes there are no confusion counts: they grow quadratically
NO_CLASS = -1  # the prediction of a row whose scores do not prefer a class: always wrong


class ClassCounts(NamedTuple):
    """Summed weights of the rows of each class."""

    hits: Array  # [K] rows of the class that were predicted as it
    labels: Array  # [K] rows of the class
    predictions: Array  # [K] rows predicted as the class
    confusion: Array  # [K, K] by label and prediction; [0, 0] for many classes

    def add(self, weights: Array, labels: Array, predictions: Array) -> None:
        """Add rows with these class numbers; a prediction may be NO_CLASS."""
        hit = labels == predictions
        # `add.at` adds row by row, so the sums do not depend on how rows are grouped in blocks
        np.add.at(self.hits, labels[hit], weights[hit])
        np.add.at(self.labels, labels, weights)
        one = predictions != NO_CLASS
        np.add.at(self.predictions, predictions[one], weights[one])
        if len(self.confusion):
            np.add.at(self.confusion, (labels[one], predictions[one]), weights[one])

    def grown(self, K: int) -> "ClassCounts":
        """Return the counts with room for at least K classes."""
        more = K - len(self.hits)
        if more <= 0:
            return self
        few = K <= MOST_CLASSES
        confusion = np.pad(self.confusion, (0, more)) if few else np.zeros((0, 0))
        hits, labels, predictions = (np.pad(one, (0, more)) for one in self[:3])
        return ClassCounts(hits, labels, predictions, confusion)

    @property
    def weight(self) -> float:
        """The summed weights of all rows."""
        return float(self.labels.sum())

    def accuracy(self) -> float | None:
        """Return the share of rows whose class was predicted; None without rows."""
        return float(self.hits.sum()) / self.weight if self.weight > 0 else None

    def f1(self, k: int) -> float | None:
        """Return the harmonic mean of precision and recall of class k.

        It is None if the class was neither a label nor a prediction.
        """
        both = float(self.labels[k] + self.predictions[k])
        return 2 * float(self.hits[k]) / both if both > 0 else None

    def macro_f1(self) -> float | None:
        """Return the mean F1 of the classes that occurred as a label or a prediction."""
        each = [value for k in range(len(self.hits)) if (value := self.f1(k)) is not None]
        return sum(each) / len(each) if each else None

    def kappa(self) -> float | None:
        """Return Cohen's kappa: the accuracy compared with that of chance.

        1 is perfect, and 0 is a prediction that does not depend on the row. It is None if all
        labels and predictions are of one class.
        """
        weight = self.weight
        if weight == 0:
            return None
        chance = float((self.labels / weight) @ (self.predictions / weight))
        accuracy = float(self.hits.sum()) / weight
        return (accuracy - chance) / (1 - chance) if chance < 1 else None


def new_class_counts(K: int) -> ClassCounts:
    """Return the counts of no rows, for K classes."""
    size = K if K <= MOST_CLASSES else 0
    return ClassCounts(np.zeros(K), np.zeros(K), np.zeros(K), np.zeros((size, size)))
