"""Importance weights of rows: weight 2 counts as two rows."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from spanboost.checks import is_number
from spanboost.compiling.arrays import Array
from spanboost.errors import ModelFileError, WeightWarning, warn_caller
from spanboost.rows.label_values import to_matrix
from spanboost.rows.validation import refuse_first

LARGE = 10.0  # mean of the weights above which a warning is due
ENOUGH = 100  # rows before that


def check_weights(weights: Any, rows: int, allowed: bool, dtype: Any) -> Array:
    """Return importance weights, finite and not negative; all 1 if `weights` is None.

    Weights too small to divide by become 0.
    """
    if weights is None:
        return np.ones(rows, dtype)
    largest = math.sqrt(float(np.finfo(dtype).max))  # its square is finite
    given = to_matrix(weights, rows, 1, "weights")[:, 0]
    refuse_first(
        ~((given >= 0) & (given <= largest)),
        lambda t: f"the weight must be between 0 and {largest:.1g} (got {given[t]:g})",
    )
    if not allowed:
        refuse_first(
            (given != 0) & (given != 1),
            lambda t: f"the learner does not support weights; use 0 or 1 (got {given[t]:g})",
        )
    return np.where(given < 1 / largest, 0.0, given).astype(dtype)


def relative_weights(weights: Array) -> Array:
    """Return weights divided by the mean of the positive ones, so a common factor has no effect.

    Ratios are rounded to float32: rounding errors of the factor then do not change them. Invalid
    weights are returned as they are, so that the model names them.
    """
    if not ((weights >= 0) & (weights < np.inf)).all() or not weights.any():
        return weights
    ratios = (weights / weights.max()).astype(np.float32).astype(np.float64)
    return np.asarray(ratios / ratios[ratios > 0].mean())


@dataclass
class WeightScale:
    """How large the weights of the rows learned so far are.

    A weight multiplies the slope of a loss, and steps are made for slopes of rows of weight 1. So
    the error rises with the scale of the weights (benchmarks/weights.py).

    excess: the sum of weight - 1 over these rows. Rows of weight 1 do not change it.
    """

    excess: float = 0.0
    warned: bool = False

    def add(self, weights: Array) -> None:
        """Add the weights of rows that are learned next; those of 0 do not count."""
        self.excess = float(self._sums(weights)[-1])

    def warn(self, weights: Array, rows: int, learned: int) -> None:
        """Warn if the weights so far, with the next ones, are too large; only once.

        rows, learned: number of rows given and learned before. Nothing else has changed yet, so
        turning the warning into an error loses only this block.
        """
        small = self.excess <= (LARGE - 1) * learned and (weights <= LARGE).all()
        if self.warned or small:  # the mean stays below
            return
        sums, numbers = self._sums(weights)[1:], learned + np.cumsum(weights > 0)
        large = (numbers >= ENOUGH) & (sums > (LARGE - 1) * numbers)
        if not large.any():
            return
        self.warned, row = True, int(large.argmax())
        mean = 1 + sums[row] / numbers[row]
        what = (
            f"the mean of the weights so far is {mean:.4g}, and models learn poorly if it is far "
            "above 1; divide all weights by their mean"
        )
        warn_caller(WeightWarning(rows + row, what))

    def _sums(self, weights: Array) -> Array:
        """Return the excess before and after each row; blocks of any size have the same bits."""
        each = np.where(weights > 0, weights.astype(np.float64) - 1, 0.0)
        return np.cumsum(np.append(self.excess, each))

    def to_json(self) -> dict[str, Any]:
        """Return the state, as a model file holds it; nothing if all weights were 1."""
        known = self.excess != 0 or self.warned
        return {"weights": {"excess": self.excess, "warned": self.warned}} if known else {}

    @classmethod
    def restore(cls, state: dict[str, Any]) -> Self:
        """Return the state that `to_json` returned; files of earlier versions have none."""
        if "weights" not in state:
            return cls()
        excess, warned = state["weights"]["excess"], state["weights"]["warned"]
        if not (is_number(excess) and math.isfinite(excess)):
            raise ModelFileError("the sum of the weights is invalid")
        return cls(float(excess), bool(warned))


def merge_scales(before: WeightScale, each: Sequence[WeightScale]) -> WeightScale:
    """Return what is known together; all of them continued what was known before."""
    excess = before.excess + sum(one.excess - before.excess for one in each)
    return WeightScale(excess, any(one.warned for one in each))
