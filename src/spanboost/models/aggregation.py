"""Combine the forecasts of AutoBoost's experts into one, row by row, for every kind of loss.

Losses in the units of the labels share one method (`LabelAggregator`). Log-odds and scores of
classes are mixed as probabilities (score_aggregation.py). Models of version 0.1 keep the method
that they began with (old_aggregation.py).
"""

from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel
from spanboost.core.experts import new_ridge, new_share
from spanboost.core.quantile_shift import QuantileShift, new_shift
from spanboost.core.regressions import STRENGTHS, Regressions, new_regressions
from spanboost.core.second_order import SecondOrder, new_second_order
from spanboost.losses import (
    Logistic,
    Quantile,
    Softmax,
    Squared,
    VectorLoss,
    has_log_link,
    on_vectors,
    predicts_scores,
)
from spanboost.models.score_aggregation import (
    RIDGE,
    LogisticAggregator,
    SoftmaxAggregator,
    new_scratch,
    new_seen,
)

FIRM = 3  # an end of the range that this many labels share is firm
REACH = 0.25  # how far forecasts may leave the range at other ends, in widths of the range
ROUNDING = 1e-12  # numbers that differ by less than this part of their size are equal


class LabelScratch(NamedTuple):
    """Values that `mix` computes for a row and `learn_label` needs when the label is known."""

    candidates: Array  # [d, C] forecasts of the experts and of the regressions
    weights: Array  # [C] of the candidates
    x: Array  # [K] the inputs of the regressions
    mean: Array  # [1] the weighted mean of the experts
    mixed: Array  # [d, 1] the weighted mean of the candidates
    answer: Array  # [d] the same with the shift
    gradient: Array  # [d, 1] of the loss at the weighted mean
    regret: Array  # [C]
    distance: Array  # [C] of the candidates from their weighted mean


@kernel
class LabelAggregator(NamedTuple):
    """Any convex loss in the units of the labels: second-order weights over all candidates.

    Under squared loss of numbers, ridge regressions over the experts are candidates as well. They
    predict from the distances between the forecasts and their weighted mean, so before they have
    learned anything their forecast is the mean.

    Numbers are clipped to the range of the labels so far. They may leave it by a quarter of its
    width at an end that fewer than 3 labels share, because the next label may do so, too. Labels
    with a limit, such as 0 and 1 or a capped price, soon have firm ends. All values are in the
    model's units.

    Under quantile loss, the weighted mean is shifted (core/quantile_shift.py).
    """

    second_order: SecondOrder
    regressions: Regressions
    loss: VectorLoss
    clips: bool  # whether forecasts are numbers in the units of labels
    ends: Array  # [2, 2] the largest label, and how often it came; the same for -label
    shift: QuantileShift
    scratch: LabelScratch

    @property
    def relative(self) -> bool:
        """Whether forecasts and labels are in the model's units."""
        return True

    def mix(self, forecasts: Array, out: Array) -> None:
        """Write the combined forecast to out[d]; `forecasts` is [d, K]."""
        scratch = self.scratch
        candidates, weights, mixed = scratch.candidates, scratch.weights, scratch.mixed
        K = forecasts.shape[1]
        self.second_order.find_weights(weights)
        for c in range(forecasts.shape[0]):
            for k in range(K):
                candidates[c, k] = self.clip(forecasts[c, k])
        if self.regressions.factor.shape[0] > 0:
            self.regress(K)
        for c in range(forecasts.shape[0]):
            mixed[c, 0] = 0.0
            for k in range(weights.shape[0]):
                mixed[c, 0] += weights[k] * candidates[c, k]
            scratch.answer[c] = self.shifted(mixed[c, 0])
            out[c] = scratch.answer[c]

    def shifted(self, mixed: float) -> float:
        """Return the weighted mean with the shift, if there is one."""
        shift = self.shift.amount()
        return mixed if shift == 0 else self.clip(mixed + shift)

    def clip(self, value: float) -> float:
        """Return the forecast, or the nearest one that is allowed."""
        (high, many), (low, few) = self.ends[0], self.ends[1]
        if not self.clips or many == 0:
            return value
        reach = REACH * (high + low)
        high += reach if many < FIRM else 0.0
        low += reach if few < FIRM else 0.0
        return min(max(value, -low), high)

    def regress(self, K: int) -> None:
        """Set the forecasts of the regressions."""
        scratch, total, mean = self.scratch, 0.0, 0.0
        forecasts = scratch.candidates[0]
        for k in range(K):
            total += scratch.weights[k]
            mean += scratch.weights[k] * forecasts[k]
        mean /= total
        scratch.mean[0] = mean
        for k in range(K):
            scratch.x[k] = subtract(forecasts[k], mean)
        for s in range(self.regressions.factor.shape[0]):
            forecasts[K + s] = self.clip(mean + self.regressions.forecast(scratch.x, s))

    def learn_label(self, forecasts: Array, label: Array, weight: float) -> None:
        """Learn from the label of the row that was mixed last."""
        scratch, d = self.scratch, label.shape[0]
        self.loss.gradients(label, scratch.mixed, scratch.gradient)
        norm = 0.0
        for c in range(d):
            scratch.gradient[c, 0] *= weight
            norm = np.hypot(norm, scratch.gradient[c, 0])
        for k in range(scratch.regret.shape[0]):
            regret, distance = 0.0, 0.0
            for c in range(d):
                away = subtract(scratch.mixed[c, 0], scratch.candidates[c, k])
                regret += scratch.gradient[c, 0] * away
                distance = np.hypot(distance, away)
            scratch.regret[k], scratch.distance[k] = regret, distance
        self.second_order.learn(scratch.regret, norm, scratch.distance)
        if self.regressions.factor.shape[0] > 0:
            self.regressions.absorb(scratch.x, label[0] - scratch.mean[0], weight)
        self.shift.track(label[0], scratch.answer[0], weight)
        self.record(label[0])

    def record(self, y: float) -> None:
        """Add a label to the range of the labels."""
        record_largest(y, self.ends[0])
        record_largest(-y, self.ends[1])

    def rescale(self, a: float, b: float) -> None:
        """Multiply forecasts and labels by a, and gradients by b: the model's units changed."""
        self.second_order.rescale(a, b)
        self.regressions.resize(a)
        self.ends[:, 0] *= a
        self.shift.resize(a)

    def expert_weights(self) -> tuple[Array, float]:
        """Return the weight of each expert in the last row, and a constant to add."""
        K = len(self.scratch.x)
        own, regressions = self.scratch.weights[:K], self.scratch.weights[K:]
        weights = own.copy()
        for s, weight in enumerate(regressions):
            slope = self._slope(s)
            weights += weight * (own / own.sum() * (1 - slope.sum()) + slope)
        return weights, float(self.scratch.answer[0] - self.scratch.mixed[0, 0])

    def _slope(self, s: int) -> Array:
        """Return the coefficients of regression s for the row that was mixed last."""
        L, x = self.regressions.factor[s], self.scratch.x
        if not L[0, 0] > 0:
            return np.zeros(len(x))
        L = np.tril(L)
        inverse = np.linalg.inv(L @ L.T)
        mean_weight = self.regressions.total[1] / self.regressions.total[0]
        slope: Array = inverse @ self.regressions.moment / (1 + mean_weight * (x @ inverse @ x))
        return slope

    def candidate_weights(self) -> Array:
        """Return the weights of all candidates for the next row."""
        weights = np.zeros(len(self.scratch.weights))
        self.second_order.find_weights(weights)
        return weights


