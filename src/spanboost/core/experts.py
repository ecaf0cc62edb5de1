"""Aggregators that combine the forecasts of K experts, with regret bounds.

In each round the K experts forecast; then their losses are revealed. The regret of an aggregator is
its own loss minus that of the best expert in hindsight. `Hedge` and `FixedShare` hold the weights
for the next round; their forecast is the weighted mean of the experts' forecasts.

The bounds hold for losses that are convex in the forecast (N. Cesa-Bianchi and G. Lugosi,
*Prediction, Learning, and Games*, 2006, cited as PLG; M. Herbster and M. Warmuth, 1998):

- `hedge_regret`: losses in an interval of width `spread`, with rate sqrt(8 ln K / t) / spread;
- `interval_regret`: the same over every interval of rounds, for `FixedShare`;
- `concave_regret`: losses that are exp-concave at the rate used; the bound does not depend on the
  number of rounds. `shared_regret` is the same against a best expert that changes;
- `ridge_regret`: squared loss, against the best linear combination of the forecasts.

A loss is exp-concave at a rate if exp(-rate * loss) is concave in the forecast. Squared loss is
exp-concave at 1 / (2 R^2) if labels and forecasts lie in an interval of width R; the logarithmic
loss of probabilities is exp-concave at 1.
"""

import math
from typing import NamedTuple

import numpy as np

from spanboost.checks import is_round_count
from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel


@kernel
def hedge_rate(M: int, t: int, spread: float) -> float:
    """Return Hedge's learning rate in round t = 1, 2, ..."""
    return math.sqrt(8 * math.log(M) / t) / spread


def is_round(t: int) -> bool:
    """Return whether t, from a file, is a round that `hedge_rate` accepts and counting can follow.

    >>> is_round(1), is_round(0), is_round(2**63 - 1)
    (True, False, False)
    """
    return bool(t > 0) and is_round_count(t)


def hedge_regret(M: int, T: int, spread: float) -> float:
    """Bound Hedge's regret after T rounds, for losses in an interval of width `spread` (PLG 2.3).

    >>> round(hedge_regret(M=2, T=100, spread=1.0), 3)
    12.068
    """
    return spread * (2 * math.sqrt(T / 2 * math.log(M)) + math.sqrt(math.log(M) / 8))


def concave_regret(K: int, rate: float) -> float:
    """Bound Hedge's regret after any number of rounds, for exp-concave losses (PLG 3.2).

    The losses are exp-concave at `rate`. If the rate decreases over the rounds, use the last one.

    >>> round(concave_regret(K=8, rate=1 / (2 * 1.0**2)), 3)
    4.159
    """
    return math.log(K) / rate


def shared_regret(K: int, T: int, switches: int, rate: float) -> float:
    """Bound FixedShare's regret against sequences of experts with this many switches in T rounds.

    The losses are exp-concave at `rate`. The weights are those of a mixture over all sequences of
    experts. A sequence starts with weight 1 / K. In round t the weight is multiplied by at least
    1 - 1 / t if the expert stays the same, by at least 1 / (K t) if it changes. The product is at
    least (K T)^-(switches + 1).

    >>> round(shared_regret(K=8, T=1000, switches=0, rate=0.5), 3)
    17.974
    """
    return (switches + 1) * math.log(K * T) / rate


def interval_regret(K: int, last: int, rate: float) -> float:
    """Bound FixedShare's regret against any expert over an interval of rounds that ends at `last`.

    The losses are exp-concave at `rate`. When the interval begins in round a, every expert has a
    weight of at least 1 / (a K). In the rounds of the interval it keeps a / last of what it does
    not lose by its own losses. So the bound holds for all intervals at once, whatever they are.

    >>> round(interval_regret(K=3, last=1000, rate=1.0), 3)
    8.006
    """
    return math.log(K * last) / rate


def ridge_regret(K: int, T: int, ridge: float, size: float, label: float, norm: float) -> float:
    """Bound the regret of VovkAzouryWarmuth against u . x, for any u of this norm (PLG 11.8).

    Rows x have norm at most `size`; labels lie in [-label, label].

    >>> round(ridge_regret(K=2, T=1000, ridge=1.0, size=1.0, label=1.0, norm=1.0), 3)
    13.433
    """
    return ridge * norm**2 + K * label**2 * math.log1p(T * size**2 / (ridge * K))


@kernel
class Hedge(NamedTuple):
    """Exponential weights, proportional to exp(-rate * the expert's summed losses)."""

    weights: Array  # [K] their sum is 1
    losses: Array  # [K] summed losses, minus the smallest of them

    def charge(self, losses: Array, rate: float) -> None:
        """Add the losses of a round and compute the weights of the next, which has this rate."""
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
    """Exponential weights with a share of 1 / (t + 1) redistributed evenly after round t.

    An expert that was bad and becomes good regains its weight quickly. The number of such changes
    need not be known.
    """

    weights: Array  # [K] their sum is 1
    rounds: Array  # [1] rounds so far

    def charge(self, losses: Array, rate: float) -> None:
        """Update the weights by the losses of a round, exp-concave at this rate."""
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
    """Online ridge regression that includes the current row, with label 0, in its fit.

    Each round calls `forecast`, then `absorb`.
    """

    inverse: Array  # [K, K] the inverse of ridge * I + sum of x x'
    moment: Array  # [K] the sum of y x
    scratch: Array  # [K] the inverse times x, for the current row

    def forecast(self, x: Array, weight: float) -> float:
        """Return moment . inverse . x, where the inverse already includes x."""
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
        """Learn the label of the row just forecast (Sherman-Morrison formula, O(K^2))."""
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
    """Return equal weights for K experts."""
    return Hedge(np.full(K, 1 / K), np.zeros(K))


def new_share(K: int) -> FixedShare:
    """Return equal weights for K experts."""
    return FixedShare(np.full(K, 1 / K), np.zeros(1, np.int64))


def new_ridge(K: int, ridge: float) -> VovkAzouryWarmuth:
    """Return the regression that forecasts 0 for every row of K numbers."""
    return VovkAzouryWarmuth(np.eye(K) / ridge, np.zeros(K), np.zeros(K))
