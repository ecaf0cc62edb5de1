"""Combine the forecasts of AutoBoost's experts into one, row by row, for every kind of loss.

- Squared loss of numbers: the candidates are the experts and an online ridge regression over them.
  They are weighted by fixed share. Squared loss is exp-concave, so the regret against the best
  candidate is small, even if the best one changes over time (`shared_regret`). The regression
  predicts from the distances between the forecasts and their mean. Before it has learned anything,
  its forecast is the mean.
- Logistic loss: the probabilities of the candidates are mixed by fixed share at rate 1. The
  candidates are the experts and a regression of the log-odds, fitted by Newton steps.
- Softmax: the probabilities of the experts are mixed by fixed share at rate 1.
- Any other convex loss: the mean of the forecasts, weighted by Hedge.

All values are in units of the label range so far, and forecasts are clipped to that range. Row
weights are relative: where a regret is bounded, the heaviest row so far has weight 1.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel
from spanboost.core.experts import (
    FixedShare,
    Hedge,
    VovkAzouryWarmuth,
    hedge_rate,
    new_hedge,
    new_ridge,
    new_share,
)
from spanboost.losses import Logistic, Softmax, Squared, VectorLoss, on_vectors

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
class SquaredAggregator(NamedTuple):
    """Squared loss: fixed share over the experts and a regression over them."""

    share: FixedShare
    ridge: VovkAzouryWarmuth
    seen: Array  # [6] indexed by LOW to SPREAD
    scratch: Scratch

    def mix(self, forecasts: Array, out: Array) -> None:
        """Write the combined forecast to out[0]; `forecasts` is [1, K]."""
        low, high, scratch = self.seen[LOW], self.seen[HIGH], self.scratch
        K = forecasts.shape[1]
        mean, total = 0.0, 0.0
        for k in range(K):
            value = forecasts[0, k]
            scratch.forecasts[k] = min(max(value, low), high) if low <= high else value
            mean += self.share.weights[k] * scratch.forecasts[k]
            total += self.share.weights[k]
        mean /= total
        width = high - low if low < high else 1.0
        for k in range(K):
            scratch.x[k] = (scratch.forecasts[k] - mean) / width
        regression = mean + width * self.ridge.forecast(scratch.x, 1.0)
        scratch.forecasts[K] = min(max(regression, low), high) if low <= high else mean
        scratch.mean[0] = mean
        answer = mean * total + self.share.weights[K] * scratch.forecasts[K]
        out[0] = min(max(answer, low), high) if low <= high else answer

    def learn_label(self, forecasts: Array, label: Array, weight: float) -> None:
        """Learn from the label of the row that was mixed last."""
        y, scratch = label[0], self.scratch
        record_label(self.seen, y, weight)
        width = self.seen[HIGH] - self.seen[LOW]
        if not width > 0:
            return
        for k in range(scratch.forecasts.shape[0]):
            error = (scratch.forecasts[k] - y) / width
            scratch.losses[k] = error * error
        self.share.charge(scratch.losses, weight_over_heaviest(self.seen, weight) / 2)
        self.ridge.absorb(
            scratch.x, (y - scratch.mean[0]) / width, weight_over_mean(self.seen, weight)
        )

    def expert_weights(self) -> tuple[Array, float]:
        """Return the weight of each expert in the last row, and a constant to add."""
        x = self.scratch.x
        slope = self.ridge.inverse @ self.ridge.moment / (1 + x @ self.ridge.inverse @ x)
        return _add_regression(self.share.weights, slope, 0.0), 0.0


@kernel
class LogisticAggregator(NamedTuple):
    """Logistic loss: a mixture of the probabilities of the experts and of a regression."""

    share: FixedShare
    ridge: VovkAzouryWarmuth
    seen: Array
    scratch: Scratch

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

    def expert_weights(self) -> tuple[Array, float]:
        """Return the weight of each expert in the last row, and a constant to add."""
        slope, K = self.ridge.inverse @ self.ridge.moment, len(self.share.weights) - 1
        weights = _add_regression(self.share.weights, slope[:K], slope[K])
        return weights, self.share.weights[K] * slope[K + 1]


@kernel
class SoftmaxAggregator(NamedTuple):
    """Softmax: a mixture of probabilities."""

    share: FixedShare
    seen: Array
    scratch: Scratch

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

    def expert_weights(self) -> tuple[Array, float]:
        """Return the weight of each expert in the last row, and a constant to add."""
        return self.share.weights, 0.0


@kernel
class HedgeAggregator(NamedTuple):
    """Any other convex loss: the mean of the forecasts under Hedge's weights."""

    share: Hedge
    loss: VectorLoss
    seen: Array
    scratch: Scratch

    def mix(self, forecasts: Array, out: Array) -> None:
        """Write the combined forecast to out[d]; `forecasts` is [d, K]."""
        for c in range(forecasts.shape[0]):
            out[c] = 0.0
            for k in range(forecasts.shape[1]):
                out[c] += self.share.weights[k] * forecasts[c, k]

    def learn_label(self, forecasts: Array, label: Array, weight: float) -> None:
        """Learn from the label of the row that was mixed last."""
        losses, K = self.scratch.losses, forecasts.shape[1]
        record_label(self.seen, 0.0, weight)
        self.loss.values(label, forecasts, losses)
        least, most = losses[0], losses[0]
        for k in range(K):
            losses[k] *= weight
            least, most = min(least, losses[k]), max(most, losses[k])
        spread = max(self.seen[SPREAD], most - least)
        if spread > 0 and spread < 1e300:
            self.seen[SPREAD] = spread
            self.share.charge(losses, hedge_rate(K, int(self.seen[ROUNDS]) + 1, spread))

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