@kernel
def record_largest(value: float, end: Array) -> None:
    """Update the largest value so far, and how often it came."""
    if end[1] == 0 or value > end[0]:
        end[0], end[1] = value, 1
    elif value == end[0]:
        end[1] += 1


@kernel
def subtract(a: float, b: float) -> float:
    """Return a - b; 0 if that can be a rounding error."""
    return a - b if abs(a - b) > ROUNDING * max(abs(a), abs(b)) else 0.0


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


def mix_one(
    state: Any,
    forecasts: Array,
    scaled: Array,
    label: Array,
    out: Array,
    weight: float,
    centre: float,
    half: float,
    low: float,
    high: float,
) -> None:
    """Combine the forecasts [K] of one row, numbers in the units of the labels, as `Mixture` does.

    The label, which is as in `mix_and_learn_rows`, is learned unless the weight is 0.
    """
    for k in range(forecasts.shape[0]):
        scaled[0, k] = (forecasts[k] - centre) / half
    state.mix(scaled, out)
    if weight > 0:
        state.learn_label(scaled, label, weight)
    out[0] = min(max(centre + half * out[0], low), high)


def new_aggregator(loss: Any, K: int) -> Any:
    """Return an aggregator for K experts that has learned nothing."""
    if isinstance(loss, Logistic):
        share, ridge = new_share(K + 1), new_ridge(K + 2, RIDGE)
        return LogisticAggregator(share, ridge, new_seen(), new_scratch(K + 1, K + 2))
    if isinstance(loss, Softmax):
        return SoftmaxAggregator(new_share(K), new_seen(), new_scratch(K, 1))
    vectors = on_vectors(loss)
    strengths = len(STRENGTHS) if isinstance(loss, Squared) else 0
    d, C = int(vectors.d), K + strengths
    return LabelAggregator(
        second_order=new_second_order(C),
        regressions=new_regressions(K, strengths),
        loss=vectors,
        clips=d == 1 and not (predicts_scores(loss) or has_log_link(loss)),
        ends=np.zeros((2, 2)),
        shift=new_shift(loss.tau if isinstance(loss, Quantile) else None),
        scratch=LabelScratch(
            candidates=np.zeros((d, C)),
            weights=np.zeros(C),
            x=np.zeros(K),
            mean=np.zeros(1),
            mixed=np.zeros((d, 1)),
            answer=np.zeros(d),
            gradient=np.zeros((d, 1)),
            regret=np.zeros(C),
            distance=np.zeros(C),
        ),
    )
