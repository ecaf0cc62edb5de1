"""Read JSON Lines: every line is an object whose keys are the names of features."""

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import orjson

from spanboost.data.batch import Batch
from spanboost.data.formats.lines import Chunk, read_chunks
from spanboost.data.kinds import SAMPLE_ROWS, TIME, are_identifiers, describe_column
from spanboost.data.local_formats import describe_local_format, describe_seconds
from spanboost.data.problems import Problems, suggest_name
from spanboost.data.source import Source
from spanboost.errors import list_names
from spanboost.rows.key_kinds import NumeralWarnings
from spanboost.rows.times import parse_time, part_names, time_entries

if TYPE_CHECKING:
    from spanboost.data.messages.message_rows import MessageRows
    from spanboost.data.schema import Schema

TOO_LARGE = 2.0**128 - 2.0**103  # from here on, a number overflows a 32-bit float
LARGEST_WEIGHT = 1e19
_NUMBERS = {float, int}
_LONG_INTEGER = re.compile("[0-9]{19}")


class BadRowError(ValueError):
    """A row that cannot be used.

    field: the key of the invalid value, if there is one.
    summary: the message without values of the row, for logs.
    """

    def __init__(self, what: str, field: str | None = None, summary: str | None = None) -> None:
        super().__init__(what)
        self.field, self.summary = field, summary


class ValueChunk(NamedTuple):
    """Some rows as JSON values, with their line numbers; a BadRowError where there is no value."""

    lines: list[int]
    values: list[Any]
    positions: list[tuple[str, Any]] | None  # place and position of each row; None for files


