"""Rows and weights as the methods of River estimators get them."""

from typing import Any

import numpy as np
import pandas as pd

from spanboost.rows.frame_rows import check_frame as check_columns


def check_frame(X: Any, name: str = "X") -> None:
    """Raise a TypeError if a block is not a data frame of pandas."""
    if not isinstance(X, pd.DataFrame):
        raise TypeError(f"{name} must be a pandas DataFrame (got {type(X).__name__})")
    check_columns(X)


def frame_rows(X: pd.DataFrame) -> list[dict[Any, Any]]:
    """Return rows as dictionaries, so that blocks and single rows give the same model."""
    check_frame(X)
    return X.to_dict("records")


def frame_targets(y: Any, rows: int) -> dict[Any, list[Any]]:
    """Return the labels of a block by target, for a number of rows."""
    check_frame(y, "y")
    if len(y) != rows:
        raise ValueError(f"{rows} rows but {len(y)} rows of labels")
    return {name: y[name].tolist() for name in y.columns}


def plain_row(x: Any) -> dict[Any, Any]:
    """Return a row as a dictionary: a dictionary, a pandas Series or a frame with one row."""
    if isinstance(x, pd.DataFrame):
        (x,) = frame_rows(x)
    return dict(x)


def row_weights(w: Any, rows: int) -> Any:
    """Return one weight for each row; w is one for all of them, or one for each."""
    return w if np.ndim(w) else np.full(rows, w)
