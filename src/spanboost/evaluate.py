"""Progressive validation: every row is predicted first and learned afterwards."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from spanboost.arrays import Array
from spanboost.booster import Booster


class Checkpoint(NamedTuple):
    """Where the models stand after so many rows."""

    rows: int
    loss: dict[str, float]  # average squared loss so far


def progressive(
    models: Mapping[str, Booster], blocks: Iterable[tuple[Any, Array]]
) -> Iterator[Checkpoint]:
    """Learn blocks of rows and labels with every model, in one pass.

    Yields a checkpoint at 1, 2, 4, 8, ... rows and at the end. Losses are squared, in the labels'
    own units.
    """
    due, rows = 1, 0
    total = dict.fromkeys(models, 0.0)

    def checkpoint() -> Checkpoint:
        return Checkpoint(rows, {name: total[name] / rows for name in models})

    for X, y in blocks:
        losses = {name: (model.learn_many(X, y) - y) ** 2 for name, model in models.items()}
        start, stop = rows, rows + len(y)
        while rows < stop:
            cut = min(due, stop)
            for name in models:
                total[name] += float(np.sum(losses[name][rows - start : cut - start]))
            rows = cut
            if rows == due:
                yield checkpoint()
                due *= 2
    if rows not in (0, due // 2):
        yield checkpoint()
