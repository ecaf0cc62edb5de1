"""Read Parquet, Arrow (files and streams) and Feather: tables with typed columns."""

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any, BinaryIO, NamedTuple, cast

import numpy as np
import pyarrow as pa
from pyarrow import ipc, parquet, types

from spanboost.data.batch import Batch
from spanboost.data.columns import BatchBuilder, ColumnPart, is_moment, is_number, is_text
from spanboost.data.compression import decompress
from spanboost.data.kinds import CATEGORY, NUMBER, SAMPLE_ROWS, TIME
from spanboost.data.prefetch import prefetch
from spanboost.data.problems import Problems, StreamError
from spanboost.data.sampling import set_columns, text_kind
from spanboost.data.schema import ColumnPositions, Schema
from spanboost.data.sniffing import LIMIT, refuse_as_table
from spanboost.data.source import Source

ROWS = 1 << 16  # decoded at a time, at most; fewer rows would take longer per row
BYTES = 1 << 24  # decoded at a time, about


class OpenTable(NamedTuple):
    """An open file, or the result of a query."""

    name: str
    schema: Any
    names: list[str]  # of the columns
    rows: int | None  # number of rows; None if unknown
    batches: Callable[[list[int], int], Iterator[Any]]  # (column positions, rows per batch)


class TableReader:
    """Reads Parquet and Arrow files."""

    def __init__(
        self,
        schema: Schema,
        problems: Problems,
        *,
        labelled: bool,
        learn: bool = True,
        keep: Sequence[str] = (),
        size: int = ROWS,
    ) -> None:
        self.keep = keep  # columns to pass on as they are
        self.schema, self.problems, self.labelled, self.size = schema, problems, labelled, size
        self.learn = learn and labelled  # whether to add new categories to the schema

    def batches(self, source: Source) -> Iterator[Batch]:
        """Yield the rows of a file."""
        with source.random_access() as file:
            with _readable_errors(source.name):
                table = _open(source.name, file)

            def note_line(line: int) -> None:
                if table.rows and source.size:
                    source.position = source.size * line // table.rows

            yield from self.read(table, note_line)

    def check_columns(self, source: Source) -> None:
        """Raise a StreamError if a file lacks a column, or has another type of it."""
        with source.random_access() as file:
            with _readable_errors(source.name):
                table = _open(source.name, file)
            self._check(table, self._positions(table))

    def _positions(self, table: OpenTable) -> ColumnPositions:
        """Return the positions of the columns to read."""
        return self.schema.positions(table.name, table.names, self.labelled, self.keep)

    def read(
        self, table: OpenTable, note_line: Callable[[int], None] = lambda line: None
    ) -> Iterator[Batch]:
        """Yield the rows of a table; `note_line` receives the number of the last row so far."""
        if self.schema.columns is None:
            self._set_columns(table)
        positions = self._positions(table)
        self._check(table, positions)
        builder = BatchBuilder(self.schema, self.problems, table.name, self.learn)
        with closing(prefetch(self._parts(table, positions), 1)) as parts:
            for part in parts:
                note_line(int(part.lines[-1]))
                yield from builder.batches(part)

    def _set_columns(self, table: OpenTable) -> None:
        """Set the columns of the schema by their types and, for strings, by the first rows."""
        features = self.schema.choose_features(table.name, table.names, self.problems.note)
        kinds = {name: _kind(table.name, table.schema.field(name)) for name in features}
        texts = [name for name in features if kinds[name] == CATEGORY]
        samples = {name: list[str | None]() for name in features} | _first_texts(table, texts)
        for name in texts:
            if is_text(table.schema.field(name).type):
                kinds[name] = text_kind(samples[name])
        set_columns(self.schema, self.problems, table.name, samples, kinds)

    def _check(self, table: OpenTable, positions: ColumnPositions) -> None:
        """Raise a StreamError for columns whose type is not the one that the schema needs."""
        numbers = {*positions.numbers, positions.weight}
        for position in _used(positions):
            field = table.schema.field(position)
            kind = _kind(table.name, field)
            wrong = kind == TIME and position == positions.label
            if wrong or (position in numbers and kind != NUMBER):
                raise StreamError(
                    f"{table.name}: column {field.name!r:.40} must be numeric (got {field.type})"
                )
            if position in positions.times and kind == NUMBER:
                raise StreamError(
                    f"{table.name}: column {field.name!r:.40} must contain dates or times "
                    f"(got {field.type})"
                )

    def _parts(self, table: OpenTable, positions: ColumnPositions) -> Iterator[ColumnPart]:
        """Yield the required columns, some rows at a time."""
        names = table.names
        wanted = [*dict.fromkeys([*_used(positions), *positions.kept])]
        width = sum(_value_bytes(table.schema.field(position).type) for position in wanted)
        rows = max(1, min(self.size, BYTES // width))
        first = 1
        with _readable_errors(table.name):
            for batch in table.batches(wanted, rows):

                def column(position: int, batch: Any = batch) -> Any:
                    array = batch.column(batch.schema.get_field_index(names[position]))
                    if not is_number(array.type):
                        array.validate(full=True)  # text in Parquet files may not be UTF-8
                    return array

                yield ColumnPart(
                    numbers=[column(position) for position in positions.numbers],
                    categories=[column(position) for position in positions.categories],
                    label=None if positions.label is None else column(positions.label),
                    weight=None if positions.weight is None else column(positions.weight),
                    lines=np.arange(first, first + len(batch)),
                    bad=[],
                    times=[column(position) for position in positions.times],
                    kept=_kept_columns(self.keep, [column(p) for p in positions.kept]),
                )
                first += len(batch)


def _used(positions: ColumnPositions) -> list[int]:
    optional = [p for p in (positions.label, positions.weight) if p is not None]
    return [*positions.numbers, *positions.categories, *positions.times, *optional]


def _kept_columns(names: Sequence[str], columns: list[Any]) -> Any:
    return pa.table(columns, [*names]) if names else None


def _first_texts(table: OpenTable, names: list[str]) -> dict[str, list[str | None]]:
    """Return the values in the first rows of some columns, as text."""
    texts: dict[str, list[str | None]] = {name: [] for name in names}
    if not names:
        return texts
    positions = [table.names.index(name) for name in names]
    rows = 0
    with _readable_errors(table.name):
        for batch in table.batches(positions, SAMPLE_ROWS):
            for name in names:
                column = batch.column(batch.schema.get_field_index(name))[: SAMPLE_ROWS - rows]
                column.validate(full=True)
                if types.is_dictionary(column.type):
                    column = column.dictionary_decode()
                texts[name] += column.cast(pa.string()).to_pylist()
            rows += len(batch)
            if rows >= SAMPLE_ROWS:
                break
    return texts


def _open(name: str, file: BinaryIO) -> OpenTable:
    start = file.read(8)
    file.seek(0)
    if isinstance(file, io.BufferedReader) and isinstance(file.name, str):
        file = pa.OSFile(file.name)  # avoids a call into Python for every read
    if not start:
        raise StreamError(f"{name}: the file is empty")
    if start.startswith(b"PAR1"):
        return _open_parquet(name, file)
    if start.startswith(b"ARROW1"):
        return _open_arrow(name, file, ipc.open_file)
    if start.startswith(b"\xff\xff\xff\xff"):
        return _open_arrow(name, file, ipc.open_stream)
    text = decompress(name, cast(Any, file), start)
    refuse_as_table(name, text.read(LIMIT).lstrip().partition(b"\n")[0])


def _open_parquet(name: str, file: BinaryIO) -> OpenTable:
    table = parquet.ParquetFile(file)
    schema = table.schema_arrow

    def batches(wanted: list[int], rows: int) -> Iterator[Any]:
        return table.iter_batches(rows, columns=[schema.names[position] for position in wanted])

    return OpenTable(name, schema, schema.names, table.metadata.num_rows, batches)


def _open_arrow(name: str, file: BinaryIO, open_table: Callable[..., Any]) -> OpenTable:
    def batches(wanted: list[int], rows: int) -> Iterator[Any]:
        file.seek(0)
        table = open_table(file, options=ipc.IpcReadOptions(included_fields=sorted(wanted)))
        if hasattr(table, "get_batch"):
            batches_of_file = map(table.get_batch, range(table.num_record_batches))
        else:
            batches_of_file = iter(table)
        for batch in batches_of_file:
            batch.validate(full=True)  # Arrow does not validate these files itself
            yield from (batch.slice(start, rows) for start in range(0, len(batch), rows))

    schema = open_table(file).schema
    return OpenTable(name, schema, schema.names, None, batches)


def _kind(name: str, field: Any) -> str:
    """Return the kind of a column by its type; raise a StreamError if it is not supported."""
    kind = field.type
    if types.is_dictionary(kind):
        kind = kind.value_type
        if is_text(kind) or is_number(kind):
            return CATEGORY
    if is_text(kind):
        return CATEGORY
    if is_number(kind):
        return NUMBER
    if is_moment(kind):
        return TIME
    raise StreamError(
        f"{name}: column {field.name!r:.40} has the unsupported type {field.type}; "
        "exclude it with --ignore"
    )


def _value_bytes(kind: Any) -> int:
    """Return the approximate size of a value in bytes."""
    fixed = types.is_primitive(kind) and not types.is_null(kind)
    return (kind.bit_width + 7) // 8 if fixed or types.is_decimal(kind) else 16


@contextmanager
def _readable_errors(name: str) -> Iterator[None]:
    """Turn any exception of Arrow into a StreamError with a one-line message."""
    try:
        yield
    except StreamError:
        raise
    except Exception as error:
        what = " ".join(str(error).split())[:200]
        raise StreamError(f"{name}: damaged or not supported: {what}") from error