class JsonReader:
    """Reads rows as dictionaries of numbers, strings (categories) and None (missing values)."""

    def __init__(
        self,
        schema: "Schema",
        problems: Problems,
        *,
        labelled: bool,
        keep: Sequence[str] = (),
        size: int = 1 << 20,
    ) -> None:
        self.schema, self.problems = schema, problems
        self.keep = keep  # keys to pass on as they are
        self.labelled = labelled
        self.size = size
        self.label = schema.label or "label"
        # different numbers must stay different when they become categories
        self.exact = bool(schema.categorical) or bool(keep)

    def batches(self, source: "Source | MessageRows") -> Iterator[Batch]:
        """Yield the good rows of a file, about `size` bytes of it at a time, or of messages."""
        first = True
        chunks = (
            map(self._parse, read_chunks(source, self.problems, size=self.size))
            if isinstance(source, Source)
            else source.read(exact=self.exact)
        )
        for chunk in chunks:
            batch = self._batch(source.name, chunk)
            if batch.rows:
                if first:
                    self._note_keys(source.name, batch.X[:SAMPLE_ROWS])
                first = False
                yield batch

    def _note_keys(self, file: str, rows: list[dict[str, Any]]) -> None:
        """Add notes on keys of times and of identifiers, as found in the first rows."""
        for name in dict.fromkeys(name for row in rows for name in row):
            values = [row[name] for row in rows if type(row.get(name)) is str]
            base = name.removesuffix(".days")
            if base != name and rows[0].keys() >= {*part_names(base, self.schema.time_parts)}:
                self.problems.note(f"{file}: {describe_column(base, TIME, [])}")
            elif name in self.schema.categorical:
                continue
            elif note := _describe_texts(name, values):
                self.problems.note(f"{file}: {note}")
            elif are_identifiers(values):
                self.problems.note(
                    f"{file}: {name!r:.40} has a different value in most rows, and each value is a "
                    f"feature; --ignore {name} leaves it out, -b hashes features"
                )
            elif not values and (note := _describe_numbers(name, rows)):
                self.problems.note(f"{file}: {note}")

    def _parse(self, chunk: Chunk) -> ValueChunk:
        """Return the values of the lines of a file, without blank lines."""
        texts = enumerate(bytes(chunk.data).decode().split("\n"), chunk.first)
        lines = {line: text for line, text in texts if text and not text.isspace()}
        return ValueChunk([*lines], [self._decode(text) for text in lines.values()], None)

    def _decode(self, text: str) -> Any:
        try:
            return decode_json(text, exact=self.exact)
        except BadRowError as error:
            return error

    def _batch(self, file: str, chunk: ValueChunk) -> Batch:
        rows, lines, labels, weights, kept, taken = [], [], [], [], [], []
        bad: list[tuple[int, str]] = []
        for k, (line, value) in enumerate(zip(chunk.lines, chunk.values, strict=True)):
            try:
                row, label, weight, passed = self._row(value)
            except BadRowError as error:
                bad.append((line, str(error)))
                continue
            rows.append(row)
            lines.append(line)
            taken.append(k)
            labels.append(label)
            weights.append(weight)
            kept.append(passed)
        y = np.array(labels)
        if self.labelled and not self.schema.target.as_text:
            y, given = self.schema.target.encode_numbers(y), y
            invalid = np.flatnonzero(np.isnan(y)).tolist()
            bad += [(lines[t], self._label_error(given[t])) for t in invalid]
        for line, what in sorted(bad):
            self.problems.report(file, line, what)
        keep = np.flatnonzero(~np.isnan(y))
        return Batch(
            [rows[t] for t in keep],
            y[keep] if self.labelled else None,
            np.array(weights)[keep] if self.labelled and self.schema.weight else None,
            file,
            np.array(lines, np.int64)[keep],
            _kept_table(self.keep, [kept[t] for t in keep]) if self.keep else None,
            None if chunk.positions is None else [chunk.positions[taken[t]] for t in keep],
        )

    def _row(self, value: Any) -> tuple[dict[str, Any], float, float, list[str | None]]:
        """Return the features, the label, the weight and the kept values of one row."""
        if isinstance(value, BadRowError):
            raise value
        row = as_row(value)
        labelled = self.label in row
        kept = [_as_text(row.get(name)) for name in self.keep]
        label, weight = self.split(row)
        if not self.labelled:
            return row, 0.0, 1.0, kept
        weight = self.parse_weight(weight)
        if not labelled:
            keys = list_names([*map(str, row)]) or "none"
            listed = f"; name its key with --label; the keys are {keys}"
            near = suggest_name(self.label, row) or listed
            raise BadRowError(f"the label is missing: no key {self.label!r:.40}{near}", self.label)
        # the label comes last, so that the target learns nothing from a bad row
        return row, self._encode_label(label), weight, kept

    def split(self, row: dict[str, Any]) -> tuple[Any, Any]:
        """Remove label and weight from a row and return them unchecked; keep only features."""
        schema = self.schema
        for name in schema.ignore:
            row.pop(name, None)
        label = row.pop(self.label, None)
        weight = row.pop(schema.weight, None) if schema.weight else 1.0
        for name in schema.categorical:
            if name in row:
                row[name] = _category(row[name])
        if schema.iso_times:
            self._expand_times(row)
        _convert_features(row)
        return label, weight

    def _expand_times(self, row: dict[str, Any]) -> None:
        """Replace strings that are dates or times by their features."""
        for name, value in [*row.items()]:
            if type(value) is str and name not in self.schema.categorical:
                moment = parse_time(value)
                if moment is not None:
                    del row[name]
                    row.update(time_entries(name, moment, self.schema.time_parts))

    def parse_weight(self, weight: Any) -> float:
        """Return an importance weight; raise BadRowError if it is invalid."""
        name = self.schema.weight
        if weight is None:
            raise BadRowError("the weight is missing", name)
        if not _is_number(weight) or not 0 <= weight <= LARGEST_WEIGHT:
            limits = f"a number between 0 and {LARGEST_WEIGHT:g}"
            raise BadRowError(f"the weight must be {limits} (got {_show(weight)})", name)
        return float(weight)

    def parse_label(self, label: Any) -> float | str:
        """Return a label as its target expects it: a number, or a string to encode."""
        if isinstance(label, dict | list):
            raise BadRowError(
                f"the label must be a number, a string or a boolean (got {_show(label)})",
                self.label,
            )
        if _is_number(label):
            return repr(label) if self.schema.target.as_text else float(label)
        return json.dumps(label) if isinstance(label, bool) else label or ""

    def _encode_label(self, label: Any) -> float:
        """Return the code of a label; numeric labels are checked later, all at once."""
        plain, target = self.parse_label(label), self.schema.target
        if isinstance(plain, float):
            return plain
        code = target.encode_text(plain)
        if math.isnan(code):
            raise BadRowError(self._label_error(plain), self.label)
        return code

    def _label_error(self, label: float | str) -> str:
        """Return why a label is invalid, with its key."""
        return f"key {self.label!r:.40}: {self.schema.target.error_message(label)}"


def _describe_texts(name: str, texts: Sequence[str]) -> str | None:
    """Return a note on a key whose texts are numbers or dates; None if there is nothing to say."""
    counts, warnings = Counter(texts), NumeralWarnings("write them without quotes")
    found = (warnings.find(name, text) for text in counts)
    return describe_local_format(name, counts) or next(filter(None, found), None)


def _describe_numbers(name: str, rows: Sequence[dict[str, Any]]) -> str | None:
    """Return a note on a key whose numbers are times; None if there is nothing to say."""
    if type(rows[0].get(name)) is not float:  # as in most sparse rows
        return None
    values = dict.fromkeys(row[name] for row in rows if type(row.get(name)) is float)
    return describe_seconds(name, [*values])


