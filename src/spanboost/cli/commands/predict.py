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
from spanboost.models.intervals import Intervals, interval_levels
from spanboost.models.model import Model
from spanboost.models.predictions import class_names, prediction_table
from spanboost.models.sets import PredictionSets


def predict(args: Namespace) -> int:
    """Write a prediction for every row, in order."""
    model = load_with_schema(args.model)
    if args.interval is not None and not isinstance(model, Intervals):
        raise UsageError(
            f"--interval: {args.model} has no intervals; train it with `train --intervals`"
        )
    if args.set is not None and not isinstance(model, PredictionSets):
        raise UsageError(f"--set: {args.model} has no sets; train it with `train --sets`")
    coverage = args.set if args.interval is None else args.interval
    stream = stream_from_args(args)
    check_apart([args.model, *(source.name for source in stream.sources)], [args.output])
    if args.output != "-":
        check_writable(args.output)
    with open_writer(args.output) as output:
        keep = [*dict.fromkeys(args.keep or ())]
        for answers, lines, kept in _predictions(model, stream, keep, coverage):
            table = _add_columns(answers, kept)
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
    model: Model, stream: Stream, keep: Sequence[str], coverage: float | None
) -> Iterator[tuple[Any, Array, Any]]:
    """Yield a table of predictions for each block of rows, line numbers, and columns to copy.

    A stream without rows yields one empty block, so that the output has its column names.
    """
    rows = 0
    fit = row_filter([model], stream.problems)
    read = stream.batches(model.schema, labelled=False, keep=keep, filter_rows=fit)
    with closing(read) as batches:
        for batch in batches:
            rows += batch.rows
            try:
                yield _answers(model, batch.X, coverage), batch.lines, batch.kept
            except DataError as error:
                raise batch.locate(error) from None
    if rows == 0:
        d = int(on_vectors(model.loss_).d)
        import pyarrow as pa

        kept = pa.table({name: pa.array([], pa.string()) for name in keep})
        table = prediction_table(model, np.empty((0, d) if d > 1 else 0))
        if coverage is not None and isinstance(model, Intervals):
            table = _add_interval(table, np.empty((0, 2)))
        if coverage is not None and isinstance(model, PredictionSets):
            table = _add_set(table, model, np.empty((0, 2)))
        yield table, np.empty(0, np.int64), kept


def _answers(model: Model, X: Any, coverage: float | None) -> Any:
    """Return a table of predictions, with intervals or sets of this coverage."""
    if coverage is not None and isinstance(model, Intervals):
        answers, ends = model.predict_both(X, interval_levels(coverage))
        return _add_interval(prediction_table(model, answers), ends)
    if coverage is not None and isinstance(model, PredictionSets):
        answers, sets = model.predict_both(X, coverage)
        return _add_set(prediction_table(model, answers), model, sets)
    return prediction_table(model, model.predict_many(X))


def _add_interval(table: Any, ends: Array) -> Any:
    for k, name in enumerate(("low", "high")):
        table = table.append_column(name, [np.ascontiguousarray(ends[:, k])])
    return table


def _add_set(table: Any, model: Model, sets: Array) -> Any:
    import pyarrow as pa

    names = class_names(model)
    texts = ["|".join(names[k] for k in np.flatnonzero(row)) for row in sets]
    return table.append_column("set", [pa.array(texts, pa.string())])
