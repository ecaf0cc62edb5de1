"""Combine log-odds and scores of classes: mixtures of the probabilities that they stand for.

- Logistic loss: the probabilities of the candidates are mixed by fixed share at rate 1. The
  candidates are the experts and a regression of the log-odds, fitted by Newton steps.
- Softmax: the probabilities of the experts are mixed by fixed share at rate 1.

Row weights are relative: the heaviest row so far has weight 1 where a regret is bounded.
"""

import math
from typing import NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel
from spanboost.core.experts import FixedShare, VovkAzouryWarmuth

# Indices into `seen`: label range, largest and total weight, number of rows, range of the losses.
LOW, HIGH, HEAVIEST, WEIGHT, ROUNDS, SPREAD = range(6)
RIDGE = 1.0
FARTHEST = 30.0  # log-odds are clipped to [-FARTHEST, FARTHEST]


class Scratch(NamedTuple):
    """Values that `mix` computes for a row and `learn_label` needs when the label is known."""

    forecasts: Array  # [candidates]
    x: Array  # [K], or [K + 2] for logistic loss: the inputs of the regression
    losses: Array  # [candidates]
    mean: Array  # [1] the weighted mean of the forecasts


@kernel
class LogisticAggregator(NamedTuple):
    """Logistic loss: a mixture of the probabilities of the experts and of a regression."""

    share: FixedShare
    ridge: VovkAzouryWarmuth
    seen: Array
    scratch: Scratch

    @property
    def relative(self) -> bool:
        """Whether forecasts and labels are in the model's units."""
        return False

    def mix(self, forecasts: Array, out: Array) -> None:
        """Write the combined log-odds to out[0]; `forecasts` is [1, K], log-odds."""
        scratch, K = self.scratch, forecasts.shape[1]
        mean, total = 0.0, 0.0
        for k in range(K):
            scratch.forecasts[k] = forecasts[0, k]
            mean += self.share.weights[k] * scratch.forecasts[k]
            total += self.share.weights[k]
        mean /= total
        for k in range(K):
            scratch.x[k] = scratch.forecasts[k] - mean
        scratch.x[K], scratch.x[K + 1] = mean, 1.0
        scratch.mean[0] = mean
        regression = mean + self.ridge.forecast(scratch.x, 0.0)
        scratch.forecasts[K] = max(min(regression, FARTHEST), -FARTHEST)
        positive, negative = 0.0, 0.0
        for k in range(K + 1):
            positive += self.share.weights[k] * probability(scratch.forecasts[k])
            negative += self.share.weights[k] * probability(-scratch.forecasts[k])
        out[0] = math.log(positive) - math.log(negative)

    def learn_label(self, forecasts: Array, label: Array, weight: float) -> None:
        """Learn from the label, -1 or 1, of the row that was mixed last."""
        scratch = self.scratch
        record_label(self.seen, label[0], weight)
        for k in range(scratch.losses.shape[0]):
            scratch.losses[k] = -math.log(probability(label[0] * scratch.forecasts[k]))
        self.share.charge(scratch.losses, weight_over_heaviest(self.seen, weight))
        odds = scratch.forecasts[scratch.forecasts.shape[0] - 1]
        p = probability(odds)
        curvature, residual = p * (1 - p), (label[0] + 1) / 2 - p
        target = odds - scratch.mean[0] + residual / curvature  # the end of a Newton step
        self.ridge.absorb(scratch.x, target, weight_over_mean(self.seen, weight) * curvature)

    def candidate_weights(self) -> Array:
        """Return the weights of all candidates for the next row."""
        return self.share.weights

    def expert_weights(self) -> tuple[Array, float]:
        """Return the weight of each expert in the last row, and a constant to add."""
        slope, K = self.ridge.inverse @ self.ridge.moment, len(self.share.weights) - 1
        weights = add_regression(self.share.weights, slope[:K], slope[K])
        return weights, self.share.weights[K] * slope[K + 1]


@kernel
class SoftmaxAggregator(NamedTuple):
    """Softmax: a mixture of probabilities."""

    share: FixedShare
    seen: Array
    scratch: Scratch

    @property
    def relative(self) -> bool:
        """Whether forecasts and labels are in the model's units."""
        return False

    def mix(self, forecasts: Array, out: Array) -> None:
        """Write the logarithms of the mixed probabilities to out[d]; `forecasts` is [d, K]."""
        d, K = forecasts.shape
        for c in range(d):
            out[c] = 0.0
        for k in range(K):
            top = log_sum(forecasts, k)
            for c in range(d):
                out[c] += self.share.weights[k] * math.exp(forecasts[c, k] - top)
        for c in range(d):
            out[c] = math.log(max(out[c], 1e-300))

    def learn_label(self, forecasts: Array, label: Array, weight: float) -> None:
        """Learn from the label, a unit vector, of the row that was mixed last."""
        scratch = self.scratch
        record_label(self.seen, 0.0, weight)
        for k in range(forecasts.shape[1]):
            scratch.losses[k] = log_sum(forecasts, k)
            for c in range(forecasts.shape[0]):
                scratch.losses[k] -= label[c] * forecasts[c, k]
        self.share.charge(scratch.losses, weight_over_heaviest(self.seen, weight))

    def candidate_weights(self) -> Array:
        """Return the weights of all candidates for the next row."""
        return self.share.weights

    def expert_weights(self) -> tuple[Array, float]:
        """Return the weight of each expert in the last row, and a constant to add."""
        return self.share.weights, 0.0


@kernel
def record_label(seen: Array, y: float, weight: float) -> None:
    """Add one label and its weight to `seen`."""
    seen[LOW], seen[HIGH] = min(seen[LOW], y), max(seen[HIGH], y)
    seen[HEAVIEST] = max(seen[HEAVIEST], weight)
    seen[WEIGHT] += weight
    seen[ROUNDS] += 1


@kernel
def weight_over_heaviest(seen: Array, weight: float) -> float:
    """Return the row's weight relative to the heaviest so far."""
    return weight / seen[HEAVIEST]


@kernel
def weight_over_mean(seen: Array, weight: float) -> float:
    """Return the row's weight relative to the mean so far."""
    return weight * seen[ROUNDS] / seen[WEIGHT]


@kernel
def probability(odds: float) -> float:
    """Return the probability of the label +1 from its log-odds; never 0 or 1."""
    return 1 / (1 + math.exp(-max(min(odds, FARTHEST), -FARTHEST)))


@kernel
def log_sum(scores: Array, k: int) -> float:
    """Return the logarithm of the sum of exp(scores[:, k])."""
    top = scores[0, k]
    for c in range(scores.shape[0]):
        top = max(top, scores[c, k])
    total = 0.0
    for c in range(scores.shape[0]):
        total += math.exp(scores[c, k] - top)
    return top + math.log(total)


def add_regression(weights: Array, slope: Array, mean_slope: float) -> Array:
    """Return the weights of the experts, including their influence through the regression.

    slope: coefficients of the regression for the distances of the forecasts from their mean.
    mean_slope: its coefficient for the mean itself.
    """
    own, regression = weights[:-1], weights[-1]
    mean = own / own.sum() * (1 + mean_slope - slope.sum())
    return np.asarray(own + regression * (mean + slope))


def new_seen() -> Array:
    """Return what aggregators keep about the rows, before the first one."""
    return np.array([np.inf, -np.inf, 0.0, 0.0, 0.0, 0.0])


def new_scratch(candidates: int, terms: int) -> Scratch:
    """Allocate the values of one row."""
    return Scratch(np.zeros(candidates), np.zeros(terms), np.zeros(candidates), np.zeros(1))
