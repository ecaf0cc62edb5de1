"""Checkpoints of a training run, kept next to its output until the run is complete.

`model.sb.checkpoint` is a model file that also records the progress of the run.
`model.sb.row-losses` holds the loss of each row, and `model.sb.outcomes` holds what the metrics
need of it. A run that is killed at any moment leaves its last checkpoint intact.
"""

import glob
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from spanboost.analysis.metrics.tape import OutcomeTape, row_columns
from spanboost.analysis.progressive import BLOCK, LossTape
from spanboost.analysis.row_file import RowFile
from spanboost.atomic_files import FULL, PARTIAL
from spanboost.data.stream import Stream
from spanboost.errors import UsageError
from spanboost.models.files import load_checkpoint, save
from spanboost.models.model import Model

_LOST = "no model was written; use --checkpoint-every ROWS for a run that can be resumed"


class ResumePoint(NamedTuple):
    """The state that a run resumes from."""

    model: Model
    rows: int
    labels: dict[str, Any]  # state of the `LabelSums` over the labels so far
    every: int  # rows between checkpoints
    positions: dict[str, Any]  # after the last row, in a topic, a stream or a query
    shards: dict[str, Any] | None = None  # the progress of workers that read their own files


class Checkpoints:
    """The checkpoints of the run that writes `output` from these inputs with these parameters."""

    def __init__(
        self,
        output: Path,
        identity: dict[str, Any],
        stream: Stream,
        fingerprint: Callable[[], list[Any]] | None = None,
    ) -> None:
        """Name the files of a run.

        fingerprint: tells the data of the stream from others; None reads the start of every file.
        """
        self.path = output.with_name(f"{output.name}.checkpoint")
        self.losses = output.with_name(f"{output.name}.row-losses")
        self.totals = output.with_name(f"{output.name}.losses")  # of checkpoints before 0.2.0
        self.outcomes = output.with_name(f"{output.name}.outcomes")
        self.output = output
        self.identity = json.loads(json.dumps(identity))  # as it is read back from a file
        self._fingerprint = fingerprint or stream.fingerprint

    @cached_property
    def inputs(self) -> list[Any]:
        """The fingerprint of the data, computed only when needed because it takes time."""
        return self._fingerprint()

    def find(self) -> ResumePoint | None:
        """Return the last checkpoint of this run, or None; refuse that of a different run."""
        if not self.path.exists():
            return None
        model, run = load_checkpoint(self.path)
        if run is None:
            raise UsageError(f"{self.path} is not a checkpoint; leave out --resume")
        if run["identity"] != self.identity:
            raise UsageError(
                f"{self.path} belongs to a run with different parameters; leave out --resume to "
                "start again"
            )
        if run["inputs"] != self.inputs:
            raise UsageError(
                f"{self.path} belongs to a run over different data; leave out --resume to start "
                "again"
            )
        positions = run.get("positions", {})
        shards = run.get("shards")
        return ResumePoint(model, run["rows"], run["labels"], run["every"], positions, shards)

    def tape(self, columns: int, rows: int) -> LossTape:
        """Open the losses of the rows up to the checkpoint."""
        size = 8 * columns * rows
        if _size(self.losses) < size:
            if _size(self.totals) < size:
                raise UsageError(f"{self.losses} is incomplete; leave out --resume to start again")
            self._convert_totals(columns, rows)
        return LossTape(columns, self.losses, rows)

    def _convert_totals(self, columns: int, rows: int) -> None:
        """Write the losses of rows from the running totals of an earlier version."""
        before = np.zeros((1, columns))
        with (
            closing(RowFile(columns, self.totals, rows)) as totals,
            closing(RowFile(columns, self.losses)) as losses,
        ):
            for start in range(0, rows, BLOCK):
                block = totals.read(start, min(start + BLOCK, rows))
                with np.errstate(invalid="ignore"):  # no row after an infinite loss is known
                    losses.append(np.diff(block, axis=0, prepend=before))
                before = block[-1:]
            losses.flush()

    def outcome_tape(self, loss: Any, rows: int) -> OutcomeTape | None:
        """Open the outcomes of the rows up to the checkpoint; None if an earlier version wrote it.

        Earlier versions kept no outcomes, so their runs resume without metrics.
        """
        if _size(self.outcomes) < 8 * row_columns(loss, 1) * rows:
            return None
        return OutcomeTape(loss, 1, self.outcomes, rows)

    def save(
        self,
        model: Model,
        tape: LossTape,
        outcomes: OutcomeTape | None,
        labels: dict[str, Any],
        every: int,
        positions: dict[str, Any],
    ) -> None:
        """Write a checkpoint: the losses first, so that they cover all rows of the model."""
        tape.flush()
        if outcomes is not None:
            outcomes.flush()
        run = {
            "identity": self.identity,
            "inputs": self.inputs,
            "rows": tape.rows,
            "labels": labels,
            "every": every,
        }
        if positions:
            run["positions"] = positions
        save(model, self.path, run=run)

    def save_shards(self, model: Model, rows: int, every: int, shards: dict[str, Any]) -> None:
        """Write a checkpoint of workers that read their own files; it has no losses of rows."""
        run = {"identity": self.identity, "inputs": self.inputs, "rows": rows, "labels": {}}
        save(model, self.path, run=run | {"every": every, "shards": shards})

    def clear(self) -> None:
        """Remove the files of the run, when it is complete or starts again."""
        partial = self.output.parent.glob(f"{glob.escape(self.output.name)}.*{PARTIAL}")
        for path in (self.path, self.losses, self.totals, self.outcomes, *partial):
            path.unlink(missing_ok=True)


def _size(path: Path) -> int:
    """Return the number of bytes of a file; 0 if it does not exist."""
    return path.stat().st_size if path.exists() else 0


@contextmanager
def resume_hints(every: int | None) -> Iterator[None]:
    """Say how to continue a run that is interrupted, or that fills the disk.

    every: rows between checkpoints; None without checkpoints.
    """
    try:
        yield
    except KeyboardInterrupt:
        kept = "the last checkpoint is kept; run the same command with --resume to continue"
        print(kept if every else _LOST, file=sys.stderr)  # as errors, even with --quiet
        raise
    except OSError as error:
        if error.errno not in FULL:
            raise
        hint = "make space, then run the same command with --resume" if every else _LOST
        raise OSError(error.errno, f"{error.strerror}; {hint}", error.filename) from error
