"""Explain predictions: the contribution of each feature, in the units of predictions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from spanboost.analysis.explanation import Explanation
from spanboost.analysis.user_columns import column_finder
from spanboost.compiling.arrays import Array
from spanboost.errors import UserError
from spanboost.learners.ball import BallBank
from spanboost.learners.contributions import NO_FEATURE, contributions_of, shrinkage
from spanboost.learners.linear import LinearBank
from spanboost.learners.network import NetworkBank
from spanboost.learners.ridge import RidgeBank
from spanboost.learners.text import learner_text
from spanboost.losses import Logistic, Softmax, has_log_link, predicts_scores, scores_of
from spanboost.models.booster import Booster
from spanboost.models.compact import is_compact
from spanboost.models.estimator_files import ModelOrEstimator
from spanboost.models.model import Model, require_model
from spanboost.models.one_at_a_time import lock_of
from spanboost.models.predictions import class_names, probabilities
from spanboost.models.refitted import Refitted
from spanboost.models.sample_loss import sampled_rows
from spanboost.rows.encoder import EncodedBlock, count_rows
from spanboost.rows.feature_names import are_named, feature_name, key_of
from spanboost.rows.frame_rows import is_frame
from spanboost.rows.times import cycle_of
from spanboost.rows.user_types import RowLike

_FROM_ZERO = LinearBank, RidgeBank, BallBank, NetworkBank  # contributions are 0 for a value of 0
_TYPICAL = 64  # rows of the sample that a model keeps, to compare a row with


class _Parts(NamedTuple):
    """An explanation with features as numbers: 2 j is column j, 2 j + 1 column j of the codes."""

    prediction: Array  # [d]
    base: Array  # [d]
    contributions: dict[int, Array]  # each [d]


class ExplainedRows(NamedTuple):
    """How to explain the prediction of an estimator for one row."""

    models: Sequence[Model]  # one for each target
    X: Any  # the row, as a block that the models read
    name: Callable[[Any], Any] = lambda feature: feature  # the user's name for a model's feature
    several: bool = False  # whether predictions are vectors of targets
    in_order: Callable[[Array], Array] = lambda scores: scores  # of classes, [rows, d]
    classes: Sequence[Any] = ()  # the labels of classes, in the user's order


def explain(model: ModelOrEstimator, x: RowLike) -> Explanation:
    """Return the contribution of each feature of row x to its prediction.

    model: a model, or a fitted estimator of `spanboost.sklearn` or `spanboost.river`.
    x: a row, as for `predict_one`; a frame with one row, or a pandas Series.

    With a log link (Poisson, Gamma and Tweedie loss), the parts add up to the logarithm of the
    predicted mean, which is `prediction` here: a part of 0.1 is a factor of exp(0.1).

    For classes, the parts add up to scores. Two classes have one, the log-odds of the second class
    for logistic loss. More classes have one each, relative to the mean over all classes, as only
    their differences matter. `classes` are the labels, and `chances` their probabilities,
    before the calibration of a calibrated model.

    The prediction of a booster is a weighted sum over its copies. The weight of a copy is the
    product of the steps and shrinkages of Algorithm 1 or 2 and of the factors by which this row's
    partial sums are projected to norm B and the copy's prediction to norm D. Within a copy,
    learners/contributions.py computes the contributions of features: they are exact for linear
    functions and stumps, path-based for trees, and approximate for networks.

    `base` is about the mean prediction. Contributions of trees are relative to the mean at the
    root. Those of linear functions and networks are relative to the mean contribution of the
    feature over some of the learned rows that the model keeps. Features that fewer than half of
    these rows have, and models that keep no rows, are compared with a value of 0.

    For AutoBoost, contributions are the sum over its experts, each multiplied by its weight in the
    prediction. `rest` is the difference that this leaves: AutoBoost clips forecasts to the range of
    the labels seen and, for classes, mixes probabilities instead of scores. For a committee,
    contributions are the mean over its members.

    Keys of `contributions` are the keys of dictionary rows, the columns of frames and of files that
    the model was trained on, or column numbers; "code j" is column j of the category codes. All
    categories of a column are one feature. Features that contribute 0 are omitted. Raises
    ValueError if the learner cannot be explained.

    >>> import numpy as np
    >>> from spanboost import HullBoost, LinearSGD, explain
    >>> X = np.random.default_rng(0).uniform(-1, 1, (3000, 3))
    >>> model = HullBoost(LinearSGD(), n=4, label_range=(0, 200))
    >>> predictions = model.learn_many(X, 100 + X @ [60, -20, 0])
    >>> prediction, base, contributions, rest = explain(model, [0.5, 0.5, 0.5])
    >>> print(f"{prediction:.0f} = {base:.0f} + {contributions[0]:.0f} {contributions[1]:.0f}")
    120 = 101 + 27 -8
    >>> abs(prediction - base - sum(contributions.values())) < 1e-4
    True
    """
    if hasattr(model, "explained_rows"):
        with lock_of(model):
            return _explain_estimator(model.explained_rows(x))
    rows = x if is_frame(x) else [x]
    if (number := count_rows(rows)) != 1:
        raise ValueError(f"explain expects one row (got {number:,}); call it for each row")
    explained = require_model(model, "explain")
    with lock_of(explained):
        (explanation,) = explain_many(explained, rows)
    return explanation


def _explain_estimator(row: ExplainedRows) -> Explanation:
    """Return the explanation of an estimator's prediction, in the user's names and order."""
    each = [next(explain_many(model, row.X)) for model in row.models]
    sums = [dict[Any, Any]() for _ in each]
    for one, known in zip(each, sums, strict=True):
        for feature, part in one.contributions.items():
            name = row.name(feature)
            known[name] = known.get(name, 0.0) + _reorder(row, part)

    def join(parts: Sequence[Any]) -> Any:
        return np.array(parts) if row.several else parts[0]

    names = dict.fromkeys(name for known in sums for name in known)
    contributions = {name: join([known.get(name, 0.0) for known in sums]) for name in names}
    largest = sorted(contributions, key=lambda name: -float(np.abs(contributions[name]).sum()))
    prediction, base, rest = (
        join([_reorder(row, part) for part in parts])
        for parts in zip(*((one.prediction, one.base, one.rest) for one in each), strict=True)
    )
    ordered = {name: contributions[name] for name in largest}
    found = Explanation(prediction, base, ordered, rest)
    return _interpret(found, row.models[0], row.classes)


def _interpret(found: Explanation, model: Model, classes: Sequence[Any]) -> Explanation:
    """Return an explanation with what its sum is: the scores of classes, or a logarithm."""
    if has_log_link(model.loss_):
        return Explanation(*found, log_link=True)
    outputs = max(np.size(found.prediction), 2)
    if not predicts_scores(model.loss_) or len(classes) != outputs:
        return found
    chances = None
    if isinstance(model.loss_, Logistic | Softmax):
        (chances,) = probabilities(np.array([found.prediction]))
    calibrated = model.uncalibrated is not model
    return Explanation(*found, classes=[*classes], chances=chances, calibrated=calibrated)


def _class_labels(model: Model) -> Sequence[Any]:
    """Return the labels of the classes of a model; their codes if they have no names."""
    if model.schema is not None and predicts_scores(model.loss_):
        return class_names(model)
    return range(model.loss_.d) if isinstance(model.loss_, Softmax) else (-1, 1)


def _reorder(row: ExplainedRows, part: Any) -> Any:
    """Return a part of a prediction with its classes in the user's order."""
    ordered = row.in_order(part[None])[0] if np.ndim(part) else part
    return float(ordered) if np.ndim(ordered) == 0 else ordered


