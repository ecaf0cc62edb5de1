"""Which features the trees of a model go by."""

from typing import Any

from spanboost.learners.trees import TreeBank, Trees
from spanboost.models.auto import AnyModel, AutoBoost
from spanboost.models.committee import Committee


def feature_importances(model: AnyModel) -> dict[str | int, float]:
    """The shares of features in what all splits of all trees have gained, the largest first.

    Features are named as in dictionaries, or by the number of their column; "code j" is column j
    of the category codes. Those that no tree goes by are left out. Of AutoBoost, these are the
    trees it relies on most; of a committee, the averages of its members' shares.

    >>> import numpy as np
    >>> from spanboost import SpanBoost, Trees, feature_importances
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 3))
    >>> model = SpanBoost(Trees(), n=10)
    >>> predictions = model.learn_many(X, 0.8 * np.sign(X[:, 1]))
    >>> next(iter(feature_importances(model)))
    1
    """
    if isinstance(model, AutoBoost):
        return feature_importances(model.experts[best_trees(model)])
    if isinstance(model, Committee):
        return _averaged([feature_importances(member) for member in model.members])
    bank = model._model.bank if model._model is not None else None
    if not isinstance(bank, TreeBank):
        raise ValueError(f"{model!r} has no trees yet" if bank is None else f"{model!r}: no trees")
    reader, gains = model._reader, bank.gains
    columns = reader.names.columns if reader.names is not None else {}
    names: dict[int, str] = {column: name for name, column in columns.items()}
    shares = {
        f"code {f // 2}" if f % 2 else names.get(f // 2, f // 2): float(gain / gains.sum())
        for f, gain in enumerate(gains)
        if gain > 0
    }
    return _largest_first(shares)


def _averaged(each: list[dict[str | int, float]]) -> dict[str | int, float]:
    names = dict.fromkeys(name for shares in each for name in shares)
    averages = {name: sum(one.get(name, 0.0) for one in each) / len(each) for name in names}
    return _largest_first(averages)


def _largest_first(shares: dict[Any, float]) -> dict[str | int, float]:
    return dict(sorted(shares.items(), key=lambda share: -share[1]))


def best_trees(model: AutoBoost) -> str:
    """The expert of the largest weight among those that boost trees."""
    weights = model.weights_
    trees = [name for name, one in model.experts.items() if isinstance(one.learner, Trees)]
    return max(trees, key=lambda name: weights[name])
