"""Rows that are dictionaries: the mapping from feature names to columns.

A value is a number, or None or NaN if it is missing, or a string, or a date or time. A string is a
category: it becomes the feature "name=string" with value 1 (the same feature as a number of that
name). A time becomes several features, such as "name.hour" (times.py), and so does a string in ISO
8601. A string that is a number is a category too, with a warning, and is refused if the name has
had numbers (key_kinds.py). Rows are read in the order of their sorted names, so the order of the
keys in a dictionary does not matter.
"""

import math
import zlib
from collections.abc import Callable, Hashable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

import numpy as np

from spanboost.errors import DataError, did_you_mean, warn_caller
from spanboost.rows.column_rows import ColumnRows
from spanboost.rows.key_kinds import KeyKinds, NewNames, NumeralWarnings
from spanboost.rows.times import FIRST_PARTS, PARTS, expand_times, parse_time
from spanboost.rows.validation import Sparse, is_number

PLAIN = frozenset([int, float, bool])
LARGEST = 3e38  # slightly less than the largest float32


class Entries(NamedTuple):
    """The entries of a row, in the order of its names."""

    columns: list[int]
    numbers: list[float]
    plain: bool  # whether all values are numbers, and none of a name that has always been missing


class FeatureNames:
    """The column of each name.

    Names get columns in the order in which they are first learned, those of one row in sorted
    order. In a hashed table (`bits`) the column of a name is its CRC-32, and no names are stored.

    iso_times: whether strings in ISO 8601 are times; in models of earlier versions, they are not.
    time_parts: the features of a time (times.py); models of earlier versions have others.
    categorical: names whose strings are never times.
    ignored: names that are not features, such as the label.
    kinds: which names have had numbers, and which strings that are numbers; None if that is not
        known: in models of earlier versions, and in a hashed table.
    warnings: of strings that are numbers; None to issue none.
    """

    iso_times = False  # of pickles of earlier versions
    time_parts: tuple[str, ...] = FIRST_PARTS
    categorical: frozenset[str] = frozenset()
    ignored: frozenset[str] = frozenset()
    kinds: KeyKinds | None = None
    warnings: NumeralWarnings | None = None

    def __init__(self, bits: int | None, *, warn: bool = True) -> None:
        self.bits, self.iso_times, self.time_parts = bits, True, PARTS
        self.columns: dict[str, int] = {}
        self.kinds = KeyKinds() if bits is None else None
        self.warnings = NumeralWarnings() if warn else None

    def column(self, name: str) -> int | None:
        """Return the column of a name, or None if the name is unknown."""
        if self.bits is not None:
            return zlib.crc32(name.encode(errors="surrogatepass"))
        return self.columns.get(name)

    def read(self, rows: Sequence[Any]) -> tuple[Sparse, NewNames]:
        """Return dictionaries as a sparse matrix, and the columns of new names.

        The names are not added; `add` does that.
        """
        if self.ignored:
            rows = [self._select_features(row) for row in rows]
        uniform = self._read_uniform(rows)
        if uniform is None and (expanded := self.expand(rows)) is not rows:
            rows = expanded
            uniform = self._read_uniform(rows)
        new = NewNames()
        if uniform is not None:
            return uniform, new
        ends, indices, data = [0], [], []
        blank = frozenset[str]() if self.kinds is None else self.kinds.blank
        for t, row in enumerate(rows):
            if not isinstance(row, dict):
                raise DataError(t, f"expected a dictionary, as in the first row (got {row!r:.40})")
            for name in canonical_order(row):
                feature, number = _parse_entry(t, name, row[name])
                column = self.column(feature)
                if (column is None or feature in blank) and (
                    mistake := self._watch(name, row[name], new)
                ):
                    raise DataError(t, mistake, str(name))
                if column is None:
                    if feature not in new:
                        self._warn(str(name), row[name])
                    column = new.setdefault(feature, len(self.columns) + len(new))
                indices.append(column)
                data.append(number)
            ends.append(len(data))
        columns = np.array(indices, np.int64)
        return Sparse(np.array(ends), columns, np.array(data, np.float64), (len(rows),)), new

    def known_order(self, names: Iterable[Any]) -> list[str] | None:
        """Return names in the order in which `read_known` needs them; None if it cannot read them.

        Ignored names are left out.
        """
        if not all(type(name) is str for name in names):  # 1 and True are the same key
            return None
        return [name for name in canonical_order(names) if name not in self.ignored]

    def read_known(self, row: dict[str, Any], order: Sequence[str]) -> Entries | None:
        """Return the entries of a row in a fraction of the time that `read` takes.

        Return None for a row with an unknown name, a time or a value that is not allowed, which
        `read` must see.

        order: the names of the row, as `known_order` returns them.
        """
        blank = frozenset[str]() if self.kinds is None else self.kinds.blank
        columns, numbers, plain = list[int](), list[float](), True
        for name in order:
            value, feature = row[name], name
            if type(value) in PLAIN:
                if not (-LARGEST < value < LARGEST):  # also for NaN
                    if value == value:  # noqa: PLR0124
                        return None
                    plain = False
                elif name in blank:
                    return None
            elif type(value) is str:
                # no time is shorter, and a known category of another key may look like this one
                if value[4:5] == "-" and self._parse_time(name, value) is not None:
                    return None
                feature, value, plain = f"{name}={value}", 1.0, False
            elif value is None:
                value, plain = math.nan, False
            else:
                return None
            column = self.column(feature)
            if column is None:
                return None
            plain = plain and name not in blank
            columns.append(column)
            numbers.append(value)
        return Entries(columns, numbers, plain)

    def _read_uniform(self, rows: Sequence[Any]) -> Sparse | None:
        """Read uniform rows column by column, which takes a tenth of the time.

        Return None unless all rows have the same names, all names are known, and each name has
        either only floats or only strings.
        """
        keys, names = rows[0].keys(), canonical_order(rows[0])
        uniform = all(type(row) is dict and row.keys() == keys for row in rows)
        if not uniform or any(type(name) is not str for name in names):  # 1 and True are one key
            return None
        return self._read_columns(names, len(rows), lambda name: [row[name] for row in rows])

    def read_columns(self, rows: ColumnRows) -> Sparse | None:
        """Return rows in columns as a sparse matrix.

        Return None unless all names are known, and no string is a time.
        """
        if not self.ignored.isdisjoint(rows.names):
            return None
        return self._read_columns(canonical_order(rows.names), len(rows), rows.column)

    def _read_columns(
        self, names: list[str], rows: int, column_of: Callable[[str], Any]
    ) -> Sparse | None:
        """Return columns as a sparse matrix; `column_of` returns the values of a name."""
        indices = np.empty((rows, len(names)), np.int64)
        data = np.ones(indices.shape)
        for j, name in enumerate(names):
            values = column_of(name)
            kinds = {float} if isinstance(values, np.ndarray) else {*map(type, values)}
            if kinds == {float}:
                column = self.column(name)
                if column is None or self._fills(name, values):
                    return None
                indices[:, j], data[:, j] = column, values
            elif kinds == {str}:
                distinct = {*values}
                if any(self._parse_time(name, value) is not None for value in distinct):
                    return None
                known = {value: self.column(f"{name}={value}") for value in distinct}
                columns = [known[value] for value in values]
                if None in columns:
                    return None
                indices[:, j] = np.array(columns)
            else:
                return None
        ends = np.arange(rows + 1) * len(names)
        return Sparse(ends, indices.ravel(), data.ravel(), (rows,))

    def find_mistake(self, row: dict[Any, Any]) -> tuple[str, str] | None:
        """Return a name whose value does not fit the learned ones, and why; None if all do."""
        found = ((str(name), self._watch(name, row[name], NewNames())) for name in row)
        return next(((name, mistake) for name, mistake in found if mistake), None)

    def is_unknown_text(self, name: str, text: str) -> bool:
        """Return whether a name has had numbers, but never this text: it counts as missing."""
        if self.bits is not None or name not in self.columns:
            return False
        blank = self.kinds is not None and name in self.kinds.blank
        return not blank and f"{name}={text}" not in self.columns

    def _watch(self, name: Any, value: Any, new: NewNames) -> str | None:
        """Return why a new value does not fit the earlier ones of its name; None if it does.

        new: what the rows before it in the same block show; this value is added.
        """
        if self.kinds is None:
            return None
        return self.kinds.watch(str(name), value, self.columns, new)

    def _fills(self, name: str, numbers: Any) -> bool:
        """Return whether a name gets its first number."""
        blank = self.kinds is not None and name in self.kinds.blank
        return blank and not np.isnan(numbers).all()

    def blank(self, names: Iterable[str]) -> list[str]:
        """Return the names, among some, that have been missing in all rows so far."""
        return [] if self.kinds is None else [name for name in names if name in self.kinds.blank]

    def _warn(self, name: str, value: Any) -> None:
        """Issue a warning if a new value is a string that is a number."""
        if self.warnings is not None and isinstance(value, str):
            text = self.warnings.find(name, value)
            if text is not None:
                warn_caller(UserWarning(text))

    def warn_unknown(self, rows: Sequence[dict[str, Any]]) -> None:
        """Issue a warning about columns of a frame, read as these rows, that were never learned.

        Rows may have other keys at any time, but a frame with another column is often a mistake.
        """
        if self.bits is not None:
            return
        keys = {key for row in rows for key in row} - self.columns.keys() - self.ignored
        if keys:
            known = {name.partition("=")[0] for name in self.columns}
            known |= {name.rpartition(".")[0] for name in self.columns}  # times
            for key in sorted(keys - known):
                if any(name.startswith(f"{key}=") for name in self.columns):
                    continue  # the name of the column contains "="
                hint = did_you_mean(key, known)
                text = f"the column {key!r:.40} of the frame was never learned and has no effect"
                warn_caller(UserWarning(text + hint))

    def categories(self) -> dict[str, set[Hashable]]:
        """Return the learned texts of each key that has had texts only; none if keys are hashed."""
        found: dict[str, set[Hashable]] = {}
        numbers = self.columns.keys() - (set() if self.kinds is None else self.kinds.blank)
        for feature in self.columns:
            key, equals, text = feature.partition("=")
            if equals and key and key not in numbers:
                found.setdefault(key, set()).add(text)
        return found

    def absent(self, names: AbstractSet[str]) -> list[str]:
        """Return the learned keys that are not among these names; none if keys are hashed."""
        found = dict[str, None]()
        for feature in self.columns:
            key, (base, _, part) = key_of(feature), feature.rpartition(".")
            if part in self.time_parts and f"{base}.{self.time_parts[0]}" in self.columns:
                key = base
            if feature not in names and key not in names and not _is_category_of(feature, names):
                found[key] = None
        return [*found]

    def _select_features(self, row: Any) -> Any:
        if not isinstance(row, dict) or self.ignored.isdisjoint(row):
            return row
        return {name: value for name, value in row.items() if name not in self.ignored}

    def expand(self, rows: Sequence[Any]) -> Sequence[Any]:
        """Return rows with the features of every date or time instead of it."""
        return expand_times(rows, self._parse_time, self.time_parts)

    def _parse_time(self, name: Any, text: str) -> Any:
        """Return the time that a string stands for; None if it is a category."""
        return parse_time(text) if self.iso_times and name not in self.categorical else None

    def add(self, new: dict[str, int]) -> None:
        """Add new names and their columns."""
        self.columns.update(new)
        if self.kinds is not None and isinstance(new, NewNames):
            self.kinds.add(new)


