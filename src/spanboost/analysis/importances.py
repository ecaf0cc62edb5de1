"""Which features the trees of a model go by."""

from typing import Any

from spanboost.learners.trees import TreeBank
from spanboost.models.booster import Booster
from spanboost.models.model import Model


def feature_importances(model: Model) -> dict[str | int, float]:
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
    each = [_importances(booster) for booster in model.boosters_for_importances()]
    names = dict.fromkeys(name for shares in each for name in shares)
    averages = {name: sum(one.get(name, 0.0) for one in each) / len(each) for name in names}
    return _largest_first(averages)


def _importances(model: Booster) -> dict[str | int, float]:
    bank = model.core.state.bank
    if not isinstance(bank, TreeBank):
        raise ValueError(
            f"{model!r} has no trees yet" if bank is None else f"{model!r} does not boost trees"
        )
    gains, known = bank.gains, model.encoder.names
    columns = known.columns if known is not None else {}
    names: dict[int, str] = {column: name for name, column in columns.items()}
    shares = {
        f"code {f // 2}" if f % 2 else names.get(f // 2, f // 2): float(gain / gains.sum())
        for f, gain in enumerate(gains)
        if gain > 0
    }
    return _largest_first(shares)


def _largest_first(shares: dict[Any, float]) -> dict[str | int, float]:
    return dict(sorted(shares.items(), key=lambda share: -share[1]))