def _add_regression(weights: Array, slope: Array, mean_slope: float) -> Array:
    """Return the weights of the experts, including their influence through the regression.

    slope: coefficients of the regression for the distances of the forecasts from their mean.
    mean_slope: its coefficient for the mean itself.
    """
    own, regression = weights[:-1], weights[-1]
    mean = own / own.sum() * (1 + mean_slope - slope.sum())
    return np.asarray(own + regression * (mean + slope))


def mix_rows(state: Any, forecasts: Array, out: Array) -> None:
    """Write the combined forecast of every row t to out[t]; learn nothing."""
    for t in range(out.shape[0]):
        state.mix(forecasts[t], out[t])


def mix_and_learn_rows(
    state: Any, forecasts: Array, labels: Array, weights: Array, out: Array
) -> None:
    """Like `mix_rows`, but learn the label of each row after its forecast is written."""
    for t in range(out.shape[0]):
        state.mix(forecasts[t], out[t])
        if weights[t] > 0:
            state.learn_label(forecasts[t], labels[t], weights[t])


def new_aggregator(loss: Any, K: int) -> Any:
    """Return an aggregator for K experts that has learned nothing."""
    seen = np.array([np.inf, -np.inf, 0.0, 0.0, 0.0, 0.0])

    def new_scratch(candidates: int, terms: int) -> Scratch:
        return Scratch(np.zeros(candidates), np.zeros(terms), np.zeros(candidates), np.zeros(1))

    if isinstance(loss, Squared):
        return SquaredAggregator(new_share(K + 1), new_ridge(K, RIDGE), seen, new_scratch(K + 1, K))
    if isinstance(loss, Logistic):
        return LogisticAggregator(
            new_share(K + 1), new_ridge(K + 2, RIDGE), seen, new_scratch(K + 1, K + 2)
        )
    if isinstance(loss, Softmax):
        return SoftmaxAggregator(new_share(K), seen, new_scratch(K, 1))
    return HedgeAggregator(new_hedge(K), on_vectors(loss), seen, new_scratch(K, 1))
