"""The aggregators of version 0.1 for losses in the units of labels.

Only models that version 0.1 saved use them, so that these models learn on as they began. All
values are in the users' units, forecasts are clipped to the range of the labels so far, and the
rates are those of losses within that range.
"""

from typing import Any, NamedTuple

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
from spanboost.losses import Squared, VectorLoss, on_vectors
from spanboost.models.score_aggregation import (
    HIGH,
    LOW,
    RIDGE,
    ROUNDS,
    SPREAD,
    Scratch,
    add_regression,
    new_scratch,
    new_seen,
    record_label,
    weight_over_heaviest,
    weight_over_mean,
)


@kernel
class SquaredAggregator(NamedTuple):
    """Squared loss: fixed share over the experts and a regression over them."""

    share: FixedShare
    ridge: VovkAzouryWarmuth
    seen: Array  # [6] indexed by LOW to SPREAD
    scratch: Scratch

    @property
    def relative(self) -> bool:
        """Whether forecasts and labels are in the model's units."""
        return False

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

    def candidate_weights(self) -> Array:
        """Return the weights of all candidates for the next row."""
        return self.share.weights

    def expert_weights(self) -> tuple[Array, float]:
        """Return the weight of each expert in the last row, and a constant to add."""
        x = self.scratch.x
        slope = self.ridge.inverse @ self.ridge.moment / (1 + x @ self.ridge.inverse @ x)
        return add_regression(self.share.weights, slope, 0.0), 0.0


@kernel
class HedgeAggregator(NamedTuple):
    """Any other convex loss: the mean of the forecasts under Hedge's weights."""

    share: Hedge
    loss: VectorLoss
    seen: Array
    scratch: Scratch

    @property
    def relative(self) -> bool:
        """Whether forecasts and labels are in the model's units."""
        return False

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

    def candidate_weights(self) -> Array:
        """Return the weights of all candidates for the next row."""
        return self.share.weights

    def expert_weights(self) -> tuple[Array, float]:
        """Return the weight of each expert in the last row, and a constant to add."""
        return self.share.weights, 0.0


def new_old_aggregator(loss: Any, K: int) -> Any:
    """Return an aggregator of version 0.1 for K experts that has learned nothing."""
    if isinstance(loss, Squared):
        share, ridge = new_share(K + 1), new_ridge(K, RIDGE)
        return SquaredAggregator(share, ridge, new_seen(), new_scratch(K + 1, K))
    return HedgeAggregator(new_hedge(K), on_vectors(loss), new_seen(), new_scratch(K, 1))
