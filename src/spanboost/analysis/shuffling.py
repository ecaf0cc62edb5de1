"""Rows in which the values of one feature are exchanged between rows."""

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any, NamedTuple, Protocol

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.models.model import Model
from spanboost.rows.block import Block, ObjectRows, Rows, as_rows
from spanboost.rows.encoder import EncodedBlock, NumberedBlock
from spanboost.rows.validation import Sparse


class Change(NamedTuple):
    """The rows that change if one feature is shuffled."""

    feature: Any
    rows: Array  # their numbers
    changed: Any  # these rows with the new values, as `Table.join` takes them


class Table(Protocol):
    """Rows whose features can be shuffled."""

    def features(self) -> Sequence[Any]:
        """Return the features that occur."""

    def shuffle(self, feature: Any, order: Array) -> Change:
        """Give row t the value that row order[t] has in this feature."""

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

    def shuffle(self, feature: int, order: Array) -> Change:
        """Give row t the value that row order[t] has in this feature."""
        values = (self.codes if feature % 2 else self.X)[:, feature // 2]
        new = values[order]
        rows = _different(values, new)
        parts = self.X[rows], self.codes[rows]
        parts[feature % 2][:, feature // 2] = new[rows]
        return Change(feature, rows, parts)

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
        self.codes, self.number = block.codes, len(block.codes)
        columns = block.indices & block.mask
        edges = list(zip(block.indptr[:-1].tolist(), block.indptr[1:].tolist(), strict=True))
        self.entries = [(columns[a:b], block.data[a:b]) for a, b in edges]
        row = np.repeat(np.arange(self.number), np.diff(block.indptr))
        sorted_ = np.argsort(columns, kind="stable")
        self.columns, starts = np.unique(columns[sorted_], return_index=True)
        ends = [*starts[1:].tolist(), len(columns)]
        index = [sorted_[a:b] for a, b in zip(starts.tolist(), ends, strict=False)]
        self.by_column = {
            column: (row[some], block.data[some])
            for column, some in zip(self.columns.tolist(), index, strict=True)
        }

    def features(self) -> list[int]:
        """Return the columns that occur, then all columns of codes."""
        return [*(2 * self.columns).tolist(), *(2 * np.arange(self.codes.shape[1]) + 1).tolist()]

    def shuffle(self, feature: int, order: Array) -> Change:
        """Give row t the value that row order[t] has in this feature."""
        column = feature // 2
        if feature % 2:
            new = self.codes[order, column]
            rows = _different(self.codes[:, column], new)
            codes = self.codes[rows]
            codes[:, column] = new[rows]
            return Change(feature, rows, ([self.entries[t] for t in rows.tolist()], codes))
        known, values = np.zeros(self.number, bool), np.zeros(self.number)
        index, numbers = self.by_column[column]
        known[index], values[index] = True, numbers
        rows = np.flatnonzero(known != known[order])
        rows = np.union1d(rows, _different(values, values[order]))
        entries = [
            _replace(self.entries[t], column, values[order[t]] if known[order[t]] else None)
            for t in rows.tolist()
        ]
        return Change(feature, rows, (entries, self.codes[rows]))

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

    def shuffle(self, feature: int, order: Array) -> Change:
        """Give row t the value that row order[t] has in this feature."""
        values = self.flat[:, feature // 2]
        rows = _different(values, values[order])
        flat = self.flat[rows]
        flat[:, feature // 2] = values[order][rows]
        return Change(feature, rows, flat.reshape(-1, *self.X.shape[1:]))

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

    def shuffle(self, feature: Any, order: Array) -> Change:
        """Give row t the value that row order[t] has in this feature."""
        pairs = zip(count(), self.rows, [self.rows[t] for t in order.tolist()], strict=False)
        found = [(t, _swap(row, other, feature)) for t, row, other in pairs]
        return Change(feature, np.array([t for t, _ in found]), [row for _, row in found])

    def join(self, parts: Sequence[Any]) -> ObjectRows:
        """Return the rows of several changes as one block."""
        return ObjectRows([row for part in parts for row in part])

    def everything(self) -> Any:
        """Return all rows unchanged, as one part."""
        return self.rows


def predict(model: Model, rows: Any, number: int) -> Array:
    """Return the predictions for rows that `Table.join` returned."""
    kind = model.encoder.kind
    if kind is None:
        raise ValueError(f"{model!r} has learned nothing")
    if isinstance(rows, Rows):
        numbered: Any = NumberedBlock(rows, number, kind.named, {})
        return model.predict_many(numbered)
    block = EncodedBlock(rows, as_rows(rows), number, 0, 0, kind, {})
    return model.as_booster().predict_encoded(block, 0, number)


def _different(old: Array, new: Array) -> Array:
    """Return where the values differ; NaN equals NaN."""
    return np.flatnonzero((old != new) & ~(np.isnan(old) & np.isnan(new)))


def _replace(entries: tuple[Array, Array], column: int, value: Any) -> tuple[Array, Array]:
    """Return the entries of a row with another value in a column; None removes it."""
    columns, values = entries
    others = columns != column
    if value is None:
        return columns[others], values[others]
    value = np.asarray(value, values.dtype)
    return np.append(columns[others], column), np.append(values[others], value)


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
