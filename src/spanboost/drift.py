"""Moments at which predictions become worse, found by a detector of River from errors alone."""

import math
from typing import Any

import numpy as np

from spanboost.arrays import Array
from spanboost.auto import AnyModel
from spanboost.errors import UserError
from spanboost.losses import degree

DETECTORS = ("adwin", "page-hinkley")


class Drift:
    """A detector over the errors of a stream's rows, in order.

    Detectors take numbers between 0 and 1. The error of a number is its distance from the label in
    widths of the label range, as the loss tells it; of a class, one minus the probability it was
    given. `moments` are the numbers of rows, counted from 1, after which errors were found to have
    risen; that they fall is what learning is for.

    >>> drift = Drift("adwin")
    >>> rng = np.random.default_rng(0)
    >>> drift.add(np.append(rng.uniform(0, 0.2, 1000), rng.uniform(0.2, 0.4, 1000)))
    >>> len(drift.moments), 1000 < drift.moments[0] < 1100
    (1, True)
    """

    def __init__(self, detector: str) -> None:
        try:
            from river import drift
        except ImportError:
            raise UserError("drift detectors need River: pip install 'spanboost[river]'") from None
        self.name = detector
        self._detector: Any = drift.ADWIN() if detector == "adwin" else drift.PageHinkley(mode="up")
        self._rows = 0
        self.moments: list[int] = []

    def add(self, errors: Array) -> None:
        """Errors of further rows."""
        adaptive = self.name == "adwin"
        for t, error in enumerate(errors.tolist(), self._rows + 1):
            before = self._detector.estimation if adaptive else -math.inf
            self._detector.update(error if math.isfinite(error) else 1.0)
            if self._detector.drift_detected:
                after = self._detector.estimation if adaptive else 0.0
                if after > before:
                    self.moments.append(t)
        self._rows += len(errors)


def errors_of(model: AnyModel, losses: Array) -> Array:
    """Errors between 0 and 1, of the losses of rows."""
    if model._labels.scores:
        return 1 - np.exp(-losses)
    width, p = 2 * model._labels.half, degree(model.loss_)
    if not width > 0:
        return np.zeros(len(losses))
    errors: Array = np.minimum(losses ** (1 / p) / width, 1.0)
    return errors