def explain_many(model: Model, X: Any) -> Iterator[Explanation]:
    """Yield the explanation of each row of a block; X is a block as for `predict_many`."""
    column, classes = _column_finder(model, X), _class_labels(model)
    for parts in _explain(model, X):
        scores = isinstance(model.loss_, Softmax)
        prediction, base, contributions = _centre(parts) if scores else parts
        sums: dict[Any, Array] = {}
        for feature, part in contributions.items():
            sums[column(feature)] = sums.get(column(feature), 0) + part
        size = {name: -float(np.abs(part).sum()) for name, part in sums.items()}
        largest = sorted(size, key=lambda name: size[name])
        named = {name: _unwrap(sums[name]) for name in largest if size[name]}
        rest = prediction - base - sum(contributions.values())
        found = Explanation(_unwrap(prediction), _unwrap(base), named, _unwrap(rest))
        yield _interpret(found, model, classes)


def _centre(parts: _Parts) -> _Parts:
    """Return parts relative to their means over all classes: only differences of scores matter."""
    prediction, base, contributions = parts
    centred = {feature: part - part.mean() for feature, part in contributions.items()}
    return _Parts(prediction - prediction.mean(), base - base.mean(), centred)


def _explain(model: Model, X: Any) -> Iterator[_Parts]:
    if model.parts:
        return _explain_parts(model, X)
    return _explain_booster(model.as_booster(), X, sampled_rows(model, _TYPICAL))


def _explain_booster(model: Booster, X: Any, typical: Any) -> Iterator[_Parts]:
    """Yield the explanations of a booster's predictions, relative to those for typical rows."""
    means = _mean_contributions(model, typical)
    shift = sum(means.values(), np.zeros(model.core.d))
    for prediction, base, contributions in _explain_rows(model, model.core.encoder.read(X)):
        for feature, mean in means.items():
            contributions[feature] = contributions.get(feature, 0) - mean
        yield _Parts(prediction, base + shift, contributions)


