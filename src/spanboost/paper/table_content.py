"""The content of a table: its digest, and the rows and labels for learners."""

import hashlib
from typing import Any

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.data.batch import Batch
from spanboost.errors import UserError
from spanboost.paper.datasets import DataSet
from spanboost.rows.block import Rows

MISSING = "?"  # this category is an absent feature, as the paper's counts show


def digest(table: Any) -> str:
    """Return the SHA-256 of the values; file format and column types do not matter."""
    sha = hashlib.sha256()
    for column in table.columns:
        if _is_text(column.type):
            codes, texts = _categories(column)
            sha.update("\n".join(texts).encode() + b"\0" + codes.astype("<i4").tobytes())
        else:
            sha.update(column.to_numpy().astype("<f8").tobytes())
    return sha.hexdigest()


def examples_of(one: DataSet, table: Any) -> Batch:
    """Return numbers as float32, categories as codes, and labels coded as in the paper."""
    *columns, label = table.columns
    numbers = [c.to_numpy().astype(np.float32) for c in columns if not _is_text(c.type)]
    codes = [_codes(c) for c in columns if _is_text(c.type)]
    X: Any = np.column_stack(numbers) if numbers else None
    if codes:
        X = Rows(X, np.column_stack(codes))
    values = np.asarray(label.to_pylist() if _is_text(label.type) else label.to_numpy())
    try:
        y = one.label(values)
    except ValueError:
        y = np.full(len(values), np.nan)
    if not (np.abs(y) <= one.largest).all():
        raise UserError(
            f"{one.name}: the labels are not the published ones (expected: {one.coding})"
        )
    return Batch(X, y, None, one.name, np.arange(1, len(y) + 1))


def count_features(examples: Batch) -> tuple[int, float]:
    """Return the number of features and the average number active in a row, without the constant.

    Each category counts as a feature.
    """
    X = examples.X
    numbers, codes = (X.numbers, X.codes) if isinstance(X, Rows) else (X, np.zeros((0, 0)))
    features, active = 0, int(np.count_nonzero(codes >= 0))
    if numbers is not None:
        features, active = numbers.shape[1], active + int(np.count_nonzero(np.nan_to_num(numbers)))
    features += sum(len(np.unique(column[column >= 0])) for column in codes.T)
    return features, active / examples.rows


def _is_text(kind: Any) -> bool:
    return hasattr(kind, "index_type") or str(kind) in ("string", "large_string")


def _categories(column: Any) -> tuple[Array, list[str]]:
    """Return codes in order of first appearance, and the text of each code."""
    import pyarrow as pa

    text = column.cast(pa.string()).combine_chunks().dictionary_encode()
    text = text.chunk(0) if isinstance(text, pa.ChunkedArray) else text
    return text.indices.to_numpy().astype(np.int64), text.dictionary.to_pylist()


def _codes(column: Any) -> Array:
    codes, texts = _categories(column)
    missing = np.array(texts) == MISSING
    return np.where(missing[codes], -1, codes)
