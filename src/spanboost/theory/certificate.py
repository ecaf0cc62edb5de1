"""A certificate of one pass: the loss of a model, the least possible loss, and the regret bound.

The comparators are the best functions in hindsight (hindsight.py), under squared loss and in the
units of the labels. If a theorem covers the learner, the bound is the one that an audit reports
(regret.py), under the same conditions. If the conditions do not hold, the certificate gives the
reason instead of a bound.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from spanboost.compiling.arrays import Array
from spanboost.learners.ball import LinearBall
from spanboost.learners.stumps import Stumps
from spanboost.losses import Squared
from spanboost.models.booster import Booster, HullBoost, SpanBoost
from spanboost.models.model import Model
from spanboost.theory.bounds import HullBound, SpanBound
from spanboost.theory.hindsight import Best, Hindsight
from spanboost.theory.regret import (
    check_covered,
    check_weights,
    hull_bound,
    linear_norm,
    span_bound,
)

LINEAR = "the best linear function of all features and a constant"
FROM_MIDDLE = "the best linear function of all features, from the middle of the label range"
IN_BALL = "the best linear function of all features that stays in the label range"
IN_HULL = "the best convex combination of functions of one feature that stay in the label range"


class Promise(NamedTuple):
    """A theorem's bound on the regret, in the units of the labels."""

    theorem: str
    terms: SpanBound | HullBound
    middle_regret: float  # the regret of always predicting the middle of the label range

    @property
    def bound(self) -> float:
        """The upper bound on the regret."""
        return self.terms.total


class Comparison(NamedTuple):
    """A model and the best function of a class in hindsight; losses are sums over all rows."""

    comparator: str
    loss: float  # the model's
    comparator_loss: float
    gap: float  # no function of the class loses less than comparator_loss - gap
    promise: Promise | None

    @property
    def regret(self) -> float:
        """The loss of the model minus that of the comparator."""
        return self.loss - self.comparator_loss

    @property
    def slack(self) -> float | None:
        """The bound minus the regret; a negative value would refute the theorem."""
        return None if self.promise is None else self.promise.bound - self.regret


class Certificate(NamedTuple):
    """The certificate of one pass."""

    weight: float  # sum of the weights of all rows
    features: int
    comparisons: list[Comparison]  # the theorem's comparator first; empty with too many features
    unproved: str | None  # why there is no bound


class Witness:
    """Collects the rows of a pass, and computes its certificate.

    booster: the model, before the pass.
    learn: whether the booster will learn the rows, or only be tested on them.
    """

    def __init__(self, booster: Model, *, learn: bool = True) -> None:
        if not isinstance(booster.loss_, Squared):
            raise ValueError("a certificate requires squared loss")
        self.booster = booster
        names = booster.encoder.names
        self.seen = Hindsight(None if names is None else names.bits)
        self._unproved = _unproved(booster, learn)

    def add(self, X: Any, y: Array, weights: Array | None = None) -> None:
        """Add rows of the pass."""
        self.seen.add(X, y, weights)

    def certificate(self, loss: float) -> Certificate:
        """Return the certificate; `loss` is the total loss of the booster."""
        seen, unproved = self.seen, self._unproved
        if unproved is None:
            unproved = _refusal(check_weights, seen.heaviest)
        comparators = [] if seen.too_many else self._comparators(unproved is None)
        comparisons = [
            Comparison(name, loss, best.loss, best.gap, promise)
            for name, best, promise in comparators
        ]
        return Certificate(seen.weight, seen.features, comparisons, unproved)

    def _comparators(self, proved: bool) -> list[tuple[str, Best, Promise | None]]:
        booster, seen = self.booster, self.seen
        if not isinstance(booster, Booster):
            return [(LINEAR, seen.linear(), None)]
        # the label range at the end of the pass; the losses are those of the labels as given
        centre, half = float(booster.labels.centre[0]), booster.labels.half
        reach = half * booster.scale * booster.D
        linear = LINEAR, seen.linear(), None
        if isinstance(booster.learner, Stumps):
            return [linear, (IN_HULL, seen.in_hull(centre, reach), None)]
        if not isinstance(booster.learner, LinearBall):
            return [linear]
        if booster.sigma_ is not None:  # Algorithm 1 competes with the span
            name, best = FROM_MIDDLE, seen.in_ball(centre)
        else:
            name, best = IN_BALL, seen.in_ball(centre, reach / booster.learner.x_norm)
        promise = _promise(booster, seen, best, centre, half) if proved else None
        return [(name, best, promise), linear]


def _promise(booster: Booster, seen: Hindsight, best: Best, centre: float, half: float) -> Promise:
    """Return the theorem's bound on the regret against `best`, in the units of the labels."""
    terms: SpanBound | HullBound
    if isinstance(booster, SpanBoost):
        f_norm = linear_norm(best.W / half, booster.D, booster.learner.x_norm)
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
            "changes, for the labels as they are learned"
        )
    if reason is None and not learn:
        reason = "nothing was learned, and the theorems cover a booster that learns"
    return reason


def _refusal(check: Callable[[Any], None], subject: Any) -> str | None:
    """Return the message of a check that fails, or None."""
    try:
        check(subject)
    except ValueError as error:
        return str(error)
    return None
