"""Read CSV and TSV: by Arrow where possible, otherwise record by record.

The delimiter, the header and the decimal mark are found in the first records (dialect.py), unless
they are given.

A newline outside double quotes ends a record. A field that begins with a double quote must end
with one; two double quotes inside stand for one. Arrow parses pieces of complete records in
threads. If it rejects a piece, the piece is read again record by record to find the bad ones.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import NamedTuple

import pyarrow as pa

from spanboost.data.batch import Batch
from spanboost.data.columns import BatchBuilder, ColumnPart
from spanboost.data.decimal_marks import COMMA
from spanboost.data.formats.csv_records import Parser, read_records, split_record
from spanboost.data.formats.dialect import (
    Dialect,
    find_decimal,
    find_dialect,
    match_dialect,
    refuse_data,
    refuse_names,
)
from spanboost.data.formats.lines import Chunk, read_chunks
from spanboost.data.kinds import SAMPLE_ROWS, count_values, find_signs
from spanboost.data.local_formats import NO_SIGN, describe_signs
from spanboost.data.prefetch import prefetch_map
from spanboost.data.problems import Problems, StreamError
from spanboost.data.sampling import set_columns
from spanboost.data.schema import DELIMITERS, Schema
from spanboost.data.source import Source

WORKERS = 4  # at most
_FIRST = 1 << 16  # bytes at a time, if only the names are read
_SEPARATOR = re.compile(r'"?sep=([^"\w])"?')


class _Piece(NamedTuple):
    """Some complete records; bad lines before them; and the error that ends the file, if any."""

    chunk: Chunk
    bad: list[tuple[int, str]]
    error: StreamError | None


class CsvReader:
    """Reads CSV and TSV files."""

    def __init__(
        self,
        schema: Schema,
        problems: Problems,
        *,
        labelled: bool,
        learn: bool = True,
        delimiter: str | None = ",",
        header: bool | None = True,
        decimal: str | None = None,
        keep: Sequence[str] = (),
        size: int = 1 << 20,
    ) -> None:
        """Create a reader; a delimiter, header or decimal mark that is None is found."""
        self.keep = keep  # columns to pass on as they are
        self.schema, self.problems, self.labelled = schema, problems, labelled
        self.learn = learn and labelled  # whether to add new categories to the schema
        self.delimiter, self.header, self.decimal = delimiter, header, decimal
        self.size = size

    def batches(self, source: Source) -> Iterator[Batch]:
        """Yield the rows of a file."""
        dialect, names, first, pieces = self._open(source, self.size)
        pieces = chain([first], pieces)
        if self.schema.columns is None:
            self.schema.decimal = dialect.decimal
            read = self._set_columns(source.name, names, pieces, dialect)
            pieces = chain(read, pieces)
        positions = self.schema.positions(source.name, names, self.labelled, self.keep)
        delimiter, decimal = dialect.delimiter, dialect.decimal
        skip = self.problems.skip
        parser = Parser(self.schema, names, positions, delimiter, first.chunk, decimal, skip=skip)

        def parse(piece: _Piece) -> tuple[_Piece, ColumnPart]:
            return piece, parser.parse(piece.chunk)

        builder = BatchBuilder(self.schema, self.problems, source.name, self.learn)
        workers = min(WORKERS, pa.cpu_count())
        for piece, part in prefetch_map(parse, pieces, workers, source.would_block):
            yield from builder.batches(part._replace(bad=[*piece.bad, *part.bad]))
            if piece.error is not None:
                raise piece.error

    def check_columns(self, source: Source) -> None:
        """Raise a StreamError if a file lacks a column that the schema needs."""
        _, names, _, _ = self._open(source, _FIRST)
        self.schema.positions(source.name, names, self.labelled, self.keep)

    def _open(
        self, source: Source, size: int
    ) -> tuple[Dialect, list[str], _Piece, Iterator[_Piece]]:
        """Return the dialect of a file, the names of its columns, and the pieces after them."""
        named, pieces = _read_separator(_read_pieces(source, size))
        self.delimiter = self.delimiter or named
        dialect, pieces = self._find_dialect(source.name, pieces)
        names, first = _read_names(source.name, pieces, dialect)
        return dialect, names, first, pieces

    def _find_dialect(
        self, file: str, pieces: Iterator[_Piece]
    ) -> tuple[Dialect, Iterator[_Piece]]:
        """Return the dialect, and all pieces, including those that were read to find it."""
        new = self.schema.columns is None
        # later files may be pipes that wait for an answer to each row: take what is there
        read, records = _read_first(pieces, SAMPLE_ROWS if new else 1)
        pieces = chain(read, pieces)
        if not records:
            return Dialect(self.delimiter or ",", self.header is not False), pieces
        if new:
            found = find_dialect(file, records, self.delimiter, self.header, self.decimal)
        else:
            names = self._wanted()
            numbered = all(map(_is_position, {*names, self.schema.label or ""}))
            found = match_dialect(records[0], names, self.delimiter, self.header, numbered=numbered)
            mark = find_decimal(records, found.delimiter, self.schema.decimal)
            found = found._replace(decimal=self.decimal or mark)
            if found.header and not numbered:
                refuse_data(file, records[0], found, names)
            if numbered and self.header is None and not found.header and not self.problems.skip:
                numbers = [column.name for column in self.schema.numbers]
                refuse_names(file, records[0], found, numbers)
        self._note_dialect(file, found)
        return found, pieces

    def _wanted(self) -> set[str]:
        """Return the names of the columns that every file must have."""
        features = {column.name for column in self.schema.columns or ()}
        labels = (self.schema.label, self.schema.weight) if self.labelled else ()
        return features | {name for name in labels if name is not None}

    def _note_dialect(self, file: str, found: Dialect) -> None:
        if self.delimiter is None and found.delimiter != ",":
            name = DELIMITERS.get(found.delimiter, "spaces")
            self.problems.note(f"{file}: {name} separate the fields")
        if self.decimal is None and found.decimal == COMMA:
            self.problems.note(f"{file}: numbers have decimal commas; use --decimal . if not")
        if self.header is None and not found.header:
            self.problems.note(
                f"{file}: line 1 contains data, so columns are named 1, 2, 3, ...; use --header if "
                "it contains names"
            )

    def _set_columns(
        self, file: str, names: list[str], pieces: Iterator[_Piece], dialect: Dialect
    ) -> list[_Piece]:
        """Set the columns of the schema from the first rows; return the pieces that were read."""
        features = self.schema.choose_features(file, names, self.problems.note)
        columns = {name: k for k, name in enumerate(names)}  # `index` would search every time
        pieces_read = list[_Piece]()

        def rows() -> Iterator[list[str]]:
            for piece in pieces:
                pieces_read.append(piece)
                for record in read_records(piece.chunk):
                    fields = split_record(record.text, dialect.delimiter)
                    if not isinstance(fields, str) and len(fields) == len(names):
                        yield fields

        first = [*islice(rows(), SAMPLE_ROWS)]
        samples = {name: [row[columns[name]] for row in first] for name in features}
        set_columns(self.schema, self.problems, file, samples, mark=dialect.decimal)
        label = None if self.schema.target.as_text else self.schema.label
        others = [name for name in (label, self.schema.weight) if name is not None]
        for name in others:
            samples[name] = [row[columns[name]] for row in first]
            if note := describe_signs(name, count_values(samples[name])):
                self.problems.note(f"{file}: {note}")
        self.schema.signs = {
            name: signs
            for name in [*(column.name for column in self.schema.numbers), *others]
            if (signs := find_signs(samples[name], dialect.decimal)) != NO_SIGN
        }
        return pieces_read


def _read_names(file: str, pieces: Iterator[_Piece], dialect: Dialect) -> tuple[list[str], _Piece]:
    """Return the column names, and the rest of the piece that contains them."""
    bad = list[tuple[int, str]]()
    for piece in pieces:
        bad += piece.bad
        for record in read_records(piece.chunk):
            fields = split_record(record.text, dialect.delimiter)
            numbers = [str(position) for position in range(1, len(fields) + 1)]
            if not dialect.header and not isinstance(fields, str):
                return numbers, piece._replace(bad=bad)
            if isinstance(fields, str):
                bad.append((record.line, fields))
            for line, what in bad:  # the bad line may have been the header
                raise StreamError(f"{file}:{line}: {what}")
            rest = Chunk(piece.chunk.data[record.end :], record.next_line)
            names = numbers if dialect.numbered else [field.strip() for field in fields]
            return names, piece._replace(chunk=rest)
        if piece.error is not None:
            raise piece.error
    for line, what in bad:
        raise StreamError(f"{file}:{line}: {what}")
    raise StreamError(f"{file}: the file is empty")


def _read_separator(pieces: Iterator[_Piece]) -> tuple[str | None, Iterator[_Piece]]:
    """Return the delimiter that a first line like `sep=;` names, as Excel reads it; and the rest.

    Without such a line, the delimiter is None.
    """
    for piece in pieces:
        record = next(read_records(piece.chunk), None)
        found = None if record is None else _SEPARATOR.fullmatch(record.text)
        if record is not None and found is not None:
            rest = Chunk(piece.chunk.data[record.end :], record.next_line)
            return found[1], chain([piece._replace(chunk=rest)], pieces)
        return None, chain([piece], pieces)
    return None, pieces


def _is_position(name: str) -> bool:
    """Return whether a name is a position, counted from 1."""
    return name.isascii() and name.isdecimal() and not name.startswith("0")


def _read_first(pieces: Iterator[_Piece], number: int) -> tuple[list[_Piece], list[str]]:
    """Read pieces until they contain this number of records.

    Return the pieces, and their first SAMPLE_ROWS records.
    """
    read, records = list[_Piece](), list[str]()
    for piece in pieces:
        read.append(piece)
        more = islice(read_records(piece.chunk), SAMPLE_ROWS - len(records))
        records += [record.text for record in more]
        if len(records) >= number:
            break
    return read, records


class _DeferredProblems(Problems):
    """Collects bad lines, to report them in order: pieces are read ahead of their use."""

    def __init__(self) -> None:
        super().__init__(skip=True)
        self.lines: list[tuple[int, str]] = []

    def report(self, file: str, line: int, what: str) -> None:
        self.lines.append((line, what))

    def take(self) -> list[tuple[int, str]]:
        lines, self.lines = self.lines, []
        return lines


def _read_pieces(source: Source, size: int) -> Iterator[_Piece]:
    deferred = _DeferredProblems()
    final = None
    try:
        for chunk in read_chunks(source, deferred, quoted=True, size=size):
            yield _Piece(Chunk(bytes(chunk.data), chunk.first), deferred.take(), None)
    except StreamError as error:
        final = error
    yield _Piece(Chunk(b"", 0), deferred.take(), final)
