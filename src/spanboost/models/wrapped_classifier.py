"""The common part of prediction sets and calibrated probabilities: a model around a classifier."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import Caller
from spanboost.errors import ParameterError
from spanboost.losses import Logistic, Softmax
from spanboost.models.auto import AutoBoost
from spanboost.models.model import Model
from spanboost.models.wrapper import WrappedModel, check_inner


class ClassBlock(NamedTuple):
    """A checked block."""

    checked: Any  # by the model
    classes: Array  # [rows] class numbers
    weights: Array  # [rows]


class WrappedClassifier(WrappedModel):
    """Base class of models around a model with logistic or softmax loss."""

    def __init__(self, model: Model | None) -> None:
        super().__init__(AutoBoost(loss="softmax") if model is None else model)
        check_inner(self.model)
        if not isinstance(self.model.loss_, Logistic | Softmax):
            raise ParameterError(
                "model", f"must have logistic or softmax loss (its loss is {self.model.loss_!r})"
            )
        self._call = Caller()

    @property
    def known_classes(self) -> int:
        """Number of classes so far."""
        return 2 if isinstance(self.loss_, Logistic) else int(self.loss_.d)

    def check(self, X: Any, y: Any, weights: Any = None) -> ClassBlock:
        """Return the block as `learn_checked` takes it; a `DataError` names the first bad row."""
        checked = self.model.check(X, y, weights)
        classes = self.class_numbers(y)
        kept = np.ones(len(classes)) if weights is None else np.array(weights, np.float64)
        return ClassBlock(checked, classes, kept)

    def class_numbers(self, y: Any) -> Array:
        """Return the numbers of the classes that labels name."""
        labels = np.array(y, np.float64).reshape(-1)
        return (labels > 0 if isinstance(self.loss_, Logistic) else labels).astype(np.int64)

    def header(self) -> dict[str, Any]:
        """Return everything except the arrays, as JSON."""
        return self.parameters() | {"models": [self.model.header()]}
