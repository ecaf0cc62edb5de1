"""Classes that appear in a stream of rows: the model of a classifier, and when it is replaced.

A model starts with one output, for two classes. When the third class appears, a model with an
output for each class replaces it, and learns the last rows first. Models of this library's learners
add further classes to themselves. Your own learners cannot, and neither can a booster that chooses
n or eta online: there, a new model replaces the old one for every further class.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from spanboost.losses import Logistic, Softmax
from spanboost.models.class_table import ClassTable
from spanboost.models.model import Model

_TWO = 2  # classes of a model with one output
_RECENT = 1000  # rows that a new model learns first
_ANY = 1 << 62  # classes of a model that adds them


class Example(NamedTuple):
    """A row, its label and its weight."""

    x: dict[Any, Any]
    y: Any
    w: float


class EmergingClasses:
    """The classes so far, and the model for them.

    new_model: returns a model with this loss.
    widens: whether a model with the loss "softmax" adds classes to itself.
    recent: the last rows, while a new model may have to learn them.
    """

    def __init__(self, new_model: Callable[[Any], Model], *, widens: bool) -> None:
        self._new_model, self._widens = new_model, widens
        self.table = ClassTable()
        self.model = new_model("logistic")
        self.recent: deque[Example] = deque(maxlen=_RECENT)

    def learn(self, examples: list[Example]) -> None:
        """Learn rows in order; a row that is refused changes nothing."""
        codes, start = self._codes(examples), 0
        while start < len(codes):
            most = max(self._classes_of(self.model), self._room(codes[start]))
            end = next((k for k in range(start, len(codes)) if codes[k] >= most), len(codes))
            self._learn(examples[start:end], codes[start:end])
            start = end

    def _learn(self, examples: list[Example], codes: list[int]) -> None:
        """Learn rows with one model, a new one if the first row has a new class."""
        known = codes[0] < self._classes_of(self.model)
        model = self.model if known else self._successor(codes[0])
        _learn_rows(model, examples, codes)
        self.model = model
        self.table.add([one.y for one in examples])
        if self._classes_of(model) == _ANY:
            self.recent.clear()
        else:
            self.recent.extend(examples)

    def _successor(self, code: int) -> Model:
        """Return a model for this class, too, that has learned the last rows."""
        model = self._new_model("softmax" if self._widens else Softmax(code + 1))
        recent = list(self.recent)
        if recent:
            _learn_rows(model, recent, self._codes(recent))
        return model

    def _classes_of(self, model: Model) -> int:
        """Return how many classes a model can have."""
        if isinstance(model.loss_, Logistic):
            return _TWO
        return _ANY if self._widens else int(model.loss_.d)

    def _room(self, code: int) -> int:
        """Return how many classes the model that learns this class can have."""
        return _TWO if code < _TWO else _ANY if self._widens else code + 1

    def _codes(self, examples: list[Example]) -> list[int]:
        return self.table.encode([one.y for one in examples])


def _learn_rows(model: Model, examples: list[Example], codes: list[int]) -> None:
    binary = isinstance(model.loss_, Logistic)
    labels = [2.0 * code - 1 for code in codes] if binary else codes
    if len(examples) == 1:
        model.learn_one(examples[0].x, labels[0], weight=examples[0].w)
    else:
        weights = np.array([one.w for one in examples])
        model.learn_many([one.x for one in examples], labels, weights)
