"""Split CSV into records and fields, and parse records into columns."""

import re
from collections.abc import Iterator
from functools import cache
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import csv

from spanboost.compiling.arrays import Array
from spanboost.data.columns import ColumnPart, is_text
from spanboost.data.decimal_marks import POINT, mark_advice, parse_decimal, sign_advice
from spanboost.data.formats.lines import Chunk
from spanboost.data.kinds import MISSING
from spanboost.data.local_formats import NO_SIGN
from spanboost.data.problems import LEAVE_OUT
from spanboost.data.schema import ColumnPositions, Schema


class Record(NamedTuple):
    """One record."""

    text: str  # without the newline
    line: int  # number of its first line
    end: int  # where the next record begins in the chunk
    next_line: int  # number of the line where the next record begins


class Parser:
    """Parses the records of one file into columns. Threads can share it.

    Columns that begin with integers are parsed as integers until another number occurs. This
    saves a fifth of the time and gives the same values.
    """

    def __init__(
        self,
        schema: Schema,
        names: list[str],
        positions: ColumnPositions,
        delimiter: str,
        beginning: Chunk,
        decimal: str = POINT,
        *,
        skip: bool = False,
    ) -> None:
        """Create a parser. skip: bad rows are left out."""
        self.schema, self.names, self.skip = schema, names, skip
        self.positions, self.delimiter, self.decimal = positions, delimiter, decimal
        self.numeric_label = None if schema.target.as_text else positions.label
        label, weight = ([] if p is None else [p] for p in (positions.label, positions.weight))
        self.floats = [*positions.numbers, *weight]
        self.texts = [*positions.categories, *positions.times, *label]
        self.signs = [schema.signs.get(name, NO_SIGN) for name in names]
        self.signs_needed = any("" not in signs for signs in self.signs)
        # a column can be a feature too, so Arrow reads these columns on their own
        kept = {names[position]: pa.string() for position in positions.kept}
        self.kept_options = _convert_options(kept, decimal)
        kinds = {names[position]: pa.float64() for position in self.floats}
        kinds |= {names[position]: pa.string() for position in self.texts}
        if self.numeric_label is not None:
            kinds[names[label[0]]] = pa.float64()
        integers = {names[position]: pa.int32() for position in self._integer_columns(beginning)}
        self.integer_options = _convert_options(kinds | integers, decimal) if integers else None
        self.float_options = _convert_options(kinds, decimal)

    def parse(self, chunk: Chunk) -> ColumnPart:
        """Parse the records of a chunk into columns."""
        # Arrow would accept a number without the sign that its column needs
        if not chunk.data or self.signs_needed or not _is_plain(chunk.data, self.delimiter):
            return self._parse_records(chunk)
        part = None
        options = self.integer_options  # read once, because another thread may reset it
        if options is not None and not _may_be_hexadecimal(chunk.data):
            part = self._parse_with_arrow(chunk, options)
            if part is None:
                self.integer_options = None  # do not try again
        part = part or self._parse_with_arrow(chunk, self.float_options)
        return part or self._parse_records(chunk)

    def _integer_columns(self, beginning: Chunk) -> list[int]:
        """Return the positions of the columns that begin with integers."""
        first = [
            split_record(record.text, self.delimiter)
            for record in islice(read_records(beginning), 100)
        ]
        rows = [row for row in first if len(row) == len(self.names) and not isinstance(row, str)]
        return [
            position
            for position in self.floats
            if rows and all(row[position].removeprefix("-").isdecimal() for row in rows)
        ]

    def _parse_with_arrow(self, chunk: Chunk, options: Any) -> ColumnPart | None:
        """Parse a chunk with Arrow; None if it fails, or reads the text differently."""
        data = chunk.data
        try:
            table = self._read_with_arrow(data, options)
        except pa.ArrowInvalid:
            return None
        columns = [_combine_chunks(column) for column in table.columns]
        if self.positions.kept:
            kept = self._read_with_arrow(data, self.kept_options)
            columns += [_combine_chunks(column) for column in kept.columns]
        if b"(" in data and any(map(_has_odd_nan, columns)):
            return None
        lines = _line_numbers(chunk, len(table))
        return None if lines is None else self._part(columns, lines, [])

    def _read_with_arrow(self, data: bytes, options: Any) -> Any:
        return csv.read_csv(
            pa.BufferReader(data),
            csv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=self.names),
            csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=b'"' in data),
            options,
        )

    def _parse_records(self, chunk: Chunk) -> ColumnPart:
        """Parse a chunk record by record."""
        rows, lines, bad = list[Any](), list[int](), list[tuple[int, str]]()
        for record in read_records(chunk):
            row = self._row(record.text, record.line)
            if isinstance(row, str):
                bad.append((record.line, row))
            else:
                rows.append(row)
                lines.append(record.line)
        width = len(self.floats) + len(self.texts) + len(self.positions.kept)
        columns = list(zip(*rows, strict=True)) or [()] * width
        floats = len(self.floats)
        arrays = [pa.array(column, pa.float64()) for column in columns[:floats]]
        arrays += [pa.array(column, pa.string()) for column in columns[floats:]]
        return self._part(arrays, np.array(lines, np.int64), bad)

    def _part(self, columns: list[Any], lines: Array, bad: list[tuple[int, str]]) -> ColumnPart:
        """Return a part; `columns`: numbers, weight, categories, times, label and kept columns."""
        numbers, categories = len(self.positions.numbers), len(self.positions.categories)
        floats, texts = columns[: len(self.floats)], columns[len(self.floats) :]
        texts, kept = texts[: len(self.texts)], texts[len(self.texts) :]
        texts = [text.dictionary_encode() if is_text(text.type) else text for text in texts]
        return ColumnPart(
            numbers=floats[:numbers],
            categories=texts[:categories],
            times=texts[categories : categories + len(self.positions.times)],
            label=None if self.positions.label is None else texts[-1],
            weight=None if self.positions.weight is None else floats[-1],
            lines=lines,
            bad=bad,
            kept=pa.table(kept, [self.names[p] for p in self.positions.kept]) if kept else None,
        )

    def _row(self, text: str, line: int) -> list[Any] | str:
        """Return the required fields of a record, or an error message."""
        fields = split_record(text, self.delimiter)
        if isinstance(fields, str):
            return fields
        if len(fields) != len(self.names):
            return f"expected {_plural(len(self.names), 'field')}, got {len(fields)}"
        row = list[Any]()
        for position in self.floats:
            number = self._parse_number(fields[position], position)
            if number is None:
                return self._not_a_number(fields[position], position, line)
            row.append(number)
        row += [fields[position] for position in self.texts]
        if self.numeric_label is not None:
            label = row[-1].strip()
            number = self._parse_number(label, self.numeric_label)
            if number is None:
                advice = sign_advice(label, self.decimal) or mark_advice(label, self.decimal)
                if advice:
                    return f"column {self.schema.label!r:.40}: the label {label!r:.40} {advice}"
            # the target parses texts, with a decimal point, and describes those that are invalid
            row[-1] = None if label in MISSING else label if number is None else repr(number)
        return row + [fields[position] for position in self.positions.kept]

    def _parse_number(self, field: str, position: int) -> float | None:
        text = field.strip()
        return (
            np.nan if text in MISSING else parse_decimal(text, self.decimal, self.signs[position])
        )

    def _not_a_number(self, field: str, position: int, line: int) -> str:
        name = self.names[position]
        what = f"column {name!r:.40}: {field!r:.40} is not a number"
        if line == 1:  # a line of names is not a record
            return f"{what}; if line 1 contains the names of the columns, use --header"
        if advice := sign_advice(field, self.decimal):
            return f"column {name!r:.40}: {field!r:.40} {advice}"
        if advice := mark_advice(field, self.decimal):
            return f"{what}; it {advice}"
        if position == self.positions.weight or self.positions.label is None:
            return what
        leave_out = "" if self.skip else LEAVE_OUT
        return (
            f"{what}, unlike the first rows{leave_out}; to read categories, use --categorical "
            f"{name:.40}"
        )


