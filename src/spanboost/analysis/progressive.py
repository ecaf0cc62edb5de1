"""Progressive validation: models predict each row before they learn from it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
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

BLOCK = 1 << 14  # rows that are read at once


class Step(NamedTuple):
    """A batch that every model has predicted and then learned."""

    batch: Batch
    answers: dict[str, Array]  # predictions, by the model's name
    first: int  # number of rows before the batch
    gains: Array  # [rows, 1 + models] of each row: its weight, and each model's weighted loss
    totals: Array  # [rows, 1 + models] sums of the gains after each row, from the first row on
    losses: Array  # [rows, models] of each row, without its weight
    quantiles: Mapping[str, Array] = MappingProxyType({})  # [rows, levels], by the model's name


class LossTape:
    """The weight and the weighted losses of every row, in a file: memory use stays constant.

    Every part of the stream is summed on its own. As a difference of running totals, it would lose
    its digits to one huge loss before it.

    columns: 1 for the weights, and 1 for each model.
    path: the file; None is a temporary file.
    rows: how many rows of the file at `path` to keep, to resume a run.
    """

    def __init__(self, columns: int, path: Path | None = None, rows: int = 0) -> None:
        self.columns, self._file = columns, RowFile(columns, path, rows)
        self.last = self.sums([0, rows])[0]

    @property
    def rows(self) -> int:
        """The number of rows so far."""
        return self._file.rows

    def extend(self, gains: Array) -> Array:
        """Append rows [rows, columns]; return the totals after each of them."""
        totals = running_totals(self.last, gains)
        self._file.append(gains)
        self.last = totals[-1]
        return totals

    def sums(self, ends: Sequence[int]) -> Array:
        """Return the sums over the rows from each of `ends` to the next one, [parts, columns]."""
        found = np.zeros((len(ends) - 1, self.columns))
        for k, (first, last) in enumerate(pairwise(ends)):
            for start in range(first, last, BLOCK):
                rows = self._file.read(start, min(start + BLOCK, last))
                found[k] = running_totals(found[k], rows)[-1]
        return found

    def largest(self) -> int:
        """Return the row, from 0, with the largest weighted loss of the first model; 0 if empty."""
        row, most = 0, -np.inf
        for start in range(0, self.rows, BLOCK):
            losses = self._file.read(start, min(start + BLOCK, self.rows))[:, 1]
            here = int(losses.argmax())
            if losses[here] > most:
                row, most = start + here, losses[here]
        return row

    def flush(self) -> None:
        """Write everything to the file; sync it to disk if it has a path."""
        self._file.flush()

    def close(self) -> None:
        """Close the file; a temporary file is deleted."""
        self._file.close()

    def average(self, first: int, last: int) -> Array:
        """Return each model's average loss over rows `first` to `last` - 1; NaN if they weigh 0."""
        sums = self.sums([first, last])[0]
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
        gains = np.column_stack([weights, weigh(losses, weights[:, None])])
        yield Step(batch, answers, tape.rows, gains, tape.extend(gains), losses, quantiles)


def _both(
    model: Intervals, batch: Batch, learn: bool, levels: Sequence[float]
) -> tuple[Array, Array]:
    """Return the predictions and the quantiles of a batch."""
    if learn:
        return model.learn_both(batch.X, batch.labels, levels, batch.weights)
    return model.predict_both(batch.X, levels)


def weigh(losses: Array, weights: Array) -> Array:
    """Return the product of losses and weights; 0 where the weight is 0, even of infinite losses.

    A product may be infinite.
    """
    with np.errstate(over="ignore"):
        return weights * np.where(weights > 0, losses, 0.0)


def running_totals(start: Array, gains: Array) -> Array:
    """Return the totals after each row: `start` plus the gains [rows, columns] up to that row.

    Rows are added one by one, so the result does not depend on how rows are grouped in blocks.
    """
    if gains.ndim != 2 or start.shape != gains.shape[1:]:  # compiled code does not check
        raise ValueError(f"gains of shape {gains.shape} do not fit totals of shape {start.shape}")
    totals = np.empty_like(gains)
    _add_up(start.copy(), gains, totals)
    return totals


def sums_up_to(ends: Iterable[int], since: Array, gains: Array) -> tuple[list[Array], Array]:
    """Return the sums of the rows before each of `ends`, and of the rows after the last of them.

    since: sums of earlier rows, which the first part begins with.
    """
    parts, first = list[Array](), 0
    for end in ends:
        parts.append(_sum(since, gains[first:end]))
        since, first = np.zeros_like(since), end
    return parts, _sum(since, gains[first:])


def _sum(since: Array, gains: Array) -> Array:
    last: Array = running_totals(since, gains)[-1] if len(gains) else since
    return last


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
