"""`spanboost export`: write a model in a form that only predicts."""

import os
from argparse import Namespace

from spanboost.cli.from_args import check_apart
from spanboost.models.files import load, save


def export(args: Namespace) -> int:
    """Write the model in the form that --to names."""
    check_apart([args.model], [args.output])
    save(load(args.model), args.output, compact=True)
    print(f"wrote {args.output}: {os.path.getsize(args.output):,} bytes, for prediction only")
    return 0
