"""Data frames as rows of dictionaries: pandas, Polars and Arrow.

A frame with a column that is not numeric is read like a list of dictionaries, so frames and single
dictionaries give the same model. Values of text and category columns are strings, times are time
objects, periods are their starts, durations are seconds, and a missing text is left out.
"""

from collections import Counter
from typing import Any

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.errors import DataError, did_you_mean
from spanboost.rows.validation import is_number

_NUMBERS = "biuf"
_NUMERIC_NAMES = ("int", "uint", "float", "double", "halffloat", "bool", "decimal")
_CATEGORIES = ("category", "categorical", "enum", "dictionary")


def is_frame(X: Any) -> bool:
    """Return whether a block is a data frame or an Arrow table."""
    return hasattr(X, "columns") and hasattr(X, "shape")


def join_series(X: Any) -> Any:
    """Return a list of rows that are pandas Series as a frame; other rows as they are."""
    if not (isinstance(X, list) and X and all(map(_is_series, X))):
        return X
    import pandas as pd

    return pd.DataFrame(X).infer_objects()  # a row of text and numbers has type object


def periods_to_times(X: Any) -> Any:
    """Return a pandas frame with the starts of periods, such as months, instead of the periods."""
    periods = [name for name, kind in X.dtypes.items() if str(kind).startswith("period[")]
    if not periods:
        return X
    changed = X.copy(deep=False)
    for name in periods:
        changed[name] = X[name].dt.to_timestamp()
    return changed


def check_frame(X: Any) -> None:
    """Raise a ValueError if X is a data frame that no model can read; other rows may be anything.

    This is about its columns as a whole: none, two of the same name, or complex numbers.
    """
    if hasattr(X, "collect") and hasattr(X, "collect_schema") and not hasattr(X, "shape"):
        raise ValueError("a lazy frame has no rows yet; call its method collect() first")
    if not is_frame(X):
        return
    names = [*frame_names(X)]
    if not names:
        raise ValueError("the frame has no columns")
    for name, times in Counter(names).items():
        if times > 1:
            raise ValueError(f"the frame has two columns {name!r:.40}; give them different names")
    for name, kind in _types(X).items():
        if "complex" in str(kind).lower():
            raise ValueError(f"column {name!r:.40} has type {kind}, but numbers must be real")


def is_numeric_frame(X: Any) -> bool:
    """Return whether all columns of a frame are numbers or booleans."""
    return all(map(_is_numeric, _types(X).values()))


def frame_names(X: Any) -> Any:
    """Return the names of all columns of a frame, of any type."""
    return X.schema.names if hasattr(getattr(X, "schema", None), "types") else X.columns


def column_names(X: Any) -> tuple[str, ...] | None:
    """Return the names of the columns; None if some are not strings, or not unique."""
    names = tuple(_types(X))
    unique = len(names) == X.shape[1] and all(isinstance(name, str) for name in names)
    return names if unique else None


def in_order(X: Any, columns: tuple[str, ...]) -> Any:
    """Return a frame with its columns in this order; a ValueError if it has other columns."""
    _refuse_texts(X)
    names = column_names(X)
    if names is None or names == columns:
        return X
    missing = [name for name in columns if name not in names]
    if missing:
        hint = did_you_mean(missing[0], set(names) - set(columns))
        raise ValueError(f"the frame has no column {missing[0]!r}, which the model expects{hint}")
    extra = [name for name in names if name not in columns]
    if extra:
        raise ValueError(f"the model does not know the column {extra[0]!r} of the frame; remove it")
    return X[list(columns)] if hasattr(X, "iloc") else X.select(list(columns))


def dicts_in_order(rows: Any, columns: tuple[str, ...]) -> Array:
    """Return rows that are dictionaries as the rows of a frame of numbers with these columns."""
    out = np.empty((len(rows), len(columns)))
    for t, row in enumerate(rows):
        if not isinstance(row, dict):
            raise DataError(t, f"expected a dictionary, as in the first row (got {row!r:.40})")
        for j, name in enumerate(columns):
            if name not in row:
                hint = did_you_mean(name, row.keys() - set(columns))
                raise DataError(t, f"the row has no {name!r:.40}, which the model expects{hint}")
            value = row[name]
            if not (value is None or is_number(value)):
                raise DataError(t, f"{name!r:.40} is {value!r:.40}, but the model expects a number")
            out[t, j] = np.nan if value is None else value
        if len(row) > len(columns):
            extra = next(name for name in row if name not in columns)
            raise DataError(t, f"the model does not know {extra!r:.40}; remove it from the row")
    return out


def _refuse_texts(X: Any) -> None:
    """Raise a DataError for the first value of a frame that is not a number."""
    for name, kind in _types(X).items():
        for row, value in enumerate([] if _is_numeric(kind) else _column(X, name)):
            if not (value is None or is_number(value)):
                what = f"rows must be numbers, but column {name!r:.40} is {value!r:.40}"
                raise DataError(row, what)


def frame_to_dicts(X: Any) -> list[dict[str, Any]]:
    """Return the rows of a frame as dictionaries."""
    types = _types(X)
    columns = [
        _numbers(_column(X, name)) if _is_numeric(kind) else _values(_column(X, name), kind)
        for name, kind in types.items()
    ]
    names = [str(name) for name in types]
    return [
        {name: value for name, value in zip(names, row, strict=True) if value is not None}
        for row in zip(*columns, strict=True)
    ]


def _is_series(x: Any) -> bool:
    return hasattr(x, "to_frame") and hasattr(x, "index")


def _types(X: Any) -> dict[Any, Any]:
    """Return the types of the columns by name."""
    schema = getattr(X, "schema", None)
    if schema is None:  # pandas
        return dict(X.dtypes)
    types = schema.types if hasattr(schema, "types") else schema.dtypes()  # Arrow, Polars
    return dict(zip(schema.names if hasattr(schema, "types") else schema, types, strict=True))


def _is_numeric(kind: Any) -> bool:
    letter = getattr(kind, "kind", None)  # of NumPy and pandas
    if letter is not None:
        return letter in _NUMBERS
    return str(kind).lower().startswith(_NUMERIC_NAMES)


def _column(X: Any, name: Any) -> list[Any]:
    column = X[name]
    return list(column.to_pylist() if hasattr(column, "to_pylist") else column.to_list())


def _numbers(values: list[Any]) -> list[float]:
    return [np.nan if _is_missing(value) else float(value) for value in values]


def _values(values: list[Any], kind: Any) -> list[Any]:
    """Return the values of a column that is not numeric; None if they are missing."""
    categories = any(word in str(kind).lower() for word in _CATEGORIES)
    return [None if _is_missing(value) else _value(value, categories) for value in values]


def _value(value: Any, category: bool) -> Any:
    if hasattr(value, "total_seconds"):
        return value.total_seconds()
    if hasattr(value, "to_timestamp"):  # a period, which counts as its start
        return value.to_timestamp()
    return str(value) if category else value


def _is_missing(value: Any) -> bool:
    if value is None or type(value).__name__ == "NAType":  # of pandas
        return True
    return bool(value != value)  # noqa: PLR0124 - NaN and NaT differ from themselves
