"""`spanboost export`: write a model in a form that only predicts."""

import os
from argparse import Namespace

from spanboost.atomic_files import check_writable
from spanboost.cli.from_args import check_apart, check_replaced, usage_errors
from spanboost.models.exporting import exports
from spanboost.models.files import load, save


def export(args: Namespace) -> int:
    """Write the model in the form that --to names."""
    check_apart([args.model], [args.output])
    check_writable(args.output)
    check_replaced(args.output, "-o", with_model=args.to == "compact")
    model = load(args.model)
    if args.to == "compact":
        save(model, args.output, compact=True)
    else:
        with usage_errors():
            exports.export(model, args.output, args.to, name=args.name)
    print(f"wrote {args.output}: {os.path.getsize(args.output):,} bytes, for prediction only")
    return 0
