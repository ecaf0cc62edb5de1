"""What each feature contributes to one prediction, in the units of predictions."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.core.loop import predict
from spanboost.learners.contributions import NO_FEATURE, contributions_of, shrinkage
from spanboost.models.aggregation import LogisticAggregator, SquaredAggregator
from spanboost.models.auto import AnyModel, AutoBoost
from spanboost.models.booster import Booster, SpanBoost
from spanboost.models.committee import Committee
from spanboost.rows.feature_names import feature_name


class Explanation(NamedTuple):
    """prediction = base + the sum of all contributions + rest. In R^d all of them are vectors."""

    prediction: Any
    base: Any  # what is predicted without regard to any feature
    contributions: dict[str | int, Any]  # of features, the largest first
    rest: Any  # of a booster, nothing but what rounding leaves; of AutoBoost see `explain`


class _Parts(NamedTuple):
    """An explanation by the numbers of `block.Cells`."""

    prediction: Array  # [d]
    base: Array  # [d]
    contributions: dict[int, Array]  # each [d]


def explain(model: AnyModel, x: Any) -> Explanation:
    """What each feature of the row x, given as to `predict_one`, contributes to its prediction.

    The answer of a booster is a sum over its copies. What a copy counts for in it is the product of
    the steps and shrinkages of Algorithm 1 or 2 and of every factor by which the row's own partial
    sums are cut to norm B, and its prediction to norm D: to cut is to multiply. Within a copy,
    features are credited as learners/credits.py says, which is exact for linear functions and
    stumps, by the path for trees, an approximation for networks. `base` has the label range's
    centre, the constants of linear functions, and the roots of trees.

    Of AutoBoost it is the sum of what experts say, by what each counts for in the answer, as itself
    and in the regression over all. What is left is the `rest`: forecasts outside the range of
    labels seen are cut to it, and of classes it is probabilities that are mixed, not their scores.
    Of a committee it is the mean over its members.

    Features are named as in dictionaries, by the columns of the files a model was made from, or by
    the number of their column; "code j" is column j of the category codes. Those that contribute
    nothing are left out. A learner that does not say what features add is a ValueError.

    >>> import numpy as np
    >>> from spanboost import HullBoost, LinearSGD, explain
    >>> X = np.random.default_rng(0).uniform(-1, 1, (3000, 3))
    >>> model = HullBoost(LinearSGD(), n=4, label_range=(0, 200))
    >>> predictions = model.learn_many(X, 100 + X @ [60, -20, 0])
    >>> prediction, base, contributions, rest = explain(model, [0.5, 0.5, 0.5])
    >>> print(f"{prediction:.0f} = {base:.0f} + {contributions[0]:.0f} {contributions[1]:.0f}")
    120 = 100 + 30 -10
    >>> abs(prediction - base - sum(contributions.values())) < 1e-4
    True
    """
    return next(explain_many(model, [x]))


def explain_many(model: AnyModel, X: Any) -> Iterator[Explanation]:
    """Likewise, row by row, of a block as `predict_many` takes it."""
    names = _names(model, X)
    for prediction, base, contributions in _parts(model, X):
        size = {feature: -float(np.abs(part).sum()) for feature, part in contributions.items()}
        given = {
            names.get(feature, f"code {feature // 2}" if feature % 2 else feature // 2): _plain(
                contributions[feature]
            )
            for feature in sorted(size, key=lambda feature: size[feature])
            if size[feature]
        }
        rest = prediction - base - sum(contributions.values())
        yield Explanation(_plain(prediction), _plain(base), given, _plain(rest))


def coefficients(model: Booster, shrink: Any = 1.0) -> Array:
    """What each copy's prediction is multiplied by in the answer.

    shrink: [N] what the projections multiply the partial sums by; 1 where nothing is projected.
    """
    steps = model.steps_
    kept = 1 - steps * model.sigma_ if isinstance(model, SpanBoost) else 1 - steps
    shrink = np.broadcast_to(shrink, steps.shape)
    after = np.append(np.cumprod((kept * shrink)[:0:-1])[::-1], 1.0)  # over all later copies
    return model.scale * steps * shrink * after


def _parts(model: AnyModel, X: Any) -> Iterator[_Parts]:
    if isinstance(model, AutoBoost):
        return _of_experts(model, X)
    return _of_committee(model, X) if isinstance(model, Committee) else _of_booster(model, X)


def _of_booster(model: Booster, X: Any) -> Iterator[_Parts]:
    reading = model._reader.read(X)
    state, labels = model._start(reading, 0), model._labels
    out = np.empty((reading.number, model._d), model._dtype)
    unit = 1.0 if labels.scores else labels.half
    centre = np.zeros(model._d) if labels.scores else labels.centre
    for t in range(reading.number):
        model._call(predict, state, reading.rows, out, t, t + 1)
        try:
            credits = contributions_of(state.bank, reading.rows, t)
        except TypeError:
            raise ValueError(
                f"{model.learner!r} does not say what features contribute: linear functions, "
                "stumps, networks, trees and AutoBoost do"
            ) from None
        trace = state.trace
        unprojected = trace.kept + model.steps_ * model.scale * trace.h
        counts = coefficients(model, shrinkage(unprojected, model.reach_))
        amount = unit * (credits.amount * (counts * shrinkage(credits.total, model.D))).sum(axis=2)
        parts = _summed(credits.feature, amount)
        prediction = labels.to_user(out[t : t + 1]).reshape(model._d)
        yield _Parts(prediction, centre + parts.pop(NO_FEATURE, np.zeros(model._d)), parts)


def _of_experts(model: AutoBoost, X: Any) -> Iterator[_Parts]:
    """The experts' explanations, by what each of them counts for."""
    for said in zip(*(_of_booster(expert, X) for expert in model.experts.values()), strict=True):
        answer = model._combined([parts.prediction[None] for parts in said])
        counts, constant = _believed(model.combination)  # it knows the row that was mixed last
        base, contributions = _weighted(said, counts)
        yield _Parts(answer.reshape(-1), base + constant, contributions)


