"""A certificate of one pass: the loss of a model, the least possible loss, bounds on the regret.

The comparators are the best functions in hindsight: linear functions under squared loss
(hindsight.py), and the best constant. Everything is in the units of the labels. There are two kinds
of bounds:

- The measured bound (recursion.py) holds for this pass. It covers every learner, AutoBoost, every
  feedback and label range, and says where the regret comes from.
- The theorem's bound (regret.py) holds for every stream, under the conditions of an audit. If the
  conditions do not hold, the certificate gives the reason.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from spanboost.analysis.label_sums import LabelSums
from spanboost.compiling.arrays import Array
from spanboost.learners.ball import LinearBall
from spanboost.learners.stumps import Stumps
from spanboost.losses import Hinge, Logistic, Squared
from spanboost.models.booster import Booster, HullBoost, SpanBoost
from spanboost.models.html import rounded, section, table
from spanboost.models.model import Model
from spanboost.theory.bounds import HullBound, SpanBound
from spanboost.theory.conditions import check_weights
from spanboost.theory.hindsight import Best, Hindsight
from spanboost.theory.measured_pass import MeasuredPass, PartBound
from spanboost.theory.regret import (
    check_covered,
    hull_bound,
    linear_norm,
    scaled_norm,
    span_bound,
)

LOSSES = (Squared, Logistic, Hinge)  # their best constants follow from sums of labels
LINEAR = "the best linear function of all features and a constant"
FROM_MIDDLE = "the best linear function of all features, from the middle of the label range"
IN_BALL = "the best linear function of all features that stays in the label range"
IN_HULL = "the best convex combination of functions of one feature that stay in the label range"
CONSTANT = "the best constant"


class Promise(NamedTuple):
    """A theorem's bound on the regret, in the units of the labels."""

    theorem: str
    terms: SpanBound | HullBound
    middle_regret: float  # the regret of always predicting the middle of the label range

    @property
    def bound(self) -> float:
        """The upper bound on the regret."""
        return self.terms.total


class Comparator(NamedTuple):
    """A fixed function, and what the theorems need to know about it."""

    name: str
    best: Best
    f_norm: float = 1.0  # max{1, ||f||_1 / lambda}, where the theorem has a norm for it
    promise: Promise | None = None


class Comparison(NamedTuple):
    """A model and the best function of a class in hindsight; losses are sums over all rows."""

    comparator: str
    loss: float  # the model's
    comparator_loss: float
    gap: float  # no function of the class loses less than comparator_loss - gap
    promise: Promise | None
    measured: PartBound | None = None  # the bound for this pass

    @property
    def regret(self) -> float:
        """The loss of the model minus that of the comparator."""
        return self.loss - self.comparator_loss

    @property
    def slack(self) -> float | None:
        """The theorem's bound minus the regret; a negative value would refute the theorem."""
        return None if self.promise is None else self.promise.bound - self.regret

    @property
    def measured_slack(self) -> float | None:
        """The measured bound minus the regret; never negative, except by rounding."""
        return None if self.measured is None else self.measured.total - self.regret


class Certificate(NamedTuple):
    """The certificate of one pass."""

    weight: float  # sum of the weights of all rows
    features: int
    comparisons: list[Comparison]  # the theorem's comparator first, the best constant last
    unproved: str | None  # why there is no bound for every stream
    unmeasured: str | None  # why there is no measured bound
    too_many: bool  # whether there are too many features for linear comparators

    def __repr__(self) -> str:
        if not self.comparisons:
            return "<Certificate: nothing to compare with>"
        first = self.comparisons[0]
        regret = f"regret {first.regret:z.4g} against {first.comparator}"
        bound = "" if first.measured is None else f", measured bound {first.measured.total:z.4g}"
        return f"<Certificate: loss {first.loss:z.4g}, {regret}{bound}>"

    def _repr_html_(self) -> str:
        rows = [
            (
                one.comparator,
                rounded(one.comparator_loss),
                rounded(one.regret),
                rounded(None if one.measured is None else one.measured.total),
                rounded(None if one.promise is None else one.promise.bound),
            )
            for one in self.comparisons
        ]
        loss = self.comparisons[0].loss if self.comparisons else None
        head = ("comparator", "its loss", "regret", "measured bound", "bound for every stream")
        reasons = {"no measured bound": self.unmeasured, "no bound for every stream": self.unproved}
        notes = [(name, why) for name, why in reasons.items() if why is not None]
        tables = table(rows, head) + (table(notes) if notes else "")
        return section(f"certificate: loss {rounded(loss)}", tables)


