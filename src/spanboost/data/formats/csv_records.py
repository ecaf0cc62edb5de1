"""The records of CSV: where they begin and end, what stands in them."""

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
from spanboost.data.formats.lines import Chunk
from spanboost.data.schema import ColumnPositions, Schema
from spanboost.data.target import as_number

MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "?")


class Record(NamedTuple):
    """One record."""

    text: str  # without its newline
    line: int
    end: int  # where the next one begins in the chunk
    next_line: int


class Parser:
    """Makes columns of the records of one file; threads may share it.

    Columns that begin with whole numbers are read as such while they hold no others: that takes a
    fifth of the time less, and gives the same.
    """

    def __init__(
        self,
        schema: Schema,
        names: list[str],
        places: ColumnPositions,
        delimiter: str,
        beginning: Chunk,
    ) -> None:
        self.schema, self.names, self.places, self.delimiter = schema, names, places, delimiter
        label, weight = ([] if p is None else [p] for p in (places.label, places.weight))
        self.floats = [*places.numbers, *weight]
        self.texts = [*places.categories, *label]
        kinds = {names[place]: pa.float64() for place in self.floats}
        kinds |= {names[place]: pa.string() for place in self.texts}
        if label and not schema.target.as_text:
            kinds[names[label[0]]] = pa.float64()
        whole = {names[place]: pa.int32() for place in self._whole(beginning)}
        self.whole = _convert_options(kinds | whole) if whole else None
        self.any = _convert_options(kinds)

    def parse(self, chunk: Chunk) -> ColumnPart:
        """The records of a chunk as columns."""
        if not chunk.data or not _is_plain(chunk.data, self.delimiter):
            return self._exactly(chunk)
        part = None
        whole = self.whole  # looked at once: another thread may find that it does not hold
        if whole is not None and not _may_be_hexadecimal(chunk.data):
            part = self._quickly(chunk, whole)
            if part is None:
                self.whole = None  # not a second time
        return part or self._quickly(chunk, self.any) or self._exactly(chunk)

    def _whole(self, beginning: Chunk) -> list[int]:
        """Which columns begin with whole numbers."""
        first = [split(record.text, self.delimiter) for record in islice(records(beginning), 100)]
        rows = [row for row in first if len(row) == len(self.names) and not isinstance(row, str)]
        return [
            place
            for place in self.floats
            if rows and all(row[place].removeprefix("-").isdecimal() for row in rows)
        ]

    def _quickly(self, chunk: Chunk, kinds: Any) -> ColumnPart | None:
        """By Arrow; None where it complains, or does not read as we do."""
        data = chunk.data
        try:
            table = csv.read_csv(
                pa.BufferReader(data),
                csv.ReadOptions(
                    use_threads=False, block_size=len(data) + 1, column_names=self.names
                ),
                csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=b'"' in data),
                kinds,
            )
        except pa.ArrowInvalid:
            return None
        columns = [_joined(column) for column in table.columns]
        if b"(" in data and any(map(_odd_nan, columns)):
            return None
        lines = _lines(chunk, len(table))
        return None if lines is None else self._part(columns, lines, [])

    def _exactly(self, chunk: Chunk) -> ColumnPart:
        """Record by record."""
        rows, lines, bad = list[Any](), list[int](), list[tuple[int, str]]()
        for record in records(chunk):
            row = self._row(record.text)
            if isinstance(row, str):
                bad.append((record.line, row))
            else:
                rows.append(row)
                lines.append(record.line)
        columns = list(zip(*rows, strict=True)) or [()] * len(self.floats + self.texts)
        floats = len(self.floats)
        arrays = [pa.array(column, pa.float64()) for column in columns[:floats]]
        arrays += [pa.array(column, pa.string()) for column in columns[floats:]]
        return self._part(arrays, np.array(lines, np.int64), bad)

    def _part(self, columns: list[Any], lines: Array, bad: list[tuple[int, str]]) -> ColumnPart:
        """Columns as numbers, weight, categories, label."""
        numbers, categories = len(self.places.numbers), len(self.places.categories)
        floats, texts = columns[: len(self.floats)], columns[len(self.floats) :]
        texts = [text.dictionary_encode() if is_text(text.type) else text for text in texts]
        return ColumnPart(
            numbers=floats[:numbers],
            categories=texts[:categories],
            label=None if self.places.label is None else texts[-1],
            weight=None if self.places.weight is None else floats[-1],
            lines=lines,
            bad=bad,
        )

    def _row(self, text: str) -> list[Any] | str:
        """The fields that are needed, or what is wrong."""
        fields = split(text, self.delimiter)
        if isinstance(fields, str):
            return fields
        if len(fields) != len(self.names):
            return f"{_count(len(fields), 'field')} where there are {len(self.names)} columns"
        row = list[Any]()
        for place in self.floats:
            number = _number(fields[place])
            if number is None:
                return self._complaint(fields[place], place)
            row.append(number)
        row += [fields[place] for place in self.texts]
        if self.places.label is not None and not self.schema.target.as_text:
            row[-1] = None if row[-1].strip() in MISSING else row[-1]
        return row

    def _complaint(self, field: str, place: int) -> str:
        name = self.names[place]
        what = f"{field!r:.40} is no number in column {name!r:.40}"
        if place == self.places.weight or self.places.label is None:
            return what
        return f"{what} (the first rows have numbers there: --categorical {name:.40} if it is none)"


