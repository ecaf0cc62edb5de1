"""A learner of one's own, compiled: a NamedTuple of arrays with two methods."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.learners.protocol import Bank, Task
from spanboost.rows.validation import parse_rows


@dataclass(frozen=True)
class FromBank:
    """A learner made of a function that makes the bank of its N copies (docs/own-learner.md).

    make: from what a learner is told (`n` copies, `d` outputs, the first `rows`, the bound `D` ...)
        to a NamedTuple of arrays with `predict(self, x, h)` and `update(self, x, h, feedback)`.
    scalable: whether it also has `rescale(self, a, b)`, so that the label range may grow.

    Rows are arrays of numbers, of one width, float64; missing ones are NaN.
    """

    make: Callable[[Task], Bank]
    scalable: bool = False

    def check(self, task: Task) -> None:
        """Every task will do."""

    def encode(self, X: Any, D: float) -> Array:
        """Rows of numbers."""
        return np.require(parse_rows(X), np.float64, ["C", "W"])

    def bank(self, task: Task) -> Bank:
        """N copies, fresh."""
        return self.make(task)
