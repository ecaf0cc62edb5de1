"""JSON lines: each line an object of names and their values."""

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from spanboost.data.batch import Batch
from spanboost.data.formats.lines import Chunk, chunks
from spanboost.data.problems import Problems
from spanboost.data.source import Source

if TYPE_CHECKING:
    from spanboost.data.schema import Schema

_TOO_LARGE = 2.0**128 - 2.0**103  # from here on a number is infinite in single precision
_LARGEST_WEIGHT = 1e19
_NUMBERS = {float, int}
_LONG = re.compile("[0-9]{19}")


class BadRowError(ValueError):
    """Why a row cannot be used; `field` is the name it is about, if it is about one."""

    def __init__(self, what: str, field: str | None = None) -> None:
        super().__init__(what)
        self.field = field


class JsonReader:
    """Rows as dictionaries: a number, a string (a category) or None (missing) under each name."""

    def __init__(
        self, schema: "Schema", problems: Problems, *, labelled: bool, size: int = 1 << 20
    ) -> None:
        self.schema, self.problems = schema, problems
        self.labelled = labelled
        self.size = size
        self.label = schema.label or "label"
        # numbers become texts: two that are not the same must not become so
        self.exact = bool(schema.categorical)

    def batches(self, source: Source) -> Iterator[Batch]:
        """The good rows of a file, about `size` bytes of it at a time."""
        for chunk in chunks(source, self.problems, size=self.size):
            batch = self._batch(source.name, chunk)
            if batch.rows:
                yield batch

    def _batch(self, file: str, chunk: Chunk) -> Batch:
        rows, lines, labels, weights = [], [], [], []
        bad: list[tuple[int, str]] = []
        for line, text in enumerate(bytes(chunk.data).decode().split("\n"), chunk.first):
            if not text or text.isspace():
                continue
            try:
                row, label, weight = self._row(text)
            except BadRowError as error:
                bad.append((line, str(error)))
                continue
            rows.append(row)
            lines.append(line)
            labels.append(label)
            weights.append(weight)
        y = np.array(labels)
        if self.labelled and not self.schema.target.as_text:
            y, given = self.schema.target.numbers(y), y
            refused = np.flatnonzero(np.isnan(y)).tolist()
            bad += [(lines[t], self.schema.target.complaint(given[t])) for t in refused]
        for line, what in sorted(bad):
            self.problems.bad(file, line, what)
        keep = np.flatnonzero(~np.isnan(y))
        return Batch(
            [rows[t] for t in keep],
            y[keep] if self.labelled else None,
            np.array(weights)[keep] if self.labelled and self.schema.weight else None,
            file,
            np.array(lines, np.int64)[keep],
        )

    def _row(self, text: str) -> tuple[dict[str, Any], float, float]:
        """The features, the label and the weight that stand on one line."""
        row = as_row(decoded(text, exact=self.exact))
        label, weight = self.split(row)
        if not self.labelled:
            return row, 0.0, 1.0
        weight = self.weight_of(weight)
        return row, self._label(label), weight  # of bad rows the target learns nothing

    def split(self, row: dict[str, Any]) -> tuple[Any, Any]:
        """Take label and weight out of a row, as they are; what is left of it are its features."""
        schema = self.schema
        for name in schema.ignore:
            row.pop(name, None)
        label = row.pop(self.label, None)
        weight = row.pop(schema.weight, None) if schema.weight else 1.0
        for name in schema.categorical:
            if name in row:
                row[name] = _category(row[name])
        _make_features(row)
        return label, weight

    def weight_of(self, weight: Any) -> float:
        """An importance weight."""
        name = self.schema.weight
        if weight is None:
            raise BadRowError("the weight is missing", name)
        if not _is_number(weight) or not 0 <= weight <= _LARGEST_WEIGHT:
            limits = f"not a number from 0 to {_LARGEST_WEIGHT:g}"
            raise BadRowError(f"the weight is {_shown(weight)}, {limits}", name)
        return float(weight)

    def plain_label(self, label: Any) -> float | str:
        """A label as its target takes it: a number that stays one, or what to look up."""
        if isinstance(label, dict | list):
            raise BadRowError(f"the label is {_shown(label)}", self.label)
        if _is_number(label):
            return repr(label) if self.schema.target.as_text else float(label)
        return json.dumps(label) if isinstance(label, bool) else label or ""

    def _label(self, label: Any) -> float:
        """A label's code; numbers that stay numbers are looked at later, all of them at once."""
        plain, target = self.plain_label(label), self.schema.target
        if isinstance(plain, float):
            return plain
        code = target.code(plain)
        if math.isnan(code):
            raise BadRowError(target.complaint(plain), self.label)
        return code


