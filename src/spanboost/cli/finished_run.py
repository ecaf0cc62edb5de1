"""What `train --resume` does if its model is there and no checkpoint: compare it with the command.

A model file does not record the files that it was trained on, so that the same rows always give the
same bytes. The data are therefore read again, which takes far less time than learning them.
"""

from argparse import Namespace
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from spanboost.cli.row_filter import row_filter
from spanboost.data.stream import Stream
from spanboost.errors import UsageError
from spanboost.models.compact import is_compact
from spanboost.models.files import load
from spanboost.models.model import Model
from spanboost.rows.label_ends import LabelEnds, ends_of, merge_ends

AGAIN = "leave out --resume to start again"


def check_finished(args: Namespace, output: Path, model: Model, stream: Stream) -> None:
    """Raise UsageError if `output` is not what the command would make of its data.

    model: a new model of this command, which has learned nothing.
    """
    done = check_parameters(args, output, model)
    rows, ends = _read(model, stream)
    learned = done.labels.rows
    # workers that average their models count on their own
    if (args.ray is None or model.has_experts) and learned != rows:
        raise UsageError(f"{output} has learned {learned:,} rows, but DATA has {rows:,}; {AGAIN}")
    if done.label_ends not in (None, ends) or _values(done.schema) != _values(model.schema):
        raise UsageError(f"{output} was trained on other data; {AGAIN}")


def check_parameters(args: Namespace, output: Path, model: Model) -> Model:
    """Return the model of `output`; raise UsageError if the command has other parameters."""
    done = load(output, trusted=True)
    # a committee has the parameters of its members
    parameters = [one.parameters()["parameters"] for one in (done, model)]
    same = parameters[0] == parameters[1] and _same_reading(done.schema, model.schema)
    if args.initial is not None or not same or is_compact(done) != args.compact:
        raise UsageError(f"{output} is the model of a different run; {AGAIN}")
    return done


def _read(model: Model, stream: Stream) -> tuple[int, LabelEnds | None]:
    """Return the number of rows and the ends of their labels; complete the schema of the model."""
    rows, ends = 0, list[LabelEnds]()
    fit = row_filter([model], stream.problems)
    with closing(stream.batches(model.schema, labelled=True, filter_rows=fit)) as batches:
        for batch in batches:
            rows += batch.rows
            weights = np.ones(batch.rows) if batch.weights is None else batch.weights
            found = ends_of(np.asarray(batch.labels, np.float64)[:, None], weights > 0)
            ends += [] if found is None else [found]
    return rows, merge_ends(ends)


def _same_reading(done: Any, requested: Any) -> bool:
    """Return whether a schema that has read files was created with the same options."""
    if done is None or requested.label not in (None, done.label):
        return False
    names = ("form", "weight", "ignore", "categorical", "bits")
    return all(getattr(done, name) == getattr(requested, name) for name in names)


def _values(schema: Any) -> tuple[Any, ...]:
    """Return the columns, the categories and the classes that a schema has read."""
    columns = [(column.name, [*column.codes]) for column in schema.categories]
    return [column.name for column in schema.numbers], columns, [*schema.target.values]
