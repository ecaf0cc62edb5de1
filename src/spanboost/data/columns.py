"""Convert the Arrow columns of a table to batches of rows.

Numbers are written into blocks of rows that fit the processor's cache. Of text columns, only the
distinct values are converted.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute  # imported here, not in the first thread that casts

from spanboost.compiling.arrays import Array
from spanboost.data.batch import Batch
from spanboost.data.kinds import MISSING
from spanboost.data.local_formats import TIME_EXAMPLE, parse_date
from spanboost.data.problems import Problems
from spanboost.data.schema import Column, Schema
from spanboost.data.target import Target
from spanboost.rows.block import Rows
from spanboost.rows.times import time_features
from spanboost.rows.unknown_categories import UnknownCategories

BLOCK = 1 << 20  # bytes of numbers and codes in a block, about
ROWS = 8192  # rows in a block, at most
UNSEEN = -2  # placeholder code of a new category
LARGEST_WEIGHT = 1e19
_FEW = 20  # labels of a block
_PLAIN_TIME = r"\A[12]\d{3}-\d\d-\d\d([T ]([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{1,6})?)?)?\z"


class ColumnPart(NamedTuple):
    """Some rows of a file, as columns."""

    numbers: list[Any]  # Arrow arrays of any numeric type; null is missing
    categories: list[Any]  # Arrow arrays of values that can be cast to strings
    label: Any  # Arrow array; None if labels are not read
    weight: Any  # Arrow array; None if there are no weights
    lines: Array  # [rows] line numbers
    bad: list[tuple[int, str]]  # line numbers and messages of bad rows, which are not included
    times: Sequence[Any] = ()  # Arrow arrays of timestamps, dates or strings
    kept: Any = None  # Arrow table of the columns that are passed on as they are
    key: str | None = None  # one of these columns, whose values identify the rows

    def place(self, line: int) -> str:
        """Return the start of a message about a row: the value that identifies it, if any."""
        if self.key is None:
            return ""
        value = self.kept.column(self.key)[int(np.searchsorted(self.lines, line))].as_py()
        return f"row where {self.key!r:.40} is {value!r:.40}: "


class BatchBuilder:
    """Builds batches from the parts of one file."""

    def __init__(self, schema: Schema, problems: Problems, file: str, learn: bool) -> None:
        self.schema, self.problems, self.file = schema, problems, file
        self.learn = learn  # whether to add new categories to the schema
        width = 4 * len(schema.number_names) + 8 * len(schema.categories)
        self.rows = max(64, min(ROWS, BLOCK // width))

    def batches(self, part: ColumnPart) -> Iterator[Batch]:
        """Yield the good rows, then report the bad ones, in order."""
        columns = _PartColumns(self.schema, part, self.learn)
        if not self.learn:
            for category in columns.categories:
                category.watch(self.problems.unknown)
        # with bad rows there is a single block, so that they are reported in order
        step = max(len(part.lines), 1) if part.bad else self.rows
        for start in range(0, max(len(part.lines), 1), step):
            bad = [*part.bad]
            batch = self._batch(columns, slice(start, start + step), bad)
            if batch.rows:
                yield batch
            for line, what in sorted(bad):
                self.problems.report(self.file, line, f"{part.place(line)}{what}")

    def _batch(self, columns: "_PartColumns", rows: slice, bad: list[tuple[int, str]]) -> Batch:
        """Return the good ones of some rows; append the others to `bad`."""
        lines = columns.part.lines[rows]
        good = self._select_good(lines, bad)
        numbers, number_errors = columns.numbers(rows)
        weights, weight_errors = columns.weights(rows)
        errors = weight_errors | number_errors
        if errors:
            bad.extend((int(lines[row]), what) for row, what in errors.items())
            good = self._select_good(lines, bad)
        labels, errors = columns.labels(rows, good, self.problems.skip)
        if errors:
            bad.extend((int(lines[row]), what) for row, what in errors.items())
            good = self._select_good(lines, bad)
        X = numbers if numbers is None else numbers[good]
        if columns.categories:
            X = Rows(X, columns.codes(rows, good))
        y = None if labels is None else labels[good]
        weights = None if weights is None else weights[good]
        kept = columns.part.kept
        if kept is not None:
            kept = kept.take(np.arange(len(columns.part.lines))[rows][good])
        return Batch(X, y, weights, self.file, lines[good], kept)

    def _select_good(self, lines: Array, bad: list[tuple[int, str]]) -> Any:
        """Return an index of the good rows: without `skip`, those before the first bad row."""
        if not bad:
            return slice(None)
        if self.problems.skip:
            return ~np.isin(lines, [line for line, _ in bad])
        return lines < min(bad)[0]


class _PartColumns:
    """The columns of one part, from which blocks of rows are made."""

    def __init__(self, schema: Schema, part: ColumnPart, learn: bool) -> None:
        self.schema, self.part = schema, part
        self.columns = [as_numpy(column) for column in part.numbers]
        self.integers_only = all(column.dtype.kind in "iu" for column in self.columns)
        self.times = [
            TimeColumn(column.name, array, column.order)
            for column, array in zip(schema.times, part.times, strict=True)
        ]
        self.categories = [
            _CategoryColumn(schema, column, array, learn)
            for column, array in zip(schema.categories, part.categories, strict=True)
        ]
        self.weight = None if part.weight is None else as_numpy(part.weight)
        self.label = None if part.label is None else _labels(schema.target, part.label)

    def numbers(self, rows: slice) -> tuple[Array | None, dict[int, str]]:
        """Return numbers [rows, features], or None without such features; and errors by row."""
        parts = self.schema.time_parts
        width = len(self.columns) + len(parts) * len(self.times)
        if not width:
            return None, {}
        X = np.empty((len(self.part.lines[rows]), width), np.float32)
        with np.errstate(over="ignore"):
            for j, column in enumerate(self.columns):
                X[:, j] = column[rows]
        errors = dict[int, str]()
        for k, times in enumerate(self.times):
            first = len(self.columns) + len(parts) * k
            X[:, first : first + len(parts)] = time_features(times.moments[rows], parts)
            errors = times.errors(rows) | errors
        if self.integers_only or not (infinite := np.isinf(X)).any():
            return X, errors
        for row, j in np.argwhere(infinite):
            value, name = self.columns[j][rows][row], self.schema.numbers[j].name
            what = (
                "the value is infinite, or too large for a 64-bit float"  # perhaps it was 1e400
                if np.isinf(value)
                else f"'{value:.15g}' is too large for a 32-bit float"
            )
            errors.setdefault(int(row), f"column {name!r:.40}: {what}")
        return X, errors

    def weights(self, rows: slice) -> tuple[Array | None, dict[int, str]]:
        """Return weights [rows], or None without a weight column; and errors by row."""
        if self.weight is None:
            return None, {}
        weights = self.weight[rows].astype(np.float64)
        invalid = np.flatnonzero(~((weights >= 0) & (weights <= LARGEST_WEIGHT)))
        return weights, {int(row): _weight_error(weights[row]) for row in invalid}

    def labels(self, rows: slice, good: Any, skip: bool) -> tuple[Array | None, dict[int, str]]:
        """Return labels [rows] of the good rows, or None; and errors by row (the first, or all)."""
        if self.label is None:
            return None, {}
        labels = np.full(len(self.part.lines[rows]), np.nan)
        labels[good], errors = self.label.codes(rows, good, skip)
        index = np.arange(len(labels))[good]
        where = f"column {self.schema.label!r:.40}"
        return labels, {int(index[row]): f"{where}: {what}" for row, what in errors.items()}

    def codes(self, rows: slice, good: Any) -> Array:
        """Return the category codes of the good rows [rows, categories]."""
        first = self.categories[0].codes(rows, good)
        codes = np.empty((len(first), len(self.categories)), np.int64)
        codes[:, 0] = first
        for j, category in enumerate(self.categories[1:], 1):
            codes[:, j] = category.codes(rows, good)
        return codes


class _DistinctValues:
    """The distinct values of a column, and the index [rows] of each row's value; -1 if missing."""

    def __init__(self, array: Any) -> None:
        if pa.types.is_dictionary(array.type) and len(array.dictionary) > len(array):
            array = array.dictionary_decode()  # keep only the values that occur here
        if not pa.types.is_dictionary(array.type):
            array = array.dictionary_encode()
        indices = array.indices
        if indices.null_count:
            indices = indices.cast(pa.int64()).fill_null(-1)
        self.index: Array = indices.to_numpy()
        self.values = array.dictionary