def canonical_order(names: Iterable[Any]) -> list[Any]:
    """Return the names of a row, sorted as strings; the number 1 comes before "1"."""
    return sorted(names, key=lambda name: (str(name), type(name).__name__))


def are_named(X: Any) -> bool:
    """Return whether the rows of a block are dictionaries."""
    named = isinstance(X, list | tuple) and len(X) > 0 and isinstance(X[0], dict)
    return named or isinstance(X, ColumnRows)


def feature_name(name: Any, value: Any) -> str:
    """Return the name of the feature for an entry of a row."""
    return f"{name}={value}" if isinstance(value, str) else str(name)


def key_of(name: str) -> str:
    """Return the key of dictionaries for the name of a feature."""
    key, equals, _ = name.partition("=")
    return key if equals and key else name


def _is_category_of(feature: str, names: AbstractSet[str]) -> bool:
    """Return whether a feature is a category of one of these names, which may contain "="."""
    return any(sign == "=" and feature[:end] in names for end, sign in enumerate(feature))


def _parse_entry(t: int, name: Any, value: Any) -> tuple[str, float]:
    """Return the feature name and the number for an entry of row t."""
    if isinstance(value, str):
        return feature_name(name, value), 1.0
    if value is None:
        return feature_name(name, value), np.nan
    if not is_number(value):
        raise DataError(t, f"{name!r} is {value!r:.40}, neither a number nor a string")
    try:
        return feature_name(name, value), float(value)
    except OverflowError:
        raise DataError(t, f"the value of {name!r} is too large") from None
