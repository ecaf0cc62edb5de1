"""Ridge regressions of different strengths over the same rows, solved anew in every round.

A regression of strength n starts as if it had already learned n rows with label 0. These rows have
the mean size of the real ones and point equally in all directions. The strength therefore does not
depend on units, and matters less as rows arrive. Old rows also lose influence, so the regressions
follow a stream that drifts. The forecast for a row includes the row itself, with label 0, as the
forecaster of Vovk, Azoury and Warmuth does.
"""

import math
from typing import NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel

STRENGTHS = (1.0, 30.0, 1000.0)
SMALLEST = 1e-100  # smaller numbers on the diagonal of a factor could overflow as divisors
KEEP = 1 - 1e-5  # influence that earlier rows keep in every round: about 100,000 rows count


@kernel
class Regressions(NamedTuple):
    """The sums of all rows, and a Cholesky factor for each strength.

    Each round calls `forecast` for every strength, then `absorb`.
    """

    gram: Array  # [K, K] the weighted sum of x x', in which older rows count less
    moment: Array  # [K] the weighted sum of y x
    total: Array  # [2] number of rows, and their weight
    factor: Array  # [S, K, K] lower triangle L with L L' = gram + ridge I
    scratch: Array  # [K] the solution for the current row

    def forecast(self, x: Array, s: int) -> float:
        """Return the forecast of regression s for the row x; 0 while nothing can be learned."""
        L, v, K = self.factor[s], self.scratch, x.shape[0]
        if not L[0, 0] > 0:
            return 0.0
        for i in range(K):
            rest = x[i]
            for k in range(i):
                rest -= L[i, k] * v[k]
            v[i] = rest / L[i, i]
        size, answer = 0.0, 0.0
        for i in range(K - 1, -1, -1):
            rest = v[i]
            for k in range(i + 1, K):
                rest -= L[k, i] * v[k]
            v[i] = rest / L[i, i]
            size += v[i] * x[i]
            answer += v[i] * self.moment[i]
        return answer / (1 + self.total[1] / self.total[0] * size)

    def absorb(self, x: Array, y: float, weight: float) -> None:
        """Learn the label of the row just forecast."""
        trace, K = 0.0, x.shape[0]
        for i in range(K):
            for j in range(K):
                self.gram[i, j] = KEEP * self.gram[i, j] + weight * (x[i] * x[j])
            self.moment[i] = KEEP * self.moment[i] + weight * (y * x[i])
            trace += self.gram[i, i]
        self.total[0] = KEEP * self.total[0] + 1
        self.total[1] = KEEP * self.total[1] + weight
        for s in range(self.factor.shape[0]):
            ridge = STRENGTHS[s] * trace / (K * self.total[0])
            if ridge > SMALLEST * SMALLEST:
                factorise(self.gram, ridge, self.factor[s])

    def resize(self, a: float) -> None:
        """Multiply the numbers of all rows, and their labels, by a."""
        self.gram[...] *= a * a
        self.moment[...] *= a * a
        self.factor[...] *= a
        if not np.diagonal(self.factor, 0, 1, 2).min(initial=np.inf) > SMALLEST:
            self.factor[...] = 0.0  # until the next row

    @property
    def sound(self) -> bool:
        """Whether every factor can be divided by; `forecast` does not check."""
        diagonal = np.diagonal(self.factor, axis1=1, axis2=2)
        return bool((diagonal > 0).all() or (diagonal == 0).all())


@kernel
def factorise(gram: Array, ridge: float, L: Array) -> None:
    """Set the lower triangle L, with L L' = gram + ridge I (Cholesky)."""
    least = math.sqrt(ridge)  # no pivot can be smaller, except by rounding
    for i in range(gram.shape[0]):
        for j in range(i):
            rest = gram[i, j]
            for k in range(j):
                rest -= L[i, k] * L[j, k]
            L[i, j] = rest / L[j, j]
        rest = gram[i, i] + ridge
        for k in range(i):
            rest -= L[i, k] * L[i, k]
        L[i, i] = max(math.sqrt(max(rest, 0.0)), least)


def new_regressions(K: int, strengths: int) -> Regressions:
    """Return regressions over rows of K numbers that have learned nothing.

    strengths: number of regressions.
    """
    return Regressions(
        gram=np.zeros((K, K)),
        moment=np.zeros(K),
        total=np.zeros(2),
        factor=np.zeros((strengths, K, K)),
        scratch=np.zeros(K),
    )
