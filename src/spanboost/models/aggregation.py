"""How AutoBoost makes one forecast of many, row by row, for every kind of loss.

- Squared loss of numbers: the experts, and online ridge regression over them, are the candidates,
  weighted by fixed share. Squared loss is exp-concave, so that little is lost against the best
  candidate, even one that changes (`shared_regret`). The regression is over how far forecasts are
  from their mean: as long as it knows nothing, it forecasts the mean.
- Logistic and softmax: probabilities are mixed, by fixed share at rate 1; for two classes with a
  candidate more, a regression of the log-odds by Newton's steps.
- Any other convex loss: the mean of the forecasts, weighted by Hedge.

Everything is in units of the labels' range so far, and forecasts are cut to it: a label that was
never seen is not forecast. A weight counts relative to the others: the heaviest row so far weighs 1
where regrets are bounded.
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

LOW, HIGH, HEAVIEST, WEIGHT, ROUNDS, SPREAD = range(6)  # what is kept of the labels and losses
RIDGE = 1.0
FARTHEST = 30.0  # log-odds


class Scratch(NamedTuple):
    """What a row leaves for its label."""

    forecasts: Array  # [candidates]
    x: Array  # [K] or a few more: the row of the regression
    losses: Array  # [candidates]
    mean: Array  # [1] what the regression adds to


@kernel
class SquaredAggregator(NamedTuple):
    """Of squared loss: fixed share over the experts and their regression."""

    share: FixedShare
    ridge: VovkAzouryWarmuth
    seen: Array  # LOW to SPREAD
    scratch: Scratch

    def mix(self, forecasts: Array, out: Array) -> None:
        """out[0], of the forecasts [1, K] of the experts."""
        low, high, room = self.seen[LOW], self.seen[HIGH], self.scratch
        K = forecasts.shape[1]
        mean, total = 0.0, 0.0
        for k in range(K):
            value = forecasts[0, k]
            room.forecasts[k] = min(max(value, low), high) if low <= high else value
            mean += self.share.weights[k] * room.forecasts[k]
            total += self.share.weights[k]
        mean /= total
        width = high - low if low < high else 1.0
        for k in range(K):
            room.x[k] = (room.forecasts[k] - mean) / width
        regression = mean + width * self.ridge.forecast(room.x, 1.0)
        room.forecasts[K] = min(max(regression, low), high) if low <= high else mean
        room.mean[0] = mean
        answer = mean * total + self.share.weights[K] * room.forecasts[K]
        out[0] = min(max(answer, low), high) if low <= high else answer

    def settle(self, forecasts: Array, label: Array, weight: float) -> None:
        """The label of the row that was mixed last."""
        y, room = label[0], self.scratch
        record_label(self.seen, y, weight)
        width = self.seen[HIGH] - self.seen[LOW]
        if not width > 0:
            return
        for k in range(room.forecasts.shape[0]):
            error = (room.forecasts[k] - y) / width
            room.losses[k] = error * error
        self.share.charge(room.losses, relative_weight(self.seen, weight) / 2)
        self.ridge.absorb(room.x, (y - room.mean[0]) / width, usual_weight(self.seen, weight))

    def expert_weights(self) -> tuple[Array, float]:
        """Return what each expert counts for in the last row, and the constant that is added."""
        x = self.scratch.x
        slope = self.ridge.inverse @ self.ridge.moment / (1 + x @ self.ridge.inverse @ x)
        return _with_regression(self.share.weights, slope, 0.0), 0.0


@kernel
class LogisticAggregator(NamedTuple):
    """Of logistic loss: a mixture of probabilities, and a regression among what is mixed."""

    share: FixedShare
    ridge: VovkAzouryWarmuth
    seen: Array
    scratch: Scratch

    def mix(self, forecasts: Array, out: Array) -> None:
        """out[0], log-odds, of those of the experts [1, K]."""
        room, K = self.scratch, forecasts.shape[1]
        mean, total = 0.0, 0.0
        for k in range(K):
            room.forecasts[k] = forecasts[0, k]
            mean += self.share.weights[k] * room.forecasts[k]
            total += self.share.weights[k]
        mean /= total
        for k in range(K):
            room.x[k] = room.forecasts[k] - mean
        room.x[K], room.x[K + 1] = mean, 1.0
        room.mean[0] = mean
        regression = mean + self.ridge.forecast(room.x, 0.0)
        room.forecasts[K] = max(min(regression, FARTHEST), -FARTHEST)
        positive, negative = 0.0, 0.0
        for k in range(K + 1):
            positive += self.share.weights[k] * probability(room.forecasts[k])
            negative += self.share.weights[k] * probability(-room.forecasts[k])
        out[0] = math.log(positive) - math.log(negative)

    def settle(self, forecasts: Array, label: Array, weight: float) -> None:
        """The label, -1 or 1, of the row that was mixed last."""
        room = self.scratch
        record_label(self.seen, label[0], weight)
        for k in range(room.losses.shape[0]):
            room.losses[k] = -math.log(probability(label[0] * room.forecasts[k]))
        self.share.charge(room.losses, relative_weight(self.seen, weight))
        odds = room.forecasts[room.forecasts.shape[0] - 1]
        p = probability(odds)
        curvature, residual = p * (1 - p), (label[0] + 1) / 2 - p
        target = odds - room.mean[0] + residual / curvature  # where Newton's step leads
        self.ridge.absorb(room.x, target, usual_weight(self.seen, weight) * curvature)

    def expert_weights(self) -> tuple[Array, float]:
        """Return what each expert counts for in the last row, and the constant that is added."""
        slope, K = self.ridge.inverse @ self.ridge.moment, len(self.share.weights) - 1
        weights = _with_regression(self.share.weights, slope[:K], slope[K])
        return weights, self.share.weights[K] * slope[K + 1]


@kernel
class SoftmaxAggregator(NamedTuple):
    """Of softmax: a mixture of probabilities."""

    share: FixedShare
    seen: Array
    scratch: Scratch

    def mix(self, forecasts: Array, out: Array) -> None:
        """out[d], logarithms of probabilities, of the scores [d, K] of the experts."""
        d, K = forecasts.shape
        for c in range(d):
            out[c] = 0.0
        for k in range(K):
            top = log_sum(forecasts, k)
            for c in range(d):
                out[c] += self.share.weights[k] * math.exp(forecasts[c, k] - top)
        for c in range(d):
            out[c] = math.log(max(out[c], 1e-300))

    def settle(self, forecasts: Array, label: Array, weight: float) -> None:
        """The label, a unit vector, of the row that was mixed last."""
        room = self.scratch
        record_label(self.seen, 0.0, weight)
        for k in range(forecasts.shape[1]):
            room.losses[k] = log_sum(forecasts, k)
            for c in range(forecasts.shape[0]):
                room.losses[k] -= label[c] * forecasts[c, k]
        self.share.charge(room.losses, relative_weight(self.seen, weight))

    def expert_weights(self) -> tuple[Array, float]:
        """Return what each expert counts for in the last row, and the constant that is added."""
        return self.share.weights, 0.0


@kernel
class HedgeAggregator(NamedTuple):
    """Of any other convex loss: the mean under Hedge's weights."""

    share: Hedge
    loss: VectorLoss
    seen: Array
    scratch: Scratch

    def mix(self, forecasts: Array, out: Array) -> None:
        """out[d], of the forecasts [d, K] of the experts."""
        for c in range(forecasts.shape[0]):
            out[c] = 0.0
            for k in range(forecasts.shape[1]):
                out[c] += self.share.weights[k] * forecasts[c, k]

    def settle(self, forecasts: Array, label: Array, weight: float) -> None:
        """The label of the row that was mixed last."""
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
        """Return what each expert counts for in the last row, and the constant that is added."""
        return self.share.weights, 0.0