def _mean_contributions(model: Booster, typical: Any) -> dict[int, Array]:
    """Return the mean contributions of the features that most of the typical rows have.

    Contributions to linear functions and networks are relative to a value of 0, which a year or a
    price never has.
    """
    if typical is None or not isinstance(model.core.state.bank, _FROM_ZERO):
        return {}
    each = [parts.contributions for parts in _explain_rows(model, model.core.encoder.read(typical))]
    number = Counter(feature for parts in each for feature in parts)
    usual = [feature for feature, rows in number.items() if 2 * rows > len(each)]
    none = np.zeros(model.core.d)
    return {f: np.mean([parts.get(f, none) for parts in each], axis=0) for f in usual}


def _explain_rows(model: Booster, rows: EncodedBlock) -> Iterator[_Parts]:
    core = model.core
    state, labels = core.prepare(rows, 0), core.labels
    plain = not (labels.scores or labels.log_link)
    unit, centre = (labels.half, labels.centre) if plain else (1.0, np.zeros(core.d))
    if labels.log_link:
        centre = np.log([labels.half])
    for t in range(rows.number):
        prediction = model.predict_encoded(rows, t, t + 1).reshape(core.d)
        prediction = scores_of(model.loss_, prediction)
        try:
            credits = contributions_of(state.bank, rows.rows, t)
        except TypeError:
            if is_compact(model):
                raise UserError(
                    "cannot explain a compact model of trees: it does not have the number of rows "
                    "in each leaf; use the full model"
                ) from None
            raise UserError(
                f"cannot explain {learner_text(model.learner)}: only models of linear functions, "
                "stumps, networks or trees, and AutoBoost, have feature contributions"
            ) from None
        weights, constant = model.row_weights()
        amount = unit * (credits.amount * (weights * shrinkage(credits.total, model.D))).sum(axis=2)
        parts = _sum_by_feature(credits.feature, amount)
        base = centre + unit * constant + parts.pop(NO_FEATURE, np.zeros(core.d))
        yield _Parts(prediction, base, parts)


def _leave_unexplained(model: Refitted, X: Any) -> Iterator[_Parts]:
    """Yield the predictions of a refitted estimator without contributions: a part of the rest."""
    base = scores_of(model.loss_, model.mean_forecast())
    for prediction in model.predict_many(X).reshape(-1, model.core.d):
        yield _Parts(scores_of(model.loss_, prediction), base, {})


def _explain_parts(model: Model, X: Any) -> Iterator[_Parts]:
    """Yield the sums of the explanations of a model's parts, multiplied by their weights."""
    parts = model.parts.values()
    shared = sampled_rows(model, _TYPICAL)  # experts keep no sample of their own
    each = [
        _leave_unexplained(part, X)
        if isinstance(part, Refitted)
        else _explain_booster(part, X, sampled_rows(part, _TYPICAL) if shared is None else shared)
        for part in parts
    ]
    corrections = np.broadcast_to(model.corrections(X), count_rows(X))  # a part of the rest
    for explained, correction in zip(zip(*each, strict=True), corrections, strict=True):
        link = np.exp if has_log_link(model.loss_) else np.asarray
        whole = model.compose([link(parts.prediction[None]) for parts in explained])
        base, contributions = _weighted_sum(explained, whole.weights)
        prediction = scores_of(model.loss_, whole.prediction) + correction
        yield _Parts(prediction, base + whole.constant, contributions)


def _weighted_sum(explained: Sequence[_Parts], weights: Array) -> tuple[Array, dict[int, Array]]:
    """Return the weighted sums of the bases and of the contributions of several explanations."""
    base = np.zeros_like(explained[0].base)
    contributions: dict[int, Array] = {}
    for weight, parts in zip(weights, explained, strict=True):
        base = base + weight * parts.base
        for feature, part in parts.contributions.items():
            contributions[feature] = contributions.get(feature, 0) + weight * part
    return base, contributions


def _sum_by_feature(features: Array, amount: Array) -> dict[int, Array]:
    """Return {feature: [d]}, the sums of the amounts [F, d] of each feature."""
    sums: dict[int, Array] = {}
    for feature, part in zip(features.tolist(), amount, strict=True):
        sums[feature] = sums.get(feature, 0) + part
    return sums


def _column_finder(model: Model, X: Any) -> Callable[[int], Any]:
    """Return a function from a feature (see `_Parts`) to the column or key of the user's rows.

    A key of the rows is its own name, also if it looks like a category of another key ("a=b").
    """
    find, known = column_finder(model, whole_times=False), model.encoder.names
    if known is None or not are_named(X):
        return find
    keys = {str(key) for row in X for key in row}
    own = {2 * column: key for key in keys if (column := known.columns.get(key)) is not None}
    if known.bits is not None:
        # the model does not store hashed names, but the rows contain them
        texts = {feature_name(*entry) for row in known.expand(X) for entry in row.items()}
        mask = 2**known.bits - 1
        names = {text: text if text in keys else cycle_of(key_of(text)) for text in texts}
        own = {2 * ((known.column(text) or 0) & mask): name for text, name in names.items()}
    return lambda feature: own.get(feature, find(feature))


def _unwrap(part: Array) -> Any:
    """Return a number if there is one output, else the vector."""
    return float(part[0]) if len(part) == 1 else part
