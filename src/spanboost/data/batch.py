"""What every reader of a format yields: some rows of one file, ready for a model."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.data.problems import StreamError
from spanboost.errors import DataError
from spanboost.rows.block import Rows
from spanboost.rows.encoder import count_rows
from spanboost.rows.validation import Sparse


class Batch(NamedTuple):
    """Good rows of one file, in order; bad ones have been dealt with."""

    X: Any  # what a model reads: an array, `rows.Sparse`, `block.Rows` or a list of dictionaries
    y: Array | None  # [rows] labels, encoded by the target; None where they were not asked for
    weights: Array | None  # [rows] of importance; None: all 1
    file: str
    lines: Array  # [rows] the line each stands on, from 1; of Parquet and Arrow its row, from 1

    @property
    def rows(self) -> int:
        """How many."""
        return len(self.lines)

    def part(self, first: int, last: int) -> "Batch":
        """The rows from `first` to before `last`."""
        return Batch(
            _part(self.X, first, last),
            None if self.y is None else self.y[first:last],
            None if self.weights is None else self.weights[first:last],
            self.file,
            self.lines[first:last],
        )

    def only(self, rows: Array) -> "Batch":
        """Some of the rows: their numbers, or which of all."""
        y, weights = (None if part is None else part[rows] for part in (self.y, self.weights))
        return Batch(_some(self.X, rows), y, weights, self.file, self.lines[rows])

    def located(self, error: DataError) -> StreamError:
        """What a model has to say about one of the rows, with its place in the file."""
        return StreamError(f"{self.file}:{self.lines[error.row]}: {error.what}")

    def active(self, t: int) -> int:
        """How many features of row t are neither 0 nor missing, the constant among them."""
        return 1 + _active(_part(self.X, t, t + 1))


def as_batch(X: Any, y: Any, weights: Any = None) -> Batch:
    """Return rows in memory as one batch; it has no file, and lines count from 0."""
    weights = None if weights is None else np.asarray(weights)
    return Batch(X, np.asarray(y), weights, "", np.arange(count_rows(X)))


def join_batches(batches: Iterable[Batch], rows: int) -> Iterator[Batch]:
    """The same rows in larger batches, of at least so many rows where a file has them."""
    held: list[Batch] = []
    for batch in batches:
        if held and (batch.file != held[0].file or sum(one.rows for one in held) >= rows):
            yield concatenate(held)
            held = []
        held.append(batch)
    if held:
        yield concatenate(held)


def concatenate(batches: Sequence[Batch]) -> Batch:
    """All rows of some batches of a file."""
    if len(batches) == 1:
        return batches[0]
    X, y, weights, files, lines = zip(*batches, strict=True)
    return Batch(
        _joined(X),
        None if y[0] is None else np.concatenate(y),
        None if weights[0] is None else np.concatenate(weights),
        files[0],
        np.concatenate(lines),
    )


def _joined(parts: Sequence[Any]) -> Any:
    first = parts[0]
    if isinstance(first, Sparse):
        indptr, indices, data, _ = zip(*parts, strict=True)
        ends = np.cumsum([0, *(ends[-1] for ends in indptr)])
        rows = [ends[1:] + before for ends, before in zip(indptr, ends, strict=False)]
        all_ends = np.concatenate([[0], *rows])
        number = len(all_ends) - 1
        return Sparse(all_ends, np.concatenate(indices), np.concatenate(data), (number,))
    if isinstance(first, Rows):
        numbers = None if first.numbers is None else _joined([part.numbers for part in parts])
        return Rows(numbers, np.concatenate([part.codes for part in parts]))
    if isinstance(first, list):
        return [row for part in parts for row in part]
    return np.concatenate(parts)


def _part(X: Any, first: int, last: int) -> Any:
    if isinstance(X, Sparse):
        start, stop = X.indptr[first], X.indptr[last]
        indptr = X.indptr[first : last + 1] - start
        return Sparse(indptr, X.indices[start:stop], X.data[start:stop], (last - first,))
    if isinstance(X, Rows):
        numbers = None if X.numbers is None else _part(X.numbers, first, last)
        return Rows(numbers, X.codes[first:last])
    return X[first:last]


def _some(X: Any, rows: Array) -> Any:
    if isinstance(X, Rows):
        return X.take(rows)
    if isinstance(X, list):
        return [X[t] for t in np.arange(len(X))[rows]]
    if not isinstance(X, Sparse):
        return X[rows]
    numbers = np.arange(len(X.indptr) - 1)[rows]
    counts = np.diff(X.indptr)[numbers]
    ends = np.cumsum(counts)
    entries = np.arange(counts.sum()) + np.repeat(X.indptr[numbers] - (ends - counts), counts)
    indptr = np.concatenate([[0], ends])
    return Sparse(indptr, X.indices[entries], X.data[entries], (len(numbers),))


def _active(X: Any) -> int:
    if isinstance(X, Rows):
        return (0 if X.numbers is None else _active(X.numbers)) + int((X.codes >= 0).sum())
    if isinstance(X, list):
        return sum(value is not None and value != 0 for value in X[0].values())
    values = X.data if isinstance(X, Sparse) else X
    return int(((values != 0) & ~np.isnan(values)).sum())
