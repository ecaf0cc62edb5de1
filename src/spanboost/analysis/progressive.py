"""Progressive validation: models predict each row before they learn from it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from spanboost.analysis.row_file import RowFile
from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import jit
from spanboost.data.batch import Batch
from spanboost.models.intervals import Intervals
from spanboost.models.model import Model
from spanboost.models.row_losses import losses_of


class Step(NamedTuple):
    """A batch that every model has predicted and then learned."""

    batch: Batch
    answers: dict[str, Array]  # predictions, by the model's name
    first: int  # number of rows before the batch
    totals: Array  # [rows, 1 + models] after each row: summed weights, each model's summed losses
    losses: Array  # [rows, models] of each row, without its weight
    quantiles: Mapping[str, Array] = MappingProxyType({})  # [rows, levels], by the model's name


class LossTape:
    """The totals of weights and losses after every row, in a file: memory use stays constant.

    columns: 1 for the weights, and 1 for each model.
    path: the file; None is a temporary file.
    rows: how many rows of the file at `path` to keep, to resume a run.
    """

    def __init__(self, columns: int, path: Path | None = None, rows: int = 0) -> None:
        self.columns, self._file = columns, RowFile(columns, path, rows)
        self.last = self.at(rows)

    @property
    def rows(self) -> int:
        """The number of rows so far."""
        return self._file.rows

    def extend(self, gains: Array) -> Array:
        """Append rows; `gains` [rows, columns] are added to the totals. Return the new totals."""
        totals = running_totals(self.last, gains)
        self._file.append(totals)
        self.last = totals[-1]
        return totals

    def at(self, rows: int) -> Array:
        """Return the totals after this number of rows."""
        return self._file.read(rows - 1, rows)[0] if rows else np.zeros(self.columns)

    def flush(self) -> None:
        """Write everything to the file; sync it to disk if it has a path."""
        self._file.flush()

    def close(self) -> None:
        """Close the file; a temporary file is deleted."""
        self._file.close()

    def average(self, first: int, last: int) -> Array:
        """Return each model's average loss over rows `first` to `last` - 1; NaN if they weigh 0."""
        sums = self.at(last) - self.at(first)
        return sums[1:] / sums[0] if sums[0] > 0 else np.full(self.columns - 1, np.nan)


def progressive(
    models: Mapping[str, Model],
    batches: Iterable[Batch],
    tape: LossTape,
    *,
    learn: bool = True,
    levels: Sequence[float] = (),
) -> Iterator[Step]:
    """Run every model over the same batches, in one pass; yield a step for each batch.

    Losses are in the units of the labels and are appended to `tape`. With learn=False the models
    only predict. With levels, all models must be `Intervals`, and the steps have their quantiles.
    """
    for batch in batches:
        weights = np.ones(batch.rows) if batch.weights is None else batch.weights
        answers, quantiles = {}, {}
        for name, model in models.items():
            if levels and isinstance(model, Intervals):
                answers[name], quantiles[name] = _both(model, batch, learn, levels)
            elif learn:
                answers[name] = model.learn_many(batch.X, batch.labels, batch.weights)
            else:
                answers[name] = model.predict_many(batch.X)
        losses = np.stack(
            [losses_of(model, batch.y, answers[name]) for name, model in models.items()], axis=1
        )
        gains = np.column_stack([weights, weights[:, None] * losses])
        yield Step(batch, answers, tape.rows, tape.extend(gains), losses, quantiles)


def _both(
    model: Intervals, batch: Batch, learn: bool, levels: Sequence[float]
) -> tuple[Array, Array]:
    """Return the predictions and the quantiles of a batch."""
    if learn:
        return model.learn_both(batch.X, batch.labels, levels, batch.weights)
    return model.predict_both(batch.X, levels)


def running_totals(start: Array, gains: Array) -> Array:
    """Return the totals after each row: `start` plus the gains [rows, columns] up to that row.

    Rows are added one by one, so the result does not depend on how rows are grouped in blocks.
    """
    totals = np.empty_like(gains)
    _add_up(start.copy(), gains, totals)
    return totals


@jit
def _add_up(last: Array, gains: Array, totals: Array) -> None:
    for t in range(gains.shape[0]):
        for k in range(gains.shape[1]):
            last[k] += gains[t, k]
            totals[t, k] = last[k]


def rows_to_show(step: Step) -> Iterator[int]:
    """Yield the rows of a step that are the 1st, 2nd, 4th, 8th, ... of the stream."""
    power = 1 << step.first.bit_length()  # the first power of 2 after the earlier rows
    while power <= step.first + len(step.totals):
        yield power - step.first - 1
        power *= 2
