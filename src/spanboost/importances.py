"""Which features the trees of a model go by."""

from spanboost.booster import Booster
from spanboost.learners.trees import TreeBank


def feature_importances(model: Booster) -> dict[str | int, float]:
    """The shares of features in what all splits of all trees have gained, the largest first.

    Features are named as in dictionaries, or by the number of their column; "code j" is column j
    of the category codes. Those that no tree goes by are left out.

    >>> import numpy as np
    >>> from spanboost import SpanBoost, Trees, feature_importances
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 3))
    >>> model = SpanBoost(Trees(), n=10)
    >>> predictions = model.learn_many(X, 0.8 * np.sign(X[:, 1]))
    >>> next(iter(feature_importances(model)))
    1
    """
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
    return dict(sorted(shares.items(), key=lambda share: -share[1]))