class TimeColumn:
    """The times (datetime64[us]) of a column: `moments`, and the texts that are not times."""

    def __init__(self, name: str, array: Any, order: str | None = None) -> None:
        """Read an Arrow array of timestamps, dates or texts; `order` is that of `parse_date`."""
        self.name = name
        self.invalid: dict[int, str] = {}  # by index in the column, in order
        if not is_text(array.type) and not pa.types.is_dictionary(array.type):
            self.moments = as_moments(array)
            return
        distinct = _DistinctValues(array)
        values = distinct.values.cast(pa.string())
        quick = _parse_plain_times(values)
        if quick is not None:
            self.moments = np.append(quick, np.datetime64("NaT", "us"))[distinct.index]
            return
        texts = [(text or "").strip() for text in values.to_pylist()]
        table = np.full(len(texts) + 1, "NaT", "datetime64[us]")  # the last is for index -1
        wrong = np.zeros(len(texts) + 1, bool)
        for k, text in enumerate(texts):
            moment = None if text in MISSING else parse_date(text, order)
            wrong[k] = moment is None and text not in MISSING
            table[k] = "NaT" if moment is None else moment
        self.moments = table[distinct.index]
        for row in np.flatnonzero(wrong[distinct.index]).tolist():
            self.invalid[row] = texts[distinct.index[row]]

    def errors(self, rows: slice) -> dict[int, str]:
        """Return the errors of some rows, by index among these rows."""
        bounds = range(len(self.moments))[rows]
        return {
            row - bounds.start: f"column {self.name!r:.40}: {text!r:.40} is not a date or time, "
            f"{TIME_EXAMPLE}"
            for row, text in self.invalid.items()
            if row in bounds
        }


