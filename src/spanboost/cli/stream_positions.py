"""Where a training run continues in a topic, a stream or a query.

A model that was trained on one of them remembers the position after its last row, in its file. The
rows and the position are in one file that is written at once, so no row is learned twice.
"""

from argparse import Namespace
from typing import Any

from spanboost.cli.output.progress import log
from spanboost.data.stream import Stream
from spanboost.errors import UsageError
from spanboost.models.files import read_run


def model_positions(path: str) -> dict[str, Any]:
    """Return the positions in the file of a model; there are none if it was trained on files."""
    return (read_run(path) or {}).get("positions", {})


def begin_after(
    args: Namespace, stream: Stream, positions: dict[str, Any], every: int | None
) -> None:
    """Let a stream begin after the rows that a model has learned, and say so."""
    if every and args.query is not None and args.resume_column is None:
        raise UsageError("--checkpoint-every requires --resume-column for the rows of a query")
    stream.begin_after(positions)
    if stream.resumed and not args.resume:
        log(args, f"continuing after the last row that {args.initial} has learned")
