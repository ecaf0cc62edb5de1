"""Frames (pandas, Polars, Arrow) with columns of categories, as numbers and codes."""

from typing import Any

import numpy as np
import pyarrow as pa

from spanboost.compiling.arrays import Array
from spanboost.data.columns import as_numpy
from spanboost.rows.block import Rows

_MISSING = -1


class FrameReader:
    """Which columns of a frame are categories, and the codes of those met while learning."""

    def __init__(self, table: pa.Table) -> None:
        self.names: list[str] = table.column_names
        self.codes: dict[int, dict[Any, int]] = {
            j: {} for j, field in enumerate(table.schema) if _is_category(field.type)
        }

    @property
    def numbers(self) -> list[int]:
        """The columns that are numbers."""
        return [j for j in range(len(self.names)) if j not in self.codes]

    def column(self, feature: str | int) -> int:
        """The column of the frame that a model calls so: a number, or "code j"."""
        if isinstance(feature, str):
            return [*self.codes][int(feature.removeprefix("code "))]
        return self.numbers[feature]

    def refuse(self, learner: Any) -> None:
        """Say why a learner that reads numbers only cannot read it."""
        name = self.names[next(iter(self.codes))]
        raise ValueError(
            f"column {name!r} holds categories, and {type(learner).__name__} reads numbers only: "
            "encode them, or name a learner such as 'trees'"
        )

    def table(self, X: Any) -> pa.Table:
        """A frame as an Arrow table; a ValueError for what is none."""
        table = arrow_table(X)
        if table is None:
            raise ValueError(
                "the model was fitted to a frame with columns of categories: give it a frame, not "
                f"{type(X).__name__}"
            )
        return table

    def read(self, table: pa.Table, *, learn: bool) -> Rows:
        """The rows of a frame with the same columns; a category never learned is missing."""
        codes = [_codes(table.column(j), known, learn) for j, known in self.codes.items()]
        for j in self.numbers:
            _check_numbers(table.field(j), "it held numbers when the model was fitted")
        numbers = [as_numpy(table.column(j).combine_chunks()) for j in self.numbers]
        return Rows(np.column_stack(numbers) if numbers else None, np.column_stack(codes))


def frame_reader(X: Any) -> FrameReader | None:
    """Of a frame with a column of categories; None for any other rows.

    A ValueError names a column that is neither numbers nor categories.
    """
    table = arrow_table(X)
    if table is None:
        return None
    for field in table.schema:
        if not _is_category(field.type):
            _check_numbers(field, "neither numbers nor categories")
    reader = FrameReader(table)
    return reader if reader.codes else None


def arrow_table(X: Any) -> pa.Table | None:
    """A frame as an Arrow table; None for what is no frame, or one that Arrow does not know."""
    if isinstance(X, pa.Table):
        return X
    if not hasattr(X, "columns") or not hasattr(X, "shape"):
        return None
    try:
        if hasattr(X, "to_arrow"):
            return X.to_arrow()
        return pa.Table.from_pandas(X, preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise ValueError(
            "the frame has a column with values of several kinds, which must be all numbers or all "
            f"strings: {error.args[-1]}"
        ) from None
    except (pa.ArrowException, AttributeError, TypeError, ValueError):
        return None


def _is_category(kind: Any) -> bool:
    types = pa.types
    texts = (types.is_string, types.is_large_string, types.is_string_view, types.is_dictionary)
    return any(is_text(kind) for is_text in texts)


def _check_numbers(field: Any, complaint: str) -> None:
    types = pa.types
    numbers = types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null
    if not any(is_number(field.type) for is_number in numbers):
        raise ValueError(f"column {field.name!r} holds {field.type}: {complaint}")


def _codes(column: Any, known: dict[Any, int], learn: bool) -> Array:
    """Codes, numbered in the order in which categories are met."""
    column = column.unify_dictionaries().combine_chunks()
    if pa.types.is_dictionary(column.type):  # some of its categories may never be met
        names = column.dictionary.to_pylist()
        encoded = column.indices.dictionary_encode()
        values = [_hashable(names[place]) for place in encoded.dictionary.to_pylist()]
    else:
        encoded = column.dictionary_encode()
        values = encoded.dictionary.to_pylist()
    if learn:
        for value in values:
            if value is not None:
                known.setdefault(value, len(known))
    table = np.array([*(known.get(value, _MISSING) for value in values), _MISSING], np.int64)
    places = encoded.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    return table[places]


def _hashable(category: Any) -> Any:
    """An interval, as pandas cuts numbers into, comes as a dictionary of its ends."""
    return str(category) if isinstance(category, dict) else category
