"""Read data frames (pandas, Polars, Arrow) with columns of categories or times."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import pyarrow as pa

from spanboost.compiling.arrays import Array
from spanboost.data.columns import TimeColumn, as_numpy, is_moment, is_number, is_text
from spanboost.data.kinds import (
    CATEGORY,
    HASHED_BITS,
    MISSING,
    SAMPLE_ROWS,
    TIME,
    are_identifiers,
    are_quantities,
    count_values,
    describe_column,
    describe_quantities,
    hash_category,
)
from spanboost.data.local_formats import DAY_FIRST, MONTH_FIRST, date_order
from spanboost.data.object_arrays import contains_text, object_table
from spanboost.data.sampling import text_kind
from spanboost.errors import DataError, did_you_mean, warn_caller
from spanboost.rows.block import Rows
from spanboost.rows.frame_rows import periods_to_times
from spanboost.rows.key_kinds import is_numeral
from spanboost.rows.table_form import Categories, TableForm
from spanboost.rows.times import FIRST_PARTS, PARTS, are_parts, part_names, time_features
from spanboost.rows.unknown_categories import UnknownCategories

_WAS_NUMERIC = "but was numeric when the model was fitted; convert it to numbers"
_MISSING = -1


class FrameReader:
    """Reads frames with the columns of the first one. Columns have positions.

    times: the columns of times.
    time_parts: the features of a time (rows/times.py).
    codes: the learned categories of each column of categories.
    identifiers: columns of categories that are hashed: a table of them would grow with every row.
    numerals: columns of numbers that are written as text.
    orders: the order of day and month in columns of times that are written as 01/13/2025.
    """

    def __init__(
        self,
        names: list[str],
        times: list[int],
        codes: dict[int, dict[Any, int]],
        identifiers: set[int],
        numerals: set[int],
        time_parts: Sequence[str] = PARTS,
        orders: Mapping[int, str] | None = None,
    ) -> None:
        self.time_parts = tuple(time_parts)
        self.names, self.times, self.codes = names, times, codes
        self.identifiers, self.numerals, self.orders = identifiers, numerals, dict(orders or {})

    @classmethod
    def like(cls, table: pa.Table) -> Self:
        """Return a reader of frames with the columns of this one; warn about special columns."""
        names, kinds = table.column_names, table.schema.types
        samples = {j: _first_texts(table.column(j)) for j in range(len(names))}
        numerals = {j for j in samples if samples[j] and _is_numeral_column(table.column(j))}
        texts = [j for j in samples if text_kind(samples[j]) == TIME]
        times = [j for j, kind in enumerate(kinds) if is_moment(kind) or j in texts]
        others = {*times, *numerals}
        categories = [j for j, kind in enumerate(kinds) if j not in others and _is_category(kind)]
        identifiers = {j for j in categories if are_identifiers(samples[j])}
        notes = [describe_column(names[j], TIME, samples[j]) for j in texts]
        for j in categories:
            mixed = describe_quantities(names[j], samples[j])
            notes.append(mixed or describe_column(names[j], CATEGORY, samples[j]))
        notes.append(_describe_numerals({names[j]: samples[j] for j in sorted(numerals)}))
        for note in filter(None, notes):
            warn_caller(UserWarning(note))
        orders = {j: order for j in texts if (order := date_order(count_values(samples[j])))}
        codes: dict[int, dict[Any, int]] = {j: {} for j in categories}
        return cls(names, times, codes, identifiers, numerals, orders=orders)

    def state(self) -> dict[str, Any]:
        """Return what the reader knows as plain values."""
        codes = {j: list(known) for j, known in self.codes.items()}
        return {
            "names": self.names,
            "times": self.times,
            "categories": codes,
            "identifiers": self.identifiers,
            "numerals": self.numerals,
            "time_parts": [*self.time_parts],
            "orders": self.orders,
        }

    @classmethod
    def restore(cls, state: dict[str, Any]) -> Self:
        """Return the reader of a state."""
        names, times, identifiers = state["names"], state["times"], state["identifiers"]
        codes = {
            j: {category: code for code, category in enumerate(known)}
            for j, known in state["categories"].items()
        }
        numerals = state.get("numerals", set())  # earlier versions had no such columns
        time_parts = state.get("time_parts", FIRST_PARTS)
        known = {*times, *codes, *numerals} <= set(range(len(names)))
        if not known or not identifiers <= codes.keys() or numerals & {*times, *codes}:
            raise ValueError("a column of categories, times or numbers does not exist")
        if not are_parts(time_parts):
            raise ValueError("the features of times are unknown")
        orders = state.get("orders", {})
        if not {*orders} <= {*times} or not {*orders.values()} <= {DAY_FIRST, MONTH_FIRST}:
            raise ValueError("the orders of dates are invalid")
        return cls(names, times, codes, identifiers, numerals, time_parts, orders)

    def row(self, x: Mapping[str, Any]) -> pa.Table:
        """Return a table with one row, given the values by column; absent ones are missing."""
        for name in x:
            if name not in self.names:
                raise ValueError(f"column {name!r:.40} not found{did_you_mean(name, self.names)}")
        columns = [
            pa.array([x.get(name)], from_pandas=True)
            if x.get(name) is not None
            else pa.array([None], pa.string() if j in self.codes else pa.null())
            for j, name in enumerate(self.names)
        ]
        return pa.table(columns, names=self.names)

    @property
    def numbers(self) -> list[int]:
        """Positions of the numeric columns."""
        others = {*self.codes, *self.times}
        return [j for j in range(len(self.names)) if j not in others]

    def column(self, feature: str | int) -> int:
        """Return the column of the frame for a model's feature: a number, or "code j"."""
        if isinstance(feature, str):
            return [*self.codes][int(feature.removeprefix("code "))]
        parts = [j for j in self.times for _ in self.time_parts]
        return [*self.numbers, *parts][feature]

    def table_form(self) -> TableForm:
        """Return the columns by name; a category that is not a text is the one that `str` gives."""
        numbers = [self.names[j] for j in self.numbers]
        for j in self.times:
            numbers += part_names(self.names[j], self.time_parts)
        categories = [
            Categories(
                self.names[j], [*map(str, known)], HASHED_BITS if j in self.identifiers else None
            )
            for j, known in self.codes.items()
        ]
        return TableForm(numbers, categories, self.time_parts if self.times else ())

    def refuse(self, learner: Any) -> None:
        """Raise a ValueError if there are categories, for a learner that gets arrays of numbers."""
        if not self.codes:
            return
        name, own = self.names[next(iter(self.codes))], type(learner).__name__
        raise ValueError(
            f"column {name!r} contains categories, but an estimator passes rows to {own} as arrays "
            "of numbers; encode the column, choose a learner such as 'trees', or use "
            f"SpanBoost({own}(...)), which passes the rows of frames as dictionaries"
        )

    def table(self, X: Any) -> pa.Table:
        """Convert a frame to an Arrow table; raise ValueError if it is not a frame."""
        table = arrow_table(X)
        if table is None:
            table = object_table(X)
        if table is None:
            raise ValueError(
                "the model was fitted to a data frame with columns of categories, times or "
                f"durations; pass a data frame (got {type(X).__name__})"
            )
        return table

    def read(self, table: pa.Table, *, learn: bool) -> Any:
        """Return the rows of a frame with the same columns; unknown categories are missing."""
        for j, known in self.codes.items():
            if known or j in self.identifiers:
                texts = not known or any(isinstance(one, str) for one in known)
                _check_category(table.field(j), table.column(j), numbers=not texts)
        codes = [
            _hash(table.column(j))
            if j in self.identifiers
            else _encode(table.column(j), known, learn)
            for j, known in self.codes.items()
        ]
        if not learn:
            self._warn_unknown(table, codes)
        numbers = [self._numbers(table, j) for j in self.numbers]
        for j in self.times:
            moments = _moments(table.field(j), table.column(j), self.orders.get(j))
            numbers.append(time_features(moments, self.time_parts))
        X = np.column_stack(numbers) if numbers else None
        return Rows(X, np.column_stack(codes)) if codes else X

    def _warn_unknown(self, table: pa.Table, codes: Sequence[Array]) -> None:
        """Issue a warning about columns of categories of which no value was learned."""
        unknown = UnknownCategories()
        for (j, known), own in zip(self.codes.items(), codes, strict=True):
            if (own == _MISSING).all():
                values = Counter(map(_hashable, table.column(j).to_pylist()))
                unknown.watch(self.names[j], values, known)
        unknown.warn()

    def _numbers(self, table: pa.Table, j: int) -> Array:
        """Return the numbers of a column."""
        field, column = table.field(j), table.column(j)
        if j in self.numerals and _is_category(field.type):
            return _parse_numerals(field.name, column)
        _check_numeric(field, _WAS_NUMERIC)
        return _finite(field.name, as_numpy(column.combine_chunks()))


