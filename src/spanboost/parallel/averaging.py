"""Average models that started as the same model and have learned different rows since.

Each weight is averaged over the models. A model's share is proportional to the squared gradients of
that weight since the start: a model that has learned more about a weight counts more, and a feature
that only one model has seen is copied from it. (A. Agarwal, O. Chapelle, M. Dudik, J. Langford, *A
Reliable Effective Terascale Linear Learning System*, JMLR 2014, use all squared gradients. Those of
the common past do not tell which model knows more, so they are excluded here.) The sums of squared
gradients are averaged in the same shares. Step sizes are therefore those of one model, not of all
rows together: an average of several models is steadier than one, and can take larger steps. Counts
of rows and sums over rows are averaged with equal shares.

Models must have the same label range and the same scale of each feature. Others are first brought
to the widest of them, by the rules by which a model widens its own. If the labels have new units
for some of the models, the widest range in the newest units is used, and all functions keep their
values in the units of the models. The recent labels are those of the model with this range. The
average of equal models is that model, bit for bit, and so is the average of one model.
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
from spanboost.rows.label_ends import merge_ends
from spanboost.rows.label_history import CLIPPED
from spanboost.rows.labels import Labels, RangeChange
from spanboost.rows.weights import merge_scales

AVERAGED = (LinearSGD, Stumps, Network)  # learners whose functions can be averaged


def average(before: Booster, models: Sequence[Booster]) -> Booster:
    """Return the average of models that were equal to `before` and have learned rows since."""
    models = [copy.deepcopy(model) for model in models]
    first = models[0]
    if len(models) == 1:
        return first
    before = _with_bank(copy.deepcopy(before), first)
    _merge_labels(before, models)
    banks = _grow_banks([before, *models])
    states = [model.core.state for model in models]
    bank = _AVERAGE[type(banks[0])](banks[0], banks[1:])
    algorithm = _average_algorithms([state.algorithm for state in states])
    first.core.state = states[0]._replace(bank=bank, algorithm=algorithm)
    return first


def check_averageable(model: Booster) -> None:
    """Raise ValueError if models like this one cannot be averaged."""
    if not isinstance(model.learner, AVERAGED):
        raise ValueError(f"{type(model.learner).__name__} cannot be averaged")
    model.check_fixed("averaging")
    if model.labels.log_link and isinstance(model.label_range, str):
        raise ValueError(
            f"models with {type(model.loss_).__name__} loss cannot be averaged unless their label "
            "range is fixed: give label_range=(low, high)"
        )
    if model.replay:
        raise ValueError("models with replay cannot be averaged; set replay to 0")


def _with_bank(before: Booster, like: Booster) -> Booster:
    """Return the common ancestor of the models, with a bank even if it has learned nothing."""
    check_averageable(like)
    if not before.started and like.started:
        before.encoder.kind = like.encoder.kind
        before.core.state = like.core.state._replace(bank=before.core.fresh_bank())
        before.labels.centre, before.labels.half = like.labels.centre, like.labels.half
    return before


def _merge_labels(before: Booster, models: Sequence[Booster]) -> None:
    """Bring all models to one label range, and give the first one the counts of all."""
    labels = [model.labels for model in models]
    target = max(labels, key=lambda one: (one.changes_of_units, one.half))
    changes = {model: _change_to(target, model.labels) for model in (before, *models)}
    _merge_counts(before.labels, labels, target)
    for model, change in changes.items():
        if (model.labels.half, *model.labels.centre) != (change.half, *change.centre):
            model.core.change_range(change)


def _change_to(target: Labels, labels: Labels) -> RangeChange:
    """Return the change of some labels to the range of the target."""
    same_units = labels.changes_of_units == target.changes_of_units
    same_centre = not (labels.centre != target.centre).any()
    if not same_centre and target.changes_of_units == 0:
        raise ValueError(
            "label ranges have different centres; only copies of one model can be averaged"
        )
    return RangeChange(0, target.centre, target.half, exact=same_units and same_centre)


def _merge_counts(before: Labels, labels: Sequence[Labels], target: Labels) -> None:
    """Give the first labels the counts of all, and the recent labels of the target."""
    first, seen = labels[0], before.seen
    first.rows = max(one.rows for one in labels)
    first.seen = seen + sum(one.seen - seen for one in labels)
    first.warned = any(one.warned for one in labels)
    first.weight_scale = merge_scales(before.weight_scale, [one.weight_scale for one in labels])
    first.ends = merge_ends([one.ends for one in labels if one.seen > 0])
    if target.history is not None:
        known = before.health.clipped
        clipped = known + sum(one.health.clipped - known for one in labels)
        first.history = copy.deepcopy(target.history)
        first.history.counts[CLIPPED] = clipped


def _grow_banks(models: Sequence[Booster]) -> list[Any]:
    """Return the banks of all models, extended to the features of all."""
    names = [getattr(model.encoder.names, "columns", None) for model in models]
    if any(one != names[0] for one in names):
        raise ValueError("features have different columns; give all models the same feature names")
    features = max(model.core.features for model in models)
    width = max(model.core.width for model in models)
    banks = []
    for model in models:
        if not model.started:
            raise ValueError("a model that has learned nothing cannot be averaged")
        banks.append(model.core.state.bank.grown(features, width))
        model.core.features, model.core.width = features, width
    return banks


def _average_algorithms(each: Sequence[Any]) -> Any:
    """Average the algorithm's state: Algorithm 1 learns its shrinkage, Algorithm 2 has none."""
    first = each[0]
    if not isinstance(first, Span):
        return first
    rounds = [one.t - first.t for one in each]
    return first._replace(
        sigma=weighted_average([one.sigma for one in each], None),
        t=first.t + sum(rounds) // len(each),
    )


