"""From the columns of a table to batches of rows.

A part of a file comes as Arrow columns. Its numbers are written into blocks of rows that stay in
the processor's cache; of its texts only the distinct ones are ever looked at.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute  # here, not by whichever thread casts first

from spanboost.compiling.arrays import Array
from spanboost.data.batch import Batch
from spanboost.data.problems import Problems
from spanboost.data.schema import Column, Schema
from spanboost.data.target import Target
from spanboost.rows.block import Rows

BLOCK = 1 << 20  # bytes of numbers and codes
ROWS = 8192  # of a block at most
UNSEEN = -2  # the code of a category that has not been looked up
HEAVIEST = 1e19  # weight


class ColumnPart(NamedTuple):
    """Some rows of a file, column by column."""

    numbers: list[Any]  # Arrow arrays of any kind of number; null is missing
    categories: list[Any]  # Arrow arrays of anything that has a text
    label: Any  # Arrow array, or None where it is not asked for
    weight: Any
    lines: Array  # [rows]
    bad: list[tuple[int, str]]  # lines that are not among them, and why


class BatchBuilder:
    """Makes batches of the parts of one file."""

    def __init__(self, schema: Schema, problems: Problems, file: str, learn: bool) -> None:
        self.schema, self.problems, self.file = schema, problems, file
        self.learn = learn  # categories that are new
        width = 4 * len(schema.numbers) + 8 * len(schema.categories)
        self.rows = max(64, min(ROWS, BLOCK // width))

    def batches(self, part: ColumnPart) -> Iterator[Batch]:
        """The good rows; then what is wrong with the others, in order."""
        columns = _Columns(self.schema, part, self.learn)
        # with bad rows among them all go into one block, so that they are reported in order
        step = max(len(part.lines), 1) if part.bad else self.rows
        for start in range(0, max(len(part.lines), 1), step):
            bad = [*part.bad]
            batch = self._batch(columns, slice(start, start + step), bad)
            if batch.rows:
                yield batch
            for line, what in sorted(bad):
                self.problems.bad(self.file, line, what)

    def _batch(self, columns: "_Columns", rows: slice, bad: list[tuple[int, str]]) -> Batch:
        """The good ones of these rows; `bad` takes the others."""
        lines = columns.part.lines[rows]
        good = self._good(lines, bad)
        numbers, infinite = columns.numbers(rows)
        weights, wrong = columns.weights(rows)
        complaints = wrong | infinite
        if complaints:
            bad.extend((int(lines[row]), what) for row, what in complaints.items())
            good = self._good(lines, bad)
        labels, unfit = columns.labels(rows, good, self.problems.skip)
        if unfit:
            bad.extend((int(lines[row]), what) for row, what in unfit.items())
            good = self._good(lines, bad)
        X = numbers if numbers is None else numbers[good]
        if columns.categories:
            X = Rows(X, columns.codes(rows, good))
        y = None if labels is None else labels[good]
        return Batch(X, y, None if weights is None else weights[good], self.file, lines[good])

    def _good(self, lines: Array, bad: list[tuple[int, str]]) -> Any:
        """Which rows are none of the bad ones, and stand before all of them where one is enough."""
        if not bad:
            return slice(None)
        if self.problems.skip:
            return ~np.isin(lines, [line for line, _ in bad])
        return lines < min(bad)[0]


class _Columns:
    """The columns of one part as the rows of a block are made of them."""

    def __init__(self, schema: Schema, part: ColumnPart, learn: bool) -> None:
        self.schema, self.part = schema, part
        self.columns = [as_numpy(column) for column in part.numbers]
        self.whole = all(column.dtype.kind in "iu" for column in self.columns)
        self.categories = [
            _Category(schema, column, array, learn)
            for column, array in zip(schema.categories, part.categories, strict=True)
        ]
        self.weight = None if part.weight is None else as_numpy(part.weight)
        self.label = None if part.label is None else _label(schema.target, part.label)

    def numbers(self, rows: slice) -> tuple[Array | None, dict[int, str]]:
        """Numbers [rows, columns], None if there are none at all; rows with infinite ones."""
        if not self.columns:
            return None, {}
        X = np.empty((len(self.part.lines[rows]), len(self.columns)), np.float32)
        with np.errstate(over="ignore"):
            for j, column in enumerate(self.columns):
                X[:, j] = column[rows]
        if self.whole or not (infinite := np.isinf(X)).any():
            return X, {}
        complaints = dict[int, str]()
        for row, j in np.argwhere(infinite):
            value, name = self.columns[j][rows][row], self.schema.numbers[j].name
            what = "is not finite" if np.isinf(value) else "is too large a number"
            complaints.setdefault(int(row), f"'{value:.15g}' {what} in column {name!r:.40}")
        return X, complaints

    def weights(self, rows: slice) -> tuple[Array | None, dict[int, str]]:
        """Weights [rows], if there are any; rows with bad ones."""
        if self.weight is None:
            return None, {}
        weights = self.weight[rows].astype(np.float64)
        wrong = np.flatnonzero(~((weights >= 0) & (weights <= HEAVIEST)))
        return weights, {int(row): _weight_complaint(weights[row]) for row in wrong}

    def labels(self, rows: slice, good: Any, skip: bool) -> tuple[Array | None, dict[int, str]]:
        """Labels [rows] of the good rows, if asked for; rows with bad ones, or only the first."""
        if self.label is None:
            return None, {}
        labels = np.full(len(self.part.lines[rows]), np.nan)
        labels[good], complaints = self.label.codes(rows, good, skip)
        place = np.arange(len(labels))[good]
        return labels, {int(place[row]): what for row, what in complaints.items()}

    def codes(self, rows: slice, good: Any) -> Array:
        """The codes of the good rows [rows, categories]."""
        first = self.categories[0].codes(rows, good)
        codes = np.empty((len(first), len(self.categories)), np.int64)
        codes[:, 0] = first
        for j, category in enumerate(self.categories[1:], 1):
            codes[:, j] = category.codes(rows, good)
        return codes


class _Distinct:
    """A column as its distinct values, and the place [rows] of each among them; -1: missing."""

    def __init__(self, array: Any) -> None:
        if pa.types.is_dictionary(array.type) and len(array.dictionary) > len(array):
            array = array.dictionary_decode()  # of a large dictionary only what is needed here
        if not pa.types.is_dictionary(array.type):
            array = array.dictionary_encode()
        indices = array.indices
        if indices.null_count:
            indices = indices.cast(pa.int64()).fill_null(-1)
        self.place: Array = indices.to_numpy()
        self.values = array.dictionary


class _Category:
    """The codes of a column of categories."""

    def __init__(self, schema: Schema, column: Column, array: Any, learn: bool) -> None:
        distinct = _Distinct(array)
        self.schema, self.column, self.place = schema, column, distinct.place
        self.texts = distinct.values.cast(pa.string()).to_pylist()
        self.learn = learn and schema.bits is None
        found = schema.codes(column, self.texts, learn=False)
        if self.learn:  # those that are new once they are met in a good row
            pairs = zip(self.texts, found, strict=True)
            found = [UNSEEN if text and code < 0 else code for text, code in pairs]
        self.table = np.array([*found, -1], np.int64)  # place -1 is the last

    def codes(self, rows: slice, good: Any) -> Array:
        """The codes of the good rows."""
        place = self.place[rows][good]
        codes = self.table.take(place)  # half the time of self.table[place]
        if self.learn and codes.min(initial=0) == UNSEEN:
            new = pa.array(place[codes == UNSEEN]).unique().to_pylist()  # in order
            texts = [self.texts[k] for k in new]
            self.table[new] = self.schema.codes(self.column, texts, learn=True)
            codes = self.table.take(place)
        return codes


class _NumberLabel:
    """Labels that stay numbers."""

    def __init__(self, target: Target, values: Array) -> None:
        self.target, self.values = target, values

    def codes(self, rows: slice, good: Any, skip: bool) -> tuple[Array, dict[int, str]]:
        """The labels of the good rows; what is wrong with any, counted among the good ones."""
        values = self.values[rows][good].astype(np.float64)
        labels = self.target.numbers(values)
        wrong = np.flatnonzero(np.isnan(labels))[: None if skip else 1]
        return labels, {int(row): self.target.complaint(float(values[row])) for row in wrong}


class _TextLabel:
    """Labels that are looked up by their texts; those not met yet in order."""

    def __init__(self, target: Target, array: Any) -> None:
        distinct = _Distinct(array)
        self.target, self.place = target, distinct.place
        self.texts = [*map(_text, distinct.values.to_pylist()), ""]  # place -1 is the last
        self.table = np.full(len(self.texts), np.nan)

    def codes(self, rows: slice, good: Any, skip: bool) -> tuple[Array, dict[int, str]]:
        """The labels of the good rows; what is wrong with any, counted among the good ones."""
        place = self.place[rows][good]
        labels = self.table.take(place)
        if not np.isnan(labels).any():
            return labels, {}
        for k in pa.array(place[np.isnan(labels)]).unique().to_pylist():  # in order
            self.table[k] = self.target.code(self.texts[k])
            if np.isnan(self.table[k]):
                break  # what is said of each bad label depends on all the good ones before it
        complaints = dict[int, str]()
        for row in np.flatnonzero(np.isnan(self.table[place])).tolist():
            k = place[row]
            self.table[k] = self.target.code(self.texts[k])
            if np.isnan(self.table[k]):
                complaints[row] = self.target.complaint(self.texts[k])
                if not skip:
                    break
        return self.table[place], complaints


def as_numpy(array: Any) -> Array:
    """An Arrow array of any kind of number; null is NaN."""
    kind = array.type
    if pa.types.is_null(kind) or pa.types.is_boolean(kind) or pa.types.is_decimal(kind):
        array = array.cast(pa.float64())
    values = array.to_numpy(zero_copy_only=False)
    # to float32 through float64, as numbers in text are
    return values.astype(np.float64) if values.dtype in (np.int64, np.uint64) else values


def _label(target: Target, array: Any) -> _NumberLabel | _TextLabel:
    if target.as_text or pa.types.is_dictionary(array.type) or is_text(array.type):
        return _TextLabel(target, array)
    return _NumberLabel(target, as_numpy(array))


def is_text(kind: Any) -> bool:
    """Whether an Arrow type is one of strings."""
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def _text(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return f"{float(value):.17g}"


def _weight_complaint(weight: float) -> str:
    if np.isnan(weight):
        return "the weight is missing"
    return f"the weight '{weight:.15g}' is not between 0 and {HEAVIEST:g}"
