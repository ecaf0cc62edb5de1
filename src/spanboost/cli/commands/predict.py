"""`spanboost predict`: predict every row of a stream; the model does not learn."""

import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import closing

import numpy as np

from spanboost.atomic_files import check_writable
from spanboost.cli.from_args import check_apart, load_with_schema, stream_from_args
from spanboost.cli.output.predictions import open_writer
from spanboost.cli.row_filter import row_filter
from spanboost.compiling.arrays import Array
from spanboost.data.stream import Stream
from spanboost.errors import DataError
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
        for answers, lines in _predictions(model, stream):
            table = prediction_table(model, answers)
            # where rows may be left out, each prediction names its line
            output.write(table.add_column(0, "line", [lines]) if stream.problems.skip else table)
    for note in stream.problems.notes:
        print(f"note: {note}", file=sys.stderr)
    for message in stream.problems.first:
        print(f"left out: {message}", file=sys.stderr)
    if stream.problems.count:
        print(f"bad rows left out = {stream.problems.count:,}", file=sys.stderr)
    return 0


def _predictions(model: Model, stream: Stream) -> Iterator[tuple[Array, Array]]:
    """Yield the predictions of each block of rows, and the line numbers of the rows.

    A stream without rows yields one empty block, so that the output has its column names.
    """
    rows = 0
    fit = row_filter([model], stream.problems)
    with closing(stream.batches(model.schema, labelled=False, filter_rows=fit)) as batches:
        for batch in batches:
            rows += batch.rows
            try:
                yield model.predict_many(batch.X), batch.lines
            except DataError as error:
                raise batch.locate(error) from None
    if rows == 0:
        d = int(on_vectors(model.loss_).d)
        yield np.empty((0, d) if d > 1 else 0), np.empty(0, np.int64)
