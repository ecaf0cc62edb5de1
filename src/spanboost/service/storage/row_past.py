"""What was known about past labels when rows were predicted.

A row is learned with the past that it was predicted with, however late its label arrives. So the
past of a row is stored with it: while it waits for its label, and then in the journal.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.models.model import Model
from spanboost.models.past_model import PastModel
from spanboost.rows.past_rows import RowsWithPast

PAST_FLOAT = np.dtype("<f8")


class RowPast(NamedTuple):
    """The past of some rows."""

    values: Array  # [rows, columns]
    given: Array  # [rows] whether a row has its past; others get that of when they are learned

    def take(self, rows: Any) -> "RowPast":
        """Return the past of some rows, given by a NumPy index."""
        return RowPast(self.values[rows], self.given[rows])

    def state(self) -> list[Any]:
        """Return the past as JSON values."""
        known = self.values[self.given].astype(PAST_FLOAT)
        return [np.flatnonzero(self.given).tolist(), known.shape[1], known.tobytes().hex()]


def past_from_json(state: Sequence[Any], rows: int) -> RowPast:
    """Return the past that `RowPast.state` described."""
    places, columns, digits = state
    values, given = np.full((rows, columns), np.nan), np.zeros(rows, np.bool_)
    given[places] = True
    values[places] = np.frombuffer(bytes.fromhex(digits), PAST_FLOAT).reshape(-1, columns)
    return RowPast(values, given)


def collect_past(past: Sequence[Array | None]) -> RowPast | None:
    """Return the past of single rows; None if none of them has one."""
    known = [one for one in past if one is not None]
    if not known:
        return None
    missing = np.full(len(known[0]), np.nan)
    values = np.array([missing if one is None else one for one in past])
    return RowPast(values, np.array([one is not None for one in past]))


def uses_past(model: Model) -> bool:
    """Return whether a model corrects its predictions by past labels."""
    return isinstance(model, PastModel) and model.past_stage is not None


def add_past(X: Any, past: RowPast | None) -> Any:
    """Return rows with their past, as the model learns them."""
    return X if past is None else RowsWithPast(X, past.values, past.given)
