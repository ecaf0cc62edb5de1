"""The keys of rows, such as a store or a customer, as numbers: equal keys give equal numbers.

A key is a column, or several: by name, or by number if columns have no names. A category counts by
its code, any other value by a hash of its number or its text. A missing value is `NO_KEY`.
"""

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.errors import UserError, did_you_mean, suggest_column
from spanboost.rows.block import Rows
from spanboost.rows.feature_names import are_named
from spanboost.rows.frame_rows import frame_names, is_frame
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


def refuse_absent_key(X: Any, key: Any) -> None:
    """Raise a UserError if the rows are dictionaries and none of them has the key.

    A single row may lack it, so call this for the first rows of a stream only.
    """
    if not are_named(X):
        return
    for one in key if isinstance(key, tuple) else (key,):
        if not any(one in row for row in X):
            near = did_you_mean(one, {str(name) for row in X for name in row})
            rows = "the first row does not have" if len(X) == 1 else "none of the first rows has"
            raise UserError(f"{rows} the key {one!r:.40}{near or '; use None if it is missing'}")


def _keys_of_column(X: Any, key: str | int, schema: Any) -> Array:
    if is_frame(X) or are_named(X):
        if is_frame(X) and key not in [*frame_names(X)]:
            raise _not_a_column(key, map(str, frame_names(X)))
        values = X[key] if is_frame(X) else [row.get(key) for row in X]
        return np.array([_number_of(value) for value in values], np.int64)
    numbers, codes = (X.numbers, X.codes) if isinstance(X, Rows) else (X, None)
    if schema is not None and schema.columns is not None:
        categories = [column.name for column in schema.categories]
        if key in categories:
            return _keys_of_codes(np.asarray(codes)[:, categories.index(key)])
        if key in schema.number_names:
            return _keys_of_numbers(numbers, schema.number_names.index(key))
        raise _not_a_feature(key, schema)
    if isinstance(key, str):
        raise UserError(f"the key {key!r} needs rows with names; give the number of its column")
    columns = np.shape(numbers if codes is None else codes)[1]
    if not 0 <= key < columns:
        raise UserError(f"the key is column {key}, but there are {columns} columns")
    if codes is None:
        return _keys_of_numbers(numbers, key)
    return _keys_of_codes(np.asarray(codes)[:, key])


def _not_a_feature(key: str | int, schema: Any) -> UserError:
    """Return the error for a key that is not a feature of a table."""
    if key == schema.label:
        return UserError(f"the key {key!r:.40} is the label; choose another column")
    if key == schema.weight or key in schema.ignore:
        return UserError(f"the key {key!r:.40} is a column that is left out of the features")
    if key in [column.name for column in schema.times]:
        return UserError(
            f"the key {key!r:.40} is a column of times; choose a column of numbers or categories"
        )
    return _not_a_column(key, (column.name for column in schema.columns))


def _not_a_column(key: str | int, names: Iterable[str]) -> UserError:
    return UserError(f"the key {key!r:.40} is not a column of the rows{suggest_column(key, names)}")


def _keys_of_codes(codes: Array) -> Array:
    return np.where(codes < 0, NO_KEY, codes).astype(np.int64)


def _keys_of_numbers(numbers: Any, column: int) -> Array:
    if hasattr(numbers, "indptr"):
        raise UserError("a key cannot be a column of a sparse matrix; use dictionaries")
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
