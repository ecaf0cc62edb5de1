"""Rows that are dictionaries: names of features, and the numbers they are learned under.

The value of a name is a number; None and NaN are missing; a string is a category, a feature called
name=string with value 1 (and the same feature as a number called so). A row is read in the order of
its sorted names: the order in which a dictionary holds them never matters.
"""

import zlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from spanboost.errors import DataError
from spanboost.rows.validation import Sparse, is_number


class FeatureNames:
    """Columns by name, in the order in which they are first learned; those of one row, sorted.

    In a hashed table (`bits`) the column of a name is its CRC-32, and nothing has to be kept.
    """

    def __init__(self, bits: int | None) -> None:
        self.bits = bits
        self.columns: dict[str, int] = {}

    def column(self, name: str) -> int | None:
        """The column of a name; None if it is not known."""
        if self.bits is not None:
            return zlib.crc32(name.encode(errors="surrogatepass"))
        return self.columns.get(name)

    def read(self, rows: Sequence[Any]) -> tuple[Sparse, dict[str, int]]:
        """Dictionaries as a sparse matrix, and the columns of names not known yet."""
        alike = self._read_alike(rows)
        if alike is not None:
            return alike, {}
        new: dict[str, int] = {}
        ends, indices, data = [0], [], []
        for t, row in enumerate(rows):
            if not isinstance(row, dict):
                raise DataError(t, f"the rows before it are dictionaries, and it is {row!r:.40}")
            for name in canonical_order(row):
                feature, number = _feature(t, name, row[name])
                column = self.column(feature)
                if column is None:
                    column = new.setdefault(feature, len(self.columns) + len(new))
                indices.append(column)
                data.append(number)
            ends.append(len(data))
        columns = np.array(indices, np.int64)
        return Sparse(np.array(ends), columns, np.array(data, np.float64), (len(rows),)), new

    def _read_alike(self, rows: Sequence[Any]) -> Sparse | None:
        """The same, of rows alike: column by column, which takes a tenth of the time.

        None where they do not all have the same names, all of them known, and under each of these
        only floats or only strings.
        """
        keys, names = rows[0].keys(), canonical_order(rows[0])
        alike = all(type(row) is dict and row.keys() == keys for row in rows)
        if not alike or any(type(name) is not str for name in names):  # 1 and True are one key
            return None
        indices = np.empty((len(rows), len(names)), np.int64)
        data = np.ones(indices.shape)
        for j, name in enumerate(names):
            values = [row[name] for row in rows]
            kinds = {*map(type, values)}
            if kinds == {float}:
                column = self.column(name)
                if column is None:
                    return None
                indices[:, j], data[:, j] = column, values
            elif kinds == {str}:
                known = {value: self.column(f"{name}={value}") for value in {*values}}
                columns = [known[value] for value in values]
                if None in columns:
                    return None
                indices[:, j] = np.array(columns)
            else:
                return None
        ends = np.arange(len(rows) + 1) * len(names)
        return Sparse(ends, indices.ravel(), data.ravel(), (len(rows),))

    def add(self, new: dict[str, int]) -> None:
        """Names that are learned now."""
        self.columns.update(new)


def canonical_order(names: Iterable[Any]) -> list[Any]:
    """Names of one row, sorted as they are written; of 1 and "1", the number comes first."""
    return sorted(names, key=lambda name: (str(name), type(name).__name__))


def are_named(X: Any) -> bool:
    """Whether a block is one of dictionaries."""
    return isinstance(X, list | tuple) and len(X) > 0 and isinstance(X[0], dict)


def feature_name(name: Any, value: Any) -> str:
    """What the feature is called that an entry of a row is read as."""
    return f"{name}={value}" if isinstance(value, str) else str(name)


def _feature(t: int, name: Any, value: Any) -> tuple[str, float]:
    if isinstance(value, str):
        return feature_name(name, value), 1.0
    if value is None:
        return feature_name(name, value), np.nan
    if not is_number(value):
        raise DataError(t, f"{name!r} is {value!r:.40}, neither a number nor a string")
    try:
        return feature_name(name, value), float(value)
    except OverflowError:
        raise DataError(t, f"{name!r} is too large a number") from None
