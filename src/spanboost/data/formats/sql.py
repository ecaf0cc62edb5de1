"""Read the rows of a query to a database, as a table with typed columns."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import chain
from typing import Any

import pyarrow as pa

from spanboost.data.batch import Batch
from spanboost.data.columns import is_number
from spanboost.data.formats.arrow import OpenTable, TableReader
from spanboost.data.kinds import SAMPLE_ROWS
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
        column = source.query.column
        self.keep = [*dict.fromkeys([*self._passed_on, *([] if column is None else [column])])]
        with closing(source.fetch()) as fetched:
            table = _open_result(source.name, fetched)
            for batch in () if table is None else self.read(table):
                yield batch if column is None else self._with_positions(batch, source)

    def _with_positions(self, batch: Batch, source: QueryTable) -> Batch:
        """Return a batch with the positions of its rows, and only the columns to pass on."""
        values = map(encode_position, batch.kept.column(source.query.column).to_pylist())
        kept = batch.kept.select([*self._passed_on]) if self._passed_on else None
        positions = [(source.place, value) for value in values]
        return batch._replace(kept=kept, positions=positions)


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

    return OpenTable(name, start[0].schema, None, batches)


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
