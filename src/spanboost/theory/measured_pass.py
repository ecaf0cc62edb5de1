"""The measured recursion of every booster in a model, and what combining them costs.

A model that combines boosters, such as AutoBoost, predicts a. A part of it predicts e. With g the
gradient of the loss at a, convexity gives l(a) <= l(e) + g . (a - e). The sum of g . (a - e) is
*aggregation*, the regret of the weights against this part; docs/auto.md bounds it for every stream.
The bound of the part plus aggregation is a bound for the model. The part with the least sum counts.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.data.batch import as_batch
from spanboost.losses import on_vectors, values_of
from spanboost.models.model import Model
from spanboost.theory.audit_text import audit_html, describe_sum
from spanboost.theory.conditions import check_convex, check_norm_range, check_values
from spanboost.theory.recursion import MeasuredBound, Recursion, gradients

BLOCK = 1024  # rows that are learned and then measured at once; memory grows with it


class PartBound(NamedTuple):
    """A bound on the regret of a model against one function, through one of its boosters."""

    recursion: MeasuredBound
    part: str | None = None  # the name of the booster; None if the model is a single booster
    aggregation: float = 0.0  # regret of the weights against the booster

    @property
    def terms(self) -> dict[str, float]:
        """The bound by cause."""
        more = {} if self.part is None else {"aggregation": self.aggregation}
        return self.recursion.terms | more

    @property
    def total(self) -> float:
        """The regret bound."""
        return sum(self.terms.values())

    def __repr__(self) -> str:
        part = "" if self.part is None else f", through {self.part!r}"
        return f"<PartBound: {describe_sum(self.terms)}{part}>"


class MeasuredAudit(NamedTuple):
    """The loss of a model, that of a function, and the measured bound on the difference."""

    loss: float
    comparator: float
    bound: PartBound

    @property
    def regret(self) -> float:
        """The model's loss minus the comparator's."""
        return self.loss - self.comparator

    @property
    def slack(self) -> float:
        """The bound minus the measured regret; never negative, except by rounding."""
        return self.bound.total - self.regret

    def __repr__(self) -> str:
        return f"<MeasuredAudit: regret {self.regret:z.4g}, bound {self.bound.total:z.4g}>"

    def _repr_html_(self) -> str:
        terms = self.bound.terms | {"bound": self.bound.total}
        return audit_html(self.loss, self.comparator, terms)


def audit(
    model: Model, X: Any, y: Any, f: Array, f_norm: float = 1.0, weights: Any = None
) -> MeasuredAudit:
    """Learn a stream, and bound the regret of this pass against any function.

    This covers every learner, feedback, convex loss, label range and weight, and AutoBoost. All
    values are in the units of the labels, or scores if the model predicts scores.

    f: [T] or [T, d], the values of the function on the stream.
    f_norm: the norm W by which the recursion divides f, at least 1. The theorems have
        max{1, ||f||_1 / lambda} for SpanBoost and 1 for HullBoost; the bound holds for any value.
    """
    check_norm_range(f_norm)
    loss, T = on_vectors(model.loss_), len(y)
    f = check_values(f, T, loss.d)
    weights = np.ones(T) if weights is None else np.asarray(weights, np.float64)
    measured = MeasuredPass(model)
    along, total, comparator = np.zeros(measured.stages), 0.0, 0.0
    stream = as_batch(X, y, weights)
    try:
        measured.check_loss(y, f)
        for first in range(0, T, BLOCK):
            rows = slice(first, min(first + BLOCK, T))
            part = stream.part(rows.start, rows.stop)
            answers = model.learn_many(part.X, y[rows], weights[rows])
            slopes = measured.add(y[rows], weights[rows], answers)
            along += np.einsum("tdn,td->n", slopes, f[rows])
            labels = measured.labels_of(y[rows])
            answers = np.ascontiguousarray(answers, np.float64).reshape(labels.shape)
            total += float(weights[rows] @ values_of(loss, labels, answers))
            comparator += float(weights[rows] @ values_of(loss, labels, f[rows]))
    finally:
        measured.close()
    return MeasuredAudit(total, comparator, measured.bound(along, comparator, f_norm))


class MeasuredPass:
    """Measures the boosters of a model, which record their stages until `close`."""

    def __init__(self, model: Model) -> None:
        self.model, self.single = model, not model.parts
        self.loss = on_vectors(model.loss_)
        boosters = model.parts or {"": model.as_booster()}
        self.recursions = {name: Recursion(one) for name, one in boosters.items()}
        self.aggregation = np.zeros(len(boosters))
        self.stages = sum(one.N for one in self.recursions.values())
        self.failure: str | None = None  # why the pass was not measured

    def close(self) -> None:
        """Stop recording."""
        for one in self.recursions.values():
            one.close()

    def check_loss(self, y: Any, f: Array) -> None:
        """Check that the loss is convex at the labels, the values of f and the predictions."""
        reach = max(one.booster.reach_ for one in self.recursions.values())
        known = self.model.labels
        if known.scores:
            check_convex(self.model.loss_, max(reach, float(np.abs(f).max(initial=0.0))))
            return
        # before the range is known, predictions are its centre, which may be far from all labels
        ends = (known.centre - known.half, known.centre + known.half, y, f)
        values = np.concatenate([np.ravel(np.asarray(one, np.float64)) for one in ends])
        low, high = float(values.min()), float(values.max())
        check_convex(self.model.loss_, reach, (low + high) / 2, (high - low) / 2 or 1.0)

    def labels_of(self, y: Any) -> Array:
        """Return labels [rows, d] as the loss takes them, in the units of the predictions."""
        if self.model.labels.scores:
            return self.model.labels.plan(y, np.ones(len(y))).labels
        return np.ascontiguousarray(y, np.float64).reshape(len(y), self.loss.d)

    def add(self, y: Any, weights: Array | None, answers: Array | None) -> Array:
        """Measure the block that was learned last; return its gradients [rows, d, stages].

        answers: the model's predictions; required if it combines several boosters.
        """
        rows = [one.recorded for one in self.recursions.values()]
        if rows != [len(y)] * len(rows):
            self.failure = "some rows were added that the model had not just learned"
        elif answers is None and not self.single:
            self.failure = "a model of several boosters needs its predictions to be added, too"
        if self.failure is not None:
            return np.zeros((len(y), self.loss.d, self.stages))
        labels = self.labels_of(y)
        weights = np.ones(len(y)) if weights is None else np.asarray(weights, np.float64)
        measured = [one.add(labels, weights) for one in self.recursions.values()]
        if answers is not None and not self.single:
            mixed = np.ascontiguousarray(answers, np.float64).reshape(labels.shape)
            slopes = weights[:, None] * gradients(self.loss, labels, mixed)
            self.aggregation += [float((slopes * (mixed - part)).sum()) for _, part in measured]
        return np.concatenate([slopes for slopes, _ in measured], axis=2)

    def bound(self, along: Array, comparator_loss: float, f_norm: float = 1.0) -> PartBound:
        """Return the least bound on the regret against a function f, over all boosters.

        along: [stages] the sum of f(x) times the gradients that `add` returned.
        f_norm: the norm W of f, as in `Recursion.bound`.
        """
        ends = np.cumsum([one.N for one in self.recursions.values()])
        each = zip(
            self.recursions.items(), np.split(along, ends[:-1]), self.aggregation, strict=True
        )
        bounds = [
            PartBound(one.bound(part, comparator_loss, f_norm), name or None, float(cost))
            for (name, one), part, cost in each
        ]
        return min(bounds, key=lambda one: math.inf if math.isnan(one.total) else one.total)