class _CategoryColumn:
    """The codes of a categorical column."""

    def __init__(self, schema: Schema, column: Column, array: Any, learn: bool) -> None:
        distinct = _DistinctValues(array)
        self.schema, self.column, self.index = schema, column, distinct.index
        self.texts = distinct.values.cast(pa.string()).to_pylist()
        self.learn = learn and not schema.is_hashed(column)
        codes = schema.encode(column, self.texts, learn=False)
        if self.learn:  # new categories get a code when they occur in a good row
            pairs = zip(self.texts, codes, strict=True)
            codes = [UNSEEN if text and code < 0 else code for text, code in pairs]
        self.table = np.array([*codes, -1], np.int64)  # the last entry is for index -1

    def watch(self, unknown: UnknownCategories) -> None:
        """Add the values of all rows; those of a hashed column are never unknown."""
        if not self.schema.is_hashed(self.column):
            used, rows = np.unique(self.index[self.index >= 0], return_counts=True)
            values = {self.texts[k]: n for k, n in zip(used.tolist(), rows.tolist(), strict=True)}
            unknown.watch(self.column.name, values, self.column.known)

    def codes(self, rows: slice, good: Any) -> Array:
        """Return the codes of the good rows."""
        index = self.index[rows][good]
        codes = self.table.take(index)  # twice as fast as self.table[index]
        if self.learn and codes.min(initial=0) == UNSEEN:
            new = pa.array(index[codes == UNSEEN]).unique().to_pylist()  # in order of appearance
            texts = [self.texts[k] for k in new]
            self.table[new] = self.schema.encode(self.column, texts, learn=True)
            codes = self.table.take(index)
        return codes


class _NumericLabels:
    """Numeric labels."""

    def __init__(self, target: Target, values: Array) -> None:
        self.target, self.values = target, values

    def codes(self, rows: slice, good: Any, skip: bool) -> tuple[Array, dict[int, str]]:
        """Return the labels of the good rows; and errors, by index among the good rows."""
        values = self.values[rows][good].astype(np.float64)
        labels = self.target.encode_numbers(values)
        invalid = np.flatnonzero(np.isnan(labels))[: None if skip else 1]
        return labels, {int(row): self.target.error_message(float(values[row])) for row in invalid}


