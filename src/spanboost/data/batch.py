"""Batches of rows, the output of every reader."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.data.problems import StreamError
from spanboost.errors import DataError
from spanboost.rows.block import Rows
from spanboost.rows.encoder import count_rows
from spanboost.rows.past_rows import RowsWithPast
from spanboost.rows.validation import Sparse


class Batch(NamedTuple):
    """Valid rows of one file, in order. Bad rows have already been reported."""

    X: Any  # features: an array, `Sparse`, `Rows` or a list of dictionaries
    y: Array | None  # [rows] labels, encoded by the target; None if labels are not read
    weights: Array | None  # [rows] importance weights; None if all are 1
    file: str
    lines: Array  # [rows] line numbers, from 1; row numbers for Parquet and Arrow
    kept: Any = None  # Arrow table of the columns that are passed on as they are; None without
    positions: list[tuple[str, Any]] | None = None  # [rows] place and position; None for files

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.lines)

    @property
    def labels(self) -> Array:
        """The labels of a batch that was read to be learned."""
        assert self.y is not None, "the labels were not read"
        return self.y

    def part(self, first: int, last: int) -> "Batch":
        """Return the rows from `first` up to, but excluding, `last`."""
        return Batch(
            _slice(self.X, first, last),
            None if self.y is None else self.y[first:last],
            None if self.weights is None else self.weights[first:last],
            self.file,
            self.lines[first:last],
            None if self.kept is None else self.kept.slice(first, last - first),
            None if self.positions is None else self.positions[first:last],
        )

    def take(self, rows: Array) -> "Batch":
        """Return some of the rows, given by their indices or by a boolean mask."""
        return Batch(
            _take(self.X, rows),
            None if self.y is None else self.y[rows],
            None if self.weights is None else self.weights[rows],
            self.file,
            self.lines[rows],
            None if self.kept is None else self.kept.take(np.arange(self.rows)[rows]),
            None if self.positions is None else _take(self.positions, rows),
        )

    def locate(self, error: DataError) -> StreamError:
        """Return an error about one of the rows with its file and line number added."""
        return StreamError(f"{self.file}:{self.lines[error.row]}: {error.what}")

    def count_active(self, t: int) -> int:
        """Count the features of row t that are neither 0 nor missing, and the constant."""
        return 1 + _count_active(_slice(self.X, t, t + 1))


def as_batch(X: Any, y: Any, weights: Any = None) -> Batch:
    """Return rows in memory as one batch; it has no file, and lines count from 0."""
    weights = None if weights is None else np.asarray(weights)
    return Batch(X, np.asarray(y), weights, "", np.arange(count_rows(X)))


def join_batches(batches: Iterable[Batch], rows: int) -> Iterator[Batch]:
    """Yield the same rows in batches of at least `rows` rows, except at the end of a file."""
    pending: list[Batch] = []
    for batch in batches:
        if pending and (batch.file != pending[0].file or _count_rows(pending) >= rows):
            yield concatenate(pending)
            pending = []
        pending.append(batch)
    if pending:
        yield concatenate(pending)


def _count_rows(batches: Sequence[Batch]) -> int:
    return sum(batch.rows for batch in batches)


def concatenate(batches: Sequence[Batch]) -> Batch:
    """Return one batch with all rows of some batches of the same file."""
    if len(batches) == 1:
        return batches[0]
    X, y, weights, files, lines, kept, positions = zip(*batches, strict=True)
    return Batch(
        _concatenate(X),
        None if y[0] is None else np.concatenate(y),
        None if weights[0] is None else np.concatenate(weights),
        files[0],
        np.concatenate(lines),
        None if kept[0] is None else _concatenate_tables(kept),
        None if positions[0] is None else [one for part in positions for one in part],
    )


def _concatenate_tables(tables: Sequence[Any]) -> Any:
    import pyarrow as pa  # only needed where columns are passed on

    return pa.concat_tables(tables)


def _concatenate(parts: Sequence[Any]) -> Any:
    first = parts[0]
    if isinstance(first, Sparse):
        indptr, indices, data, _ = zip(*parts, strict=True)
        ends = np.cumsum([0, *(ends[-1] for ends in indptr)])
        rows = [ends[1:] + before for ends, before in zip(indptr, ends, strict=False)]
        all_ends = np.concatenate([[0], *rows])
        shape = (len(all_ends) - 1,)
        return Sparse(all_ends, np.concatenate(indices), np.concatenate(data), shape)
    if isinstance(first, Rows):
        numbers = None if first.numbers is None else _concatenate([part.numbers for part in parts])
        return Rows(numbers, np.concatenate([part.codes for part in parts]))
    if isinstance(first, list):
        return [row for part in parts for row in part]
    return np.concatenate(parts)


def _slice(X: Any, first: int, last: int) -> Any:
    if isinstance(X, Sparse):
        start, stop = X.indptr[first], X.indptr[last]
        indptr = X.indptr[first : last + 1] - start
        return Sparse(indptr, X.indices[start:stop], X.data[start:stop], (last - first,))
    if isinstance(X, Rows):
        numbers = None if X.numbers is None else _slice(X.numbers, first, last)
        return Rows(numbers, X.codes[first:last])
    if isinstance(X, RowsWithPast):
        rows = _slice(X.rows, first, last)
        return RowsWithPast(rows, X.past[first:last], X.given[first:last])
    return X[first:last]


def _take(X: Any, rows: Array) -> Any:
    if isinstance(X, Rows):
        return X.take(rows)
    if isinstance(X, list):
        return [X[t] for t in np.arange(len(X))[rows]]
    if not isinstance(X, Sparse):
        return X[rows]
    taken = np.arange(len(X.indptr) - 1)[rows]
    counts = np.diff(X.indptr)[taken]
    ends = np.cumsum(counts)
    entries = np.arange(counts.sum()) + np.repeat(X.indptr[taken] - (ends - counts), counts)
    indptr = np.concatenate([[0], ends])
    return Sparse(indptr, X.indices[entries], X.data[entries], (len(taken),))


def _count_active(X: Any) -> int:
    if isinstance(X, Rows):
        return (0 if X.numbers is None else _count_active(X.numbers)) + int((X.codes >= 0).sum())
    if isinstance(X, list):
        return sum(value is not None and value != 0 for value in X[0].values())
    values = X.data if isinstance(X, Sparse) else X
    return int(((values != 0) & ~np.isnan(values)).sum())
