"""Checkpoints of a run: beside its output while it lasts, gone when it is done.

`model.sb.checkpoint` is a model file that also says how far the run is; `model.sb.losses` holds the
losses so far. A run that is killed at any moment finds its last checkpoint whole.
"""

import glob
import json
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from spanboost.analysis.progressive import LossTape
from spanboost.atomic_files import PARTIAL
from spanboost.data.stream import Stream
from spanboost.errors import UsageError
from spanboost.models.files import load_checkpoint, save
from spanboost.models.model import Model


class Found(NamedTuple):
    """Where a run goes on."""

    model: Model
    rows: int
    labels: dict[str, Any]  # sums over the labels so far
    every: int


class Checkpoints:
    """Of the run that writes `output`, from these inputs, with these parameters."""

    def __init__(self, output: Path, identity: dict[str, Any], stream: Stream) -> None:
        self.path = output.with_name(f"{output.name}.checkpoint")
        self.losses = output.with_name(f"{output.name}.losses")
        self.output = output
        self.identity = json.loads(json.dumps(identity))  # as a file has it
        self._stream = stream

    @cached_property
    def inputs(self) -> list[Any]:
        """What tells the data from others; asked for only where it matters, since it takes time."""
        return self._stream.fingerprint()

    def find(self) -> Found | None:
        """The last one, if it is of this run; None if there is none."""
        if not self.path.exists():
            return None
        model, run = load_checkpoint(self.path)
        if run is None:
            raise UsageError(f"{self.path} is no checkpoint")
        if run["identity"] != self.identity:
            raise UsageError(f"{self.path} is of a run with other parameters: leave out --resume")
        if run["inputs"] != self.inputs:
            raise UsageError(f"{self.path} is of a run over other data: leave out --resume")
        return Found(model, run["rows"], run["labels"], run["every"])

    def tape(self, columns: int, rows: int) -> LossTape:
        """The losses of the rows up to the checkpoint."""
        if rows and self.losses.stat().st_size < 8 * columns * rows:
            raise UsageError(f"{self.losses} is cut short: leave out --resume")
        return LossTape(columns, self.losses, rows)

    def save(self, model: Model, tape: LossTape, labels: dict[str, Any], every: int) -> None:
        """The run is so far; the losses first, so that they never lack what the model has seen."""
        tape.flush()
        run = {
            "identity": self.identity,
            "inputs": self.inputs,
            "rows": tape.rows,
            "labels": labels,
            "every": every,
        }
        save(model, self.path, run=run)

    def clear(self) -> None:
        """The run is done, or begins anew."""
        killed = self.output.parent.glob(f"{glob.escape(self.output.name)}.*{PARTIAL}")
        for path in (self.path, self.losses, *killed):
            path.unlink(missing_ok=True)