@kernel
def record_label(seen: Array, y: float, weight: float) -> None:
    """A label more."""
    seen[LOW], seen[HIGH] = min(seen[LOW], y), max(seen[HIGH], y)
    seen[HEAVIEST] = max(seen[HEAVIEST], weight)
    seen[WEIGHT] += weight
    seen[ROUNDS] += 1


@kernel
def relative_weight(seen: Array, weight: float) -> float:
    """The row's weight relative to the heaviest so far."""
    return weight / seen[HEAVIEST]


@kernel
def usual_weight(seen: Array, weight: float) -> float:
    """The row's weight relative to the mean so far."""
    return weight * seen[ROUNDS] / seen[WEIGHT]


@kernel
def probability(odds: float) -> float:
    """Of +1, from its log-odds; never 0, nor 1."""
    return 1 / (1 + math.exp(-max(min(odds, FARTHEST), -FARTHEST)))


@kernel
def log_sum(scores: Array, k: int) -> float:
    """The logarithm of the sum of exp(scores[:, k])."""
    top = scores[0, k]
    for c in range(scores.shape[0]):
        top = max(top, scores[c, k])
    total = 0.0
    for c in range(scores.shape[0]):
        total += math.exp(scores[c, k] - top)
    return top + math.log(total)


def _with_regression(weights: Array, slope: Array, of_mean: float) -> Array:
    """Return the experts' weights, with what they count for through the regression.

    The regression is over the distances of forecasts from their mean, to which it adds.
    """
    own, regression = weights[:-1], weights[-1]
    mean = own / own.sum() * (1 + of_mean - slope.sum())
    return np.asarray(own + regression * (mean + slope))


def mix_rows(state: Any, forecasts: Array, out: Array) -> None:
    """out[t] = one forecast of forecasts[t], for every row."""
    for t in range(out.shape[0]):
        state.mix(forecasts[t], out[t])


def combine_rows(state: Any, forecasts: Array, labels: Array, weights: Array, out: Array) -> None:
    """As `mix_rows`; each label is seen once its row has been answered."""
    for t in range(out.shape[0]):
        state.mix(forecasts[t], out[t])
        if weights[t] > 0:
            state.settle(forecasts[t], labels[t], weights[t])


def new_aggregator(loss: Any, K: int) -> Any:
    """For K experts of whom nothing is known."""
    seen = np.array([np.inf, -np.inf, 0.0, 0.0, 0.0, 0.0])

    def room(candidates: int, terms: int) -> Scratch:
        return Scratch(np.zeros(candidates), np.zeros(terms), np.zeros(candidates), np.zeros(1))

    if isinstance(loss, Squared):
        return SquaredAggregator(new_share(K + 1), new_ridge(K, RIDGE), seen, room(K + 1, K))
    if isinstance(loss, Logistic):
        return LogisticAggregator(
            new_share(K + 1), new_ridge(K + 2, RIDGE), seen, room(K + 1, K + 2)
        )
    if isinstance(loss, Softmax):
        return SoftmaxAggregator(new_share(K), seen, room(K, 1))
    return HedgeAggregator(new_hedge(K), on_vectors(loss), seen, room(K, 1))
