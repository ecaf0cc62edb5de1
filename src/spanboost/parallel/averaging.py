"""One model of several that have learned different rows since they were the same.

Every weight is averaged over the models, weighted by the squared gradients it has met in each since
then: who has learned more about a weight has more say in it, and a feature that one model alone has
met is taken as it is there. (A. Agarwal, O. Chapelle, M. Dudik, J. Langford, *A Reliable Effective
Terascale Linear Learning System*, JMLR 2014, weigh by all squared gradients; those of a common past
say nothing about who knows better.) The sums of squared gradients are averaged likewise, so that
steps are those of one of the models, not of all rows: an average of many is steadier than one, and
may step farther. What counts rows, or sums up over them, is averaged plainly.

Models of one range of labels and one scale of each feature can be averaged; others are brought to
the widest first, by the rules by which they widen on their own. The average of equal models is
that model, bit for bit, and so is that of one.
"""

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.core.algorithms import Span
from spanboost.learners.feature_weights import LEAST, FeatureWeights
from spanboost.learners.linear import LinearBank, LinearSGD
from spanboost.learners.network import Network, NetworkBank
from spanboost.learners.stumps import StumpBank, Stumps
from spanboost.models.booster import Booster
from spanboost.rows.labels import Widening

AVERAGED = (LinearSGD, Stumps, Network)  # learners whose functions an average makes sense of


def average(before: Booster, models: Sequence[Booster]) -> Booster:
    """The average of models that were once as `before`, and have learned some rows each since."""
    models = [copy.deepcopy(model) for model in models]
    first = models[0]
    if len(models) == 1:
        return first
    before = _with_bank(copy.deepcopy(before), first)
    seen = before.labels.seen
    _same_units([before, *models])
    banks = _same_room([before, *models])
    states = [model.core.state for model in models]
    bank = _MERGED[type(banks[0])](banks[0], banks[1:])
    algorithm = _algorithm([state.algorithm for state in states])
    first.core.state = states[0]._replace(bank=bank, algorithm=algorithm)
    labels = [model.labels for model in models]
    first.labels.rows = max(one.rows for one in labels)
    first.labels.seen = seen + sum(one.seen - seen for one in labels)
    first.labels.warned = any(one.warned for one in labels)
    return first


def check_averageable(model: Booster) -> None:
    """Refuse what cannot be averaged."""
    if not isinstance(model.learner, AVERAGED):
        raise ValueError(f"{type(model.learner).__name__} cannot be averaged")
    if model.replay:
        raise ValueError("rows to be learned again are of one model: nothing averages them")


def _with_bank(before: Booster, like: Booster) -> Booster:
    """Return the common ancestor of the models, with a bank even if it has learned nothing."""
    check_averageable(like)
    if not before.started and like.started:
        before.encoder.kind = like.encoder.kind
        before.core.state = like.core.state._replace(bank=before.core.fresh_bank())
        before.labels.centre, before.labels.half = like.labels.centre, like.labels.half
    return before


def _same_units(models: Sequence[Booster]) -> None:
    """The widest range of labels for all."""
    labels = [model.labels for model in models]
    if any((one.centre != labels[0].centre).any() for one in labels):
        raise ValueError("label ranges have several centres: models begin with one that is common")
    widest = max(labels, key=lambda one: one.half)
    for model in models:
        if model.labels.half < widest.half:
            model.core.widen(Widening(0, widest.centre, widest.half))


def _same_room(models: Sequence[Booster]) -> list[Any]:
    """The banks of all, with room for the features of all."""
    names = [getattr(model.encoder.names, "columns", None) for model in models]
    if any(one != names[0] for one in names):
        raise ValueError("features have several numberings: models read names that are common")
    features = max(model.core.features for model in models)
    width = max(model.core.width for model in models)
    banks = []
    for model in models:
        if not model.started:
            raise ValueError("a model that has learned nothing cannot be averaged")
        banks.append(model.core.state.bank.grown(features, width))
        model.core.features, model.core.width = features, width
    return banks


def _algorithm(each: Sequence[Any]) -> Any:
    """Algorithm 1 has learned its shrinkage."""
    first = each[0]
    if not isinstance(first, Span):
        return first
    rounds = [one.t - first.t for one in each]
    return first._replace(
        sigma=weighted_average([one.sigma for one in each], None),
        t=first.t + sum(rounds) // len(each),
    )


def _linear(before: LinearBank, banks: Sequence[LinearBank]) -> LinearBank:
    first, outputs = banks[0], banks[0].inputs.W.shape[1] // len(banks[0].keep)
    # weights are meant times `keep`: in units of the first one's
    units = [np.tile(bank.keep / first.keep, outputs) for bank in banks]
    inputs = _inputs(before.inputs, [bank.inputs for bank in banks], units)
    merged = first._replace(inputs=inputs, keep=first.keep.copy(), mass=first.mass.copy())
    if any(bank.mass.any() for bank in banks):  # linear feedback: functions stay D-bounded
        merged.mass[...] += _mass(merged) - _mass(first)
        merged.hold(0)
    return merged


