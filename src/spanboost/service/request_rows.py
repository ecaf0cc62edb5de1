"""Validation of the rows of a request, and their conversion to what `spanboost train` reads."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.data.batch import Batch
from spanboost.data.formats.jsonl import BadRowError, JsonReader, as_row
from spanboost.data.local_formats import TIME_EXAMPLE, parse_date
from spanboost.data.problems import Problems
from spanboost.data.schema import Column, Schema
from spanboost.data.table_names import describe_foreign_row
from spanboost.data.target import Target
from spanboost.errors import close_names
from spanboost.rows.column_rows import ColumnRows, take_rows

MAX_ID_LENGTH = 128
BLOCK_CELLS = 1 << 18  # maximum number of values in a block of several rows
MAX_LABEL = 1e300  # the width of a range of larger labels overflows

UNPROCESSABLE, GONE, CONFLICT = 422, 410, 409

Row = dict[str, Any]  # a number, a string or None for each key
Parsed = TypeVar("Parsed")


class RejectedRow(NamedTuple):
    """A row that was rejected, and why."""

    row: int
    field: str | None
    reason: str
    status: int = UNPROCESSABLE


class Example(NamedTuple):
    """A row and its label."""

    id: str | None
    row: Row | None  # None: the pending row with this id
    label: float | str  # as its target takes it
    weight: float


class FeatureRows(NamedTuple):
    """Rows of a request to predict."""

    numbers: Sequence[int]  # of the rows in the request
    ids: Sequence[str | None]
    rows: Sequence[Row]

    def without(self, positions: Collection[int]) -> "FeatureRows":
        """Return the other rows, without those at some positions."""
        kept = [t for t in range(len(self.numbers)) if t not in positions]
        return FeatureRows(
            [self.numbers[t] for t in kept],
            [self.ids[t] for t in kept],
            take_rows(self.rows, kept),
        )


class Examples(NamedTuple):
    """Labelled rows of a request."""

    numbers: Sequence[int]  # of the rows in the request
    ids: Sequence[str | None]
    rows: Sequence[Row | None]  # None: the pending row with this id
    labels: Sequence[float | str]  # as their target takes them
    weights: Sequence[float]

    def pending_ids(self) -> list[str]:
        """Return the ids of pending rows."""
        if isinstance(self.rows, ColumnRows):
            return []
        named = zip(self.ids, self.rows, strict=True)
        return [id for id, row in named if row is None and id is not None]

    def without(self, numbers: Collection[int]) -> "Examples":
        """Return the other rows, without those that have some numbers."""
        kept = [t for t, number in enumerate(self.numbers) if number not in numbers]
        return Examples(
            [self.numbers[t] for t in kept],
            [self.ids[t] for t in kept],
            take_rows(self.rows, kept),
            [self.labels[t] for t in kept],
            [self.weights[t] for t in kept],
        )


def collect_examples(examples: Mapping[int, Example]) -> Examples:
    """Return single examples, given by their numbers, together."""
    several = examples.values()
    return Examples(
        [*examples],
        [one.id for one in several],
        [one.row for one in several],
        [one.label for one in several],
        [one.weight for one in several],
    )


def collect_features(rows: Mapping[int, tuple[str | None, Row]]) -> FeatureRows:
    """Return single rows to predict, given by their numbers, together."""
    return FeatureRows([*rows], [id for id, _ in rows.values()], [row for _, row in rows.values()])


def parse_rows(
    parse: Callable[[Any], Parsed], values: Sequence[Any]
) -> tuple[dict[int, Parsed], list[RejectedRow]]:
    """Parse every row of a request; return the good ones by row number, and the rejected ones."""
    parsed, rejected = dict[int, Parsed](), list[RejectedRow]()
    for number, value in enumerate(values):
        try:
            parsed[number] = parse(value)
        except BadRowError as error:
            rejected.append(RejectedRow(number, error.field, str(error)))
    return parsed, rejected


_NO_FEATURES = (
    "the row has a label but no features; if their values are not known, give one of them as null"
)


class RowParser:
    """Parses the JSON objects of requests; raises BadRowError for an invalid one."""

    def __init__(self, schema: Schema, id: str, max_keys: int) -> None:
        """Create a parser; `id` is the key of ids in rows."""
        self.schema, self.id, self.max_keys = schema, id, max_keys
        self._reader = JsonReader(schema, Problems(), labelled=True)
        self.table_columns = None
        if schema.columns is not None:
            self.table_columns = {column.name: column for column in schema.columns}

    @property
    def label(self) -> str:
        """The key of labels in rows."""
        return self._reader.label

    @property
    def exact(self) -> bool:
        """Whether integers of more than 64 bits must be read exactly."""
        return self._reader.exact

    def parse_features(self, value: Any) -> tuple[str | None, Row]:
        """Return the id, if there is one, and the features of a row; a label is ignored."""
        row = self._check_object(value)
        id, _, _ = self._split(row)
        return id, self._select_columns(row)

    def parse_example(self, value: Any) -> Example:
        """Return a row with its label, or only the label of a pending row."""
        row = self._check_object(value)
        labelled = self.label in row
        id, label, weight = self._split(row)
        if not labelled:
            raise BadRowError(f"the label is missing: {self._describe_keys(row)}", self.label)
        plain = self._reader.parse_label(label)
        if isinstance(plain, float) and not abs(plain) <= MAX_LABEL:
            raise BadRowError("the label is too large or not finite", self.label)
        pending = id is not None and not row
        if not (row or pending) and self.table_columns is None:
            raise BadRowError(_NO_FEATURES)
        weight = self._parse_weight(weight, optional=pending)
        return Example(id, None if pending else self._select_columns(row), plain, weight)

    def _describe_keys(self, row: Row) -> str:
        """Return that a row has no key of labels; `row`: its features."""
        close = close_names(self.label, row)
        if not close:
            return f"no key {self.label!r:.40}"
        return f"found {close[0]!r:.40}; the label is named {self.label!r:.40}"

    def _check_object(self, value: Any) -> Row:
        if isinstance(value, BadRowError):
            raise value
        row = as_row(value)
        if len(row) > self.max_keys:
            raise BadRowError(f"too many keys in one row: {len(row)} (maximum: {self.max_keys})")
        return row

    def _split(self, row: Row) -> tuple[str | None, Any, Any]:
        """Remove the id, the label and the weight from a row and return them."""
        id = parse_id(row.pop(self.id, None), self.id)
        label, weight = self._reader.split(row)
        return id, label, weight

    def _parse_weight(self, weight: Any, *, optional: bool) -> float:
        if weight is None and optional:
            return 1.0
        return self._reader.parse_weight(weight)

    def _select_columns(self, row: Row) -> Row:
        """Return the values of the table's columns; all values if the model reads no table."""
        if self.table_columns is None:
            return row
        selected = {
            name: _parse_cell(self.table_columns[name], row[name])
            for name in row
            if name in self.table_columns
        }
        if self.table_columns and not selected:
            raise BadRowError(describe_foreign_row([*self.table_columns], row))
        return selected