def _of_committee(model: Committee, X: Any) -> Iterator[_Parts]:
    """The mean of its members' explanations."""
    n = len(model.members)
    for said in zip(*(_of_booster(member, X) for member in model.members), strict=True):
        prediction = np.mean([parts.prediction for parts in said], axis=0)
        yield _Parts(prediction, *_weighted(said, np.full(n, 1 / n)))


def _weighted(said: Sequence[_Parts], counts: Array) -> tuple[Array, dict[int, Array]]:
    """The base and the contributions of several explanations, by what each counts for."""
    base = np.zeros_like(said[0].base)
    contributions: dict[int, Array] = {}
    for count, parts in zip(counts, said, strict=True):
        base = base + count * parts.base
        for feature, part in parts.contributions.items():
            contributions[feature] = contributions.get(feature, 0) + count * part
    return base, contributions


def _believed(combination: Any) -> tuple[Array, Any]:
    """What each expert counts for in the row mixed last, and a constant that is added."""
    weights = combination.share.weights
    if not isinstance(combination, SquaredAggregator | LogisticAggregator):
        return weights, 0.0
    own, regression = weights[:-1], weights[-1]
    ridge, x, K = combination.ridge, combination.scratch.x, len(own)
    slope = ridge.inverse @ ridge.moment
    if isinstance(combination, SquaredAggregator):
        slope = slope / (1 + x @ ridge.inverse @ x)
    of_mean, constant = (
        (slope[K], slope[K + 1]) if isinstance(combination, LogisticAggregator) else (0.0, 0.0)
    )
    # the regression is over distances from the experts' mean, to which it adds
    mean = own / own.sum() * (1 + of_mean - slope[:K].sum())
    return own + regression * (mean + slope[:K]), regression * constant


def _summed(features: Array, amount: Array) -> dict[int, Array]:
    """{feature: [d]}, of amounts [F, d]."""
    sums: dict[int, Array] = {}
    for feature, part in zip(features.tolist(), amount, strict=True):
        sums[feature] = sums.get(feature, 0) + part
    return sums


def _names(model: AnyModel, X: Any) -> Mapping[int, str]:
    """Names of features, by the numbers of `block.Cells`, as far as they have any."""
    schema = model.schema
    if schema is not None and schema.columns is not None:
        named = {2 * j: column.name for j, column in enumerate(schema.numbers)}
        return named | {2 * j + 1: column.name for j, column in enumerate(schema.categories)}
    known = _booster_of(model)._reader.names
    if known is None:
        return {}
    if known.bits is None:
        return {2 * column: name for name, column in known.columns.items()}
    if not (isinstance(X, list | tuple) and isinstance(X[0], dict)):
        return {}
    # nothing is kept of names that are hashed, but the rows have them
    texts = {feature_name(name, value) for row in X for name, value in row.items()}
    places = 2**known.bits - 1
    return {2 * ((known.column(text) or 0) & places): text for text in texts}


def _booster_of(model: AnyModel) -> Booster:
    """It, or the first of those it is made of."""
    if isinstance(model, AutoBoost):
        return next(iter(model.experts.values()))
    return model.members[0] if isinstance(model, Committee) else model


def _plain(part: Array) -> Any:
    """A number if there is one output, else a vector."""
    return float(part[0]) if len(part) == 1 else part
