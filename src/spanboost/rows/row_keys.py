"""The keys of rows, such as a store or a customer, as numbers: equal keys give equal numbers.

A key is a column, or several: by name, or by number if columns have no names. A category counts by
its code, any other value by a hash of its number or its text. A missing value is `NO_KEY`.
"""

import hashlib
from typing import Any

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.errors import did_you_mean
from spanboost.rows.block import Rows
from spanboost.rows.feature_names import are_named
from spanboost.rows.frame_rows import is_frame
from spanboost.rows.past_keys import NO_KEY
from spanboost.rows.validation import is_number

_POSITIVE = 2**62 - 1


def row_keys(X: Any, key: Any, schema: Any) -> Array:
    """Return the keys of rows; a key of several columns is missing if one of them is.

    schema: how to read tables (data/schema.py), with the names of the columns; None without one.
    """
    if not isinstance(key, tuple):
        return _keys_of_column(X, key, schema)
    each = np.stack([_keys_of_column(X, one, schema) for one in key], axis=1)
    joined = [_hash(row.tobytes()) for row in each]
    return np.where((each == NO_KEY).any(axis=1), NO_KEY, np.array(joined, np.int64))


def _keys_of_column(X: Any, key: str | int, schema: Any) -> Array:
    if is_frame(X) or are_named(X):
        values = X[key] if is_frame(X) else [row.get(key) for row in X]
        return np.array([_number_of(value) for value in values], np.int64)
    numbers, codes = (X.numbers, X.codes) if isinstance(X, Rows) else (X, None)
    if schema is not None and schema.columns is not None:
        categories = [column.name for column in schema.categories]
        if key in categories:
            return _keys_of_codes(np.asarray(codes)[:, categories.index(key)])
        if key in schema.number_names:
            return _keys_of_numbers(numbers, schema.number_names.index(key))
        near = did_you_mean(key, [*schema.number_names, *categories])
        raise ValueError(f"the key {key!r} is not a column of the rows{near}")
    if isinstance(key, str):
        raise ValueError(f"the key {key!r} needs rows with names; give the number of its column")
    columns = np.shape(numbers if codes is None else codes)[1]
    if not 0 <= key < columns:
        raise ValueError(f"the key is column {key}, but there are {columns} columns")
    if codes is None:
        return _keys_of_numbers(numbers, key)
    return _keys_of_codes(np.asarray(codes)[:, key])


def _keys_of_codes(codes: Array) -> Array:
    return np.where(codes < 0, NO_KEY, codes).astype(np.int64)


def _keys_of_numbers(numbers: Any, column: int) -> Array:
    if hasattr(numbers, "indptr"):
        raise ValueError("a key cannot be a column of a sparse matrix; use dictionaries")
    values = np.asarray(numbers, np.float64)[:, column].tolist()
    return np.array([_number_of(value) for value in values], np.int64)


def _number_of(value: Any) -> int:
    """Return the number of a key."""
    if value is None or value != value:  # noqa: PLR0124 - only NaN differs from itself
        return NO_KEY
    data = np.float64(value).tobytes() if is_number(value) else str(value).encode(errors="replace")
    return _hash(data)


def _hash(data: bytes) -> int:
    digest = hashlib.blake2b(data, digest_size=8).digest()
    return int.from_bytes(digest, "little") & _POSITIVE
