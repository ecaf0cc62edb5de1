"""Linear functions in a norm ball, learned by projected online gradient descent.

The class is {x -> W x : ||W||_F <= D / x_norm} over rows with ||x||_2 <= x_norm, so its functions
are D-bounded. For L-Lipschitz losses, the step in round t is sqrt(2) G / (x_norm L sqrt t), where
G = D / x_norm. With L = 1 this gives R(T) = 2 sqrt(2) D sqrt(T) (M. Zinkevich, ICML 2003: the
squared diameter over twice the last step, plus half the sum of steps times squared gradients).
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from spanboost.checks import is_number, is_round_count
from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel
from spanboost.errors import DataError, ParameterError
from spanboost.learners.protocol import Feedback, Task
from spanboost.learners.text import call_text
from spanboost.rows.validation import parse_rows

# Files store numbers as float32. Rounding can lengthen a row by half of this share, so the longest
# row of a file could exceed a norm that was computed before it was written.
ROUNDING = float(np.finfo(np.float32).eps)


@dataclass(frozen=True, repr=False)
class LinearBall:
    """Projected online gradient descent over linear functions of rows of norm at most `x_norm`.

    A missing feature (NaN) counts as 0: it contributes nothing, and nothing is learned from it. A
    row that is longer by a rounding error of float32 is shortened to norm `x_norm`.
    """

    x_norm: float = 1.0

    __repr__ = call_text

    @property
    def deterministic(self) -> bool:
        """Whether the same stream always gives the same predictions, whatever the seed."""
        return True

    @property
    def symmetric(self) -> bool:
        """Whether the class contains -f with every f."""
        return True

    @property
    def scalable(self) -> bool:
        """Whether the label range may grow."""
        return True

    def check(self, task: Task) -> None:
        """Raise a ValueError if `x_norm` is not a number above 0."""
        if not (is_number(self.x_norm) and 0 < self.x_norm < math.inf):
            raise ParameterError("x_norm", f"must be a number above 0 (got {self.x_norm!r})")

    def encode(self, X: Any, D: float = math.inf) -> Array:
        """Check the rows and return them as numbers, with 0 for missing features."""
        X = parse_rows(X)
        rows = np.ascontiguousarray(np.where(np.isnan(X), 0.0, X), dtype=np.float64)
        for t, what in self.complaints(rows).items():
            raise DataError(t, what)
        return rows * (self.x_norm / np.maximum(_norms(rows), self.x_norm))[:, None]

    def complaints(self, rows: Array) -> dict[int, str]:
        """Return an error message for each row whose norm is too large, by row number.

        Missing features must already be 0.
        """
        norms = _norms(rows)
        return {
            int(t): f"the row's norm is {norms[t]:.9g}, above x_norm={self.x_norm:.9g}"
            for t in np.flatnonzero(~(norms <= self.x_norm * (1 + ROUNDING)))
        }

    def bank(self, task: Task) -> "BallBank":
        """Return N copies with W = 0."""
        G = task.D / self.x_norm
        return BallBank(
            W=np.zeros((task.rows.shape[1], task.d, task.n)),
            t=np.zeros(1, dtype=np.int64),
            step=math.sqrt(2) * G / (self.x_norm * task.lipschitz),
            G=np.float64(G),
            scratch=BallScratch(np.zeros((task.d, task.n)), np.zeros(task.n)),
        )

    def regret(self, T: int, D: float) -> float:
        """Return R(T) = 2 sqrt(2) D sqrt(T)."""
        return 2 * math.sqrt(2 * T) * D


def _norms(rows: Array) -> Array:
    with np.errstate(over="ignore"):
        return np.sqrt((rows * rows).sum(axis=1))


class BallScratch(NamedTuple):
    """Scratch space for one update."""

    slope: Array  # [d, N]
    square: Array  # [N] squared norms


@kernel
class BallBank(NamedTuple):
    """N matrices W, each in the ball of radius G."""

    W: Array  # [feature, d, N]
    t: Array  # [1] rounds learned
    step: Array  # [N] step size in round 1; in round t it is divided by sqrt(t)
    G: float
    scratch: BallScratch

    @property
    def sound(self) -> bool:
        """Whether all rounds that follow have a step size."""
        return is_round_count(self.t[0])

    def rescale(self, a: float, b: float) -> None:
        """Multiply the functions by a. The steps do not depend on past slopes, so b is unused."""
        self.W[...] *= a

    def predict(self, x: Array, h: Array) -> None:
        """Set h = W x for all copies at once."""
        h.fill(0)
        for f in range(x.shape[0]):
            for k in range(h.shape[0]):
                w, out = self.W[f, k], h[k]
                for i in range(out.shape[0]):
                    out[i] += w[i] * x[f]

    def update(self, x: Array, h: Array, feedback: Feedback) -> None:
        """Make one gradient step in every copy, then project onto the ball."""
        slope, square = self.scratch.slope, self.scratch.square
        feedback.slopes(h, slope)
        square.fill(0)
        self.t[0] += 1
        root = math.sqrt(self.t[0])
        for f in range(x.shape[0]):
            for k in range(h.shape[0]):
                w, s = self.W[f, k], slope[k]
                for i in range(w.shape[0]):
                    w[i] -= self.step[i] / root * s[i] * x[f]
                    square[i] += w[i] * w[i]
        for i in range(square.shape[0]):
            if square[i] > self.G * self.G:
                shrink = self.G / math.sqrt(square[i])
                for f in range(x.shape[0]):
                    for k in range(h.shape[0]):
                        self.W[f, k, i] *= shrink
