"""The classes of a stream: any labels, numbered in order of appearance."""

import math
from collections.abc import Hashable, Iterable
from typing import Any

from spanboost.compiling.arrays import Array
from spanboost.errors import DataError
from spanboost.rows.label_values import missing_label


class ClassTable:
    """Labels and their class numbers. A block that is refused must not add classes.

    >>> table = ClassTable()
    >>> table.encode(["red", "green", "red"])
    [0, 1, 0]
    >>> table.labels  # nothing has been learned yet
    []
    >>> table.add(["red", "green", "red"])
    >>> table.labels
    ['red', 'green']
    """

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}

    @property
    def labels(self) -> list[Any]:
        """The labels, in order of their class numbers."""
        return list(self._numbers)

    def encode(self, labels: Iterable[Hashable]) -> list[int]:
        """Return the class numbers of labels; those of new labels follow in order."""
        numbers = dict(self._numbers)
        codes = []
        for row, label in enumerate(labels):
            if label is None or (isinstance(label, float) and math.isnan(label)):
                raise DataError(row, missing_label())
            if isinstance(label, float) and not label.is_integer() and label not in numbers:
                raise DataError(
                    row,
                    f"the label {float(label)!r} is a number with a fraction, not a class; use "
                    "BoostingRegressor for numbers, or make it text",
                )
            if not isinstance(label, Hashable):
                kind = type(label).__name__
                raise DataError(row, f"the label must be text, a number or a boolean (got {kind})")
            codes.append(numbers.setdefault(label, len(numbers)))
        return codes

    def select(self, scores: Array, labels: list[Hashable]) -> Array:
        """Return the scores [rows, classes] of these labels; of two, the second minus the first."""
        scores = scores[:, self.encode(labels)]
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def add(self, labels: Iterable[Hashable]) -> None:
        """Add labels that were learned."""
        for label in labels:
            self._numbers.setdefault(label, len(self._numbers))