def _as_text(value: Any) -> str | None:
    """Return a value as it is passed on: a string without quotes, or JSON."""
    return value if value is None or isinstance(value, str) else json.dumps(value)


def _kept_table(names: Sequence[str], rows: list[list[str | None]]) -> Any:
    import pyarrow as pa  # only needed where values are passed on

    columns = [pa.array([row[j] for row in rows], pa.string()) for j in range(len(names))]
    return pa.table(columns, [*names])


def as_row(value: Any) -> dict[str, Any]:
    """Return a decoded JSON value if it is an object; raise BadRowError otherwise."""
    if not isinstance(value, dict):
        raise BadRowError(f"expected a JSON object, got {_show(value)}")
    return value


def decode_json(text: str, *, exact: bool) -> Any:
    """Decode JSON; raise BadRowError if it is invalid or an object has a duplicate key.

    With `exact`, integers of more than 64 bits stay integers; otherwise they become floats.
    """
    if exact and _LONG_INTEGER.search(text):
        return _decode_slowly(text)
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return _decode_slowly(text)
    rows = value if isinstance(value, list) else [value]
    if all(type(row) is dict for row in rows) and _has_unique_keys(text, rows):
        return value
    del value, rows  # it may be large
    return _decode_slowly(text)


def _has_unique_keys(text: str, rows: list[dict[str, Any]]) -> bool:
    """Return whether no row can have a duplicate key, judging by the number of colons.

    Every key is followed by a colon. All other colons are inside strings.
    """
    colons = text.count(":") - sum(map(len, rows))
    if colons == 0 or "\\" in text:
        return colons == 0
    texts = (x for row in rows for pair in row.items() for x in pair if type(x) is str)
    return colons == sum(x.count(":") for x in texts)


def _decode_slowly(text: str) -> Any:
    """Decode JSON with the standard library, which describes errors."""
    try:
        value = _DECODER.decode(text)
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        rest = text[error.pos : error.pos + 40]
        line = f"line {error.lineno}, " if "\n" in text else ""  # a message can have several
        what = f"invalid JSON at {line}column {error.colno}: {error.msg}"
        raise BadRowError(f"{what}: {rest!r:.40}", summary=what) from None
    except UnicodeEncodeError:
        raise BadRowError("a string contains an unpaired surrogate") from None
    except RecursionError:
        raise BadRowError("the JSON is nested too deeply") from None
    return value


def _convert_features(row: dict[str, Any]) -> None:
    values = row.values()
    kinds = {*map(type, values)}
    if kinds <= _NUMBERS and math.hypot(*values) < TOO_LARGE:  # true for most rows
        if int in kinds:
            row.update(zip(row, map(float, values), strict=True))
        return
    for name, value in row.items():
        kind = type(value)
        if kind is float or kind is int:
            if not -TOO_LARGE < value < TOO_LARGE:
                raise BadRowError(f"{name!r:.40} is too large for a 32-bit float", name)
            row[name] = float(value)
        elif kind is bool:
            row[name] = float(value)
        elif kind is not str and value is not None:
            raise BadRowError(
                f"{name!r:.40} must be a number, a string, a boolean or null (got {_show(value)})",
                name,
            )


def _category(value: Any) -> Any:
    """Return a string for a number or a boolean; other values unchanged."""
    if isinstance(value, bool):
        return json.dumps(value)
    return repr(value) if _is_number(value) and math.isfinite(value) else value


def _is_number(value: Any) -> bool:
    return type(value) is float or type(value) is int


def _show(value: Any) -> str:
    """Return a value for a message; lists and objects, which may be deep, are only named."""
    if isinstance(value, dict | list):
        return "a list" if isinstance(value, list) else "an object"
    return f"{value!r:.40}" if _is_number(value) or isinstance(value, str) else json.dumps(value)


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        duplicate = next(name for name in counts if counts[name] > 1)
        raise BadRowError(f"duplicate key {duplicate!r:.40}", duplicate)
    return members


def _parse_integer(digits: str) -> int | float:
    """Return an integer; infinity if a float cannot hold it, as for 1e999."""
    number = float(digits)
    return int(digits) if math.isfinite(number) else number


def _refuse_constant(constant: str) -> None:
    raise BadRowError(f"{constant} is not valid JSON")


# slower than orjson, which does not detect duplicate keys and rejects large numbers
_DECODER = json.JSONDecoder(
    object_pairs_hook=_members, parse_int=_parse_integer, parse_constant=_refuse_constant
)
