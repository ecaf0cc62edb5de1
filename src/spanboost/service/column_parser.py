"""Parsing of all rows of a request at once, column by column.

Most requests have rows with the same keys. These are checked and converted as columns, without
work for single rows. All others, and all with an invalid value, are parsed row by row, which finds
the row at fault (request_rows.py). Valid rows have the same content either way.
"""

from array import array
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.data.formats.arrow_rows import ValueRows
from spanboost.data.formats.jsonl import LARGEST_WEIGHT, TOO_LARGE, BadRowError
from spanboost.rows.column_rows import ColumnRows
from spanboost.rows.feature_names import PLAIN
from spanboost.rows.times import parse_time
from spanboost.service.request_rows import (
    MAX_LABEL,
    Examples,
    FeatureRows,
    RejectedRow,
    RowParser,
    collect_examples,
    collect_features,
    parse_id,
    parse_rows,
)

MIN_ROWS = 8  # fewer rows take longer in columns than one by one
NUMBERS = frozenset([int, float])

Columns = dict[str, Sequence[Any]]


class NotUniformError(Exception):
    """The rows must be parsed one by one."""


def parse_features(
    parser: RowParser, values: Sequence[Any]
) -> tuple[FeatureRows, list[RejectedRow]]:
    """Parse the rows of a request for predictions; return the good and the rejected ones."""
    try:
        return _FeatureColumns(parser, values).features(), []
    except NotUniformError:
        rows, rejected = parse_rows(parser.parse_features, values)
        return collect_features(rows), rejected


def parse_examples(parser: RowParser, values: Sequence[Any]) -> tuple[Examples, list[RejectedRow]]:
    """Parse the labelled rows of a request; return the good and the rejected ones."""
    try:
        return _FeatureColumns(parser, values).examples(), []
    except NotUniformError:
        examples, rejected = parse_rows(parser.parse_example, values)
        return collect_examples(examples), rejected


class _FeatureColumns:
    """The columns of a request; raises NotUniformError if it must be parsed row by row."""

    def __init__(self, parser: RowParser, values: Sequence[Any]) -> None:
        self._parser, self._schema, self._rows = parser, parser.schema, len(values)
        self._columns = _transpose(values)
        if len(self._columns) > parser.max_keys:
            raise NotUniformError
        self._ids = self._take_ids()
        for name in self._schema.ignore:
            self._columns.pop(name, None)
        self._labels = self._columns.pop(parser.label, None)
        weight = self._schema.weight
        self._weights = None if weight is None else self._columns.pop(weight, None)

    def features(self) -> FeatureRows:
        """Return rows to predict."""
        return FeatureRows(range(self._rows), self._ids, self._parse_columns())

    def examples(self) -> Examples:
        """Return labelled rows."""
        pending = not self._columns and None not in self._ids
        return Examples(
            range(self._rows),
            self._ids,
            [None] * self._rows if pending else self._parse_columns(),
            self._parse_labels(),
            self._parse_weights(optional=pending),
        )

    def _take_ids(self) -> list[str | None]:
        name = self._parser.id
        if name not in self._columns:
            return [None] * self._rows
        try:
            return [parse_id(value, name) for value in self._columns.pop(name)]
        except BadRowError:
            raise NotUniformError from None

    def _parse_columns(self) -> ColumnRows:
        """Return the features."""
        table = self._parser.table_columns
        names = [name for name in self._columns if table is None or name in table]
        _require(len(names) > 0)
        numbers, texts = list[Array](), dict[str, Sequence[str]]()
        for name in names:
            values = self._columns[name]
            kinds = {*map(type, values)}
            if kinds == {str}:
                _require(self._takes_texts(name, values))
                texts[name] = values
            else:
                _require(kinds <= PLAIN and self._takes_numbers(name))
                numbers.append(_as_numbers(values))
        matrix = np.column_stack(numbers) if numbers else np.empty((self._rows, 0))
        _require((np.abs(matrix) < TOO_LARGE).all())
        return ColumnRows(names, matrix, texts)

    def _takes_numbers(self, name: str) -> bool:
        """Return whether numbers of this name stay numbers."""
        table = self._parser.table_columns
        if name in self._schema.categorical:
            return False
        return table is None or not (table[name].category or table[name].time)

    def _takes_texts(self, name: str, texts: Iterable[str]) -> bool:
        """Return whether texts of this name stay texts."""
        table = self._parser.table_columns
        if table is not None and (table[name].time or not table[name].category):
            return False
        if not self._schema.iso_times or name in self._schema.categorical:
            return True
        return all(parse_time(text) is None for text in {*texts})

    def _parse_labels(self) -> list[float | str]:
        _require(self._labels is not None)
        labels = self._labels or ()
        kinds = {*map(type, labels)}
        if kinds == {str}:
            return [*labels]
        _require(kinds <= NUMBERS)
        numbers = _as_numbers(labels)
        if self._schema.target.as_text:
            return [*map(repr, labels)]
        _require((np.abs(numbers) <= MAX_LABEL).all())
        found: list[float | str] = numbers.tolist()
        return found

    def _parse_weights(self, *, optional: bool) -> list[float]:
        if self._weights is None:
            _require(optional or self._schema.weight is None)
            return [1.0] * self._rows
        _require(NUMBERS.issuperset(map(type, self._weights)))
        weights = _as_numbers(self._weights)
        _require(((weights >= 0) & (weights <= LARGEST_WEIGHT)).all())
        found: list[float] = weights.tolist()
        return found


def _transpose(values: Sequence[Any]) -> Columns:
    """Return the values by key, if all of them are objects with the same keys in one order."""
    _require(len(values) >= MIN_ROWS)
    if isinstance(values, ValueRows):
        return dict(values.columns)
    _require({*map(type, values)} == {dict})
    names = tuple(values[0])
    _require(all(tuple(value) == names for value in values))
    columns = zip(*map(dict.values, values), strict=True)
    return dict(zip(names, columns, strict=True))


def _as_numbers(values: Sequence[Any]) -> Array:
    """Return numbers as floats."""
    try:
        return np.frombuffer(array("d", values))
    except OverflowError:  # an integer that a float cannot hold
        raise NotUniformError from None


def _require(condition: Any) -> None:
    if not condition:
        raise NotUniformError
