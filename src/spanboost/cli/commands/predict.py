"""`spanboost predict`: predict every row of a stream; the model does not learn."""

import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

import numpy as np

from spanboost.atomic_files import check_writable
from spanboost.cli.admin_client import is_address
from spanboost.cli.from_args import (
    check_apart,
    check_replaced,
    load_with_schema,
    stream_from_args,
    usage_errors,
)
from spanboost.cli.output.predictions import open_writer
from spanboost.cli.row_filter import row_filter
from spanboost.compiling.arrays import Array
from spanboost.data.stream import Stream
from spanboost.errors import DataError, UsageError
from spanboost.losses import on_vectors
from spanboost.models.intervals import Intervals
from spanboost.models.model import Model
from spanboost.models.predictions import class_names, prediction_table
from spanboost.models.quantiles.asked_levels import KINDS, End, check_set_coverage, ends_of
from spanboost.models.sets import PredictionSets
from spanboost.models.wrapper import WrappedModel


def predict(args: Namespace) -> int:
    """Write a prediction for every row, in order."""
    if is_address(args.model):
        raise UsageError(f"-m {args.model}: predict reads a model file, not a service")
    model = load_with_schema(args.model)
    if not isinstance(model, WrappedModel):  # these are calibrated with past labels
        model = model.without_past()  # the labels of these rows never arrive
    for name in KINDS:
        if getattr(args, name) is not None and not isinstance(model, Intervals):
            raise UsageError(
                f"--{name}: {args.model} has no intervals; train it with `train --intervals`"
            )
    if args.set is not None and not isinstance(model, PredictionSets):
        raise UsageError(f"--set: {args.model} has no sets; train it with `train --sets`")
    ends, coverages = _ends(args, model), _coverages(args, model)
    stream = stream_from_args(args)
    check_apart([args.model, *(source.name for source in stream.sources)], [args.output])
    if args.output != "-":
        check_writable(args.output)
        check_replaced(args.output, "-o", with_model=False)
    with open_writer(args.output) as output:
        keep = [*dict.fromkeys(args.keep or ())]
        for answers, lines, kept in _predictions(model, stream, keep, ends, coverages):
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
    model: Model,
    stream: Stream,
    keep: Sequence[str],
    ends: Sequence[End],
    coverages: Sequence[float],
) -> Iterator[tuple[Any, Array, Any]]:
    """Yield a table of predictions for each block of rows, line numbers, and columns to copy.

    A stream without rows yields one empty block, so that the output has its column names.
    """
    rows = 0
    fit = row_filter([model], stream.problems, learn=False)
    read = stream.batches(model.schema, labelled=False, keep=keep, filter_rows=fit)
    with closing(read) as batches:
        for batch in batches:
            rows += batch.rows
            try:
                yield _answers(model, batch.X, ends, coverages), batch.lines, batch.kept
            except DataError as error:
                raise batch.locate(error) from None
    if rows == 0:
        d = int(on_vectors(model.loss_).d)
        import pyarrow as pa

        kept = pa.table({name: pa.array([], pa.string()) for name in keep})
        table = prediction_table(model, np.empty((0, d) if d > 1 else 0))
        table = _add_ends(table, ends, np.empty((0, len(ends))))
        if coverages and isinstance(model, PredictionSets):
            table = _add_sets(table, model, coverages, [np.empty((0, 2))] * len(coverages))
        yield table, np.empty(0, np.int64), kept


def _ends(args: Namespace, model: Model) -> list[End]:
    """Return the ends of the intervals that the options ask for, with the names of columns."""
    found: list[End] = []
    if not isinstance(model, Intervals):
        return found
    for kind in KINDS:
        coverages = [*dict.fromkeys(getattr(args, kind) or ())]
        for coverage in coverages:
            with usage_errors({"coverage": f"--{kind}"}):
                each = ends_of(kind, coverage, model.levels)
            found += [End(_name(end.name, coverage, coverages), end.level) for end in each]
    return found


def _coverages(args: Namespace, model: Model) -> list[float]:
    """Return the coverages of the sets that --set asks for."""
    coverages = [*dict.fromkeys(args.set or ())]
    if isinstance(model, PredictionSets):
        with usage_errors({"coverage": "--set"}):
            for coverage in coverages:
                check_set_coverage(coverage, model.coverages)
    return coverages


def _answers(model: Model, X: Any, ends: Sequence[End], coverages: Sequence[float]) -> Any:
    """Return a table of predictions, with ends of intervals or sets of these coverages."""
    if ends and isinstance(model, Intervals):
        answers, quantiles = model.predict_both(X, [end.level for end in ends])
        return _add_ends(prediction_table(model, answers), ends, quantiles)
    if coverages and isinstance(model, PredictionSets):
        both = [model.predict_both(X, coverage) for coverage in coverages]
        table = prediction_table(model, both[0][0])
        return _add_sets(table, model, coverages, [sets for _, sets in both])
    return prediction_table(model, model.predict_many(X))


def _add_ends(table: Any, ends: Sequence[End], quantiles: Array) -> Any:
    """Return a table with a column for each end, [rows, ends]."""
    for end, values in zip(ends, quantiles.T, strict=True):
        table = table.append_column(end.name, [np.ascontiguousarray(values)])
    return table


def _add_sets(table: Any, model: Model, coverages: Sequence[float], each: Sequence[Array]) -> Any:
    """Return a table with the sets of each coverage."""
    import pyarrow as pa

    classes = class_names(model)
    for coverage, sets in zip(coverages, each, strict=True):
        texts = ["|".join(classes[k] for k in np.flatnonzero(row)) for row in sets]
        name = _name("set", coverage, coverages)
        table = table.append_column(name, [pa.array(texts, pa.string())])
    return table


def _name(column: str, coverage: float, coverages: Sequence[float]) -> str:
    """Return the name of a column, with its coverage if there are several."""
    return column if len(coverages) == 1 else f"{column}_{coverage:g}"
