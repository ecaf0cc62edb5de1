"""Linear functions in a norm ball, learned by projected online gradient descent.

The class is {x -> W x : ||W||_F <= D / x_norm} over rows with ||x||_2 <= x_norm, so functions are
D-bounded. Steps of sqrt(2) G / (x_norm L sqrt t), G = D / x_norm, for L-Lipschitz losses give
R(T) = 2 sqrt(2) D sqrt(T) at L = 1 (M. Zinkevich, ICML 2003: the squared diameter over twice
the last step, plus half the sum of steps times squared gradients).
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from spanboost.checks import is_number
from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel
from spanboost.errors import DataError
from spanboost.learners.protocol import Feedback, Task
from spanboost.rows.validation import parse_rows


@dataclass(frozen=True)
class LinearBall:
    """Projected online gradient descent over linear functions of rows of norm at most `x_norm`.

    A missing feature (NaN) is absent: it neither predicts nor learns.
    """

    x_norm: float = 1.0

    @property
    def deterministic(self) -> bool:
        """Whether the same stream always gives the same predictions, whatever the seed."""
        return True

    @property
    def symmetric(self) -> bool:
        """The class contains -f with every f."""
        return True

    @property
    def scalable(self) -> bool:
        """The label range may grow."""
        return True

    def check(self, task: Task) -> None:
        """The norm of rows must be a number above 0."""
        if not (is_number(self.x_norm) and 0 < self.x_norm < math.inf):
            raise ValueError(f"x_norm={self.x_norm!r} is not allowed: a number above 0")

    def encode(self, X: Any, D: float = math.inf) -> Array:
        """Rows of numbers with absent features 0."""
        X = parse_rows(X)
        rows = np.ascontiguousarray(np.where(np.isnan(X), 0.0, X), dtype=np.float64)
        for t, what in self.complaints(rows).items():
            raise DataError(t, what)
        return rows

    def complaints(self, rows: Array) -> dict[int, str]:
        """The rows that are too long, in order, and what to say of them; absent features are 0."""
        with np.errstate(over="ignore"):
            norms = np.sqrt((rows * rows).sum(axis=1))
        return {
            int(t): f"the row's norm is {norms[t]:.6g}, above x_norm={self.x_norm:.6g}"
            for t in np.flatnonzero(~(norms <= self.x_norm * (1 + 1e-9)))
        }

    def bank(self, task: Task) -> "BallBank":
        """N copies, all W = 0."""
        G = task.D / self.x_norm
        return BallBank(
            W=np.zeros((task.rows.shape[1], task.d, task.n)),
            t=np.zeros(1, dtype=np.int64),
            step=math.sqrt(2) * G / (self.x_norm * task.lipschitz),
            G=np.float64(G),
            scratch=BallScratch(np.zeros((task.d, task.n)), np.zeros(task.n)),
        )

    def regret(self, T: int, D: float) -> float:
        """R(T) = 2 sqrt(2) D sqrt(T)."""
        return 2 * math.sqrt(2 * T) * D


class BallScratch(NamedTuple):
    """Room for one update."""

    slope: Array  # [d, N]
    square: Array  # [N] squared norms


@kernel
class BallBank(NamedTuple):
    """N matrices, each in the ball of radius G."""

    W: Array  # [feature, d, N]
    t: Array  # [1] rounds learned
    step: Array  # [N]
    G: float
    scratch: BallScratch

    def rescale(self, a: float, b: float) -> None:
        """In wider units: functions times a. Steps do not depend on past slopes."""
        self.W[...] *= a

    def predict(self, x: Array, h: Array) -> None:
        """h = W x for all copies at once."""
        h.fill(0)
        for f in range(x.shape[0]):
            for k in range(h.shape[0]):
                w, out = self.W[f, k], h[k]
                for i in range(out.shape[0]):
                    out[i] += w[i] * x[f]

    def update(self, x: Array, h: Array, feedback: Feedback) -> None:
        """One gradient step, then back onto the ball."""
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
