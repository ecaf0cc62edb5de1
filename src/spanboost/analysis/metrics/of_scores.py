"""The metrics of models for two classes, which predict a score: positive for the second class."""

from typing import Any, NamedTuple

import numpy as np

from spanboost.analysis.metrics.calibration import Reliability, new_reliability
from spanboost.analysis.metrics.class_counts import ClassCounts, new_class_counts
from spanboost.analysis.metrics.log_loss import LogLoss, new_log_loss
from spanboost.analysis.metrics.ranking import ScoreHistogram, new_score_histogram
from spanboost.compiling.arrays import Array


class ScoreMetrics(NamedTuple):
    """The state of the metrics; a record is the label, 0 or 1, and the score of a row."""

    classes: ClassCounts
    ranking: ScoreHistogram

    @property
    def columns(self) -> int:
        """How many numbers a record has."""
        return 2

    def record(self, y: Any, predictions: Array) -> Array:
        """Return the records of rows, [rows, columns]."""
        return np.column_stack([np.asarray(y, np.float64) > 0, predictions])

    def add(self, weights: Array, records: Array) -> None:
        """Add rows."""
        positive, scores = records[:, 0] > 0, records[:, 1]
        self.classes.add(weights, positive.astype(np.int64), (scores > 0).astype(np.int64))
        self.ranking.add(weights, positive, scores)

    def results(self) -> dict[str, Any]:
        """Return the metrics by name."""
        return {
            "accuracy": self.classes.accuracy(),
            "roc_auc": self.ranking.auc(),
            "roc_auc_error": self.ranking.error(),
            "f1": self.classes.f1(1),
            "kappa": self.classes.kappa(),
        }


class LogOddsMetrics(NamedTuple):
    """The metrics of scores that are log-odds, which also tell the probability of the class."""

    scores: ScoreMetrics
    log_loss: LogLoss
    reliability: Reliability

    @property
    def columns(self) -> int:
        """How many numbers a record has."""
        return self.scores.columns

    @property
    def classes(self) -> ClassCounts:
        """The counts of the classes."""
        return self.scores.classes

    def record(self, y: Any, predictions: Array) -> Array:
        """Return the records of rows, [rows, columns]."""
        return self.scores.record(y, predictions)

    def add(self, weights: Array, records: Array) -> None:
        """Add rows."""
        self.scores.add(weights, records)
        positive, scores = records[:, 0] > 0, records[:, 1]
        self.log_loss.add(weights, np.logaddexp(0, np.where(positive, -scores, scores)))
        self.reliability.add(weights, 1 / (1 + np.exp(-scores)), positive)

    def results(self) -> dict[str, Any]:
        """Return the metrics by name."""
        found = self.scores.results() | {"calibration_error": self.reliability.error()}
        return {"accuracy": found.pop("accuracy"), "log_loss": self.log_loss.mean(), **found}


def new_score_metrics() -> ScoreMetrics:
    """Return the metrics of no rows."""
    return ScoreMetrics(new_class_counts(2), new_score_histogram())


def new_log_odds_metrics() -> LogOddsMetrics:
    """Return the metrics of no rows."""
    return LogOddsMetrics(new_score_metrics(), new_log_loss(), new_reliability())
