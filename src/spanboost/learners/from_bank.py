"""Your own compiled learner: a NamedTuple of arrays with two methods."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.learners.protocol import Bank, Task
from spanboost.rows.validation import parse_rows

NAN_IN_ROW = (
    "the bank of FromBank predicted NaN in row {} of the block; the model may have learned NaN, so "
    "correct the bank and train a new model (docs/own-learner.md)"
)


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
        bank = self.make(task)
        if hasattr(bank, "predict") and hasattr(bank, "update"):
            return bank
        name = getattr(self.make, "__name__", "the function")
        raise TypeError(
            f"FromBank: {name}(task) must return a NamedTuple with predict and update "
            f"(got {bank!r:.80})"
        )


def finite_rows(learner: Any, out: Array, first: int, last: int) -> int:
    """Return the first row with a prediction of NaN if the learner is a `FromBank`, else `last`.

    Predictions of Python learners are checked copy by copy; those of this library are finite.
    """
    if not isinstance(learner, FromBank):
        return last
    bad = np.isnan(out[first:last]).any(axis=1)
    return first + int(bad.argmax()) if bad.any() else last
