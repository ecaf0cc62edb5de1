"""Rows in which the values of some features are exchanged between rows, all together."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.rows.block import Block, ObjectRows, Rows
from spanboost.rows.validation import Sparse


class Change(NamedTuple):
    """The rows that change if some features are shuffled."""

    rows: Array  # their numbers
    changed: Any  # these rows with the new values, as `Table.join` takes them


class Table(Protocol):
    """Rows whose features can be shuffled."""

    def features(self) -> Sequence[Any]:
        """Return the features that occur."""

    def shuffle(self, features: Sequence[Any], order: Array) -> Change:
        """Give row t the values that row order[t] has in these features."""

    def join(self, parts: Sequence[Any]) -> Any:
        """Return the rows of several changes as one encoded block."""

    def everything(self) -> Any:
        """Return all rows unchanged, as one part."""


def table_of(rows: Any) -> Table:
    """Return the table of an encoded block; its features have numbers as in `Cells`, or names."""
    if isinstance(rows, Block):
        return SparseTable(rows) if not rows.X.shape[1] else DenseTable(rows)
    return ObjectTable(rows) if isinstance(rows, ObjectRows) else ArrayTable(rows)


class DenseTable:
    """Dense numbers and category codes."""

    def __init__(self, block: Block) -> None:
        self.X, self.codes = block.X, block.codes

    def features(self) -> list[int]:
        """Return all columns, then all columns of codes."""
        columns = 2 * np.arange(self.X.shape[1]), 2 * np.arange(self.codes.shape[1]) + 1
        return [*np.concatenate(columns).tolist()]

    def shuffle(self, features: Sequence[int], order: Array) -> Change:
        """Give row t the values that row order[t] has in these features."""
        columns = [(feature % 2, feature // 2) for feature in features]
        tables = self.X, self.codes
        values = [tables[part][:, j] for part, j in columns]
        rows = np.unique(np.concatenate([_different(one, one[order]) for one in values]))
        changed = self.X[rows], self.codes[rows]
        for (part, j), one in zip(columns, values, strict=True):
            changed[part][:, j] = one[order][rows]
        return Change(rows, changed)

    def join(self, parts: Sequence[Any]) -> Rows:
        """Return the rows of several changes as one block."""
        X, codes = zip(*parts, strict=True)
        return Rows(np.concatenate(X), np.concatenate(codes))

    def everything(self) -> Any:
        """Return all rows unchanged, as one part."""
        return self.X, self.codes


class SparseTable:
    """Sparse numbers, and category codes."""

    def __init__(self, block: Block) -> None:
        self.codes = block.codes
        columns = block.indices & block.mask
        edges = list(zip(block.indptr[:-1].tolist(), block.indptr[1:].tolist(), strict=True))
        self.entries = [(columns[a:b], block.data[a:b]) for a, b in edges]
        self.by_column: dict[int, list[tuple[int, float]]] = {}  # the rows and values of each
        for t, (own, values) in enumerate(self.entries):
            for column, value in zip(own.tolist(), values.tolist(), strict=True):
                self.by_column.setdefault(column, []).append((t, value))

    def features(self) -> list[int]:
        """Return the columns that occur, then all columns of codes."""
        columns = [2 * column for column in sorted(self.by_column)]
        return [*columns, *(2 * np.arange(self.codes.shape[1]) + 1).tolist()]

    def shuffle(self, features: Sequence[int], order: Array) -> Change:
        """Give row t the values that row order[t] has in these features."""
        columns = [feature // 2 for feature in features if not feature % 2]
        codes = [feature // 2 for feature in features if feature % 2]
        own = self._entries_in(columns)
        changed = (self.codes[:, codes] != self.codes[order][:, codes]).any(axis=1)
        place = np.argsort(order)  # row r gives its values to row place[r]
        for t in {*own, *(int(place[r]) for r in own)}:
            changed[t] |= own.get(t) != own.get(int(order[t]))
        rows = np.flatnonzero(changed)
        new = self.codes[rows]
        new[:, codes] = self.codes[order[rows]][:, codes]
        pairs = zip(rows.tolist(), order[rows].tolist(), strict=True)
        entries = [_replace(self.entries[t], columns, own.get(other, {})) for t, other in pairs]
        return Change(rows, (entries, new))

    def _entries_in(self, columns: Sequence[int]) -> dict[int, dict[int, float]]:
        """Return the values in some columns, by row and column, of rows that have such values."""
        found: dict[int, dict[int, float]] = {}
        for column in columns:
            for t, value in self.by_column[column]:
                found.setdefault(t, {})[column] = value
        return found

    def join(self, parts: Sequence[Any]) -> Rows:
        """Return the rows of several changes as one block."""
        entries = [pair for each, _ in parts for pair in each]
        indptr = np.cumsum([0, *(len(columns) for columns, _ in entries)])
        columns, values = (np.concatenate(each) for each in zip(*entries, strict=True))
        codes = np.concatenate([codes for _, codes in parts])
        return Rows(Sparse(indptr, columns, values, (len(entries),)), codes)

    def everything(self) -> Any:
        """Return all rows unchanged, as one part."""
        return self.entries, self.codes


class ArrayTable:
    """Rows that are arrays of numbers."""

    def __init__(self, X: Array) -> None:
        self.X, self.flat = X, X.reshape(len(X), -1)

    def features(self) -> list[int]:
        """Return all columns."""
        return [2 * j for j in range(self.flat.shape[1])]

    def shuffle(self, features: Sequence[int], order: Array) -> Change:
        """Give row t the values that row order[t] has in these features."""
        columns = [feature // 2 for feature in features]
        each = (self.flat[:, j] for j in columns)
        rows = np.unique(np.concatenate([_different(one, one[order]) for one in each]))
        flat = self.flat[rows]
        flat[:, columns] = self.flat[order[rows]][:, columns]
        return Change(rows, flat.reshape(-1, *self.X.shape[1:]))

    def join(self, parts: Sequence[Any]) -> Array:
        """Return the rows of several changes as one block."""
        return np.concatenate(parts)

    def everything(self) -> Any:
        """Return all rows unchanged, as one part."""
        return self.X


class ObjectTable:
    """Rows of a learner of your own: dictionaries, or sequences of numbers."""

    def __init__(self, rows: ObjectRows) -> None:
        self.rows = [rows.row(t) for t in range(len(rows.X))]
        if not all(isinstance(row, dict) or np.ndim(row) == 1 for row in self.rows):
            raise ValueError(
                "importances need rows that are dictionaries or sequences "
                f"(got {type(self.rows[0]).__name__})"
            )

    def features(self) -> list[Any]:
        """Return the keys of dictionaries, or the columns of sequences."""
        return list(dict.fromkeys(key for row in self.rows for key in _keys(row)))

    def shuffle(self, features: Sequence[Any], order: Array) -> Change:
        """Give row t the values that row order[t] has in these features."""
        new = [self.rows[t] for t in range(len(self.rows))]
        for feature in features:
            others = (self.rows[t] for t in order.tolist())
            new = [_swap(row, other, feature) for row, other in zip(new, others, strict=True)]
        return Change(np.arange(len(new)), new)

    def join(self, parts: Sequence[Any]) -> ObjectRows:
        """Return the rows of several changes as one block."""
        return ObjectRows([row for part in parts for row in part])

    def everything(self) -> Any:
        """Return all rows unchanged, as one part."""
        return self.rows


def _different(old: Array, new: Array) -> Array:
    """Return where the values differ; NaN equals NaN."""
    return np.flatnonzero((old != new) & ~(np.isnan(old) & np.isnan(new)))


def _replace(
    entries: tuple[Array, Array], columns: Sequence[int], new: Mapping[int, float]
) -> tuple[Array, Array]:
    """Return the entries of a row with new ones in some columns."""
    own, values = entries
    # np.isin takes several times as long
    others = own != columns[0] if len(columns) == 1 else ~np.isin(own, columns)
    given = np.array([*new], own.dtype), np.array([*new.values()], values.dtype)
    return np.append(own[others], given[0]), np.append(values[others], given[1])


def _keys(row: Any) -> Iterator[Any]:
    return iter(row) if isinstance(row, dict) else iter(range(0, 2 * len(row), 2))


def _swap(row: Any, other: Any, feature: Any) -> Any:
    """Return a copy of a row with the value of another row in one feature."""
    if isinstance(row, dict):
        if feature in other:
            return row | {feature: other[feature]}
        return {key: value for key, value in row.items() if key != feature}
    new = np.array(row)
    new[feature // 2] = other[feature // 2]
    return new
