"""`spanboost predict`: predict every row of a stream; the model does not learn."""

import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

import numpy as np

from spanboost.atomic_files import check_writable
from spanboost.cli.from_args import check_apart, load_with_schema, stream_from_args
from spanboost.cli.output.predictions import open_writer
from spanboost.cli.row_filter import row_filter
from spanboost.compiling.arrays import Array
from spanboost.data.stream import Stream
from spanboost.errors import DataError, UsageError
from spanboost.losses import on_vectors
from spanboost.models.model import Model
from spanboost.models.predictions import prediction_table


def predict(args: Namespace) -> int:
    """Write a prediction for every row, in order."""
    model = load_with_schema(args.model)
    stream = stream_from_args(args)
    check_apart([args.model, *(source.name for source in stream.sources)], [args.output])
    if args.output != "-":
        check_writable(args.output)
    with open_writer(args.output) as output:
        for answers, lines, kept in _predictions(model, stream, [*dict.fromkeys(args.keep or ())]):
            table = _add_columns(prediction_table(model, answers), kept)
            # where rows may be left out, each prediction names its line
            output.write(_add_line(table, lines) if stream.problems.skip else table)
    for note in stream.problems.notes:
        print(f"note: {note}", file=sys.stderr)
    for message in stream.problems.first:
        print(f"left out: {message}", file=sys.stderr)
    if stream.problems.count:
        print(f"bad rows left out = {stream.problems.count:,}", file=sys.stderr)
    return 0


def _add_columns(table: Any, kept: Any) -> Any:
    """Return a table of predictions after the columns that are copied from the data."""
    for position, name in enumerate([] if kept is None else kept.column_names):
        if name in table.column_names[position:]:
            raise UsageError(f"--keep {name}: the predictions have a column of the same name")
        table = table.add_column(position, name, kept.column(name))
    return table


def _add_line(table: Any, lines: Array) -> Any:
    if "line" in table.column_names:
        raise UsageError("--keep line: with --on-error skip, the output has this column anyway")
    return table.add_column(0, "line", [lines])


def _predictions(
    model: Model, stream: Stream, keep: Sequence[str]
) -> Iterator[tuple[Array, Array, Any]]:
    """Yield the predictions of each block of rows, their line numbers, and the columns to copy.

    A stream without rows yields one empty block, so that the output has its column names.
    """
    rows = 0
    fit = row_filter([model], stream.problems)
    read = stream.batches(model.schema, labelled=False, keep=keep, filter_rows=fit)
    with closing(read) as batches:
        for batch in batches:
            rows += batch.rows
            try:
                yield model.predict_many(batch.X), batch.lines, batch.kept
            except DataError as error:
                raise batch.locate(error) from None
    if rows == 0:
        d = int(on_vectors(model.loss_).d)
        import pyarrow as pa

        kept = pa.table({name: pa.array([], pa.string()) for name in keep})
        yield np.empty((0, d) if d > 1 else 0), np.empty(0, np.int64), kept
