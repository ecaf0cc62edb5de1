"""Parquet, Arrow (files and streams) and Feather: tables that know the kinds of their columns."""

import io
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import ipc, parquet, types

from spanboost.data.batch import Batch
from spanboost.data.columns import BatchBuilder, ColumnPart, is_text
from spanboost.data.prefetch import prefetch
from spanboost.data.problems import Problems, StreamError
from spanboost.data.schema import ColumnPositions, Schema
from spanboost.data.source import Source

ROWS = 1 << 16  # decoded at a time: of fewer each would take longer
BYTES = 1 << 24


class _Table(NamedTuple):
    """A file that was opened."""

    name: str
    schema: Any
    rows: int | None  # how many there are, if that is known beforehand
    batches: Callable[[list[int], int], Iterator[Any]]  # of these columns, in so many rows


class TableReader:
    """Reads tables of Parquet and Arrow."""

    def __init__(
        self,
        schema: Schema,
        problems: Problems,
        *,
        labelled: bool,
        learn: bool = True,
        size: int = ROWS,
    ) -> None:
        self.schema, self.problems, self.labelled, self.size = schema, problems, labelled, size
        self.learn = learn and labelled  # categories that are new

    def batches(self, source: Source) -> Iterator[Batch]:
        """The rows of a file."""
        with source.random_access() as file:
            with _damage(source.name):
                table = _opened(source.name, file)
                names = table.schema.names
            if self.schema.columns is None:
                features = self.schema.settle(table.name, names)
                fields = map(table.schema.field, features)
                self.schema.decide(features, [_is_category(table.name, field) for field in fields])
            places = self.schema.places(table.name, names, self.labelled)
            self._check(table, places)
            parts = self._parts(table, places)
            maker = BatchBuilder(self.schema, self.problems, table.name, self.learn)
            with closing(prefetch(parts, 1)) as made:
                for part in made:
                    if table.rows and source.size:
                        source.position = source.size * int(part.lines[-1]) // table.rows
                    yield from maker.batches(part)

    def _check(self, table: _Table, places: ColumnPositions) -> None:
        """Refuse columns that do not hold what they must."""
        for place in (*places.categories, *places.numbers, places.weight, places.label):
            if place is None:
                continue
            field = table.schema.field(place)
            category = _is_category(table.name, field)
            if category and (place in places.numbers or place == places.weight):
                raise StreamError(f"{table.name}: column {field.name!r:.40} holds no numbers")

    def _parts(self, table: _Table, places: ColumnPositions) -> Iterator[ColumnPart]:
        """The columns that are needed, some rows at a time."""
        names = table.schema.names
        wanted = [*places.numbers, *places.categories]
        wanted += [place for place in (places.label, places.weight) if place is not None]
        width = sum(_bytes(table.schema.field(place).type) for place in wanted)
        rows = max(1, min(self.size, BYTES // width))
        first = 1
        with _damage(table.name):
            for batch in table.batches(wanted, rows):

                def column(place: int, batch: Any = batch) -> Any:
                    found = batch.column(batch.schema.get_field_index(names[place]))
                    if not _is_number(found.type):
                        found.validate(full=True)  # of Parquet texts may be anything but UTF-8
                    return found

                yield ColumnPart(
                    numbers=[column(place) for place in places.numbers],
                    categories=[column(place) for place in places.categories],
                    label=None if places.label is None else column(places.label),
                    weight=None if places.weight is None else column(places.weight),
                    lines=np.arange(first, first + len(batch)),
                    bad=[],
                )
                first += len(batch)


def _opened(name: str, file: BinaryIO) -> _Table:
    start = file.read(8)
    file.seek(0)
    if isinstance(file, io.BufferedReader) and isinstance(file.name, str):
        file = pa.OSFile(file.name)  # else Arrow's threads would come to Python for every byte
    if not start:
        raise StreamError(f"{name}: the file is empty")
    if start.startswith(b"PAR1"):
        return _parquet(name, file)
    if start.startswith(b"ARROW1"):
        return _arrow(name, file, ipc.open_file)
    if start.startswith(b"\xff\xff\xff\xff"):
        return _arrow(name, file, ipc.open_stream)
    raise StreamError(f"{name} is neither a Parquet nor an Arrow file")


def _parquet(name: str, file: BinaryIO) -> _Table:
    table = parquet.ParquetFile(file)
    schema = table.schema_arrow

    def batches(wanted: list[int], rows: int) -> Iterator[Any]:
        return table.iter_batches(rows, columns=[schema.names[place] for place in wanted])

    return _Table(name, schema, table.metadata.num_rows, batches)


def _arrow(name: str, file: BinaryIO, opened: Callable[..., Any]) -> _Table:
    def batches(wanted: list[int], rows: int) -> Iterator[Any]:
        file.seek(0)
        table = opened(file, options=ipc.IpcReadOptions(included_fields=sorted(wanted)))
        if hasattr(table, "get_batch"):
            whole = map(table.get_batch, range(table.num_record_batches))
        else:
            whole = iter(table)
        for batch in whole:
            batch.validate(full=True)  # Arrow takes every byte of these files on trust
            yield from (batch.slice(start, rows) for start in range(0, len(batch), rows))

    return _Table(name, opened(file).schema, None, batches)


def _is_category(name: str, field: Any) -> bool:
    """Whether a column holds texts and not numbers; other things are refused."""
    kind = field.type
    if types.is_dictionary(kind):
        kind = kind.value_type
        if is_text(kind) or _is_number(kind):
            return True
    if is_text(kind):
        return True
    if _is_number(kind):
        return False
    raise StreamError(
        f"{name}: column {field.name!r:.40} holds {field.type}, neither numbers nor texts: "
        "leave it out with --ignore"
    )


def _is_number(kind: Any) -> bool:
    tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null)
    return any(test(kind) for test in tests)


def _bytes(kind: Any) -> int:
    """How many bytes a value takes, about."""
    return 16 if is_text(kind) or types.is_null(kind) else (kind.bit_width + 7) // 8


@contextmanager
def _damage(name: str) -> Iterator[None]:
    """Say in one sentence what Arrow has to say about a file; it raises many kinds of error."""
    try:
        yield
    except StreamError:
        raise
    except Exception as error:
        what = " ".join(str(error).split())[:200]
        raise StreamError(f"{name}: damaged, or in a form that is not known: {what}") from error
