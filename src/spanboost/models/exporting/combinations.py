"""How forecasts are combined, with everything that does not depend on the row computed."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.errors import UserError
from spanboost.models.aggregation import FIRM, REACH, LabelAggregator
from spanboost.models.mixture import Mixture
from spanboost.models.score_aggregation import LogisticAggregator, SoftmaxAggregator
from spanboost.rows.labels import Labels


class Mean(NamedTuple):
    """The mean of all forecasts."""


class Regression(NamedTuple):
    """A regression over the distances x of the forecasts from their mean.

    With L q = x, its forecast is the mean plus (q . moment) / (1 + ratio q . q).
    """

    L: Array  # [K, K] lower triangle
    moment: Array  # [K] the moments m of the fit; the solution of L' w = q gives w . m
    ratio: float


class LabelMix(NamedTuple):
    """A weighted mean of forecasts in the model's units, and of regressions over them."""

    weights: Array  # [K + regressions]
    low: float  # forecasts are clipped to [low, high]
    high: float
    regressions: Sequence[Regression | None]  # None: it forecasts the mean
    shift: float = 0.0  # added to the mean, before it is clipped again


class LogisticMix(NamedTuple):
    """A mixture of probabilities, of the forecasts and of a regression of the log-odds."""

    weights: Array  # [K + 1]
    inverse: Array  # [K + 2, K + 2]
    moment: Array  # [K + 2]


class SoftmaxMix(NamedTuple):
    """A mixture of the probabilities of classes."""

    weights: Array  # [K]


class Mixed(NamedTuple):
    """A mixture, and the units in which it gets forecasts."""

    how: LabelMix | LogisticMix | SoftmaxMix
    centre: Array  # [d] or [1]
    half: float
    log_link: bool
    limits: tuple[float, float]


def mixed(mixture: Mixture, labels: Labels) -> Mixed:
    """Return what a mixture computes; a UserError if it is of an old version."""
    units = mixture.units(labels)
    centre = np.atleast_1d(np.asarray(units.centre, np.float64))
    how = _how(mixture.aggregator)
    return Mixed(how, centre, float(units.half or 1.0), units.log_link, units.limits)


def _how(aggregator: Any) -> LabelMix | LogisticMix | SoftmaxMix:
    if isinstance(aggregator, LabelAggregator):
        sums = aggregator.regressions
        low, high = _clipping(aggregator)
        with np.errstate(invalid="ignore"):
            ratio = float(sums.total[1] / sums.total[0])
        each = [Regression(L, sums.moment, ratio) if L[0, 0] > 0 else None for L in sums.factor]
        shift = float(aggregator.shift.amount())
        return LabelMix(aggregator.candidate_weights(), low, high, each, shift)
    if isinstance(aggregator, LogisticAggregator):
        ridge = aggregator.ridge
        return LogisticMix(aggregator.candidate_weights(), ridge.inverse, ridge.moment)
    if isinstance(aggregator, SoftmaxAggregator):
        return SoftmaxMix(aggregator.candidate_weights())
    raise UserError(
        "cannot export a model of version 0.1, which combines its experts by another method; train "
        "the model again"
    )


def _clipping(aggregator: LabelAggregator) -> tuple[float, float]:
    """Return the ends of the range to which `LabelAggregator.clip` clips forecasts."""
    (high, many), (low, few) = aggregator.ends.tolist()
    if not aggregator.clips or many == 0:
        return -np.inf, np.inf
    reach = REACH * (high + low)
    high += reach if many < FIRM else 0.0
    low += reach if few < FIRM else 0.0
    return -low, high
