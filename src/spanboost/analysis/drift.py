"""Moments at which predictions become worse, found by a detector of River from losses alone."""

import math
from typing import Any

from spanboost.compiling.arrays import Array
from spanboost.errors import UserError
from spanboost.losses import degree, predicts_scores, resolve

WIDTH = 2.0  # mean deviations of labels, beyond which errors are all the same


class Drift:
    """A detector, "adwin" or "page-hinkley", over the errors of a stream's rows, in order.

    Detectors take numbers between 0 and 1. The error of a number is its distance from the label, as
    the loss tells it, over 2 mean absolute deviations of the labels so far: a unit that neither a
    single label nor what is learned can change by much. Of a class it is one minus the probability
    it was given. `moments` are the numbers of rows, counted from 1, after which errors were found
    to have risen; that they fall is what learning is for.

    >>> import numpy as np
    >>> from spanboost.analysis.drift import Drift
    >>> rng = np.random.default_rng(0)
    >>> drift = Drift("adwin", "squared")
    >>> errors = np.append(rng.normal(0, 0.1, 1000), rng.normal(0, 0.3, 1000))
    >>> drift.add(errors**2, rng.normal(0, 1, 2000))
    >>> len(drift.moments), 1000 < drift.moments[0] < 1200
    (1, True)
    """

    def __init__(self, detector: str, loss: Any) -> None:
        if detector not in ("adwin", "page-hinkley"):
            raise ValueError(f"{detector!r} is no detector: 'adwin' or 'page-hinkley'")
        try:
            from river import drift
        except ImportError:
            raise UserError("drift detectors need River: pip install 'spanboost[river]'") from None
        self.name, self._loss = detector, resolve(loss)
        self._classes = predicts_scores(self._loss)
        self._detector: Any = drift.ADWIN() if detector == "adwin" else drift.PageHinkley(mode="up")
        self._rows, self._mean, self._deviation = 0, 0.0, 0.0
        self.moments: list[int] = []

    def add(self, losses: Array, labels: Array) -> None:
        """Losses of further rows, and their labels."""
        for loss, label in zip(losses.tolist(), labels.tolist(), strict=True):
            self._rows += 1
            error = 1 - math.exp(-loss) if self._classes else self._distance(loss, label)
            if self._rises(error):
                self.moments.append(self._rows)

    def _distance(self, loss: float, label: float) -> float:
        self._mean += (label - self._mean) / self._rows
        self._deviation += (abs(label - self._mean) - self._deviation) / self._rows
        distance = loss ** (1 / degree(self._loss)) if loss < math.inf else math.inf
        unit = WIDTH * self._deviation
        return 0.0 if not unit > 0 else min(distance / unit, 1.0)

    def _rises(self, error: float) -> bool:
        if self.name == "page-hinkley":  # looks at rises only
            self._detector.update(error)
            return bool(self._detector.drift_detected)
        before = self._detector.estimation
        self._detector.update(error)
        return bool(self._detector.drift_detected and self._detector.estimation > before)
