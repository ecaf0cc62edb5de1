"""Rows together with what was known about past labels when they were predicted."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from spanboost.compiling.arrays import Array


@dataclass(frozen=True)
class RowsWithPast:
    """Rows, and the past values of each of them (past_labels.py).

    A row is learned with the past that it was predicted with, whenever its label arrives.
    """

    rows: Any  # as the model reads them
    past: Array  # [rows, columns]
    given: Array  # [rows] whether a row has its past; other rows get that of the moment

    def __len__(self) -> int:
        return len(self.given)


def split_past(X: Any) -> tuple[Any, RowsWithPast | None]:
    """Return rows without their past, and the rows with it; None if they have none."""
    return (X.rows, X) if isinstance(X, RowsWithPast) else (X, None)


def check_past(given: RowsWithPast, rows: int, columns: int) -> None:
    """Raise a ValueError if the past values do not fit the rows or the model."""
    if np.shape(given.past) != (rows, columns) or np.shape(given.given) != (rows,):
        raise ValueError(
            f"the past must be an array of shape {(rows, columns)} (got {np.shape(given.past)}); "
            "use the rows that `with_past` of this model returned"
        )