def parse_id(value: Any, name: str) -> str | None:
    """Return an id as text, or None if the row has no id. `name` is the key of ids."""
    if value is None:
        return None
    text = str(value) if type(value) is int and -(2**63) <= value < 2**64 else value
    if not isinstance(text, str) or not 0 < len(text) <= MAX_ID_LENGTH or not text.isprintable():
        raise BadRowError(
            f"an id must be a string of 1 to {MAX_ID_LENGTH} printable characters, or a 64-bit "
            "integer",
            name,
        )
    return text


def _parse_cell(column: Column, value: Any) -> Any:
    if column.time:
        text = value if isinstance(value, str) else ""
        if value is None or parse_date(text, column.order) is not None:
            return value
        raise BadRowError(
            f"{column.name!r:.40} is {value!r:.40}; expected a date or time, {TIME_EXAMPLE}",
            column.name,
        )
    if column.category:
        return value if value is None or isinstance(value, str) else f"{value:.17g}"
    if isinstance(value, str):
        raise BadRowError(f"{column.name!r:.40} is {value!r:.40}; expected a number", column.name)
    return value


def split_by_cells(rows: Sequence[Row], first: int, last: int) -> Iterator[tuple[int, int]]:
    """Yield the bounds of blocks of the rows from `first` to before `last`.

    The number of values in a block is limited, because the model needs a hundred bytes for each.
    """
    if isinstance(rows, ColumnRows):
        step = max(BLOCK_CELLS // len(rows.names), 1)
        yield from ((start, min(start + step, last)) for start in range(first, last, step))
        return
    start, cells = first, 0
    for t in range(first, last):
        cells += len(rows[t])
        if cells > BLOCK_CELLS and start < t:
            yield start, t
            start, cells = t, len(rows[t])
    if start < last:
        yield start, last


def find_invalid_labels(target: Target, labels: Sequence[float | str]) -> dict[int, str]:
    """Return the reason for every label that the target does not allow, by position.

    The target learns the new classes among the labels. Pass a copy if they may not be learned.
    """
    wrong = np.flatnonzero(np.isnan(encode_labels(target, labels))).tolist()
    return {t: target.error_message(labels[t], advise=False) for t in wrong}


def encode_labels(target: Target, labels: Sequence[float | str]) -> Array:
    """Return labels as numbers; NaN where a label is not allowed."""
    codes = [label if isinstance(label, float) else target.encode_text(label) for label in labels]
    numbers = np.array(codes, np.float64)
    return numbers if target.as_text else target.encode_numbers(numbers)


def learning_batches(
    schema: Schema, rows: Sequence[Row], labels: Sequence[float | str], weights: Array | None
) -> Iterator[Batch]:
    """Yield rows to learn, in blocks; the schema learns new classes and categories."""
    y = encode_labels(schema.target, labels)
    for batch in _batches(schema, rows, learn=True):
        first, last = int(batch.lines[0]), int(batch.lines[-1]) + 1
        part = None if weights is None else weights[first:last]
        yield batch._replace(y=y[first:last], weights=part)


def prediction_batches(schema: Schema, rows: Sequence[Row]) -> Iterator[Batch]:
    """Yield rows to predict, in blocks; the schema does not change."""
    return _batches(schema, rows, learn=False)


def _batches(schema: Schema, rows: Sequence[Row], *, learn: bool) -> Iterator[Batch]:
    """Yield rows in blocks, with line numbers from 0; `learn`: the schema learns new categories."""
    lines = np.arange(len(rows))
    if schema.columns is None:
        yield Batch(rows, None, None, "", lines)
        return
    import pyarrow as pa

    from spanboost.data.columns import BatchBuilder, ColumnPart

    def column(name: str, type: Any) -> Any:
        if isinstance(rows, ColumnRows):
            return (
                pa.array(rows.column(name), type)
                if name in rows.names
                else pa.nulls(len(rows), type)
            )
        return pa.array([row.get(name) for row in rows], type)

    part = ColumnPart(
        numbers=[column(one.name, pa.float64()) for one in schema.numbers],
        categories=[column(one.name, pa.string()) for one in schema.categories],
        label=None,
        weight=None,
        lines=lines,
        bad=[],
        times=[column(one.name, pa.string()) for one in schema.times],
    )
    yield from BatchBuilder(schema, Problems(), "", learn).batches(part)
