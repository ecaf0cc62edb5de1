"""Your own compiled learner: a NamedTuple of arrays with two methods."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.learners.protocol import Bank, Task
from spanboost.rows.validation import parse_rows


@dataclass(frozen=True)
class FromBank:
    """A learner defined by a function that creates the bank of its N copies (docs/own-learner.md).

    make: takes a `Task` (`n` copies, `d` outputs, the first `rows`, the bound `D` ...) and returns
        a NamedTuple of arrays with `predict(self, x, h)` and `update(self, x, h, feedback)`.
    scalable: whether the bank also has `rescale(self, a, b)`, so that the label range may grow.

    Rows are float64 arrays of equal length; missing values are NaN.
    """

    make: Callable[[Task], Bank]
    scalable: bool = False

    def check(self, task: Task) -> None:
        """Accept every task."""

    def encode(self, X: Any, D: float) -> Array:
        """Return the rows as an array of numbers."""
        return np.require(parse_rows(X), np.float64, ["C", "W"])

    def bank(self, task: Task) -> Bank:
        """Return a new bank of N copies."""
        return self.make(task)
