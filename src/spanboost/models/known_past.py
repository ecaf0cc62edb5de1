"""What is known about past labels when a row is predicted, and how stages read it."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import Caller
from spanboost.rows.encoder import count_rows
from spanboost.rows.past_keys import NO_KEY
from spanboost.rows.past_labels import PastLabels, read_past
from spanboost.rows.past_rows import check_past, split_past
from spanboost.rows.row_keys import row_keys


@dataclass(frozen=True)
class KnownPast:
    """The keys of rows, and what was known about past labels when they were predicted."""

    keys: Array  # [rows] numbers of the keys
    past: Array  # [rows, columns]
    given: Array  # [rows] whether `past` is known; otherwise it is computed

    def part(self, first: int, last: int) -> "KnownPast":
        """Return what is known about the rows first <= t < last."""
        rows = slice(first, last)
        return KnownPast(self.keys[rows], self.past[rows], self.given[rows])

    def fill(self, others: Array) -> Array:
        """Return what was known when each row was predicted; `others` for rows without it."""
        return np.where(self.given[:, None], self.past, others) if self.given.any() else others


class ReadsPast:
    """Part of a stage: reads what is known about the labels of rows.

    state: the labels and errors so far; key: the column of the keys, or None.
    """

    state: PastLabels
    key: Any
    call: Caller

    def known_past(self, X: Any, schema: Any) -> KnownPast:
        """Return what is known about the past of rows, which may have it with them."""
        rows, given = split_past(X)
        number = count_rows(rows)
        if given is not None:
            check_past(given, number, self.state.columns)
            return KnownPast(self._keys(rows, schema), given.past, given.given)
        none = np.zeros((0, self.state.columns)), np.zeros(number, bool)
        return KnownPast(self._keys(rows, schema), *none)

    def _keys(self, rows: Any, schema: Any) -> Array:
        if self.key is None:
            return np.full(count_rows(rows), NO_KEY)
        return row_keys(rows, self.key, schema)

    def read_past(self, keys: Array) -> Array:
        """Return what is known now about the labels of rows with these keys."""
        past = np.empty((len(keys), self.state.columns))
        self.call(read_past, self.state, keys, past)
        return past
