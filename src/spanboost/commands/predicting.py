"""`spanboost predict`: a model over a stream, learning nothing."""

from argparse import Namespace
from contextlib import closing

from spanboost.commands.options import UsageError, stream_of
from spanboost.commands.predictions import table_of, writer
from spanboost.data.problems import StreamError
from spanboost.errors import DataError
from spanboost.files import check_place
from spanboost.modelfile import load


def predict(args: Namespace) -> int:
    """Predictions for every row, in order."""
    model = load(args.model)
    if model.schema is None:
        raise UsageError(f"{args.model}: the model was not made from files, so nothing says how")
    if args.output != "-":
        check_place(args.output)
    stream = stream_of(args)
    with (
        writer(args.output) as place,
        closing(stream.batches(model.schema, labelled=False)) as batches,
    ):
        for batch in batches:
            try:
                answers = model.predict_many(batch.X)
            except DataError as error:
                line = batch.lines[error.row]
                raise StreamError(f"{batch.file}:{line}: {error.args[1]}") from None
            place.write(table_of(model, answers))
    return 0
