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


def model_positions(path: str | None) -> dict[str, Any]:
    """Return the positions in the file of a model; there are none if it was trained on files."""
    return {} if path is None else (read_run(path) or {}).get("positions", {})


def begin_after(
    args: Namespace,
    stream: Stream,
    positions: dict[str, Any],
    every: int | None,
    *,
    in_checkpoint: bool,
) -> None:
    """Let a stream begin after some positions: of a checkpoint, or of the model that -i names.

    An address that says where to begin is stronger than the model.
    """
    if every and args.query is not None and args.resume_column is None:
        raise UsageError("--checkpoint-every requires --resume-column for the rows of a query")
    if in_checkpoint or not stream.has_start:
        stream.begin_after(positions)
    if stream.resumed and not in_checkpoint:
        log(args, f"continuing after the last row that {args.initial} has learned")