class _TextLabels:
    """Labels that are encoded by their text; new ones in order of appearance."""

    def __init__(self, target: Target, array: Any) -> None:
        distinct = _DistinctValues(array)
        self.target, self.index = target, distinct.index
        self.texts = [*map(_text, distinct.values.to_pylist()), ""]  # the last is for index -1
        self.table = np.full(len(self.texts), np.nan)

    def codes(self, rows: slice, good: Any, skip: bool) -> tuple[Array, dict[int, str]]:
        """Return the labels of the good rows; and errors, by index among the good rows."""
        index = self.index[rows][good]
        labels = self.table.take(index)
        if not np.isnan(labels).any():
            return labels, {}
        for k in pa.array(index[np.isnan(labels)]).unique().to_pylist():  # in order of appearance
            self.table[k] = self.target.encode_text(self.texts[k])
            if np.isnan(self.table[k]):
                break  # the message about a bad label depends on all good labels before it
        errors = dict[int, str]()
        for row in np.flatnonzero(np.isnan(self.table[index])).tolist():
            k = index[row]
            self.table[k] = self.target.encode_text(self.texts[k])
            if np.isnan(self.table[k]):
                # after many numbers, a text is a mistake, not a class
                advise = self.target.as_text or row < _FEW
                errors[row] = self.target.error_message(self.texts[k], advise=advise)
                if not skip:
                    break
        return self.table[index], errors


def as_numpy(array: Any) -> Array:
    """Return an Arrow array of any numeric type as a NumPy array, with NaN for null."""
    kind = array.type
    if pa.types.is_duration(kind):  # as seconds
        return _from_microseconds(array.cast(pa.duration("us"), safe=False), 1e6)
    if pa.types.is_time(kind):  # a time of day, as hours
        return _from_microseconds(array.cast(pa.time64("us"), safe=False), 3.6e9)
    if pa.types.is_null(kind) or pa.types.is_boolean(kind) or pa.types.is_decimal(kind):
        array = array.cast(pa.float64())
    values = array.to_numpy(zero_copy_only=False)
    # convert to float32 through float64, as numbers in text files are
    return values.astype(np.float64) if values.dtype in (np.int64, np.uint64) else values


def _from_microseconds(array: Any, unit: float) -> Array:
    numbers = array.cast(pa.int64()).cast(pa.float64(), safe=False)
    return np.asarray(numbers.to_numpy(zero_copy_only=False) / unit)


def _parse_plain_times(texts: Any) -> Array | None:
    """Return times as datetime64[us], parsed by Arrow; None if it may differ from `parse_time`.

    Arrow is several times as fast. Times with a zone are left to `parse_time`.
    """
    missing = pa.compute.is_in(texts, pa.array(MISSING))
    present = pa.compute.if_else(missing, None, texts)
    if pa.compute.all(pa.compute.match_substring_regex(present, _PLAIN_TIME)).as_py() is False:
        return None
    try:
        return as_moments(present.cast(pa.timestamp("us")))
    except pa.ArrowInvalid:  # such as February 30
        return None


def as_moments(array: Any) -> Array:
    """Return an Arrow array of timestamps or dates as datetime64[us] in UTC; NaT for null."""
    kind = array.type
    zone = kind.tz if pa.types.is_timestamp(kind) else None
    # only the conversion from nanoseconds may lose digits; an overflow is an error
    safe = not (pa.types.is_timestamp(kind) and kind.unit == "ns")
    moments = array.cast(pa.timestamp("us", zone), safe=safe).cast(pa.timestamp("us"))
    return moments.to_numpy(zero_copy_only=False).astype("datetime64[us]")


def is_moment(kind: Any) -> bool:
    """Return whether an Arrow type is a type of timestamps or dates."""
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def is_number(kind: Any) -> bool:
    """Return whether values of an Arrow type are read as numbers: durations are seconds."""
    types = pa.types
    numbers = types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null
    return any(test(kind) for test in (*numbers, types.is_duration, types.is_time))


def _labels(target: Target, array: Any) -> _NumericLabels | _TextLabels:
    if target.as_text or pa.types.is_dictionary(array.type) or is_text(array.type):
        return _TextLabels(target, array)
    return _NumericLabels(target, as_numpy(array))


def is_text(kind: Any) -> bool:
    """Return whether an Arrow type is a string type."""
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def _text(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return f"{float(value):.17g}"


def _weight_error(weight: float) -> str:
    if np.isnan(weight):
        return "the weight is missing"
    return f"the weight must be between 0 and {LARGEST_WEIGHT:g} (got {weight:.15g})"
