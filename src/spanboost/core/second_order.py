"""Weights for K experts that learn at the scale of each expert's own regret, whatever the units.

In each round the K experts forecast, the aggregator answers with a weighted mean, and then the
gradient g of a convex loss at the answer is revealed. Expert k would have lost less by at most

    r_k = <g, answer - forecast_k>,

so bounding the sum of r_k bounds the regret. The weights are those of a market: every expert has J
accounts, and account (k, j) bets the fixed part RATES[j] / scale_k of its wealth on r_k. The answer
weights each expert by what its accounts bet, so the bets of a round cancel out and the total wealth
stays 1. No account can own more than all the wealth; this bounds the regret:

    sum of r_k  <=  V RATES[j] / scale_k  +  ln(K J T) scale_k / RATES[j]

for every j, with V the sum of r_k^2 (`second_order_regret`). It holds over every interval of rounds
during which scale_k does not change, T being its last round. The argument in three steps:

- |r_k| <= scale_k, so a bet multiplies the wealth by 1 + x with |x| <= 1/2, and
  ln(1 + x) >= x - x^2.
- After round t, a share of 1 / (t + 1) of all wealth is dealt out evenly, so that an expert that
  was bad and becomes good regains its weight quickly. An account starts an interval that begins in
  round a with at least 1 / (a K J), and keeps a / T of its wealth in all the deals up to round T.
- Its wealth at the end is at most 1. Taking logarithms gives the bound.

The scale of an expert follows the sizes of the gradients and of the expert's distances from the
answer, which are known only afterwards. A typical size is the eighth root of the mean eighth power:
rare large values count almost as much as frequent ones, as they should when few rows decide. In a
round with a larger regret than the scale of some expert allows, all bets are divided by the same
number; what is then left of r_k in that round, the *surprise*, adds to the bound. Nothing depends
on the units of forecasts, losses or row weights.

Related methods: P. Gaillard, G. Stoltz, T. van Erven, *A Second-order Bound with Excess Losses*,
COLT 2014; W. Koolen, T. van Erven, *Second-order Quantile Methods*, COLT 2015; O. Wintenberger,
*Optimal Learning with Bernstein Online Aggregation*, 2017; for the deals, M. Herbster and
M. Warmuth, 1998.
"""

import math
from typing import NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel

RATES = (1 / 2, 1 / 8, 1 / 32)  # parts of the wealth that accounts bet, over the scale
MARGIN = 3.0  # scales are this many times the typical size of past gradients and distances
FADING = 20.0  # round t has weight FADING / t in these means, so they cover about t / 20 rounds
MEMORY = 3e-4  # smallest weight of a round, so that they follow a stream of any length
STEADY = 2.0  # a scale stays as it is while its estimate is within this factor of it
CLOSEST = 1e-4  # smallest scale of an expert, relative to the largest of any expert
LEAST = 1e-150  # smaller scales count as 0: nothing can be divided by them


def second_order_regret(
    K: int, T: int, scale: float, variance: float, surprise: float = 0.0
) -> float:
    """Bound the regret of `SecondOrder` against one expert over an interval of rounds.

    During the interval the scale of the expert is constant. T is the number of the interval's last
    round, `variance` the sum of the squared regrets in it, each as the bets count it, `surprise`
    the sum of what the bets leave out. Against a sequence of experts, add the bounds of its parts.

    >>> round(second_order_regret(K=8, T=1000, scale=1.0, variance=10.0), 3)
    25.172
    """
    rates = [rate / scale for rate in RATES]
    logarithm = math.log(K * len(RATES) * T)
    return min(rate * variance + logarithm / rate for rate in rates) + surprise


