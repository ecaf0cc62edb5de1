"""Calibrated: a classifier whose probabilities are calibrated online (probability_map.py)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from spanboost.compiling.arrays import Array
from spanboost.compiling.interrupts import finishes
from spanboost.compiling.kernels import Caller
from spanboost.errors import ModelFileError
from spanboost.models.intervals import BASES
from spanboost.models.model import Model
from spanboost.models.probability_map import grown_map, learn_mapped, new_map, predict_mapped
from spanboost.models.state import leaves
from spanboost.models.widening import ABSENT
from spanboost.models.wrapped_classifier import ClassBlock, WrappedClassifier
from spanboost.models.wrapper import fill_arrays, prefixed_tensors, split_tensors
from spanboost.rows.user_types import RowsLike

_STATE, _PART = "map", "model"  # prefixes of arrays in a file


class Calibrated(WrappedClassifier):
    """A classifier whose probabilities agree with the frequencies of the classes.

    model: the model that predicts (default: AutoBoost(loss="softmax")). Its loss must be logistic
        or softmax.

    Predictions are scores, as those of the model: log-odds of the second class for logistic loss,
    log-probabilities for softmax loss.

    >>> import numpy as np
    >>> from spanboost import Calibrated, LinearSGD, SpanBoost
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (4000, 2))
    >>> y = np.sign(X[:, 0] + 0.1 * rng.normal(size=4000))
    >>> alone = SpanBoost(LinearSGD(), n=4, loss="logistic")  # not sure enough
    >>> model = Calibrated(SpanBoost(LinearSGD(), n=4, loss="logistic"))
    >>> for one in (alone, model):
    ...     scores = one.learn_many(X, y)[2000:]
    ...     print(f"{np.log1p(np.exp(-y[2000:] * scores)).mean():.1f}")  # log-loss
    0.3
    0.1
    """

    def __init__(self, model: Model | None = None) -> None:
        super().__init__(model)
        self.map = new_map(self.known_classes)

    @property
    def uncalibrated(self) -> Model:
        """The model whose probabilities are calibrated."""
        return self.model

    def predict_many(self, X: RowsLike) -> Array:
        """Return calibrated scores for a block of rows; learn nothing."""
        return self._calibrate(self.model.predict_many(X))

    def learn_again(self, X: RowsLike, y: ArrayLike, weights: ArrayLike | None = None) -> Array:
        """Learn a block of rows in a further pass; the calibration does not change."""
        return self._calibrate(self.model.learn_again(X, y, weights))

    @finishes
    def learn_checked(self, block: ClassBlock) -> Array:
        """Learn a block that was checked; nothing else may have been learned since."""
        before = self.known_classes
        return self._learn(block, self.model.learn_checked(block.checked), before)

    @finishes
    def learn_held_out(
        self,
        X: RowsLike,
        y: ArrayLike,
        weights: ArrayLike | None = None,
        forecasts: Array | None = None,
    ) -> Array:
        """Learn a block of rows that all passes before have left out.

        The calibration starts again with these rows, because that of the first pass is the one of
        another model. `forecasts` are calibrated already, so they are not used.
        """
        block, before = self.check(X, y, weights), self.known_classes
        scores = self.model.predict_many(X)
        self.model.learn_checked(block.checked)
        self.map = new_map(self.known_classes)
        unknown = block.classes >= before  # the model could not predict these classes
        usable = block._replace(weights=np.where(unknown, 0.0, block.weights))
        return self._learn(usable, _widen(scores, self.known_classes), before)

    def parameters(self) -> dict[str, Any]:
        """Return the class ("booster") and the parameters of the model, as JSON."""
        return {"booster": type(self).__name__, "parameters": self.model.parameters()["parameters"]}

    def tensors(self) -> Iterator[tuple[str, Array]]:
        """Yield the arrays of a model that has started, by name."""
        for name, value, _ in leaves(self.map, _STATE):
            yield name, value
        yield from prefixed_tensors({_PART: self.model})

    @classmethod
    def restore(cls, header: dict[str, Any], tensors: dict[str, Array]) -> Self:
        """Build the model from a header and arrays; a `ModelFileError` if they do not match."""
        (inner,) = header["models"]
        if inner["booster"] not in BASES:
            raise ModelFileError("the file contains no model with calibrated probabilities")
        parts = split_tensors(tensors, (_PART, _STATE))
        base = BASES[inner["booster"]].restore(inner, parts[_PART])
        model = cls(base)
        if base.started:
            fill_arrays(model.map, parts[_STATE], _STATE)
            if not all(np.isfinite(value).all() for _, value, _ in leaves(model.map, _STATE)):
                raise ModelFileError("the arrays of the calibration are invalid")
        return model

    def _learn(self, block: ClassBlock, scores: Array, before: int) -> Array:
        """Calibrate scores that the model made before it learned a block, and learn from them."""
        if self.known_classes > len(self.map.bias):
            self.map, self._call = grown_map(self.map, self.known_classes), Caller()
        each = _as_classes(scores)
        known = np.maximum(np.maximum.accumulate(block.classes) + 1, before)
        out = np.empty_like(each)
        self._call(learn_mapped, self.map, each, known, block.classes, block.weights, out)
        return _as_scores(out, scores)

    def _calibrate(self, scores: Array) -> Array:
        each = _as_classes(scores)
        out = np.empty_like(each)
        self._call(predict_mapped, self.map, each, out)
        return _as_scores(out, scores)


def _as_classes(scores: Array) -> Array:
    """Return scores of all classes, [rows, classes]."""
    each = np.column_stack([-scores / 2, scores / 2]) if scores.ndim == 1 else scores
    return np.ascontiguousarray(each, np.float64)


def _as_scores(logs: Array, scores: Array) -> Array:
    """Return log-probabilities in the form of the scores of the model."""
    return logs[:, 1] - logs[:, 0] if scores.ndim == 1 else logs


def _widen(scores: Array, classes: int) -> Array:
    """Return scores with columns for classes that were not known; their probability is 0."""
    if scores.ndim == 1 or scores.shape[1] == classes:
        return scores
    absent = np.full((len(scores), classes - scores.shape[1]), ABSENT)
    return np.column_stack([scores, absent])
