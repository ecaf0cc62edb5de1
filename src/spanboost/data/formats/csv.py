"""CSV and TSV: texts in columns, read by Arrow wherever it can, and exactly where it cannot.

A newline outside double quotes ends a record. A field that begins with a double quote ends with
one, and two of them stand for one inside. Pieces of whole records are parsed by Arrow in threads of
their own; where it complains, the piece is read again, record by record, to find the bad ones.
"""

from collections.abc import Iterator
from itertools import chain, islice
from typing import NamedTuple

import pyarrow as pa

from spanboost.data.batch import Batch
from spanboost.data.columns import BatchBuilder, ColumnPart
from spanboost.data.formats.csv_records import MISSING, Parser, records, split
from spanboost.data.formats.lines import Chunk, chunks
from spanboost.data.prefetch import prefetch_map
from spanboost.data.problems import Problems, StreamError
from spanboost.data.schema import Schema
from spanboost.data.source import Source
from spanboost.data.target import as_number

DECIDING = 1000  # rows: they say which columns are numbers
WORKERS = 4  # at most


class _Piece(NamedTuple):
    """Some records, what was wrong before them, and what keeps the file from going on."""

    chunk: Chunk
    bad: list[tuple[int, str]]
    end: StreamError | None


class CsvReader:
    """Reads tables of texts."""

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
        self.learn = learn and labelled  # categories that are new
        self.delimiter, self.header, self.size = delimiter, header, size

    def batches(self, source: Source) -> Iterator[Batch]:
        """The rows of a file."""
        pieces = _pieces(source, self.size)
        names, first = self._names(source.name, pieces)
        pieces = chain([first], pieces)
        if self.schema.columns is None:
            pieces = chain(self._decide(source.name, names, pieces), pieces)
        places = self.schema.places(source.name, names, self.labelled)
        parser = Parser(self.schema, names, places, self.delimiter, first.chunk)

        def parse(piece: _Piece) -> tuple[_Piece, ColumnPart]:
            return piece, parser.parse(piece.chunk)

        maker = BatchBuilder(self.schema, self.problems, source.name, self.learn)
        workers = min(WORKERS, pa.cpu_count())
        for piece, part in prefetch_map(parse, pieces, workers, source.waits):
            yield from maker.batches(part._replace(bad=[*piece.bad, *part.bad]))
            if piece.end is not None:
                raise piece.end

    def _names(self, file: str, pieces: Iterator[_Piece]) -> tuple[list[str], _Piece]:
        """The names of the columns, and the rest of the piece that has them."""
        bad = list[tuple[int, str]]()
        for piece in pieces:
            bad += piece.bad
            for record in records(piece.chunk):
                fields = split(record.text, self.delimiter)
                if not self.header and not isinstance(fields, str):
                    names = [str(place) for place in range(1, len(fields) + 1)]
                    return names, piece._replace(bad=bad)
                if isinstance(fields, str):
                    bad.append((record.line, fields))
                for line, what in bad:  # it may have been the header
                    raise StreamError(f"{file}:{line}: {what}")
                rest = Chunk(piece.chunk.data[record.end :], record.next_line)
                return [field.strip() for field in fields], piece._replace(chunk=rest)
            if piece.end is not None:
                raise piece.end
        for line, what in bad:
            raise StreamError(f"{file}:{line}: {what}")
        raise StreamError(f"{file}: the file is empty")

    def _decide(self, file: str, names: list[str], pieces: Iterator[_Piece]) -> list[_Piece]:
        """Find out what the columns are; the pieces that took."""
        features = self.schema.settle(file, names)
        places = map(names.index, features)
        looked_at = list[_Piece]()

        def rows() -> Iterator[list[str]]:
            for piece in pieces:
                looked_at.append(piece)
                for record in records(piece.chunk):
                    fields = split(record.text, self.delimiter)
                    if not isinstance(fields, str) and len(fields) == len(names):
                        yield fields

        first = [*islice(rows(), DECIDING)]
        distinct = ({row[place] for row in first} for place in places)
        self.schema.decide(features, [any(map(_is_text, fields)) for fields in distinct])
        return looked_at


class _Noted(Problems):
    """Bad lines to be reported in their turn: pieces are read before those before them are used."""

    def __init__(self) -> None:
        super().__init__(skip=True)
        self.lines: list[tuple[int, str]] = []

    def bad(self, file: str, line: int, what: str) -> None:
        self.lines.append((line, what))

    def taken(self) -> list[tuple[int, str]]:
        lines, self.lines = self.lines, []
        return lines


def _pieces(source: Source, size: int) -> Iterator[_Piece]:
    noted = _Noted()
    end = None
    try:
        for chunk in chunks(source, noted, quoted=True, size=size):
            yield _Piece(Chunk(bytes(chunk.data), chunk.first), noted.taken(), None)
    except StreamError as error:
        end = error
    yield _Piece(Chunk(b"", 0), noted.taken(), end)


def _is_text(field: str) -> bool:
    return as_number(field) is None and field.strip() not in MISSING
