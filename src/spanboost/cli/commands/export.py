"""`spanboost export`: write a model in a form that only predicts."""

import os
from argparse import Namespace

from spanboost.cli.from_args import check_apart, usage_errors
from spanboost.models.exporting import exports
from spanboost.models.files import load, save
from spanboost.models.wrapper import WrappedModel


def export(args: Namespace) -> int:
    """Write the model in the form that --to names."""
    check_apart([args.model], [args.output])
    model = load(args.model)
    if args.to == "compact":
        save(model, args.output, compact=True)
    else:
        with usage_errors():
            exports.export(model, args.output, args.to, name=args.name)
        if isinstance(model, WrappedModel):
            print("note: intervals and prediction sets are not exported, only predictions")
    if model.without_corrections() is not model:
        print("note: recent rows and past labels are not exported, only the experts")
    print(f"wrote {args.output}: {os.path.getsize(args.output):,} bytes, for prediction only")
    return 0
