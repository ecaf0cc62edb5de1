"""Feature importances: how much the loss rises if the values of a feature are shuffled."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from spanboost.analysis.progressive import losses_of
from spanboost.analysis.shuffling import Change, Table, predict, table_of
from spanboost.compiling.arrays import Array
from spanboost.compiling.random_numbers import hash_integers
from spanboost.models.model import Model, require_model
from spanboost.rows.user_types import RowsLike

REPEATS = 5  # times that each feature is shuffled
_TOGETHER = 4096  # rows that are predicted at once


class _Sample(NamedTuple):
    """Rows on which importances are measured."""

    rows: Any  # as encoded by the learner
    labels: Array  # [rows, outputs] as `losses_of` takes them
    weights: Array  # [rows]


def feature_importances(
    model: Model,
    X: RowsLike | None = None,
    y: ArrayLike | None = None,
    weights: ArrayLike | None = None,
) -> dict[str | int, float]:
    """Return each feature's share in the increase of the loss by shuffling, largest first.

    This is permutation importance: the values of one feature are exchanged between rows at random,
    and the average loss rises if the model relies on that feature. It works for every model and
    learner. Without X and y, it uses the sample of at most 512 learned rows that every model keeps
    (rows/row_sample.py). Give X and y, as for `learn_many`, to measure on other rows.

    Keys are the keys of dictionary rows, or column numbers; "code j" is column j of the category
    codes. Features that do not increase the loss are omitted; the other shares add up to 1. For a
    committee, the shares are the averages over its members. Raises ValueError if no rows are given
    and the model has kept none: it has learned nothing, or an older version wrote its file.

    >>> import numpy as np
    >>> from spanboost import LinearSGD, SpanBoost, feature_importances
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 3))
    >>> model = SpanBoost(LinearSGD(), n=4)
    >>> predictions = model.learn_many(X, 0.8 * X[:, 1] - 0.2 * X[:, 2])
    >>> list(feature_importances(model))[:2]
    [1, 2]
    """
    require_model(model, "feature_importances")
    parts: list[Any] = [model] if model.row_sample is not None else list(model.parts.values())
    each = [_importances(part, X, y, weights) for part in parts]
    names = dict.fromkeys(name for shares in each for name in shares)
    averages = {name: sum(one.get(name, 0.0) for one in each) / len(each) for name in names}
    return dict(sorted(averages.items(), key=lambda share: -share[1]))


def has_importances(model: Model) -> bool:
    """Return whether `feature_importances` can be computed without rows."""
    samples = [one.row_sample for one in (model, *model.parts.values())]
    return model.started and any(one is not None and one.kept for one in samples)


def kept_loss(model: Model) -> tuple[int, float]:
    """Return the number of rows that the model keeps, and their average loss.

    The model has learned these rows, so the loss of new rows is higher. Requires
    `has_importances(model)`. For a committee, it is the average over its members.
    """
    parts: list[Any] = [model] if model.row_sample is not None else list(model.parts.values())
    rows, total, weight = 0, 0.0, 0.0
    for part in parts:
        sample = _kept_sample(part)
        table = table_of(sample.rows)
        losses = _losses(part, table.join([table.everything()]), sample.labels)
        rows += len(losses)
        total += float(sample.weights @ losses)
        weight += float(sample.weights.sum())
    return rows, total / weight if weight > 0 else float("nan")


def _importances(model: Model, X: Any, y: Any, weights: Any) -> dict[str | int, float]:
    sample = _kept_sample(model) if X is None else _given_sample(model, X, y, weights)
    increase = _increases(model, sample)
    known = model.encoder.names
    columns = known.columns if known is not None else {}
    names: dict[Any, str] = {2 * column: name for name, column in columns.items()}
    total = sum(increase.values())
    return {names.get(f, _default_name(f)): part / total for f, part in increase.items()}


def _kept_sample(model: Model) -> _Sample:
    kept = model.row_sample
    if kept is None or kept.kept == 0:
        raise ValueError(
            f"{model!r} has kept no rows: give X and y, as in feature_importances(model, X, y)"
        )
    rows = kept.rows.take(np.arange(kept.kept))
    return _Sample(rows, kept.labels[: kept.kept], kept.weights[: kept.kept])


def _given_sample(model: Model, X: Any, y: Any, weights: Any) -> _Sample:
    if y is None:
        raise ValueError("feature_importances needs y for the rows X")
    booster = model.boosters()[0]
    block = booster.check(X, y, weights)
    if not block.weights.any():
        raise ValueError("the weights of all rows are 0")
    labels = booster.core.sampled_labels(block)
    return _Sample(block.rows.encoded, labels, block.weights.astype(np.float64))


def _increases(model: Model, sample: _Sample) -> dict[Any, float]:
    """Return the features that increase the average loss when they are shuffled, and how much."""
    table = table_of(sample.rows)
    everything = table.join([table.everything()])
    base = _losses(model, everything, sample.labels)
    sums: dict[Any, float] = {}
    for changes in _batches(table, len(sample.weights)):
        rows = np.concatenate([change.rows for change in changes])
        joined = table.join([change.changed for change in changes])
        rise = sample.weights[rows] * (_losses(model, joined, sample.labels[rows]) - base[rows])
        ends = np.cumsum([len(change.rows) for change in changes])
        for change, part in zip(changes, np.split(rise, ends[:-1]), strict=True):
            sums[change.feature] = sums.get(change.feature, 0.0) + float(part.sum())
    return {feature: total for feature, total in sums.items() if total > 0}


def _batches(table: Table, number: int) -> Iterator[list[Change]]:
    """Yield all changes to predict, together as far as they are small."""
    orders = [np.argsort(hash_integers(np.arange(number, dtype=np.uint64) + k)) for k in _keys()]
    batch: list[Change] = []
    for feature in table.features():
        changes = (table.shuffle(feature, order) for order in orders)
        batch += [change for change in changes if len(change.rows)]
        if sum(len(change.rows) for change in batch) >= _TOGETHER:
            yield batch
            batch = []
    if batch:
        yield batch


def _keys() -> Array:
    keys: Array = hash_integers(np.arange(1, REPEATS + 1, dtype=np.uint64))
    return keys


def _losses(model: Model, rows: Any, labels: Array) -> Array:
    answers = predict(model, rows, len(labels))
    return losses_of(model, labels[:, 0] if labels.shape[1] == 1 else labels, answers)


def _default_name(feature: Any) -> Any:
    """Return the name of a feature without one: its column, or "code j"; a key is its own name."""
    if not isinstance(feature, int):
        return feature
    return f"code {feature // 2}" if feature % 2 else feature // 2