def as_row(value: Any) -> dict[str, Any]:
    """What JSON gave, if it is an object."""
    if not isinstance(value, dict):
        raise BadRowError(f"{_shown(value)} where an object is expected")
    return value


def decoded(text: str, *, exact: bool) -> Any:
    """What JSON says; a BadRowError if it is none, or has a name twice in one object.

    exact: also whole numbers that 64 bits cannot hold; otherwise they are floats.
    """
    if exact and _LONG.search(text):
        return _decoded_slowly(text)
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return _decoded_slowly(text)
    rows = value if isinstance(value, list) else [value]
    if all(type(row) is dict for row in rows) and _names_once(text, rows):
        return value
    del value, rows  # there may be much of it
    return _decoded_slowly(text)


def _names_once(text: str, rows: list[dict[str, Any]]) -> bool:
    """Whether no name can stand twice in a row: each has a colon, all others are in strings."""
    colons = text.count(":") - sum(map(len, rows))
    if colons == 0 or "\\" in text:
        return colons == 0
    texts = (x for row in rows for pair in row.items() for x in pair if type(x) is str)
    return colons == sum(x.count(":") for x in texts)


def _decoded_slowly(text: str) -> Any:
    """The same, by a decoder that says what is wrong."""
    try:
        value = _DECODER.decode(text)
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        rest = text[error.pos : error.pos + 40]
        raise BadRowError(f"{error.msg}: column {error.colno}, {rest!r:.40}") from None
    except UnicodeEncodeError:
        raise BadRowError("half a surrogate pair in a string") from None
    except RecursionError:
        raise BadRowError("nested too deeply") from None
    return value


def _make_features(row: dict[str, Any]) -> None:
    values = row.values()
    kinds = {*map(type, values)}
    if kinds <= _NUMBERS and math.hypot(*values) < _TOO_LARGE:  # as of most rows
        if int in kinds:
            row.update(zip(row, map(float, values), strict=True))
        return
    for name, value in row.items():
        kind = type(value)
        if kind is float or kind is int:
            if not -_TOO_LARGE < value < _TOO_LARGE:
                raise BadRowError(f"{name!r:.40} is too large a number", name)
            row[name] = float(value)
        elif kind is bool:
            row[name] = float(value)
        elif kind is not str and value is not None:
            raise BadRowError(f"{name!r:.40} is {_shown(value)}", name)


def _category(value: Any) -> Any:
    """A string for whatever can be a category."""
    if isinstance(value, bool):
        return json.dumps(value)
    return repr(value) if _is_number(value) and math.isfinite(value) else value


def _is_number(value: Any) -> bool:
    return type(value) is float or type(value) is int


def _shown(value: Any) -> str:
    """A value for a message; what may be deeply nested is only named."""
    if isinstance(value, dict | list):
        return "a list" if isinstance(value, list) else "an object"
    return f"{value!r:.40}" if _is_number(value) or isinstance(value, str) else json.dumps(value)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        twice = next(name for name in counts if counts[name] > 1)
        raise BadRowError(f"{twice!r:.40} stands there twice", twice)
    return members


def _whole(digits: str) -> int | float:
    """A whole number; one that no float can hold is infinite, as 1e999 is."""
    number = float(digits)
    return int(digits) if math.isfinite(number) else number


def _refuse(constant: str) -> None:
    raise BadRowError(f"{constant} is not JSON")


# slower than orjson, which neither sees names that stand twice nor says where a number is too large
_DECODER = json.JSONDecoder(object_pairs_hook=_distinct, parse_int=_whole, parse_constant=_refuse)
