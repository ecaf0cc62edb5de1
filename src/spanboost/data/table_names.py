"""Rows that are dictionaries, for a model with a schema: how the schema reads their values."""

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from spanboost.data.local_formats import TIME_EXAMPLE, parse_date
from spanboost.data.schema import Column, Schema
from spanboost.errors import DataError, did_you_mean
from spanboost.rows.block import Rows
from spanboost.rows.encoder import RowEncoder
from spanboost.rows.times import as_moment, is_time, time_features
from spanboost.rows.validation import is_number

_NO_TIME = np.datetime64("NaT", "us")
_SHOWN = 6  # columns that a message lists


class TableNames:
    """Converts dictionaries to the rows of a table.

    A key that is absent is a missing value. Other keys are ignored, as other columns of files are.
    """

    def __init__(self, schema: Schema) -> None:
        self.schema = schema

    @property
    def names(self) -> list[str]:
        """The names of all columns."""
        return [column.name for column in self.schema.columns or []]

    @property
    def number_names(self) -> list[str]:
        """The names of the columns of numbers."""
        return self.schema.number_names

    def categories(self) -> dict[str, Collection[Hashable]]:
        """Return the learned values of each column of categories that is not hashed."""
        columns = [one for one in self.schema.categories if not self.schema.is_hashed(one)]
        return {column.name: column.known for column in columns}

    def read(self, rows: Sequence[Any], learn: bool) -> tuple[Any, dict[Any, int]]:
        """Return rows as a model reads them, and the codes of new categories by column and text.

        A new category is missing unless `learn`. The codes are not added; `add` does that.
        """
        for t, row in enumerate(rows):
            self._check_keys(t, row)
        columns = [np.array(_cells(rows, one, _parse_number)) for one in self.schema.numbers]
        for column in self.schema.times:
            moments = np.array(_cells(rows, column, _parse_time), "datetime64[us]")
            columns += [*time_features(moments, self.schema.time_parts).T]
        numbers = np.array(columns).T if columns else None
        if not self.schema.categories:
            return numbers, {}
        new: dict[Any, int] = {}
        codes = [self._codes(rows, column, learn, new) for column in self.schema.categories]
        return Rows(numbers, np.array(codes, np.int64).T), new

    def add(self, new: Mapping[Any, int]) -> None:
        """Add new categories and their codes."""
        columns = {column.name: column for column in self.schema.categories}
        for (name, text), code in new.items():
            columns[name].codes.setdefault(text, code)

    def check(self, row: Any) -> None:
        """Raise a DataError if a row is invalid."""
        self._check_keys(0, row)
        for columns, parse in (
            (self.schema.numbers, _parse_number),
            (self.schema.times, _parse_time),
            (self.schema.categories, _parse_category),
        ):
            for column in columns:
                parse(0, column, row.get(column.name))

    def _check_keys(self, t: int, row: Any) -> None:
        if not isinstance(row, dict):
            raise DataError(t, f"expected a dictionary, as in the first row (got {row!r:.40})")
        names = self.names
        if not any(name in row for name in names):
            raise DataError(t, describe_foreign_row(names, row))

    def _codes(
        self, rows: Sequence[Any], column: Column, learn: bool, new: dict[Any, int]
    ) -> list[int]:
        """Return the codes of a column; add new categories to `new` if `learn`."""
        texts = _cells(rows, column, _parse_category)
        known = self.schema.encode(column, texts, learn=False)
        if not learn or self.schema.is_hashed(column):
            return known
        unseen = dict.fromkeys(
            text for text, code in zip(texts, known, strict=True) if code < 0 and text
        )
        first = len(column.codes)
        own = {text: first + k for k, text in enumerate(unseen)}
        new |= {(column.name, text): code for text, code in own.items()}
        return [own.get(text, code) for text, code in zip(texts, known, strict=True)]


def describe_foreign_row(names: Sequence[str], row: Iterable[Any]) -> str:
    """Return the message about a row that has none of the columns of a table."""
    near = next(filter(None, (did_you_mean(name, names) for name in row)), "")
    few = ", ".join(f"{name:.40}" for name in names[:_SHOWN])
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return f"the row has none of the model's columns ({few}{more}){near}"


def apply_schema(encoder: RowEncoder, schema: Schema | None) -> None:
    """Let an encoder read dictionaries as a schema reads files."""
    encoder.table = TableNames(schema) if schema is not None and schema.form == "table" else None
    if schema is not None and encoder.names is not None:
        encoder.names.iso_times = schema.iso_times
        encoder.names.time_parts = schema.time_parts
        encoder.names.categorical = frozenset(schema.categorical)
        others = (schema.label or "label", schema.weight, *schema.ignore)
        encoder.names.ignored = frozenset(name for name in others if name is not None)
        encoder.names.warnings = None  # the readers of files have notes instead


def _cells(rows: Sequence[Any], column: Column, parse: Callable[[int, Column, Any], Any]) -> Any:
    """Return the values of a column, parsed."""
    return [parse(t, column, row.get(column.name)) for t, row in enumerate(rows)]


def _parse_number(t: int, column: Column, value: Any) -> float:
    """Return the number of a cell; NaN if it is missing."""
    if value is None:
        return np.nan
    if not is_number(value):
        raise DataError(t, f"{column.name!r:.40} is {value!r:.40}; expected a number")
    try:
        return float(value)
    except OverflowError:
        raise DataError(t, f"the value of {column.name!r:.40} is too large") from None


def _parse_time(t: int, column: Column, value: Any) -> Any:
    """Return the time of a cell as datetime64[us]; NaT if it is missing."""
    if value is None or value == "" or (is_number(value) and np.isnan(value)):
        return _NO_TIME
    if is_time(value):
        return as_moment(value)
    moment = parse_date(value, column.order) if isinstance(value, str) else None
    if moment is None:
        raise DataError(
            t, f"{column.name!r:.40} is {value!r:.40}; expected a date or time, {TIME_EXAMPLE}"
        )
    return moment


def _parse_category(t: int, column: Column, value: Any) -> str | None:
    """Return the text of a category; None if it is missing."""
    if value is None:
        return None
    if isinstance(value, str):
        return column.spelling(value)
    if not is_number(value):
        raise DataError(t, f"{column.name!r:.40} is {value!r:.40}; expected a string or a number")
    return None if np.isnan(value) else column.spelling(f"{value:.17g}")
