"""The metrics of models for several classes, which predict a score for each class."""

from typing import Any, NamedTuple

import numpy as np

from spanboost.analysis.metrics.calibration import Reliability, new_reliability
from spanboost.analysis.metrics.class_counts import NO_CLASS, ClassCounts, new_class_counts
from spanboost.analysis.metrics.log_loss import LogLoss, new_log_loss
from spanboost.analysis.metrics.states import merge_states
from spanboost.compiling.arrays import Array
from spanboost.models.widening import ABSENT


class ClassMetrics(NamedTuple):
    """The state of the metrics.

    A record is the label, the class with the highest score, the probability of that class, and the
    log-loss. If the scores of all classes so far are equal, as before the first label, the class is
    NO_CLASS.
    """

    classes: ClassCounts
    log_loss: LogLoss
    reliability: Reliability

    @property
    def columns(self) -> int:
        """How many numbers a record has."""
        return 4

    def grown(self, K: int) -> "ClassMetrics":
        """Return the metrics with room for at least K classes."""
        return self._replace(classes=self.classes.grown(K))

    def merge(self, other: "ClassMetrics") -> "ClassMetrics":
        """Return the metrics of all rows; one may have more classes than the other."""
        K = max(len(self.classes.hits), len(other.classes.hits))
        pairs = zip(self.grown(K), other.grown(K), strict=True)
        return ClassMetrics(*(merge_states(one, two) for one, two in pairs))

    def record(self, y: Any, predictions: Array) -> Array:
        """Return the records of rows, [rows, columns]."""
        labels = np.asarray(y, np.int64)
        scores = predictions - predictions.max(axis=1, keepdims=True)
        logs = np.log(np.exp(scores).sum(axis=1))
        own = scores[np.arange(len(labels)), labels]
        best = scores == 0  # the highest score is 0 now
        equal = (best | (scores < ABSENT / 2)).all(axis=1) & (best.sum(axis=1) > 1)
        predicted = np.where(equal, NO_CLASS, scores.argmax(axis=1))
        return np.column_stack([labels, predicted, np.exp(-logs), logs - own])

    def add(self, weights: Array, records: Array) -> None:
        """Add rows."""
        labels, predicted = records[:, :2].astype(np.int64).T
        self.classes.add(weights, labels, predicted)
        self.reliability.add(weights, records[:, 2], labels == predicted)
        self.log_loss.add(weights, records[:, 3])

    def results(self) -> dict[str, Any]:
        """Return the metrics by name."""
        return {
            "accuracy": self.classes.accuracy(),
            "log_loss": self.log_loss.mean(),
            "macro_f1": self.classes.macro_f1(),
            "kappa": self.classes.kappa(),
            "calibration_error": self.reliability.error(),
        }


def new_class_metrics(K: int) -> ClassMetrics:
    """Return the metrics of no rows, for K classes."""
    return ClassMetrics(new_class_counts(K), new_log_loss(), new_reliability())