class Witness:
    """Collects the rows of a pass, and computes its certificate.

    booster: the model, before the pass.
    learn: whether the booster will learn the rows, or only be tested on them.
    """

    def __init__(self, booster: Model, *, learn: bool = True) -> None:
        if not isinstance(booster.loss_, LOSSES):
            raise ValueError("a certificate requires squared loss, logistic loss or hinge loss")
        self.booster = booster
        self.labels = LabelSums(booster.loss_)
        self.measured = MeasuredPass(booster) if learn else None
        stages = 0 if self.measured is None else self.measured.stages
        names = booster.encoder.names
        squared = isinstance(booster.loss_, Squared)
        bits = None if names is None else names.bits
        self.seen = Hindsight(bits, slopes=stages) if squared else None
        self.slopes = np.zeros(stages)  # summed over all rows
        self.heaviest = 0.0
        self._unproved = _unproved(booster, learn)

    def add(
        self, X: Any, y: Array, weights: Array | None = None, answers: Array | None = None
    ) -> None:
        """Add the rows that the booster has just learned.

        answers: the predictions that `learn_many` returned; a model of several boosters has no
            measured bound without them.
        """
        given = np.ones(len(y)) if weights is None else np.asarray(weights, np.float64)
        slopes = np.zeros((len(y), 0))
        if self.measured is not None:
            slopes = self.measured.add(y, given, answers)[:, 0]
            y = self.measured.labels_of(y)[:, 0]
        self.slopes += slopes.sum(axis=0)
        self.labels.add(np.asarray(y, np.float64), given)
        self.heaviest = max(self.heaviest, float(given.max(initial=0.0)))
        if self.seen is not None:
            self.seen.add(X, y, weights, slopes)

    def certificate(self, loss: float) -> Certificate:
        """Return the certificate, and stop recording; `loss` is the total loss of the booster."""
        unproved = self._unproved
        unmeasured: str | None = "nothing was learned"
        if unproved is None:
            unproved = _refusal(check_weights, self.heaviest)
        if self.measured is not None:
            self.measured.close()
            unmeasured = self.measured.failure
        too_many = self.seen is not None and self.seen.too_many
        comparators = self._linear(unproved is None) if not too_many else []
        return Certificate(
            weight=float(self.labels.sums[0]),
            features=0 if self.seen is None else self.seen.features,
            comparisons=[self._compare(one, loss) for one in (*comparators, *self._constant())],
            unproved=unproved,
            unmeasured=unmeasured,
            too_many=too_many,
        )

    def _compare(self, one: Comparator, loss: float) -> Comparison:
        bound = None
        if self.measured is not None and self.measured.failure is None:
            affine = one.best.affine
            assert affine is not None
            along = affine[0] * self.slopes
            if self.seen is not None and len(affine) > 1:
                along = self.seen.along(affine)
            bound = self.measured.bound(along, one.best.loss, one.f_norm)
        return Comparison(one.name, loss, one.best.loss, one.best.gap, one.promise, bound)

    def _constant(self) -> list[Comparator]:
        """Return the best constant, unless the labels have none."""
        constant, average = self.labels.best_constant()
        if constant is None or average is None:
            return []
        affine = np.array([constant])
        return [Comparator(CONSTANT, Best(average * float(self.labels.sums[0]), affine, 0, affine))]

    def _linear(self, proved: bool) -> list[Comparator]:
        """Return the best linear functions, that of the theorem first."""
        booster, seen = self.booster, self.seen
        if seen is None:
            return []
        linear = Comparator(LINEAR, seen.linear())
        if not isinstance(booster, Booster):
            return [linear]
        # the label range at the end of the pass; the losses are those of the labels as given
        centre, half = float(booster.labels.centre[0]), booster.labels.half
        reach = half * booster.scale * booster.D
        if isinstance(booster.learner, Stumps):
            return [linear, Comparator(IN_HULL, seen.in_hull(centre, reach))]
        if not isinstance(booster.learner, LinearBall):
            return [linear]
        x_norm, norm = booster.learner.x_norm, 1.0
        if booster.sigma_ is None:
            first = Comparator(IN_BALL, seen.in_ball(centre, reach / x_norm))
        else:  # Algorithm 1 competes with the span
            best = seen.in_ball(centre)
            norm = linear_norm(best.W / half, booster.D, x_norm) if half > 0 else 1.0
            first = Comparator(FROM_MIDDLE, best, scaled_norm(booster, norm))
        if proved:
            promise = _promise(booster, seen, first.best, centre, half, norm)
            first = first._replace(promise=promise)
        return [first, linear]


def _promise(
    booster: Booster, seen: Hindsight, best: Best, centre: float, half: float, f_norm: float
) -> Promise:
    """Return the theorem's bound on the regret against `best`, in the units of the labels."""
    terms: SpanBound | HullBound
    if isinstance(booster, SpanBoost):
        Delta_0 = (seen.constant_loss(centre) - best.loss) / half**2
        name, terms = "Theorem 1", span_bound(booster, seen.rows, f_norm, Delta_0)
    else:
        assert isinstance(booster, HullBoost)
        name, terms = "Theorem 2", hull_bound(booster, seen.rows)
    in_units = type(terms)(*(half**2 * term for term in terms))
    return Promise(name, in_units, seen.constant_loss(centre) - best.loss)


def _unproved(booster: Model, learn: bool) -> str | None:
    """Return why no theorem covers the pass; None if one does, provided the weights allow it."""
    if not isinstance(booster, Booster):
        return booster.why_not_covered
    reason = _refusal(check_covered, booster)
    if reason is None and not isinstance(booster.learner, LinearBall):
        name = type(booster.learner).__name__
        reason = f"the best function of {name} cannot be computed from a stream"
    if reason is None and isinstance(booster.label_range, str):
        reason = (
            "the label range changes with the labels, and a theorem holds only between two "
            "changes, for the labels as they are learned: give a label range (low, high)"
        )
    if reason is None and not learn:
        reason = "nothing was learned, and the theorems cover a booster that learns"
    if reason is None and not isinstance(booster.loss_, Squared):
        reason = "the theorem's comparator is computed for squared loss only"
    return reason


def _refusal(check: Callable[[Any], None], subject: Any) -> str | None:
    """Return the message of a check that fails, or None."""
    try:
        check(subject)
    except ValueError as error:
        return str(error)
    return None
