"""Feature importances: how much the loss rises if the values of a column are shuffled."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spanboost.analysis.shuffling import Change, Table, table_of
from spanboost.analysis.user_columns import column_finder
from spanboost.compiling.arrays import Array
from spanboost.compiling.random_numbers import hash_integers
from spanboost.models.estimator_files import ModelOrEstimator
from spanboost.models.model import Model, require_model
from spanboost.models.one_at_a_time import lock_of
from spanboost.models.sample_loss import (
    LabelledRows,
    encoded_losses,
    kept_rows,
    sampled_models,
)
from spanboost.rows.user_types import RowsLike

REPEATS = 5  # times that each column is shuffled
_TOGETHER = 4096  # rows that are predicted at once


def feature_importances(
    model: ModelOrEstimator,
    X: RowsLike | None = None,
    y: ArrayLike | None = None,
    weights: ArrayLike | None = None,
) -> dict[str | int, float]:
    """Return each column's share in the increase of the loss by shuffling, largest first.

    model: a model, or a fitted estimator of `spanboost.sklearn` or `spanboost.river`.

    This is permutation importance: the values of one column are exchanged between rows at random,
    and the average loss rises if the model relies on that column. It works for every model and
    learner. Without X and y, it uses the sample of at most 512 learned rows that every model keeps
    (rows/row_sample.py). Give X and y, as for `learn_many`, to measure a model on other rows.

    Keys are the keys of dictionary rows, the columns of frames and files, or column numbers;
    "code j" is column j of the category codes. All categories of a column are exchanged together,
    and so are the features of a time. The shares add up to 1; columns that do not increase the loss
    have 0. For a committee, the shares are the averages over its members. Raises
    ValueError if no rows are given and the model has kept none: it has learned nothing, or an older
    version wrote its file.

    >>> import numpy as np
    >>> from spanboost import LinearSGD, SpanBoost, feature_importances
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 3))
    >>> model = SpanBoost(LinearSGD(), n=4)
    >>> predictions = model.learn_many(X, 0.8 * X[:, 1] - 0.2 * X[:, 2])
    >>> list(feature_importances(model))[:2]
    [1, 2]
    """
    if hasattr(model, "to_parts"):
        if X is not None:
            raise ValueError(
                "feature_importances measures an estimator on the rows that it has kept; for other "
                "rows, use permutation_importance of scikit-learn"
            )
        return _estimator_importances(model)
    require_model(model, "feature_importances")
    return column_importances(model, column_finder(model), X, y, weights)


def column_importances(
    model: Model, column: Callable[[Any], Any], X: Any = None, y: Any = None, weights: Any = None
) -> dict[Any, float]:
    """Return importances as `feature_importances` does; `column` returns that of a feature."""
    with lock_of(model):
        each = sampled_models(model)
        return _average([_importances(part, column, X, y, weights) for part in each])


def _estimator_importances(estimator: Any) -> dict[str | int, float]:
    """Return the importances of an estimator by column; those of several targets are averaged."""
    if not hasattr(type(estimator), "feature_importances_"):  # of River
        return _average([feature_importances(model) for model in estimator.to_parts().models])
    shares = estimator.feature_importances_.tolist()
    names = getattr(estimator, "feature_names_in_", range(len(shares)))
    return _average([dict(zip(names, shares, strict=True))])


def _average(each: Sequence[Mapping[Any, float]]) -> dict[Any, float]:
    """Return the averages of several importances, largest first."""
    names = dict.fromkeys(name for shares in each for name in shares)
    averages = {name: sum(one.get(name, 0.0) for one in each) / len(each) for name in names}
    return dict(sorted(averages.items(), key=lambda share: -share[1]))


def _importances(
    model: Model, column: Callable[[Any], Any], X: Any, y: Any, weights: Any
) -> dict[Any, float]:
    sample = kept_rows(model) if X is None else _given_sample(model, X, y, weights)
    increase = _increases(model, sample, column)
    total = sum(increase.values())
    return {name: part / total if total > 0 else 0.0 for name, part in increase.items()}


def _given_sample(model: Model, X: Any, y: Any, weights: Any) -> LabelledRows:
    if y is None:
        raise ValueError("feature_importances needs y for the rows X")
    booster = model.boosters()[0]
    block = booster.check(X, y, weights)
    if not block.weights.any():
        raise ValueError("the weights of all rows are 0")
    labels = booster.core.sampled_labels(block)
    return LabelledRows(block.rows.encoded, labels, block.weights.astype(np.float64))


def _increases(
    model: Model, sample: LabelledRows, column: Callable[[Any], Any]
) -> dict[Any, float]:
    """Return how much each column increases the average loss when it is shuffled; at least 0."""
    table = table_of(sample.rows)
    columns: dict[Any, list[Any]] = {}
    for feature in table.features():
        columns.setdefault(column(feature), []).append(feature)
    base = encoded_losses(model, table.join([table.everything()]), sample.labels)
    sums = dict.fromkeys(columns, 0.0)
    for batch in _batches(table, columns, len(sample.weights)):
        changes = [change for _, change in batch]
        rows = np.concatenate([change.rows for change in changes])
        joined = table.join([change.changed for change in changes])
        rise = sample.weights[rows] * (
            encoded_losses(model, joined, sample.labels[rows]) - base[rows]
        )
        ends = np.cumsum([len(change.rows) for change in changes])
        for (name, _), part in zip(batch, np.split(rise, ends[:-1]), strict=True):
            sums[name] += float(part.sum())
    return {name: max(total, 0.0) for name, total in sums.items()}


def _batches(
    table: Table, columns: Mapping[Any, list[Any]], number: int
) -> Iterator[list[tuple[Any, Change]]]:
    """Yield columns and changes to predict, several together as far as they are small."""
    orders = [np.argsort(hash_integers(np.arange(number, dtype=np.uint64) + k)) for k in _keys()]
    batch: list[tuple[Any, Change]] = []
    for name, features in columns.items():
        changes = (table.shuffle(features, order) for order in orders)
        batch += [(name, change) for change in changes if len(change.rows)]
        if sum(len(change.rows) for _, change in batch) >= _TOGETHER:
            yield batch
            batch = []
    if batch:
        yield batch


def _keys() -> Array:
    keys: Array = hash_integers(np.arange(1, REPEATS + 1, dtype=np.uint64))
    return keys
