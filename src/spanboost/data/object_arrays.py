"""Read arrays of objects that contain texts, as data frames have them."""

from typing import Any

import numpy as np
import pyarrow as pa

from spanboost.compiling.arrays import Array


def object_table(X: Any) -> pa.Table | None:
    """Convert an array of objects or texts [rows, columns] to an Arrow table; None for others.

    The names of the columns are their positions.
    """
    if not isinstance(X, np.ndarray) or X.dtype.kind not in "OU" or X.ndim != 2:
        return None
    names = [str(j) for j in range(X.shape[1])]
    return pa.table([_object_column(j, column) for j, column in enumerate(X.T)], names=names)


def contains_text(X: Any) -> bool:
    """Return whether an array contains texts."""
    if not isinstance(X, np.ndarray) or X.dtype.kind not in "OU":
        return False
    return X.dtype.kind == "U" or any(isinstance(value, str) for value in X.flat)


def _object_column(j: int, values: Array) -> pa.Array:
    """Convert a column of objects: numbers, texts or times."""
    try:
        if not contains_text(values):
            return pa.array(values.astype(np.float64), from_pandas=True)
    except (TypeError, ValueError):  # times, or missing values of pandas
        pass
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise ValueError(
            f"column {j} of the array mixes types; make it all numbers or all strings, or pass a "
            f"data frame: {error.args[-1]}"
        ) from None
