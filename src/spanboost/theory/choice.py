"""The regret of a mixture against each of its candidates, measured and bounded.

A mixture answers a, and a candidate predicts f. Losses in the units of the labels are bounded by
the second-order weights (core/second_order.py): over an interval of rounds with one scale s, and
for every rate r, the regret against the candidate as the mixture sees it is at most

    V r / s  +  ln(C J T) s / r  +  surprise.

V, s, T and the surprise are measured. The mixture clips a forecast to the labels seen so far; what
that changes in the candidate's loss, *clipping*, is measured and added. So is what the shift of
quantiles adds to the loss. Logistic loss and softmax
mix probabilities, and their regret is at most ln(C T) (core/experts.py).
"""

from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.core.experts import shared_regret
from spanboost.core.second_order import SecondOrder, second_order_regret
from spanboost.data.batch import as_batch
from spanboost.losses import on_vectors, values_of
from spanboost.models.mixture import REGRESSION, Mixture
from spanboost.models.model import Model
from spanboost.theory.conditions import check_convex


class ChoiceBound(NamedTuple):
    """A candidate of a mixture: its loss, the regret of the mixture against it, and the bound.

    The bound includes the rounding errors of the sums, which matter if there is one candidate only.
    """

    loss: float
    regret: float
    bound: float


def audit_choice(model: Model, X: Any, y: Any, weights: Any = None) -> dict[str, ChoiceBound]:
    """Learn a stream; return the bound on the model's regret against each of its candidates.

    The candidates are those of a booster with n="auto" or eta="auto", or the experts of AutoBoost.
    The bound holds for every stream. Losses are sums over the rows. They are in units in which the
    label range is [-1, 1], or of scores. Rows are learned one by one, which takes time.

    >>> import numpy as np
    >>> from spanboost import LinearSGD, SpanBoost
    >>> from spanboost.theory.choice import audit_choice
    >>> X = np.random.default_rng(0).uniform(-1, 1, (300, 2))
    >>> model = SpanBoost(LinearSGD(), n="auto", eta="auto")
    >>> audit = audit_choice(model, X, X @ [0.5, -0.3])
    >>> all(one.regret <= one.bound for one in audit.values())
    True
    """
    mixture: Mixture | None = getattr(model, "mixture", None)
    if mixture is None:
        raise ValueError(f"{model!r} has no candidates: use n='auto', eta='auto' or AutoBoost")
    if isinstance(getattr(model, "label_range", None), str) and not model.labels.scores:
        raise ValueError("the bound needs a fixed label range: give label_range=(low, high)")
    if model.labels.log_link:
        raise ValueError("the bound is not computed for losses with a log link")
    if model.without_corrections() is not model:
        raise ValueError(
            "the bound is not computed for past labels and recent rows: give past=False and "
            "recent=False"
        )
    if model.started:
        raise ValueError("the bound holds for a fresh model, and this one has been used")
    check_convex(model.loss_, 1.0)
    stream = as_batch(X, y, weights)
    ledger: SecondOrderLedger | ShareLedger = ShareLedger(mixture)
    if mixture.aggregator.relative:
        ledger = SecondOrderLedger(mixture)
    losses = np.zeros(mixture.K + 1)  # of the candidates, and of the model
    for t in range(stream.rows):
        row = stream.part(t, t + 1)
        losses += _learn_row(model, mixture, row, ledger)
    names = [name for name in model.weights_ if name != REGRESSION]
    *each, ours = losses.tolist()
    weight = float(stream.rows if stream.weights is None else stream.weights.sum())
    found = zip(names, each, ledger.bounds(), strict=True)
    return {
        name: ChoiceBound(
            loss, ours - loss, bound + _rounding(stream.rows, weight + ours + 2 * loss)
        )
        for name, loss, bound in found
    }


def _rounding(rows: int, summed: float) -> float:
    """Return how far sums over the rows can be from exact ones.

    A sum of T rounded numbers is off by at most T units in the last place of the sum of their
    sizes. A loss itself takes a few operations on predictions and labels, here at most 32.
    """
    return float(np.finfo(np.float64).eps) * (rows + 32) * summed


