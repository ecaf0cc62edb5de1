"""Forecasts of experts combined, with no more regret than a theorem allows.

K experts forecast; then their losses are known. An aggregator's regret is how much more its own
forecasts lose than those of the best expert in hindsight. Weights of `Hedge` and `FixedShare` are
those of the round to come; the forecast is the mean of the experts' forecasts under them.

Three theorems, of losses that are convex in the forecast (N. Cesa-Bianchi and G. Lugosi,
*Prediction, Learning, and Games*, 2006: PLG; M. Herbster and M. Warmuth, 1998):

- losses in an interval of width `spread`, the rate sqrt(8 ln K / t) / spread: `hedge_regret`;
- losses that are exp-concave at some rate, and that rate: `concave_regret`, the same however long
  the stream is; and `shared_regret`, against a best expert that changes;
- squared loss, against the best linear combination of the forecasts: `ridge_regret`.

A loss is exp-concave at a rate if exp(-rate * loss) is concave in the forecast: squared loss is so
at 1 / (2 R^2) where labels and forecasts lie in an interval of width R, the logarithmic loss of
probabilities is at 1.
"""

import math
from typing import NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel


@kernel
def hedge_rate(M: int, t: int, spread: float) -> float:
    """The learning rate of round t = 1, 2, ..."""
    return math.sqrt(8 * math.log(M) / t) / spread


def hedge_regret(M: int, T: int, spread: float) -> float:
    """Hedge's regret after T rounds with losses in an interval of width `spread` (PLG 2.3).

    >>> round(hedge_regret(M=2, T=100, spread=1.0), 3)
    12.068
    """
    return spread * (2 * math.sqrt(T / 2 * math.log(M)) + math.sqrt(math.log(M) / 8))


def concave_regret(K: int, rate: float) -> float:
    """Hedge's regret with losses that are exp-concave at its rate, after any time (PLG 3.2).

    Where the rate falls from round to round, that of the last one counts.

    >>> round(concave_regret(K=8, rate=1 / (2 * 1.0**2)), 3)
    4.159
    """
    return math.log(K) / rate


def shared_regret(K: int, T: int, switches: int, rate: float) -> float:
    """FixedShare's regret against experts that change so many times in T rounds.

    Losses are exp-concave at the rate. The weights are those of a mixture of all sequences of
    experts; a sequence starts with weight 1 / K, goes on in round t with at least 1 - 1 / t and
    changes with at least 1 / (K t). The product is at least (K T)^-(switches + 1).

    >>> round(shared_regret(K=8, T=1000, switches=0, rate=0.5), 3)
    17.974
    """
    return (switches + 1) * math.log(K * T) / rate


def ridge_regret(K: int, T: int, ridge: float, size: float, label: float, norm: float) -> float:
    """How much more VovkAzouryWarmuth loses than u . x, for any u of this norm (PLG 11.8).

    Rows x have norms up to `size`, labels lie between -label and label.

    >>> round(ridge_regret(K=2, T=1000, ridge=1.0, size=1.0, label=1.0, norm=1.0), 3)
    13.433
    """
    return ridge * norm**2 + K * label**2 * math.log1p(T * size**2 / (ridge * K))


@kernel
class Hedge(NamedTuple):
    """Exponential weights: each expert's is proportional to exp(-rate * its losses so far)."""

    weights: Array  # [K] their sum is 1
    losses: Array  # [K] summed up, less the least

    def charge(self, losses: Array, rate: float) -> None:
        """A round is over; the rate is that of the next one."""
        least = self.losses[0] + losses[0]
        for k in range(losses.shape[0]):
            self.losses[k] += losses[k]
            least = min(least, self.losses[k])
        total = 0.0
        for k in range(losses.shape[0]):
            self.losses[k] -= least
            self.weights[k] = math.exp(-rate * self.losses[k])
            total += self.weights[k]
        for k in range(losses.shape[0]):
            self.weights[k] /= total


@kernel
class FixedShare(NamedTuple):
    """Exponential weights of which, after round t, a share of 1 / (t + 1) is dealt out evenly.

    So an expert that was bad is soon back when it becomes good, and nobody has to say how often.
    """

    weights: Array  # [K] their sum is 1
    rounds: Array  # [1]

    def charge(self, losses: Array, rate: float) -> None:
        """A round is over, with losses that are exp-concave at this rate."""
        least = losses[0]
        for k in range(1, losses.shape[0]):
            least = min(least, losses[k])
        total = 0.0
        for k in range(losses.shape[0]):
            self.weights[k] *= math.exp(-rate * (losses[k] - least))
            total += self.weights[k]
        self.rounds[0] += 1
        share = 1 / (self.rounds[0] + 1)
        for k in range(losses.shape[0]):
            self.weights[k] = (1 - share) * self.weights[k] / total + share / losses.shape[0]


@kernel
class VovkAzouryWarmuth(NamedTuple):
    """Online ridge regression that counts the row at hand among those seen, its label as 0."""

    inverse: Array  # [K, K] of the ridge and the sum of x x'
    moment: Array  # [K] the sum of y x
    scratch: Array  # [K] of the row at hand: the inverse before it, times x

    def forecast(self, x: Array, weight: float) -> float:
        """moment . inverse . x, with x among the rows already; `absorb` must follow."""
        K = x.shape[0]
        size, answer = 0.0, 0.0
        for i in range(K):
            row, total = self.inverse[i], 0.0
            for j in range(K):
                total += row[j] * x[j]
            self.scratch[i] = total
            size += total * x[i]
            answer += total * self.moment[i]
        return answer / (1 + weight * size)

    def absorb(self, x: Array, y: float, weight: float) -> None:
        """The label of the row at hand: by Sherman and Morrison's formula, in O(K^2)."""
        K = x.shape[0]
        size = 0.0
        for i in range(K):
            size += self.scratch[i] * x[i]
        part = weight / (1 + weight * size)
        for i in range(K):
            row = self.inverse[i]
            for j in range(K):
                row[j] -= part * self.scratch[i] * self.scratch[j]
            self.moment[i] += weight * y * x[i]


def new_hedge(K: int) -> Hedge:
    """K experts of whom nothing is known."""
    return Hedge(np.full(K, 1 / K), np.zeros(K))


def new_share(K: int) -> FixedShare:
    """K experts of whom nothing is known."""
    return FixedShare(np.full(K, 1 / K), np.zeros(1, np.int64))


def new_ridge(K: int, ridge: float) -> VovkAzouryWarmuth:
    """The function 0 of K numbers."""
    return VovkAzouryWarmuth(np.eye(K) / ridge, np.zeros(K), np.zeros(K))
