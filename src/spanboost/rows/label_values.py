"""Labels and weights as users give them: their conversion to arrays, and messages about them."""

from datetime import timedelta
from typing import Any

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.errors import DataError
from spanboost.rows.key_kinds import is_numeral
from spanboost.rows.times import is_time
from spanboost.rows.validation import to_numbers

_NAMED = "; for named classes, use BoostingClassifier of spanboost.sklearn or spanboost.river"
_SEVERAL = (
    "; for several targets, use one model for each of them, or BoostingRegressor of "
    "spanboost.sklearn, which does so"
)


def missing_label(where: str = "") -> str:
    """Return the message about a missing label; `where` says which one, if a row has several."""
    return f"the label{where} is missing (None or NaN); leave out rows without a label"


def class_numbers(y: Any, rows: int, limit: int) -> Array:
    """Return labels as class numbers below a limit."""
    if np.shape(y) != (rows,):
        raise ValueError(f"labels must be class numbers, one for each of the {rows} rows")
    for t, c in enumerate(y):
        if isinstance(c, str) or c not in range(limit):
            label = c.item() if isinstance(c, np.generic) else c
            hint = _NAMED if isinstance(c, str) else ""
            raise DataError(
                t, f"the label {label!r} is not a class number from 0 to {limit - 1}{hint}"
            )
    return np.asarray(y, dtype=np.int64)


def to_matrix(values: Any, rows: int, d: int, name: str) -> Array:
    """Return labels or weights as numbers [rows, d]; `name` says which of them."""
    try:
        given = to_numbers(values)
    except OverflowError:
        raise ValueError(f"{name} must be numbers of at most 64 bits") from None
    except (TypeError, ValueError):
        _refuse_text(values, name)
        refuse_times(values)
        raise ValueError(f"{name} must be numbers, {d} for each row") from None
    if given.ndim == 0 or len(given) != rows:
        number = given.shape[0] if given.ndim else "a single value for"
        raise ValueError(f"{rows} rows but {number} {name}")
    if given.size != rows * d:
        hint = _SEVERAL if name == "labels" and d == 1 and given.ndim == 2 else ""
        raise ValueError(
            f"{name} must be numbers, {d} for each row (got shape {given.shape}){hint}"
        )
    return given.reshape(rows, d).astype(np.float64)


def refuse_times(labels: Any) -> None:
    """Raise a ValueError if labels are times or durations, which have numbers in several units."""
    try:
        given = np.asarray(labels)
    except ValueError:  # of different lengths
        return
    first = next((one for one in given.flat if one is not None), None)
    if given.dtype.kind == "m" or isinstance(first, timedelta):
        raise ValueError("labels are durations; convert them to numbers, for example to seconds")
    if given.dtype.kind == "M" or is_time(first):
        raise ValueError(
            "labels are dates or times; convert them to numbers, for example to days since a date"
        )


def show_label(label: Array) -> str:
    """Return a label as messages show it."""
    return f"{label[0]:.15g}" if len(label) == 1 else f"{label}"


def _refuse_text(values: Any, name: str) -> None:
    """Raise a DataError that names the first of these values that is text, if there is one."""
    each = values if isinstance(values, list | tuple) else np.atleast_1d(np.asarray(values))
    for row, value in enumerate(each):
        if isinstance(value, str):
            what = f"the {name.removesuffix('s')} {str(value)!r:.60}"
            if is_numeral(value):
                raise DataError(row, f"{what} is text; convert it to a number with float()")
            raise DataError(row, f"{what} is not a number" + (_NAMED if name == "labels" else ""))