def read_records(chunk: Chunk) -> Iterator[Record]:
    """Yield the records of a chunk, without blank lines."""
    starts, ends, lines = _bounds(chunk)
    data = chunk.data
    for start, end, line in zip(starts.tolist(), ends.tolist(), lines.tolist(), strict=True):
        raw = data[start:end]
        text = raw.removesuffix(b"\r").decode()
        yield Record(text, line, end + 1, line + raw.count(b"\n") + 1)


def split_record(record: str, delimiter: str) -> list[str] | str:
    """Return the fields of a record, or an error message."""
    if '"' not in record:
        return "carriage return inside a line" if "\r" in record else record.split(delimiter)
    fields, start, field = list[str](), 0, _field_pattern(delimiter)
    while found := field.match(record, start):
        quoted, bare = found.groups()
        fields.append(bare if quoted is None else quoted.replace('""', '"'))
        start = found.end() + 1
        if found.end() == len(record):
            return fields
    return f"unexpected double quote: {record[max(start - 1, 0) :]!r:.40}"


@cache
def _field_pattern(delimiter: str) -> re.Pattern[str]:
    comma = re.escape(delimiter)
    end = rf"(?={comma}|\Z)"
    return re.compile(rf'"([^"]*(?:""[^"]*)*)"{end}|([^{comma}"\r\n][^{comma}\r\n]*|){end}')