def _average_linear(before: LinearBank, banks: Sequence[LinearBank]) -> LinearBank:
    first, outputs = banks[0], banks[0].inputs.W.shape[1] // len(banks[0].keep)
    # stored weights are divided by `keep`: convert them to the unit of the first model
    units = [np.tile(bank.keep / first.keep, outputs) for bank in banks]
    inputs = _average_weights(before.inputs, [bank.inputs for bank in banks], units)
    merged = first._replace(inputs=inputs, keep=first.keep.copy(), mass=first.mass.copy())
    if any(bank.mass.any() for bank in banks):  # linear feedback: functions must stay D-bounded
        merged.mass[...] += _mass(merged) - _mass(first)
        merged.hold(0)
    return merged


def _mass(bank: LinearBank) -> Array:
    """Return the sum of |W| of every copy."""
    W = np.abs(bank.inputs.W, dtype=np.float64)
    return np.asarray(W.reshape(-1, len(bank.keep)).sum(axis=0))


def _average_stumps(before: StumpBank, banks: Sequence[StumpBank]) -> StumpBank:
    """Average stumps; a feature's function is a convex combination, so it stays D-bounded."""
    first = banks[0]
    S, seen = _widest_scales([bank.S for bank in banks])
    squares = []
    for bank in (before, *banks):
        G = bank.G[seen].astype(np.float64)
        G[:, 0] = _rescale(G[:, 0], bank.S[seen], S[seen])
        squares.append(G)
    shares = gain_shares([(G - squares[0]).sum(axis=(1, 2), keepdims=True) for G in squares[1:]])
    tables = {name: getattr(first, name).copy() for name in ("U", "G", "score", "seen")}
    merged = first._replace(S=S, **tables)
    merged.U[seen] = weighted_average([bank.U[seen] for bank in banks], shares)
    merged.G[seen] = weighted_average(squares[1:], shares)
    merged.score[seen] = weighted_average([bank.score[seen] for bank in banks], None)
    merged.seen[seen] = weighted_average([bank.seen[seen] for bank in banks], None)
    return merged


def _average_networks(before: NetworkBank, banks: Sequence[NetworkBank]) -> NetworkBank:
    """Average networks; a copy's output layer is a convex combination, so it stays D-bounded."""
    gains = [bank.G.astype(np.float64) - before.G for bank in banks]
    shares = gain_shares([gain.sum(axis=(0, 1), keepdims=True) for gain in gains])
    return banks[0]._replace(
        inputs=_average_weights(before.inputs, [bank.inputs for bank in banks]),
        V=weighted_average([bank.V for bank in banks], shares),
        G=weighted_average([bank.G for bank in banks], shares),
    )


_AVERAGE: dict[type, Callable[[Any, Any], Any]] = {
    LinearBank: _average_linear,
    StumpBank: _average_stumps,
    NetworkBank: _average_networks,
}


def _average_weights(
    before: FeatureWeights, each: Sequence[FeatureWeights], units: Sequence[Array] | None = None
) -> FeatureWeights:
    """Average the weights of features, after multiplying each model's by its unit."""
    first = each[0]
    S, seen = _widest_scales([one.S for one in each])
    squares = [
        _rescale(one.G[seen].astype(np.float64), one.S[seen], S[seen]) for one in (before, *each)
    ]
    shares = gain_shares([G - squares[0] for G in squares[1:]])
    weights = [one.W[seen] for one in each]
    if units is not None:
        weights = [W * unit for W, unit in zip(weights, units, strict=True)]
    merged = first._replace(W=first.W.copy(), G=first.G.copy(), S=S)
    merged.W[seen] = weighted_average(weights, shares)
    merged.G[seen] = weighted_average(squares[1:], shares)
    return merged._replace(seen=weighted_average([one.seen for one in each], None))


def _widest_scales(scales: Sequence[Array]) -> tuple[Array, Array]:
    """Return the largest scale of each feature, and the features that were seen."""
    S, common = scales[0].copy(), min(map(len, scales))  # features beyond were not seen
    S[:common] = np.maximum.reduce([scale[:common] for scale in scales])
    return S, np.flatnonzero(S)


def _rescale(G: Array, own: Array, S: Array) -> Array:
    """Convert squared gradients to scale S, as `feature_weights.widen` does; 0 if never seen."""
    shrink = (own.astype(np.float64) / S).reshape(-1, *[1] * (G.ndim - 1))
    return np.where(shrink == 1, G, np.where(shrink > 0, np.maximum(G * shrink**2, LEAST), 0.0))


def gain_shares(gains: Sequence[Array]) -> list[Array]:
    """Return each model's share, proportional to its gain; equal shares where all gains are 0."""
    gains = [np.maximum(gain, 0) for gain in gains]
    most = np.maximum.reduce(gains)
    with np.errstate(invalid="ignore", divide="ignore"):
        parts = [np.where(most > 0, gain / most, 1.0) for gain in gains]
    total = sum(parts)
    return [part / total for part in parts]


def weighted_average(values: Sequence[Array], shares: Sequence[Array] | None) -> Array:
    """Return the average in these shares, or in equal ones; equal values give that same value."""
    first = values[0].astype(np.float64)
    out = first.copy()
    for k, value in enumerate(values[1:], 1):
        out += (1 / len(values) if shares is None else shares[k]) * (value - first)
    return out.astype(values[0].dtype)
