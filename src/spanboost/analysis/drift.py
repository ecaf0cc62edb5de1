"""Drift detection: find the rows after which predictions become worse, from their losses."""

from __future__ import annotations

import math
from typing import Any

from spanboost.compiling.arrays import Array
from spanboost.errors import UserError, did_you_mean, install_hint
from spanboost.losses import Loss, VectorLoss, degree, predicts_scores, resolve

WIDTH = 2.0  # errors of more mean deviations of the labels count as 1
SHOWN = 10  # moments in the text of a detector


class Drift:
    """A detector of River over the errors of a stream's rows, in order.

    detector: "adwin" or "page-hinkley".
    loss: the loss of the model, by name or as an object.

    `moments` are the row numbers, counted from 1, after which the detector found that errors had
    risen. Falling errors are not reported: learning lowers them.

    Detectors take numbers between 0 and 1. For numeric labels, the error is the distance between
    prediction and label, computed from the loss and divided by 2 mean absolute deviations of the
    labels so far; larger errors count as 1. Neither a single label nor learning changes that unit
    by much. For classes, the error is 1 minus the predicted probability of the label.

    >>> import numpy as np
    >>> from spanboost.analysis.drift import Drift
    >>> rng = np.random.default_rng(0)
    >>> drift = Drift("adwin", "squared")
    >>> errors = np.append(rng.normal(0, 0.1, 1000), rng.normal(0, 0.3, 1000))
    >>> drift.add(errors**2, rng.normal(0, 1, 2000))
    >>> len(drift.moments), 1000 < drift.moments[0] < 1200
    (1, True)
    """

    def __init__(self, detector: str, loss: str | Loss | VectorLoss) -> None:
        if detector not in ("adwin", "page-hinkley"):
            hint = did_you_mean(detector, ("adwin", "page-hinkley"))
            raise ValueError(f"detector must be 'adwin' or 'page-hinkley' (got {detector!r}){hint}")
        try:
            from river import drift
        except ImportError:
            raise UserError(f"drift detectors need River: {install_hint('river')}") from None
        self.name, self._loss = detector, resolve(loss)
        self._classes = predicts_scores(self._loss)
        self._detector: Any = drift.ADWIN() if detector == "adwin" else drift.PageHinkley(mode="up")
        self._rows, self._mean, self._deviation = 0, 0.0, 0.0
        self.moments: list[int] = []

    def __repr__(self) -> str:
        return f"<Drift: {self.name}, {self._rows:,} rows, {self._found()}>"

    def _found(self) -> str:
        """Return the rows after which errors had risen, as text."""
        if not self.moments:
            return "no drift found"
        last = ", ".join(f"{moment:,}" for moment in self.moments[-SHOWN:])
        more = len(self.moments) - SHOWN
        return f"drift found after rows {f'({more:,} earlier), ' if more > 0 else ''}{last}"

    def add(self, losses: Array, labels: Array) -> None:
        """Add the losses and labels of the next rows."""
        for loss, label in zip(losses.tolist(), labels.tolist(), strict=True):
            self._rows += 1
            error = 1 - math.exp(-loss) if self._classes else self._distance(loss, label)
            if self._detects_rise(error):
                self.moments.append(self._rows)

    def _distance(self, loss: float, label: float) -> float:
        self._mean += (label - self._mean) / self._rows
        self._deviation += (abs(label - self._mean) - self._deviation) / self._rows
        distance = loss ** (1 / degree(self._loss)) if loss < math.inf else math.inf
        unit = WIDTH * self._deviation
        return 0.0 if not unit > 0 else min(distance / unit, 1.0)

    def _detects_rise(self, error: float) -> bool:
        if self.name == "page-hinkley":  # set to detect rises only
            self._detector.update(error)
            return bool(self._detector.drift_detected)
        before = self._detector.estimation
        self._detector.update(error)
        return bool(self._detector.drift_detected and self._detector.estimation > before)
