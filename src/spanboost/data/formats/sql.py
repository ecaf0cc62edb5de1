"""Read the rows of a query to a database, as a table with typed columns."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from decimal import Decimal
from itertools import chain
from typing import Any

import pyarrow as pa

from spanboost.data.batch import Batch
from spanboost.data.columns import ColumnPart, is_number
from spanboost.data.formats.arrow import OpenTable, TableReader
from spanboost.data.kinds import SAMPLE_ROWS
from spanboost.data.problems import Problems, StreamError
from spanboost.data.query_table import Fetched, QueryTable, encode_position, plain_value
from spanboost.data.schema import ColumnPositions, Schema


class SqlReader(TableReader):
    """Reads the rows of a query; each row has its position, if there is a column to resume from."""

    def __init__(
        self,
        schema: Schema,
        problems: Problems,
        *,
        labelled: bool,
        learn: bool = True,
        keep: Sequence[str] = (),
    ) -> None:
        super().__init__(schema, problems, labelled=labelled, learn=learn, keep=keep)
        self._passed_on = keep
        self._numeric: dict[str, bool] = {}  # whether a column has numbers
        self._key: str | None = None  # the column to resume from
        self._bad: dict[int, str] = {}  # rows with text in a column of numbers, by their numbers

    def batches(self, source: Any) -> Iterator[Batch]:
        """Yield the rows of a query, in order."""
        column = self._key = source.query.column
        self.keep = [*dict.fromkeys([*self._passed_on, *([] if column is None else [column])])]
        with closing(source.fetch()) as fetched:
            parts = (self._without_text(part, first) for first, part in _count(fetched))
            table = _open_result(source.name, parts if self.problems.skip else fetched)
            for batch in () if table is None else self.read(table):
                yield batch if column is None else self._with_positions(batch, source)

    def _with_positions(self, batch: Batch, source: QueryTable) -> Batch:
        """Return a batch with the positions of its rows, and only the columns to pass on."""
        values = map(encode_position, batch.kept.column(source.query.column).to_pylist())
        kept = batch.kept.select([*self._passed_on]) if self._passed_on else None
        positions = [(source.place, value) for value in values]
        return batch._replace(kept=kept, positions=positions)

    def _parts(self, table: OpenTable, positions: ColumnPositions) -> Iterator[ColumnPart]:
        """Yield the columns, and name the bad rows among them."""
        for part in super()._parts(table, positions):
            lines = self._bad.keys() & {*part.lines.tolist()}
            bad = [(line, self._bad.pop(line)) for line in sorted(lines)]
            yield part._replace(bad=bad, key=self._key)

    def _without_text(self, part: Fetched, first: int) -> Fetched:
        """Return rows without text in columns of numbers, and remember the rows that had it.

        first: number of the first row.
        """
        columns = [[*values] for values in zip(*part.rows, strict=True)]
        for name, values in zip(part.names, columns, strict=True):
            if name == self._key or not self._has_numbers(name, values):
                continue
            for t in [t for t, value in enumerate(values) if isinstance(value, str | bytes)]:
                what = f"column {name!r:.40} is {values[t]!r:.40}; expected a number"
                self._bad.setdefault(first + t, what)
                values[t] = None
        return part._replace(rows=[*zip(*columns, strict=True)])

    def _has_numbers(self, name: str, values: Sequence[Any]) -> bool:
        """Return whether a column has numbers, as most of the rows of its first part had."""
        if name not in self._numeric:
            given = [value for value in values if value is not None]
            numbers = sum(isinstance(value, int | float | Decimal) for value in given)
            self._numeric[name] = 2 * numbers > len(given)
        return self._numeric[name]


def _count(parts: Iterable[Fetched]) -> Iterator[tuple[int, Fetched]]:
    """Yield parts with the numbers of their first rows, from 1."""
    first = 1
    for part in parts:
        yield first, part
        first += len(part.rows)


def _open_result(name: str, fetched: Iterator[Fetched]) -> OpenTable | None:
    """Return the rows of a query as a table; None if there are none.

    The first rows are kept, because they are read twice: they also tell the kinds of columns.
    """
    start = list[Any]()
    while sum(map(len, start)) < SAMPLE_ROWS and (part := next(fetched, None)) is not None:
        start.append(_as_batch(name, part, start[0].schema if start else None))
    if not start:
        return None

    def batches(wanted: list[int], rows: int) -> Iterator[Any]:
        del wanted  # the query names its columns
        later = (_as_batch(name, part, start[0].schema) for part in fetched)
        for batch in chain(start, later):
            yield from (batch.slice(first, rows) for first in range(0, len(batch), rows))

    schema = start[0].schema
    return OpenTable(name, schema, schema.names, None, batches)


def _as_batch(name: str, part: Fetched, schema: Any) -> Any:
    """Return rows as columns, with the types of a schema if there is one."""
    columns = zip(*part.rows, strict=True)
    arrays = [
        _as_array(name, column, values, None if schema is None else schema.field(k).type)
        for k, (column, values) in enumerate(zip(part.names, columns, strict=True))
    ]
    return pa.record_batch(arrays, part.names)


def _as_array(name: str, column: str, values: Sequence[Any], kind: Any) -> Any:
    try:
        array = _infer_array([plain_value(value) for value in values])
        if kind is None or array.type == kind or (is_number(kind) and is_number(array.type)):
            return array
        if not pa.types.is_null(array.type):
            raise pa.ArrowInvalid(f"{array.type} after {kind}")
        return array.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        kinds = sorted({type(value).__name__ for value in values if value is not None})
        before = f" after {kind}" if kind is not None else ""
        raise StreamError(
            f"{name}: column {column!r:.40} has values of different types or of a type that is not "
            f"supported ({', '.join(kinds)}{before}); convert them in the query with CAST"
        ) from None


def _infer_array(values: Sequence[Any]) -> Any:
    """Return an array; with an integer that Arrow cannot hold, all integers become floats."""
    try:
        return pa.array(values)
    except OverflowError:
        return pa.array([float(value) if type(value) is int else value for value in values])
