"""A certificate of one pass: what a model lost, what was possible, and what was promised.

The comparators are the best in hindsight (hindsight.py), all under squared loss and in the units of
the labels. For a learner with a theorem the bound is the one an audit reports (regret.py), on the
same conditions; where they do not hold the certificate says why, and claims no bound.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from spanboost.checks import GROWING
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
    """What a theorem says of a regret, in the units of the labels."""

    theorem: str
    terms: SpanBound | HullBound
    of_middle: float  # the regret of predicting the middle of the label range always

    @property
    def bound(self) -> float:
        """The regret is not above this."""
        return self.terms.total


class Comparison(NamedTuple):
    """A model against the best function of a class, in hindsight; all are sums over the rows."""

    comparator: str
    loss: float  # of the model
    comparator_loss: float
    gap: float  # no function of the class loses less than comparator_loss - gap
    promise: Promise | None

    @property
    def regret(self) -> float:
        """How much more the model lost."""
        return self.loss - self.comparator_loss

    @property
    def slack(self) -> float | None:
        """What is left between the regret and its bound; negative would refute the theorem."""
        return None if self.promise is None else self.promise.bound - self.regret


class Certificate(NamedTuple):
    """Of one pass."""

    weight: float  # of all rows together
    features: int
    comparisons: list[Comparison]  # the one of the theorem first; none if features are too many
    unproved: str | None  # why there is no bound


class Witness:
    """Sees every row of a pass that a booster is about to make.

    learn: whether the booster will learn the rows, or only be tested on them.
    """

    def __init__(self, booster: Model, *, learn: bool = True) -> None:
        if not isinstance(booster.loss_, Squared):
            raise ValueError("a certificate is for squared loss")
        self.booster = booster
        names = booster.encoder.names
        self.seen = Hindsight(None if names is None else names.bits)
        self._unproved = _unproved(booster, learn)

    def add(self, X: Any, y: Array, weights: Array | None = None) -> None:
        """Rows that the booster was given."""
        self.seen.add(X, y, weights)

    def certificate(self, loss: float) -> Certificate:
        """What it came to, if the booster lost so much in all."""
        seen, unproved = self.seen, self._unproved
        if unproved is None:
            unproved = _refusal(check_weights, seen.heaviest)
        found = [] if seen.too_many else self._comparators(unproved is None)
        comparisons = [
            Comparison(name, loss, best.loss, best.gap, promise) for name, best, promise in found
        ]
        return Certificate(seen.weight, seen.features, comparisons, unproved)

    def _comparators(self, proved: bool) -> list[tuple[str, Best, Promise | None]]:
        booster, seen = self.booster, self.seen
        if not isinstance(booster, Booster):
            return [(LINEAR, seen.linear(), None)]
        # the label range as it is at the end: what is 0 and 1 to the model
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
    """What the theorem says of the regret against this function, in the units of the labels."""
    terms: SpanBound | HullBound
    if isinstance(booster, SpanBoost):
        f_norm = linear_norm(best.W / half, booster.D, booster.learner.x_norm)
        Delta_0 = (seen.of_constant(centre) - best.loss) / half**2
        name, terms = "Theorem 1", span_bound(booster, seen.rows, f_norm, Delta_0)
    else:
        assert isinstance(booster, HullBoost)
        name, terms = "Theorem 2", hull_bound(booster, seen.rows)
    in_units = type(terms)(*(half**2 * term for term in terms))
    return Promise(name, in_units, seen.of_constant(centre) - best.loss)


def _unproved(booster: Model, learn: bool) -> str | None:
    """Why no theorem speaks of the pass; None if one does, weights permitting."""
    if not isinstance(booster, Booster):
        return booster.why_not_covered
    reason = _refusal(check_covered, booster)
    if reason is None and not isinstance(booster.learner, LinearBall):
        reason = f"the best function of {type(booster.learner).__name__} is not found in a stream"
    if reason is None and booster.label_range in GROWING:
        reason = "the label range grows with the labels, and the theorems have units that stay"
    if reason is None and not learn:
        reason = "nothing was learned, and the theorems speak of a booster that learns"
    return reason


def _refusal(check: Callable[[Any], None], of: Any) -> str | None:
    """What a check has to say."""
    try:
        check(of)
    except ValueError as error:
        return str(error)
    return None