def _mass(bank: LinearBank) -> Array:
    """Sum of |W| of every copy."""
    W = np.abs(bank.inputs.W, dtype=np.float64)
    return np.asarray(W.reshape(-1, len(bank.keep)).sum(axis=0))


def _stumps(before: StumpBank, banks: Sequence[StumpBank]) -> StumpBank:
    """A feature's function is one convex combination of functions, and as D-bounded as they are."""
    first = banks[0]
    S, seen = _widest([bank.S for bank in banks])
    squares = []
    for bank in (before, *banks):
        G = bank.G[seen].astype(np.float64)
        G[:, 0] = _rescaled(G[:, 0], bank.S[seen], S[seen])
        squares.append(G)
    shares = gain_shares([(G - squares[0]).sum(axis=(1, 2), keepdims=True) for G in squares[1:]])
    tables = {name: getattr(first, name).copy() for name in ("U", "G", "score", "seen")}
    merged = first._replace(S=S, **tables)
    merged.U[seen] = weighted_average([bank.U[seen] for bank in banks], shares)
    merged.G[seen] = weighted_average(squares[1:], shares)
    merged.score[seen] = weighted_average([bank.score[seen] for bank in banks], None)
    merged.seen[seen] = weighted_average([bank.seen[seen] for bank in banks], None)
    return merged


def _network(before: NetworkBank, banks: Sequence[NetworkBank]) -> NetworkBank:
    """The output layer of a copy is one convex combination, and as D-bounded as they are."""
    gains = [bank.G.astype(np.float64) - before.G for bank in banks]
    shares = gain_shares([gain.sum(axis=(0, 1), keepdims=True) for gain in gains])
    return banks[0]._replace(
        inputs=_inputs(before.inputs, [bank.inputs for bank in banks]),
        V=weighted_average([bank.V for bank in banks], shares),
        G=weighted_average([bank.G for bank in banks], shares),
    )


_MERGED: dict[type, Callable[[Any, Any], Any]] = {
    LinearBank: _linear,
    StumpBank: _stumps,
    NetworkBank: _network,
}


def _inputs(
    before: FeatureWeights, each: Sequence[FeatureWeights], units: Sequence[Array] | None = None
) -> FeatureWeights:
    """Weights of features; those of each model times these units."""
    first = each[0]
    S, seen = _widest([one.S for one in each])
    squares = [
        _rescaled(one.G[seen].astype(np.float64), one.S[seen], S[seen]) for one in (before, *each)
    ]
    shares = gain_shares([G - squares[0] for G in squares[1:]])
    weights = [one.W[seen] for one in each]
    if units is not None:
        weights = [W * unit for W, unit in zip(weights, units, strict=True)]
    merged = first._replace(W=first.W.copy(), G=first.G.copy(), S=S)
    merged.W[seen] = weighted_average(weights, shares)
    merged.G[seen] = weighted_average(squares[1:], shares)
    return merged._replace(seen=weighted_average([one.seen for one in each], None))


def _widest(scales: Sequence[Array]) -> tuple[Array, Array]:
    """The largest scale of each feature, and the features that have one."""
    S, common = scales[0].copy(), min(map(len, scales))  # nothing was seen beyond
    S[:common] = np.maximum.reduce([scale[:common] for scale in scales])
    return S, np.flatnonzero(S)


def _rescaled(G: Array, own: Array, S: Array) -> Array:
    """Squared gradients, had the feature been of scale S: as `inputs.widen`; 0 if never seen."""
    shrink = (own.astype(np.float64) / S).reshape(-1, *[1] * (G.ndim - 1))
    return np.where(shrink == 1, G, np.where(shrink > 0, np.maximum(G * shrink**2, LEAST), 0.0))


def gain_shares(gains: Sequence[Array]) -> list[Array]:
    """How much each has to say: in proportion to what it gained; the same where nobody did."""
    gains = [np.maximum(gain, 0) for gain in gains]
    most = np.maximum.reduce(gains)
    with np.errstate(invalid="ignore", divide="ignore"):
        parts = [np.where(most > 0, gain / most, 1.0) for gain in gains]
    total = sum(parts)
    return [part / total for part in parts]


def weighted_average(values: Sequence[Array], shares: Sequence[Array] | None) -> Array:
    """The average in these shares, or a plain one; of equal values it is that value."""
    first = values[0].astype(np.float64)
    out = first.copy()
    for k, value in enumerate(values[1:], 1):
        out += (1 / len(values) if shares is None else shares[k]) * (value - first)
    return out.astype(values[0].dtype)
