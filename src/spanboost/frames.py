"""Frames (pandas, Polars, Arrow) with columns of categories, as numbers and codes."""

from typing import Any

import numpy as np
import pyarrow as pa

from spanboost.arrays import Array
from spanboost.block import Rows
from spanboost.data.columns import as_numpy

_MISSING = -1


class FrameReader:
    """Which columns of a frame are categories, and the codes of those met while learning."""

    def __init__(self, table: pa.Table) -> None:
        self.width = table.num_columns
        self.codes: dict[int, dict[Any, int]] = {
            j: {} for j, field in enumerate(table.schema) if _is_category(field.type)
        }

    @property
    def numbers(self) -> list[int]:
        """The columns that are numbers."""
        return [j for j in range(self.width) if j not in self.codes]

    def table(self, X: Any) -> pa.Table:
        """A frame as an Arrow table; a ValueError for what is none."""
        table = table_of(X)
        if table is None:
            raise ValueError(
                "the model was fitted to a frame with columns of categories: give it a frame, not "
                f"{type(X).__name__}"
            )
        return table

    def read(self, table: pa.Table, *, learn: bool) -> Rows:
        """The rows of a frame with the same columns; a category never learned is missing."""
        codes = [_codes(table.column(j), known, learn) for j, known in self.codes.items()]
        numbers = [_numbers(table, j) for j in self.numbers]
        return Rows(np.column_stack(numbers) if numbers else None, np.column_stack(codes))


def table_of(X: Any) -> pa.Table | None:
    """A frame as an Arrow table; None for what is no frame, or has a column of several kinds."""
    if not hasattr(X, "columns") or not hasattr(X, "shape"):
        return None
    try:
        if hasattr(X, "to_arrow"):
            return X.to_arrow()
        return pa.Table.from_pandas(X, preserve_index=False)
    except (pa.ArrowException, AttributeError, TypeError, ValueError):
        return None


def has_categories(table: pa.Table | None) -> bool:
    """Whether some column is one of categories."""
    return table is not None and any(_is_category(field.type) for field in table.schema)


def _is_category(kind: Any) -> bool:
    types = pa.types
    texts = (types.is_string, types.is_large_string, types.is_string_view, types.is_dictionary)
    return any(is_text(kind) for is_text in texts)


def _numbers(table: pa.Table, j: int) -> Array:
    column = table.column(j)
    number = (
        *(pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean),
        *(pa.types.is_decimal, pa.types.is_null),
    )
    if not any(is_number(column.type) for is_number in number):
        raise ValueError(
            f"column {table.column_names[j]!r} holds {column.type}: neither numbers nor categories"
        )
    return as_numpy(column.combine_chunks())


def _codes(column: Any, known: dict[Any, int], learn: bool) -> Array:
    """Codes, numbered in the order in which categories are met."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    encoded = column.combine_chunks().dictionary_encode()
    values = encoded.dictionary.to_pylist()
    if learn:
        for value in values:
            known.setdefault(value, len(known))
    table = np.array([*(known.get(value, _MISSING) for value in values), _MISSING], np.int64)
    places = encoded.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    return table[places]
