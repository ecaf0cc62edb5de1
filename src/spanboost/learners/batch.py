"""The learner of `Refitted`: the parameters of its fits, and the mean label before the first one.

Fits are not made of arrays, so the bank does not hold them (models/refitted.py does).
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from spanboost.checks import is_integer, is_number
from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel
from spanboost.errors import ParameterError
from spanboost.learners.protocol import ReadsFeatures, Task
from spanboost.rows.block import Block, block_of

LAG = 16  # a fit replaces the one before it after 1 / LAG more rows
KEEPS = "sample", "last"


@kernel
class BatchBank(NamedTuple):
    """Sums of labels, in the units of the user; of classes, how often each one came."""

    total: Array  # [1] of the weights
    sums: Array  # [d] of the weighted labels

    def grown(self, features: int, width: int) -> "BatchBank":
        """Return the bank; it does not depend on the number of features."""
        return self

    def rescale(self, a: float, b: float) -> None:
        """Keep the labels, which are in the units of the user."""


@dataclass(frozen=True)
class BatchLearner(ReadsFeatures):
    """An estimator, and when it is fitted.

    estimator: as `Refitted` takes it, or a `LibraryEstimator`, which files can hold.
    first: number of learned rows at the first fit.
    grow: factor between the numbers of learned rows at two fits.
    keep: "sample" or "last", as for `Refitted`.
    """

    estimator: Any
    first: int = 1000
    grow: float = 2.0
    keep: str = "sample"
    bits: int | None = None
    dtype: Any = np.float32

    def check(self, task: Task) -> None:
        """Raise a ParameterError for invalid parameters."""
        if not (is_integer(self.first) and self.first >= 1):
            raise ParameterError("first", f"must be a positive integer (got {self.first!r})")
        if not (is_number(self.grow) and 1 < self.grow < math.inf):
            raise ParameterError("grow", f"must be a number above 1 (got {self.grow!r})")
        if self.keep not in KEEPS:
            raise ParameterError("keep", f"must be 'sample' or 'last' (got {self.keep!r})")

    def encode(self, X: Any, D: float = math.inf) -> Block:
        """Return the rows as a block."""
        return block_of(X, self.dtype, self.bits)

    def bank(self, task: Task) -> BatchBank:
        """Return sums of no labels."""
        return BatchBank(np.zeros(1), np.zeros(task.d))

    def next_fit(self, learned: int) -> tuple[int, int]:
        """Return when the next fit starts and ends, or the one that is running now.

        It is fitted to the rows up to a number of learned rows, and is used from another one on,
        which is larger than `learned`.
        """
        start = self.first
        while True:
            after = max(start + 1, math.ceil(start * self.grow))
            end = min(start + max(start // LAG, 1), after)
            if end > learned:
                return start, end
            start = after