def records(chunk: Chunk) -> Iterator[Record]:
    """The records of a chunk; blank lines are none."""
    starts, ends, lines = _bounds(chunk)
    data = chunk.data
    for start, end, line in zip(starts.tolist(), ends.tolist(), lines.tolist(), strict=True):
        raw = data[start:end]
        text = raw.removesuffix(b"\r").decode()
        yield Record(text, line, end + 1, line + raw.count(b"\n") + 1)


def split(record: str, delimiter: str) -> list[str] | str:
    """The fields of a record, or what is wrong with it."""
    if '"' not in record:
        return "a carriage return inside a line" if "\r" in record else record.split(delimiter)
    fields, start, field = list[str](), 0, _field(delimiter)
    while found := field.match(record, start):
        quoted, bare = found.groups()
        fields.append(bare if quoted is None else quoted.replace('""', '"'))
        start = found.end() + 1
        if found.end() == len(record):
            return fields
    return f"a double quote out of place: {record[max(start - 1, 0) :]!r:.40}"


@cache
def _field(delimiter: str) -> re.Pattern[str]:
    comma = re.escape(delimiter)
    end = rf"(?={comma}|\Z)"
    return re.compile(rf'"([^"]*(?:""[^"]*)*)"{end}|([^{comma}"\r\n][^{comma}\r\n]*|){end}')


def _bounds(chunk: Chunk) -> tuple[Array, Array, Array]:
    """Where records begin, where they end before their newlines, and on which lines they stand."""
    marks = np.frombuffer(chunk.data, np.uint8)
    newlines = np.flatnonzero(marks == ord("\n"))
    ends = newlines
    if b'"' in chunk.data:
        quotes = np.flatnonzero(marks == ord('"'))
        ends = newlines[np.searchsorted(quotes, newlines) % 2 == 0]
    if len(marks) and (len(ends) == 0 or ends[-1] != len(marks) - 1):
        ends = np.append(ends, len(marks))
    starts = np.concatenate([[0], ends[:-1] + 1]) if len(ends) else ends
    lines = chunk.first + np.searchsorted(newlines, starts)
    length = ends - starts
    some = (length > 1) | ((length == 1) & (marks[starts] != ord("\r")))
    return starts[some], ends[some], lines[some]


def _lines(chunk: Chunk, rows: int) -> Array | None:
    """The lines on which so many records begin; None if there are more or fewer."""
    data = chunk.data
    newlines = int(np.count_nonzero(np.frombuffer(data, np.uint8) == ord("\n")))
    if rows == newlines + (not data.endswith(b"\n")):  # then each has one line
        return np.arange(chunk.first, chunk.first + rows)
    lines = _bounds(chunk)[2]
    return lines if len(lines) == rows else None


def _is_plain(data: bytes, delimiter: str) -> bool:
    """Whether Arrow takes these bytes for the same fields as we do."""
    if b"\r" in data and data.count(b"\r") != data.count(b"\r\n"):
        return False
    if b'"' not in data:
        return True
    # every quoted field begins after a delimiter or a newline, and ends before one
    marks = np.frombuffer(b"\n%b\n" % data, np.uint8)
    quotes = np.flatnonzero(marks == ord('"'))
    beside = np.zeros(256, bool)
    beside[[*b'\r\n"', *delimiter.encode()]] = True
    return bool(
        len(quotes) % 2 == 0
        and beside[marks[quotes[::2] - 1]].all()
        and beside[marks[quotes[1::2] + 1]].all()
    )


def _may_be_hexadecimal(data: bytes) -> bool:
    """Whether there is something Arrow might take for a whole number, and we do not."""
    marks = np.frombuffer(data, np.uint8)  # bytes take 8 times as long to look for two of them
    return bool(((marks[:-1] == ord("0")) & ((marks[1:] | 32) == ord("x"))).any())


def _convert_options(kinds: dict[str, Any]) -> Any:
    return csv.ConvertOptions(
        check_utf8=False,
        column_types=kinds,
        include_columns=[*kinds],
        null_values=MISSING,
        strings_can_be_null=False,
    )


def _joined(column: Any) -> Any:
    """A column in one piece; Arrow would copy one that is."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _odd_nan(column: Any) -> bool:
    """Whether Arrow has taken something like nan(x) for a number."""
    if column.type != pa.float64():
        return False
    return int(np.isnan(column.to_numpy(zero_copy_only=False)).sum()) != column.null_count


def _number(field: str) -> float | None:
    text = field.strip()
    return np.nan if text in MISSING else as_number(text)


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
