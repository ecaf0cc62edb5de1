"""What each feature contributes to one prediction, in the units of predictions."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.core.loop import predict
from spanboost.learners.contributions import NO_FEATURE, contributions_of, shrinkage
from spanboost.models.booster import Booster
from spanboost.models.model import Model
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


def explain(model: Model, x: Any) -> Explanation:
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


def explain_many(model: Model, X: Any) -> Iterator[Explanation]:
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
    kept = 1 - steps * (1.0 if model.sigma_ is None else model.sigma_)
    shrink = np.broadcast_to(shrink, steps.shape)
    after = np.append(np.cumprod((kept * shrink)[:0:-1])[::-1], 1.0)  # over all later copies
    return model.scale * steps * shrink * after


def _parts(model: Model, X: Any) -> Iterator[_Parts]:
    return _of_parts(model, X) if model.parts else _of_booster(model.as_booster(), X)


def _of_booster(model: Booster, X: Any) -> Iterator[_Parts]:
    core = model.core
    rows = core.encoder.read(X)
    state, labels = core.prepare(rows, 0), core.labels
    out = np.empty((rows.number, core.d), core.dtype)
    unit = 1.0 if labels.scores else labels.half
    centre = np.zeros(core.d) if labels.scores else labels.centre
    for t in range(rows.number):
        core.call(predict, state, rows.rows, out, t, t + 1)
        try:
            credits = contributions_of(state.bank, rows.rows, t)
        except TypeError:
            raise ValueError(
                f"{model.learner!r} does not say what features contribute: linear functions, "
                "stumps, networks, trees and AutoBoost do"
            ) from None
        trace = state.trace
        unprojected = trace.kept + model.steps_ * model.scale * trace.h
        counts = coefficients(model, shrinkage(unprojected, model.reach_))
        amount = unit * (credits.amount * (counts * shrinkage(credits.total, model.D))).sum(axis=2)
        parts = _sum_by_feature(credits.feature, amount)
        prediction = labels.to_user(out[t : t + 1]).reshape(core.d)
        yield _Parts(prediction, centre + parts.pop(NO_FEATURE, np.zeros(core.d)), parts)


def _of_parts(model: Model, X: Any) -> Iterator[_Parts]:
    """Yield the explanations of a model's parts, weighted by what each counts for."""
    each = (_of_booster(part, X) for part in model.parts.values())
    for explained in zip(*each, strict=True):
        whole = model.compose([parts.prediction[None] for parts in explained])
        base, contributions = _weighted(explained, whole.weights)
        yield _Parts(whole.prediction, base + whole.constant, contributions)


def _weighted(explained: Sequence[_Parts], counts: Array) -> tuple[Array, dict[int, Array]]:
    """The base and the contributions of several explanations, by what each counts for."""
    base = np.zeros_like(explained[0].base)
    contributions: dict[int, Array] = {}
    for count, parts in zip(counts, explained, strict=True):
        base = base + count * parts.base
        for feature, part in parts.contributions.items():
            contributions[feature] = contributions.get(feature, 0) + count * part
    return base, contributions


def _sum_by_feature(features: Array, amount: Array) -> dict[int, Array]:
    """{feature: [d]}, of amounts [F, d]."""
    sums: dict[int, Array] = {}
    for feature, part in zip(features.tolist(), amount, strict=True):
        sums[feature] = sums.get(feature, 0) + part
    return sums


def _names(model: Model, X: Any) -> Mapping[int, str]:
    """Names of features, by the numbers of `block.Cells`, as far as they have any."""
    schema = model.schema
    if schema is not None and schema.columns is not None:
        named = {2 * j: column.name for j, column in enumerate(schema.numbers)}
        return named | {2 * j + 1: column.name for j, column in enumerate(schema.categories)}
    known = model.encoder.names
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


def _plain(part: Array) -> Any:
    """A number if there is one output, else a vector."""
    return float(part[0]) if len(part) == 1 else part
