"""Read the rows of a query to a database, as a table with typed columns."""

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from spanboost.data.batch import Batch
from spanboost.data.columns import is_number
from spanboost.data.formats.arrow import OpenTable, TableReader
from spanboost.data.problems import Problems, StreamError
from spanboost.data.query_table import Fetched, QueryTable, encode_position, plain_value
from spanboost.data.schema import Schema


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

    def batches(self, source: Any) -> Iterator[Batch]:
        """Yield the rows of a query, in order."""
        table = open_query(source)
        if table is None:
            return
        column = source.query.column
        self.keep = [*dict.fromkeys([*self._passed_on, *([] if column is None else [column])])]
        for batch in self.read(table):
            if column is None:
                yield batch
                continue
            values = map(encode_position, batch.kept.column(column).to_pylist())
            kept = batch.kept.select([*self._passed_on]) if self._passed_on else None
            positions = [(source.place, value) for value in values]
            yield batch._replace(kept=kept, positions=positions)


def open_query(source: QueryTable) -> OpenTable | None:
    """Run a query; None if it has no rows. The types of its columns are those of the first rows."""
    fetched = source.fetch()
    first = next(fetched, None)
    if first is None:
        return None
    start = _as_batch(source.name, first, None)

    def batches(wanted: list[int], rows: int) -> Iterator[Any]:
        del wanted  # the query names its columns
        yield from _slices(start, rows)
        for part in fetched:
            yield from _slices(_as_batch(source.name, part, start.schema), rows)

    return OpenTable(source.name, start.schema, None, batches)


def _slices(batch: Any, rows: int) -> Iterator[Any]:
    return (batch.slice(first, rows) for first in range(0, len(batch), rows))


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
        array = pa.array([plain_value(value) for value in values])
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