def _learn_row(model: Any, mixture: Mixture, row: Any, ledger: Any) -> Array:
    """Learn one row; return the weighted losses of the candidates and of the model."""
    block = model.check(row.X, row.y, row.weights)
    label, weight = np.array(block.labels, np.float64), float(block.weights[0])
    if weight == 0:
        return np.zeros(mixture.K + 1)
    forecasts = model.forecasts(row.X)
    ledger.open(weight)
    answer = np.reshape(model.learn_checked(block), (1, -1, 1))
    centre, half = (0.0, 1.0) if model.labels.scores else (model.labels.centre, model.labels.half)
    points = np.concatenate([forecasts, answer], axis=2)[0].T
    points = np.ascontiguousarray((points - centre) / half)
    loss, labels = on_vectors(model.loss_), np.repeat(label, len(points), axis=0)
    losses: Array = weight * values_of(loss, labels, points)
    ledger.close(loss, labels, weight, losses[:-1])
    return losses


class SecondOrderLedger:
    """Sums over the rounds of second-order weights, from which the bound follows."""

    def __init__(self, mixture: Mixture) -> None:
        self.mixture, K = mixture, mixture.K
        self.total, self.clipping, self.shifting = np.zeros(K), np.zeros(K), 0.0
        self.scale, self.variance, self.surprise = np.zeros(K), np.zeros(K), np.zeros(K)
        self.before: Array = np.zeros(K)

    @property
    def state(self) -> SecondOrder:
        """The weights."""
        state: SecondOrder = self.mixture.aggregator.second_order
        return state

    def open(self, weight: float) -> None:
        """Begin a round: a candidate whose scale has changed begins an interval."""
        self.before = self.state.scale.copy()
        for k in np.flatnonzero(self.before[: self.mixture.K] != self.scale):
            self.end_interval(int(k))
            self.scale[k] = self.before[k]

    def close(self, loss: Any, labels: Array, weight: float, losses: Array) -> None:
        """End a round that was learned; `losses` are those of the candidates."""
        scratch, K = self.mixture.aggregator.scratch, self.mixture.K
        regret = scratch.regret.copy()
        excess = 1.0
        if self.before.min() > 0:
            excess = max(1.0, float((np.abs(regret) / self.before).max()))
        counted = np.where(self.scale > 0, regret[:K] / excess, 0.0)
        self.variance += counted**2
        self.surprise += regret[:K] - counted
        mixed, answer = (part.reshape(1, -1) for part in (scratch.mixed, scratch.answer))
        self.shifting += weight * float(_loss(loss, labels, answer) - _loss(loss, labels, mixed))
        seen = np.ascontiguousarray(scratch.candidates[:, :K].T)
        self.clipping += weight * values_of(loss, labels[:K], seen) - losses

    def end_interval(self, k: int) -> None:
        """Add the bound of an interval that has ended."""
        if self.scale[k] > 0:
            accounts, last = len(self.before), max(int(self.state.rounds[0]), 1)
            self.total[k] += second_order_regret(
                accounts, last, self.scale[k], self.variance[k], self.surprise[k]
            )
        else:
            self.total[k] += self.surprise[k]
        self.variance[k], self.surprise[k] = 0.0, 0.0

    def bounds(self) -> list[float]:
        """Return the bound on the regret against each candidate; no more rounds follow."""
        for k in range(self.mixture.K):
            self.end_interval(k)
        return [float(bound) for bound in self.total + self.clipping + self.shifting]


def _loss(loss: Any, labels: Array, points: Array) -> float:
    """Return the loss of one row."""
    return float(values_of(loss, labels[:1], np.ascontiguousarray(points))[0])


class ShareLedger:
    """Counts the rounds of mixed probabilities."""

    def __init__(self, mixture: Mixture) -> None:
        self.mixture, self.rounds = mixture, 0
        self.clipping = np.zeros(mixture.K)

    def open(self, weight: float) -> None:
        """Begin a round."""
        if weight != 1:
            raise ValueError(f"the bound for mixed probabilities needs weights of 1 (got {weight})")
        self.rounds += 1

    def close(self, loss: Any, labels: Array, weight: float, losses: Array) -> None:
        """End a round that was learned; `losses` are those of the candidates."""
        self.clipping += self.mixture.aggregator.scratch.losses[: self.mixture.K] - losses

    def bounds(self) -> list[float]:
        """Return the bound on the regret against each candidate."""
        candidates = len(self.mixture.aggregator.share.weights)
        bound = shared_regret(candidates, max(self.rounds, 1), 0, 1.0)
        return [bound + float(clipping) for clipping in self.clipping]