def frame_reader(X: Any) -> FrameReader | None:
    """Return a reader for a frame with categories, times or durations; None for any other rows.

    Raise ValueError for a column of another type that is not numeric.
    """
    table = arrow_table(X)
    if table is None:
        table = object_table(X) if contains_text(X) else None
    if table is None:
        return None
    for field in table.schema:
        if not _is_category(field.type) and not is_moment(field.type):
            _check_numeric(field, "which is neither numeric nor categorical nor a time")
    reader = FrameReader.like(table)
    spans = any(pa.types.is_duration(kind) or pa.types.is_time(kind) for kind in table.schema.types)
    return reader if reader.codes or reader.times or reader.numerals or spans else None


def refuse_infinite(X: Any) -> None:
    """Raise a DataError that names the first infinite number of a frame of numbers, by column."""
    table = arrow_table(X)
    for field, column in () if table is None else zip(table.schema, table.columns, strict=True):
        if is_number(field.type):
            _finite(field.name, as_numpy(column.combine_chunks()))


def arrow_table(X: Any) -> pa.Table | None:
    """Convert a frame to an Arrow table; None if it is not a frame that Arrow supports."""
    if isinstance(X, pa.Table):
        return X
    if not hasattr(X, "columns") or not hasattr(X, "shape"):
        return None
    try:
        if hasattr(X, "to_arrow"):
            return X.to_arrow()
        return pa.Table.from_pandas(periods_to_times(X), preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise ValueError(
            "a column of the frame mixes types; make it all numbers or all strings: "
            f"{error.args[-1]}"
        ) from None
    except (pa.ArrowException, AttributeError, TypeError, ValueError):
        return None


def _is_category(kind: Any) -> bool:
    types = pa.types
    texts = (types.is_string, types.is_large_string, types.is_string_view, types.is_dictionary)
    return any(is_text(kind) for is_text in texts)


def _first_texts(column: Any) -> list[str | None]:
    """Return the first values of a column of strings; an empty list for other columns."""
    texts = is_text(column.type) or pa.types.is_string_view(column.type)
    return column.slice(0, SAMPLE_ROWS).to_pylist() if texts else []


def _is_numeral_column(column: Any) -> bool:
    """Return whether all texts of a column are numbers, and not codes with leading zeros."""
    return are_quantities(column.unique().cast(pa.string()).to_pylist())


def _describe_numerals(samples: Mapping[str, Sequence[str | None]]) -> str | None:
    """Return a note on columns of numbers that are written as text; None if there are none."""
    if not samples:
        return None
    names = ", ".join(f"{name!r:.40}" for name in samples)
    values = next(iter(samples.values()))
    example = next((text for text in values if text and text.strip() not in MISSING), "")
    columns = f"column {names} contains" if len(samples) == 1 else f"columns {names} contain"
    return (
        f"{columns} numbers as text, such as {example!r:.40}, which are read as numbers; if they "
        "are categories, convert them to a categorical type"
    )


def _parse_numerals(name: str, column: Any) -> Array:
    """Return the numbers of a column of texts; a DataError names a text that is not a number."""
    encoded = column.cast(pa.string()).combine_chunks().dictionary_encode()
    texts = [text.strip() for text in encoded.dictionary.to_pylist()]
    table = np.full(len(texts) + 1, np.nan)  # the last is for missing values
    wrong = np.zeros(len(texts) + 1, bool)
    for k, text in enumerate(texts):
        wrong[k] = text not in MISSING and not is_numeral(text)
        table[k] = float(text) if is_numeral(text) else np.nan
    indices = encoded.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    for row in np.flatnonzero(wrong[indices])[:1].tolist():
        what = f"{texts[indices[row]]!r:.40} is not a number, as in the rows before"
        raise DataError(row, f"column {name!r:.40}: {what}")
    return table[indices]


def _check_category(field: Any, column: Any, *, numbers: bool) -> None:
    """Raise a ValueError if categories are numbers, and were text before, or the reverse.

    Such categories would all be unknown: the number 100 is not the text "00100".
    """
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    if is_number(kind) == numbers or column.null_count == len(column):
        return
    before, remedy = ("numbers as categories", "numbers") if numbers else ("text", "text")
    raise ValueError(
        f"column {field.name!r} has type {field.type}, but contained {before} when the model was "
        f"fitted; convert it to {remedy}"
    )


def _hash(column: Any) -> Array:
    """Return the hashed codes of a column of strings."""
    texts = column.cast(pa.string()).to_pylist()
    return np.array([_MISSING if not text else hash_category(text, HASHED_BITS) for text in texts])


def _moments(field: Any, column: Any, order: str | None) -> Array:
    """Return the times of a column as datetime64[us]."""
    texts = pa.types.is_string_view(column.type)
    column = (column.cast(pa.string()) if texts else column).combine_chunks()
    if not (is_moment(column.type) or is_text(column.type) or pa.types.is_null(column.type)):
        raise ValueError(
            f"column {field.name!r} has type {field.type}, but contained times when the model was "
            "fitted"
        )
    times = TimeColumn(field.name, column, order)
    for row, what in times.errors(slice(None)).items():
        raise DataError(row, what)
    return times.moments


def _finite(name: str, numbers: Array) -> Array:
    """Return the numbers of a column; a DataError if one is infinite."""
    infinite = np.isinf(numbers)
    if infinite.any():
        raise DataError(int(infinite.argmax()), f"column {name!r:.40} is infinite")
    return numbers


def refuse_new_texts(X: Any) -> None:
    """Raise a ValueError for a column of a frame that is not numeric, for a model of numbers."""
    table = arrow_table(X)
    for field in () if table is None else table.schema:
        _check_numeric(field, _WAS_NUMERIC)


def _check_numeric(field: Any, reason: str) -> None:
    if not is_number(field.type):
        content = "contains text" if _is_category(field.type) else f"has type {field.type}"
        raise ValueError(f"column {field.name!r} {content}, {reason}")


def _encode(column: Any, known: dict[Any, int], learn: bool) -> Array:
    """Return the codes of a column; new categories are numbered in order of appearance."""
    column = column.unify_dictionaries().combine_chunks()
    if pa.types.is_dictionary(column.type):  # some of its categories may not occur
        names = column.dictionary.to_pylist()
        encoded = column.indices.dictionary_encode()
        values = [_hashable(names[k]) for k in encoded.dictionary.to_pylist()]
    else:
        encoded = column.dictionary_encode()
        values = encoded.dictionary.to_pylist()
    if learn:
        for value in values:
            if value is not None:
                known.setdefault(value, len(known))
    table = np.array([*(known.get(value, _MISSING) for value in values), _MISSING], np.int64)
    indices = encoded.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    return table[indices]


def _hashable(category: Any) -> Any:
    """Return a hashable category: Arrow represents a pandas interval as a dictionary."""
    return str(category) if isinstance(category, dict) else category
