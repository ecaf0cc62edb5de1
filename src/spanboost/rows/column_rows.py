"""Dictionaries with the same keys, stored by column.

Creating and reading a dictionary for every row takes longer than learning from it. Rows that all
have the same keys, each with only numbers or only strings, need none: their numbers are a matrix.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any, overload

import numpy as np

from spanboost.compiling.arrays import Array


class ColumnRows(Sequence[dict[str, Any]]):
    """A sequence of dictionaries, each of which is created when it is read.

    names: the keys, in the order in which the dictionaries have them; there is at least one.
    numbers: [rows, names without strings] float64, in the order of the names.
    texts: the strings, by name.

    >>> import numpy as np
    >>> rows = ColumnRows(("x", "colour"), np.array([[1.0], [2.0]]), {"colour": ["red", "blue"]})
    >>> rows[1], len(rows), list(rows[:1])
    ({'x': 2.0, 'colour': 'blue'}, 2, [{'x': 1.0, 'colour': 'red'}])
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self, names: Sequence[str], numbers: Array, texts: Mapping[str, Sequence[str]]
    ) -> None:
        self.names, self.numbers, self.texts = tuple(names), numbers, dict(texts)
        self.number_names = [name for name in self.names if name not in self.texts]

    def column(self, name: str) -> Any:
        """Return the values of a name: an array of numbers, or a sequence of strings."""
        if name in self.texts:
            return self.texts[name]
        return self.numbers[:, self.number_names.index(name)]

    def take(self, rows: Any) -> "ColumnRows":
        """Return some of the rows, given by their indices."""
        texts = {name: [values[t] for t in rows] for name, values in self.texts.items()}
        return ColumnRows(self.names, self.numbers[rows], texts)

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, key: int) -> dict[str, Any]: ...

    @overload
    def __getitem__(self, key: slice) -> "ColumnRows": ...

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            texts = {name: values[key] for name, values in self.texts.items()}
            return ColumnRows(self.names, self.numbers[key], texts)
        numbers = iter(self.numbers[key].tolist())
        texts = self.texts
        return {name: texts[name][key] if name in texts else next(numbers) for name in self.names}

    def __iter__(self) -> Iterator[dict[str, Any]]:
        numbers = iter(self.numbers.T.tolist())
        texts = self.texts
        columns = [texts[name] if name in texts else next(numbers) for name in self.names]
        return map(dict, map(zip, repeat(self.names), zip(*columns, strict=True)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)


def join_rows(parts: Sequence[Sequence[Any]]) -> Sequence[Any]:
    """Return the rows of all parts; they stay in columns if all parts have the same columns."""
    if len(parts) == 1:
        return parts[0]
    columns = [part for part in parts if isinstance(part, ColumnRows)]
    layouts = {(part.names, tuple(part.texts)) for part in columns}
    if len(columns) < len(parts) or len(layouts) != 1:
        return [row for part in parts for row in part]
    names, text_names = layouts.pop()
    texts = {name: [text for part in columns for text in part.texts[name]] for name in text_names}
    return ColumnRows(names, np.concatenate([part.numbers for part in columns]), texts)


def take_rows(rows: Sequence[Any], chosen: Sequence[int]) -> Sequence[Any]:
    """Return some of the rows, given by their indices."""
    return rows.take(chosen) if isinstance(rows, ColumnRows) else [rows[t] for t in chosen]