@kernel
class SecondOrder(NamedTuple):
    """The wealth of the accounts and the scales of the experts.

    Each round calls `find_weights`, then `learn`.
    """

    wealth: Array  # [K, J] of each account; the sum is 1
    scale: Array  # [K] bound on the regrets that bets allow for; 0 before the first regret
    distance: Array  # [K] mean eighth power of the distance between the forecast and the answer
    gradient: Array  # [1] mean eighth power of the gradient
    rounds: Array  # [1] rounds so far

    def find_weights(self, weights: Array) -> None:
        """Set the weights [K] of the experts in the answer; their sum is 1."""
        total = 0.0
        for k in range(weights.shape[0]):
            bets = 0.0
            for j in range(len(RATES)):
                bets += self.wealth[k, j] * RATES[j]
            weights[k] = bets / self.scale[k] if self.scale[k] > 0 else bets
            total += weights[k]
        for k in range(weights.shape[0]):
            weights[k] /= total

    def learn(self, regret: Array, gradient: float, distance: Array) -> None:
        """Learn from a round: regrets r [K], norm of g, distances from the answer [K]."""
        if self.scale[0] > 0:
            self.settle_bets(regret)
        self.rounds[0] += 1
        self.deal()
        self.follow_scales(gradient, distance)

    def excess(self, regret: Array) -> float:
        """Return the number, at least 1, by which all bets of this round are divided."""
        most = 1.0
        for k in range(regret.shape[0]):
            most = max(most, abs(regret[k]) / self.scale[k])
        return most

    def settle_bets(self, regret: Array) -> None:
        """Multiply the wealth of each account by 1 + its part times r over the scale."""
        excess = self.excess(regret)
        for k in range(regret.shape[0]):
            won = regret[k] / self.scale[k] / excess
            for j in range(len(RATES)):
                self.wealth[k, j] *= 1 + RATES[j] * won

    def deal(self) -> None:
        """Deal out a share of all wealth evenly; rounding errors in the sum do not accumulate."""
        total, K, J = 0.0, self.wealth.shape[0], self.wealth.shape[1]
        for k in range(K):
            for j in range(J):
                total += self.wealth[k, j]
        share = 1 / (self.rounds[0] + 1)
        for k in range(K):
            for j in range(J):
                self.wealth[k, j] = (1 - share) * self.wealth[k, j] / total + share / (K * J)

    def follow_scales(self, gradient: float, distance: Array) -> None:
        """Move the scales of the experts to the sizes of gradients and distances so far."""
        part = max(FADING / (self.rounds[0] + FADING - 1), MEMORY)
        size = gradient
        if self.gradient[0] > 0:  # one absurd gradient must not slow down learning for long
            size = min(size, MARGIN * eighth_root(self.gradient[0]))
        self.gradient[0] += part * (eighth_power(size) - self.gradient[0])
        typical, largest = eighth_root(self.gradient[0]), 0.0
        for k in range(distance.shape[0]):
            self.distance[k] += part * (eighth_power(distance[k]) - self.distance[k])
            new = MARGIN * MARGIN * typical * eighth_root(self.distance[k])
            if new > STEADY * self.scale[k] or STEADY * new < self.scale[k]:
                self.scale[k] = new if new > LEAST else 0.0
            largest = max(largest, self.scale[k])
        for k in range(distance.shape[0]):
            # an expert that hardly differs from the answer must not win by rounding errors
            self.scale[k] = max(self.scale[k], CLOSEST * largest)

    def rescale(self, a: float, b: float) -> None:
        """Multiply distances by a and gradients by b: the units of the forecasts changed."""
        self.distance[...] *= eighth_power(a)
        self.gradient[...] *= eighth_power(b)
        self.scale[...] *= a * b
        if self.scale.min() < LEAST:
            self.scale[...] = 0.0  # unknown again


@kernel
def eighth_power(x: float) -> float:
    """Return x^8."""
    square = x * x
    return (square * square) * (square * square)


@kernel
def eighth_root(x: float) -> float:
    """Return the positive eighth root of x."""
    return math.sqrt(math.sqrt(math.sqrt(x)))


def new_second_order(K: int) -> SecondOrder:
    """Return equal weights for K experts."""
    J = len(RATES)
    return SecondOrder(
        wealth=np.full((K, J), 1 / (K * J)),
        scale=np.zeros(K),
        distance=np.zeros(K),
        gradient=np.zeros(1),
        rounds=np.zeros(1, np.int64),
    )
