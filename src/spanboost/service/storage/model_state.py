"""A model that learns the records of a journal, with its challenger, loss and metrics.

The folder of a server (state.py) and the copy in a worker process (replica.py) learn records with
the same code, so their models are equal, bit for bit, after the same record.
"""

import time
from pathlib import Path
from typing import Any

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.data.batch import Batch
from spanboost.models.files import from_bytes
from spanboost.models.model import Model
from spanboost.service.request_rows import learning_batches, split_by_cells
from spanboost.service.storage.challenger import Challenger, restore_challenger
from spanboost.service.storage.control import CHALLENGE, PROMOTE, ROLLBACK, WITHDRAW, Control
from spanboost.service.storage.entry import Entry
from spanboost.service.storage.record_files import StateError
from spanboost.service.storage.row_learning import LearnedRows, learn_batch
from spanboost.service.storage.row_past import RowPast, add_past, uses_past
from spanboost.service.storage.running_intervals import RunningIntervals
from spanboost.service.storage.running_loss import RunningLoss
from spanboost.service.storage.running_metrics import RunningMetrics


class ModelState:
    """The model after a record of a journal."""

    folder: Path  # the state folder that has the journal
    model: Model
    learned_record: int  # number of the last record that was learned
    challenger: Challenger | None  # a model that learns the same rows, but does not predict
    positions: dict[str, Any]  # how far a worker has read its streams, up to the learned record

    def restore(self, model: Model, run: dict[str, Any]) -> None:
        """Use a model and the run that was saved with it."""
        self.left_out, self.identity = run["left_out"], run["identity"]
        self.progress, self.challenger = RunningLoss(run["progress"]), None
        if run.get("challenger") is not None:
            self.challenger = restore_challenger(run["challenger"], run["attachment"])
        self.metrics = RunningMetrics(model.loss_, run.get("metrics"))  # None in old snapshots
        self.intervals = RunningIntervals(run.get("intervals"))
        self.positions = run.get("positions", {})
        self.learned_record = run["record"]
        self.model = model

    def obey(self, control: Control) -> None:
        """Do what the next record of the journal, a control, says."""
        number, challenger = self.learned_record + 1, self.challenger
        if control.name == ROLLBACK:
            self.model = from_bytes(control.data)
            if challenger is not None:
                challenger.restart()
        elif control.name == CHALLENGE:
            # rows have the past of the champion only
            model = from_bytes(control.data).without_past()
            self.challenger = Challenger(model, control.values["rule"], number)
        elif control.name in (PROMOTE, WITHDRAW):
            if control.name == PROMOTE and challenger is not None:
                self.model = challenger.model
            self.challenger = None
        else:
            raise StateError(
                f"{self.folder / 'journal'}: record {number} is a control ({control.name!r:.40}) "
                "that this version does not know; upgrade spanboost"
            )
        self.learned_record = number

    def learn(self, entry: Entry, first: int, last: int) -> Array:
        """Learn the rows from `first` to before `last` of the next entry of the journal.

        Returns the losses of the rows for `learn_challenger`, NaN for rows that were left out.
        """
        losses = np.full(last - first, np.nan)
        for start, end in split_by_cells(entry.rows, first, last):
            for plain in learning_batches(self.model.schema, *entry.slice(start, end)):
                batch = self._add_past(plain, entry.past, start)
                self.left_out += batch.rows
                for part in learn_batch(self.model, batch):
                    self.left_out -= len(part.y)
                    losses[start - first + part.positions] = self._add_losses(part)
        if last == len(entry.rows):
            self.positions = {**self.positions, **entry.positions}
            self.learned_record += 1
        return losses

    def _add_past(self, batch: Batch, past: RowPast | None, start: int) -> Batch:
        """Return a batch of an entry with the past of its rows; `start`: where its block begins."""
        if past is None or not uses_past(self.model):
            return batch
        return batch._replace(X=add_past(batch.X, past.take(start + batch.lines)))

    def learn_challenger(self, entry: Entry, first: int, last: int, losses: Array) -> None:
        """Let the challenger learn the rows that `learn` has learned."""
        if self.challenger is not None:
            for start, end in split_by_cells(entry.rows, first, last):
                part = losses[start - first : end - first]
                self.challenger.learn(*entry.slice(start, end), part)

    def _add_losses(self, part: LearnedRows) -> Array | float:
        """Count the losses and metrics of rows; return the losses if there is a challenger."""
        self.progress.add(self.model, part.y, part.weights, part.predictions, time.time())
        self.metrics.add(part.y, part.weights, part.predictions)
        if part.intervals is not None:
            self.intervals.add(part.y, part.weights, part.predictions, part.intervals)
        return np.nan if self.challenger is None else part.losses(self.model)
