"""The last stage of AutoBoost for classes: combines its forecast with the classes of earlier rows.

The candidates are the forecast, the classes that usually follow the last label, and a log-linear
combination of the forecast and of all past labels (rows/past_classes.py). A second `Mixture`
combines them. So a stream whose order means nothing keeps the forecast of the experts.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from spanboost import checks
from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import Caller
from spanboost.errors import ModelFileError
from spanboost.losses import resolve
from spanboost.models.booster import Booster
from spanboost.models.known_past import KnownPast, ReadsPast
from spanboost.models.mixture import Mixture
from spanboost.models.past_stage import StageLabels, StageRows, take_prefixed
from spanboost.models.state import leaves
from spanboost.models.wrapper import fill_arrays
from spanboost.rows.past_classes import (
    PastClasses,
    correct_and_learn_classes,
    correct_classes,
    new_past_classes,
    widen_past_classes,
)
from spanboost.rows.past_labels import LAGS, LEVELS, learn_past, new_past_labels

NAMES = ("experts", "last label", "past")
MOST = 100  # classes; with more, there are too many pairs of them to count
_STATE, _CLASSES = "labels", "classes"
_LEAST = -700.0  # the smallest logarithm of a probability


class PastClassStage(ReadsPast):
    """The classes of earlier rows, and the weights of the candidates that know them.

    state: the labels so far, as numbers of classes; classes: which class follows which.
    """

    def __init__(self, loss: Any, key: Any) -> None:
        self.loss, self.key = resolve(loss), key
        self.state = new_past_labels(key is not None)
        self.places = [0, LAGS, *([LEVELS] if key is not None else [])]  # of the sources
        self.classes = new_past_classes(len(self.places), 0)
        self.mixture = Mixture(self.loss, len(NAMES))
        self.call = Caller()
        self.boosters: list[Booster] = []

    @property
    def weights(self) -> dict[str, float]:
        """The weight of each candidate."""
        return self.mixture.named_weights(NAMES)

    def predict(self, rows: StageRows, known: KnownPast) -> Array:
        """Return predictions; learn nothing."""
        own = _bounded(rows.forecasts)
        state, sources = self._prepare(own), self._sources(known.fill(self.read_past(known.keys)))
        if state is None:
            return rows.forecasts
        out = np.empty((*own.shape, 2))
        self.call(correct_classes, state, own, sources, out)
        return self.mixture.combine(rows.units, np.dstack([own, out]))

    def learn(self, rows: StageRows, known: KnownPast, given: StageLabels) -> Array:
        """Learn rows, in order; return the predictions, each made before its label was seen."""
        own, labels = _bounded(rows.forecasts), given.labels.argmax(axis=1)
        past = known.fill(np.empty((len(labels), self.state.columns)))
        numbers, errors = labels.astype(np.float64), np.zeros(len(labels))
        given_past = errors, given.weights, known.given, past
        self.call(learn_past, self.state, known.keys, numbers, *given_past)
        state = self._prepare(own)
        if state is None:
            return rows.forecasts
        self.classes, out = state, np.empty((*own.shape, 2))
        arrays = own, self._sources(past), labels, given.weights, out
        self.call(correct_and_learn_classes, self.classes, *arrays)
        candidates = np.dstack([own, out])
        return self.mixture.learn(rows.units, candidates, given.labels, given.weights, [])

    def _sources(self, past: Array) -> Array:
        return np.ascontiguousarray(past[:, self.places])

    def _prepare(self, own: Array) -> PastClasses | None:
        """Return the state with room for the classes of forecasts; None if they are too many."""
        classes = own.shape[1]
        if classes > MOST:
            return None
        wide = classes > len(self.classes.totals)
        return widen_past_classes(self.classes, classes) if wide else self.classes

    def header(self) -> dict[str, Any]:
        """Return everything except the arrays, as JSON."""
        return {"classes": len(self.classes.totals)}

    def tensors(self) -> Iterator[tuple[str, Array]]:
        """Yield the arrays of the stage, by name."""
        yield from self.mixture.tensors()
        for part, name in ((self.state, _STATE), (self.classes, _CLASSES)):
            for path, value, _ in leaves(part, name):
                yield path, value

    def restore(self, header: dict[str, Any], tensors: dict[str, Array]) -> None:
        """Set the state to that of a header and arrays; a `ModelFileError` if they do not match."""
        classes = header["classes"]
        if not (checks.is_integer(classes) and 0 <= classes <= MOST):
            raise ModelFileError("the number of classes of past labels is invalid")
        if not tensors:
            return
        self.classes = new_past_classes(len(self.places), classes)
        for part, name in ((self.state, _STATE), (self.classes, _CLASSES)):
            fill_arrays(part, take_prefixed(tensors, f"{name}."), name)
        if not (self.state.sound and self.classes.sound):
            raise ModelFileError("the past labels in the file are invalid")
        self.mixture.restore_last(tensors)


def _bounded(forecasts: Array) -> Array:
    """Return the logarithms of the probabilities of classes, none of them infinite."""
    return np.maximum(forecasts, _LEAST)
