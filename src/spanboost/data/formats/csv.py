"""Read CSV and TSV: by Arrow where possible, otherwise record by record.

A newline outside double quotes ends a record. A field that begins with a double quote must end
with one; two double quotes inside stand for one. Arrow parses pieces of complete records in
threads. If it rejects a piece, the piece is read again record by record to find the bad ones.
"""

from collections.abc import Iterator
from itertools import chain, islice
from typing import NamedTuple

import pyarrow as pa

from spanboost.data.batch import Batch
from spanboost.data.columns import BatchBuilder, ColumnPart
from spanboost.data.formats.csv_records import MISSING, Parser, read_records, split_record
from spanboost.data.formats.lines import Chunk, read_chunks
from spanboost.data.prefetch import prefetch_map
from spanboost.data.problems import Problems, StreamError
from spanboost.data.schema import Schema
from spanboost.data.source import Source
from spanboost.data.target import as_number

SAMPLE_ROWS = 1000  # the first rows, which determine the numeric columns
WORKERS = 4  # at most


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
        delimiter: str = ",",
        header: bool = True,
        size: int = 1 << 20,
    ) -> None:
        self.schema, self.problems, self.labelled = schema, problems, labelled
        self.learn = learn and labelled  # whether to add new categories to the schema
        self.delimiter, self.header, self.size = delimiter, header, size

    def batches(self, source: Source) -> Iterator[Batch]:
        """Yield the rows of a file."""
        pieces = _read_pieces(source, self.size)
        names, first = self._read_names(source.name, pieces)
        pieces = chain([first], pieces)
        if self.schema.columns is None:
            pieces = chain(self._set_columns(source.name, names, pieces), pieces)
        positions = self.schema.positions(source.name, names, self.labelled)
        parser = Parser(self.schema, names, positions, self.delimiter, first.chunk)

        def parse(piece: _Piece) -> tuple[_Piece, ColumnPart]:
            return piece, parser.parse(piece.chunk)

        builder = BatchBuilder(self.schema, self.problems, source.name, self.learn)
        workers = min(WORKERS, pa.cpu_count())
        for piece, part in prefetch_map(parse, pieces, workers, source.would_block):
            yield from builder.batches(part._replace(bad=[*piece.bad, *part.bad]))
            if piece.error is not None:
                raise piece.error

    def _read_names(self, file: str, pieces: Iterator[_Piece]) -> tuple[list[str], _Piece]:
        """Return the column names, and the rest of the piece that contains them."""
        bad = list[tuple[int, str]]()
        for piece in pieces:
            bad += piece.bad
            for record in read_records(piece.chunk):
                fields = split_record(record.text, self.delimiter)
                if not self.header and not isinstance(fields, str):
                    names = [str(position) for position in range(1, len(fields) + 1)]
                    return names, piece._replace(bad=bad)
                if isinstance(fields, str):
                    bad.append((record.line, fields))
                for line, what in bad:  # the bad line may have been the header
                    raise StreamError(f"{file}:{line}: {what}")
                rest = Chunk(piece.chunk.data[record.end :], record.next_line)
                return [field.strip() for field in fields], piece._replace(chunk=rest)
            if piece.error is not None:
                raise piece.error
        for line, what in bad:
            raise StreamError(f"{file}:{line}: {what}")
        raise StreamError(f"{file}: the file is empty")

    def _set_columns(self, file: str, names: list[str], pieces: Iterator[_Piece]) -> list[_Piece]:
        """Set the columns of the schema from the first rows; return the pieces that were read."""
        features = self.schema.choose_features(file, names)
        columns = {name: k for k, name in enumerate(names)}  # `index` would search every time
        positions = [columns[name] for name in features]
        pieces_read = list[_Piece]()

        def rows() -> Iterator[list[str]]:
            for piece in pieces:
                pieces_read.append(piece)
                for record in read_records(piece.chunk):
                    fields = split_record(record.text, self.delimiter)
                    if not isinstance(fields, str) and len(fields) == len(names):
                        yield fields

        first = [*islice(rows(), SAMPLE_ROWS)]
        distinct = ({row[position] for row in first} for position in positions)
        self.schema.set_columns(features, [any(map(_is_text, fields)) for fields in distinct])
        return pieces_read


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


def _is_text(field: str) -> bool:
    return as_number(field) is None and field.strip() not in MISSING