def _bounds(chunk: Chunk) -> tuple[Array, Array, Array]:
    """Return where records begin, where they end (before the newline), and their line numbers."""
    octets = np.frombuffer(chunk.data, np.uint8)
    newlines = np.flatnonzero(octets == ord("\n"))
    ends = newlines
    if b'"' in chunk.data:
        quotes = np.flatnonzero(octets == ord('"'))
        ends = newlines[np.searchsorted(quotes, newlines) % 2 == 0]
    if len(octets) and (len(ends) == 0 or ends[-1] != len(octets) - 1):
        ends = np.append(ends, len(octets))
    starts = np.concatenate([[0], ends[:-1] + 1]) if len(ends) else ends
    lines = chunk.first + np.searchsorted(newlines, starts)
    length = ends - starts
    not_blank = (length > 1) | ((length == 1) & (octets[starts] != ord("\r")))
    return starts[not_blank], ends[not_blank], lines[not_blank]


def _line_numbers(chunk: Chunk, rows: int) -> Array | None:
    """Return the line numbers of the records of a chunk; None unless there are `rows` of them."""
    data = chunk.data
    newlines = int(np.count_nonzero(np.frombuffer(data, np.uint8) == ord("\n")))
    if rows == newlines + (not data.endswith(b"\n")):  # every record has one line
        return np.arange(chunk.first, chunk.first + rows)
    lines = _bounds(chunk)[2]
    return lines if len(lines) == rows else None


def _is_plain(data: bytes, delimiter: str) -> bool:
    """Return whether Arrow splits these bytes into the same fields as `split_record`."""
    if b"\r" in data and data.count(b"\r") != data.count(b"\r\n"):
        return False
    if b'"' not in data:
        return True
    # every quoted field must begin after a delimiter or a newline, and end before one
    octets = np.frombuffer(b"\n%b\n" % data, np.uint8)
    quotes = np.flatnonzero(octets == ord('"'))
    allowed = np.zeros(256, bool)
    allowed[[*b'\r\n"', *delimiter.encode()]] = True
    return bool(
        len(quotes) % 2 == 0
        and allowed[octets[quotes[::2] - 1]].all()
        and allowed[octets[quotes[1::2] + 1]].all()
    )


def _may_be_hexadecimal(data: bytes) -> bool:
    """Return whether the data may contain hexadecimal integers, which only Arrow accepts."""
    octets = np.frombuffer(data, np.uint8)  # 8 times faster than two searches in bytes
    return bool(((octets[:-1] == ord("0")) & ((octets[1:] | 32) == ord("x"))).any())


def _convert_options(kinds: dict[str, Any], decimal: str) -> Any:
    return csv.ConvertOptions(
        check_utf8=False,
        decimal_point=decimal,
        column_types=kinds,
        include_columns=[*kinds],
        null_values=MISSING,
        strings_can_be_null=False,
    )


def _combine_chunks(column: Any) -> Any:
    """Return a column as one array, without the copy that Arrow makes of a single chunk."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _has_odd_nan(column: Any) -> bool:
    """Return whether Arrow has read a text like nan(x) as a number."""
    if column.type != pa.float64():
        return False
    return int(np.isnan(column.to_numpy(zero_copy_only=False)).sum()) != column.null_count


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
