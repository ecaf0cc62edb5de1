"""PredictionSets: a classifier with sets of classes that contain the label, calibrated online.

The score of a class is 1 minus its probability. The set of a row has all classes whose score is at
most a threshold: a quantile of the scores of the last labels, whose level is calibrated as that of
an interval is (quantiles/levels.py). The most probable class is always in the set.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from spanboost.compiling.arrays import Array
from spanboost.compiling.interrupts import finishes
from spanboost.errors import ModelFileError
from spanboost.models.calibrated import Calibrated
from spanboost.models.intervals import BASES
from spanboost.models.model import Model
from spanboost.models.predictions import probabilities
from spanboost.models.quantiles.asked_levels import (
    check_increasing,
    check_set_coverage,
    interpolate_levels,
)
from spanboost.models.quantiles.thresholds import (
    calibrate_thresholds,
    learn_thresholds,
    new_thresholds,
    predict_thresholds,
)
from spanboost.models.state import leaves
from spanboost.models.wrapped_classifier import ClassBlock, WrappedClassifier
from spanboost.models.wrapper import HeldOutCalibrated, fill_arrays, prefixed_tensors, split_tensors
from spanboost.rows.user_types import RowsLike

COVERAGES = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.975, 0.99, 0.995)
_STATE, _PART = "thresholds", "model"  # prefixes of arrays in a file


class PredictionSets(HeldOutCalibrated, WrappedClassifier):
    """A classifier that predicts sets of classes.

    model: the model that predicts (default: AutoBoost(loss="softmax")). Its loss must be logistic
        or softmax.
    coverages: the coverages that are calibrated, in increasing order. Others are interpolated, up
        to the largest.

    `learn_many`, `predict_many` and the rest work as those of the model itself.

    >>> import numpy as np
    >>> from spanboost import LinearSGD, PredictionSets, SpanBoost
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (4000, 2))
    >>> y = np.digitize(X[:, 0] + 0.3 * rng.normal(size=4000), [-0.5, 0.5])  # 0, 1 or 2
    >>> model = PredictionSets(SpanBoost(LinearSGD(), n=4, loss="softmax"))
    >>> sets = model.learn_sets(X, y, coverage=0.9)  # each before its label is seen
    >>> print(f"{sets[np.arange(4000), y].mean():.2f}")
    0.90
    >>> model.predict_set([[0.9, 0], [0.5, 0]], coverage=0.9).tolist()
    [[False, False, True], [False, True, True]]
    """

    def __init__(self, model: Model | None = None, coverages: Sequence[float] = COVERAGES) -> None:
        super().__init__(model)
        check_increasing(coverages, "coverages")
        self.thresholds = new_thresholds(np.array(coverages, np.float64))

    @property
    def coverages(self) -> tuple[float, ...]:
        """The coverages that are calibrated."""
        return tuple(self.thresholds.levels.level.tolist())

    def predict_set(self, X: RowsLike, coverage: float = 0.9) -> Array:
        """Return whether each class is in the set of each row, [rows, classes], booleans."""
        return self.predict_both(X, coverage)[1]

    def predict_both(self, X: RowsLike, coverage: float = 0.9) -> tuple[Array, Array]:
        """Return the predictions and the sets for a block of rows; learn nothing."""
        check_set_coverage(coverage, self.coverages)
        scores, row = self.model.predict_many(X), np.empty((1, len(self.coverages)))
        self._call(predict_thresholds, self.thresholds, row)
        limit = interpolate_levels(row, self.coverages, [coverage])
        return scores, _classes_within(scores, limit)

    def learn_sets(
        self, X: RowsLike, y: ArrayLike, coverage: float = 0.9, weights: ArrayLike | None = None
    ) -> Array:
        """Learn a block as `learn_many` does; return sets, each made before its label."""
        check_set_coverage(coverage, self.coverages)
        block, before = self.check(X, y, weights), self.known_classes
        scores, thresholds = self._learn(block)
        limits = interpolate_levels(thresholds, self.coverages, [coverage])
        sets, known = _classes_within(scores, limits), _known_before(block.classes, before)
        return sets & (np.arange(sets.shape[1]) < known[:, None])

    def learn_checked(self, block: ClassBlock) -> Array:
        """Learn a block that was checked; nothing else may have been learned since."""
        return self._learn(block)[0]

    def held_out_errors(
        self, X: Any, y: Array, weights: Array, forecasts: Array | None = None, by: Any = None
    ) -> Array:
        """Return the scores of the labels of rows of positive weight, if their class is known."""
        classes = self.class_numbers(y)
        if forecasts is None:
            forecasts = (self if by is None else by).model.predict_many(X)
        scores = _label_scores(forecasts, np.minimum(classes, self.known_classes - 1))
        return scores[(weights > 0) & (classes < self.known_classes), None]

    def calibrate(self, errors: Array) -> None:
        """Start the thresholds again with these scores: split conformal prediction."""
        scores = np.ascontiguousarray(errors[:, 0])
        self._call(calibrate_thresholds, self.thresholds, scores)

    def parameters(self) -> dict[str, Any]:
        """Return the class ("booster"), the parameters of the model and the coverages, as JSON."""
        inner = self.model.parameters()["parameters"] | {"coverages": list(self.coverages)}
        return {"booster": type(self).__name__, "parameters": inner}

    def tensors(self) -> Iterator[tuple[str, Array]]:
        """Yield the arrays of a model that has started, by name."""
        for name, value, _ in leaves(self.thresholds, _STATE):
            yield name, value
        yield from prefixed_tensors({_PART: self.model})

    @classmethod
    def restore(cls, header: dict[str, Any], tensors: dict[str, Array]) -> Self:
        """Build the model from a header and arrays; a `ModelFileError` if they do not match."""
        (inner,) = header["models"]
        if inner["booster"] not in BASES:
            raise ModelFileError("the file contains no model with prediction sets")
        parts = split_tensors(tensors, (_PART, _STATE))
        base = BASES[inner["booster"]].restore(inner, parts[_PART])
        model = cls(base, header["parameters"]["coverages"])
        if base.started:
            fill_arrays(model.thresholds, parts[_STATE], _STATE)
            if not model.thresholds.sound:
                raise ModelFileError("the arrays of the thresholds are invalid")
        return model

    @finishes
    def _learn(self, block: ClassBlock) -> tuple[Array, Array]:
        """Return the predictions and the thresholds, each made before its label."""
        known = _known_before(block.classes, self.known_classes)
        scores = self.model.learn_checked(block.checked)
        # the first row of a new class teaches nothing: no set could contain that class
        weights = np.where(block.classes < known, block.weights, 0.0)
        out = np.empty((len(scores), len(self.coverages)))
        each = (_label_scores(scores, block.classes), weights, out)
        self._call(learn_thresholds, self.thresholds, *each)
        return scores, out


def with_classes(model: Model, sets: bool, calibrated: bool) -> Model:
    """Return a model with the sets or the calibrated probabilities that an estimator asks for."""
    if sets and calibrated:
        raise ValueError("sets=True cannot be combined with calibrated=True; choose one of them")
    return PredictionSets(model) if sets else Calibrated(model) if calibrated else model


def _known_before(classes: Array, known: int) -> Array:
    """Return the number of classes before each row, given that before the first one."""
    return np.maximum.accumulate(np.append(known, classes + 1))[:-1]


def _label_scores(scores: Array, classes: Array) -> Array:
    """Return 1 minus the probability of the class of each row, [rows]."""
    chances = probabilities(scores)
    return np.ascontiguousarray(1 - chances[np.arange(len(chances)), classes])


def _classes_within(scores: Array, limits: Array) -> Array:
    """Return [rows, classes] whether the score of a class is within the limits [rows or 1, 1]."""
    chances = probabilities(scores)
    best = chances == chances.max(axis=1, keepdims=True)
    return best | (1 - chances <= limits)
