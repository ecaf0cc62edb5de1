"""Rows as requests hold them, made the rows that `spanboost train` would read."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.data.batch import Batch
from spanboost.data.formats.jsonl import BadRowError, JsonReader, as_row
from spanboost.data.problems import Problems
from spanboost.data.schema import Column, Schema
from spanboost.data.target import Target

LONGEST_ID = 128
LARGEST_LABEL = 1e300  # beyond it a range of labels has no width

UNPROCESSABLE, GONE = 422, 410

Row = dict[str, Any]  # a number, a string or None under each name
Taken = TypeVar("Taken")


class Problem(NamedTuple):
    """Why a row was not taken."""

    row: int
    field: str | None
    reason: str
    status: int = UNPROCESSABLE


class Example(NamedTuple):
    """A row and its label."""

    id: str | None
    row: Row | None  # None: the one that was predicted under this id
    label: float | str  # as its target takes it
    weight: float


def each(
    take: Callable[[Any], Taken], values: Sequence[Any]
) -> tuple[dict[int, Taken], list[Problem]]:
    """What is made of every row, by its number; what is wrong with the others."""
    taken, problems = dict[int, Taken](), list[Problem]()
    for number, value in enumerate(values):
        try:
            taken[number] = take(value)
        except BadRowError as error:
            problems.append(Problem(number, error.field, str(error)))
    return taken, problems


class RowReader:
    """Takes the members of JSON objects apart; a BadRowError says what is wrong with them."""

    def __init__(self, schema: Schema, id: str, width: int) -> None:
        self.schema, self.id, self.width = schema, id, width
        self._reader = JsonReader(schema, Problems(), labelled=True)
        self._columns = None
        if schema.columns is not None:
            self._columns = {column.name: column for column in schema.columns}

    @property
    def label(self) -> str:
        """What labels are called."""
        return self._reader.label

    @property
    def exact(self) -> bool:
        """Whether long whole numbers matter to the last digit."""
        return self._reader.exact

    def to_predict(self, value: Any) -> tuple[str | None, Row]:
        """An id if there is one, and a row; a label that is there is ignored."""
        members = self._members(value)
        id, _, _ = self._split(members)
        return id, self._fitted(members)

    def to_learn(self, value: Any) -> Example:
        """A row with its label, or the label of a row that was predicted."""
        members = self._members(value)
        id, label, weight = self._split(members)
        plain = self._reader.parse_label(label)
        if isinstance(plain, float) and not abs(plain) <= LARGEST_LABEL:
            raise BadRowError("the label is not finite, or too large a number", self.label)
        weight = self._weight(weight, referring=id is not None and not members)
        if id is not None and not members:
            return Example(id, None, plain, weight)
        return Example(id, self._fitted(members), plain, weight)

    def _members(self, value: Any) -> Row:
        if isinstance(value, BadRowError):
            raise value
        members = as_row(value)
        if len(members) > self.width:
            raise BadRowError(f"{len(members)} names in one row, of which {self.width} are allowed")
        return members

    def _split(self, members: Row) -> tuple[str | None, Any, Any]:
        id = _id_of(members.pop(self.id, None), self.id)
        label, weight = self._reader.split(members)
        return id, label, weight

    def _weight(self, weight: Any, *, referring: bool) -> float:
        if weight is None and referring:
            return 1.0
        return self._reader.parse_weight(weight)

    def _fitted(self, row: Row) -> Row:
        """Of a table, the columns that it has; numbers where it has numbers."""
        if self._columns is None:
            return row
        return {
            name: _cell(self._columns[name], row[name]) for name in row if name in self._columns
        }


def _id_of(value: Any, name: str) -> str | None:
    if value is None:
        return None
    text = str(value) if type(value) is int and -(2**63) <= value < 2**64 else value
    if not isinstance(text, str) or not 0 < len(text) <= LONGEST_ID or not text.isprintable():
        raise BadRowError(
            f"an id is a string of 1 to {LONGEST_ID} characters, or a whole number of 64 bits", name
        )
    return text


def _cell(column: Column, value: Any) -> Any:
    if column.category:
        return value if value is None or isinstance(value, str) else f"{value:.17g}"
    if isinstance(value, str):
        raise BadRowError(
            f"{column.name!r:.40} is {value!r:.40}, where there are numbers", column.name
        )
    return value


def problem_of(target: Target, labels: Sequence[float | str]) -> dict[int, str]:
    """Which labels are not allowed, after those the target has met, and why.

    The target meets them now: whoever is not sure that they will be learned asks a copy of it.
    """
    wrong = np.flatnonzero(np.isnan(encode_rows(target, labels))).tolist()
    return {t: target.error_message(labels[t]) for t in wrong}


def encode_rows(target: Target, labels: Sequence[float | str]) -> Array:
    """Labels as numbers; NaN where one is not allowed."""
    codes = [label if isinstance(label, float) else target.encode_text(label) for label in labels]
    numbers = np.array(codes, np.float64)
    return numbers if target.as_text else target.encode_numbers(numbers)


def batches(
    schema: Schema, rows: list[Row], labels: list[float | str], weights: Array | None
) -> Iterator[Batch]:
    """Rows to learn, in blocks; the schema learns classes and categories that are new."""
    y = encode_rows(schema.target, labels)
    for batch in to_predict(schema, rows, learn=True):
        first, last = int(batch.lines[0]), int(batch.lines[-1]) + 1
        given = None if weights is None else weights[first:last]
        yield batch._replace(y=y[first:last], weights=given)


def to_predict(schema: Schema, rows: list[Row], *, learn: bool = False) -> Iterator[Batch]:
    """Rows as models read them, in blocks; their lines count from 0."""
    lines = np.arange(len(rows))
    if schema.columns is None:
        yield Batch(rows, None, None, "", lines)
        return
    import pyarrow as pa

    from spanboost.data.columns import BatchBuilder, ColumnPart

    def column(name: str, kind: Any) -> Any:
        return pa.array([row.get(name) for row in rows], kind)

    part = ColumnPart(
        numbers=[column(one.name, pa.float64()) for one in schema.numbers],
        categories=[column(one.name, pa.string()) for one in schema.categories],
        label=None,
        weight=None,
        lines=lines,
        bad=[],
    )
    yield from BatchBuilder(schema, Problems(), "", learn).batches(part)
