"""Columns of categories without a single value that the model has learned.

Their values count as missing, which is easy to miss if the file is another one, or has another
spelling. An unknown value among known ones is common, and so is one in a single row.
"""

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping
from typing import Any

from spanboost.errors import did_you_mean, warn_caller

_ROWS = 2  # rows with a value, from which on a column without known values is a mistake


class UnknownCategories:
    """Watches columns of categories for values that a model knows, over the blocks of a run."""

    def __init__(self) -> None:
        self._known: set[str] = set()  # columns with a known value
        self._rows: dict[str, int] = {}  # rows with a value, of the other columns
        self._first: dict[str, tuple[Any, Collection[Hashable]]] = {}

    def watch(self, column: str, values: Mapping[Any, int], known: Collection[Hashable]) -> None:
        """Add the distinct values of a block, with their numbers of rows.

        known: the values of the column that the model has learned.
        """
        if column in self._known:
            return
        present = [value for value in values if value not in (None, "")]
        if any(value in known for value in present):
            self._known.add(column)
        elif present:
            self._rows[column] = self._rows.get(column, 0) + sum(values[one] for one in present)
            self._first.setdefault(column, (present[0], known))

    def watch_rows(
        self, rows: Iterable[dict[Any, Any]], known: Mapping[str, Collection[Hashable]]
    ) -> None:
        """Add the texts of dictionaries; `known` are the learned values of each column."""
        for column in known.keys() - self._known:
            texts = (value for row in rows if isinstance(value := row.get(column), str))
            self.watch(column, Counter(texts), known[column])

    def columns(self) -> list[str]:
        """Return the columns that have values, but none that is known."""
        return [
            column
            for column, rows in self._rows.items()
            if column not in self._known and rows >= _ROWS
        ]

    def notes(self) -> list[str]:
        """Return a sentence for each of these columns, with the first value."""
        found = []
        for column in self.columns():
            first, known = self._first[column]
            near = did_you_mean(first, [one for one in known if isinstance(one, str)])
            found.append(f"{_describe(column)}; the first is {first!r:.40}{near}")
        return found

    def warn(self) -> None:
        """Issue a warning for each column, without values: Python shows equal ones once."""
        for column in self.columns():
            warn_caller(UserWarning(_describe(column)))


def _describe(column: str) -> str:
    text = f"no value of column {column!r:.40} is known to the model"
    return f"{text}; all of them count as missing"
