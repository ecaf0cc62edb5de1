"""Progressive validation: every row is predicted first and learned afterwards."""

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import jit
from spanboost.data.batch import Batch
from spanboost.losses import Softmax, on_vectors, values_of
from spanboost.models.model import Model


class Step(NamedTuple):
    """A batch, answered by every model, then learned."""

    batch: Batch
    answers: dict[str, Array]
    first: int  # rows before it
    totals: Array  # [rows, 1 + models] after each row: summed weights, each model's summed losses


class LossTape:
    """Totals after every row, in a file of its own: memory stays flat, any part can be asked for.

    The file has no name unless a path is given; then the totals of its first `rows` rows are kept.
    """

    def __init__(self, columns: int, path: Path | None = None, rows: int = 0) -> None:
        self.columns, self.rows, self._kept = columns, rows, path is not None
        if path is None:
            self._file: Any = tempfile.SpooledTemporaryFile(max_size=1 << 20)  # noqa: SIM115
        else:
            self._file = path.open("r+b" if rows else "w+b")
            self._file.truncate(8 * columns * rows)
        self.last = self.at(rows)
        self._file.seek(0, os.SEEK_END)

    def extend(self, gains: Array) -> Array:
        """Totals after each further row, of what each row adds to them [rows, columns]."""
        totals = running_totals(self.last, gains)
        self._file.write(totals.data)
        self.rows, self.last = self.rows + len(gains), totals[-1]
        return totals

    def at(self, rows: int) -> Array:
        """Totals after so many rows."""
        if rows == 0:
            return np.zeros(self.columns)
        self._file.seek(8 * self.columns * (rows - 1))
        totals = np.frombuffer(self._file.read(8 * self.columns))
        self._file.seek(0, os.SEEK_END)
        return totals

    def flush(self) -> None:
        """Everything said so far is in the file, and safe if it has a name."""
        self._file.flush()
        if self._kept:
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """It is not needed any more."""
        self._file.close()

    def average(self, first: int, last: int) -> Array:
        """Each model's average loss over the rows from `first` to before `last`; NaN over none."""
        sums = self.at(last) - self.at(first)
        return sums[1:] / sums[0] if sums[0] > 0 else np.full(self.columns - 1, np.nan)


def progressive(
    models: Mapping[str, Model], batches: Iterable[Batch], tape: LossTape, *, learn: bool = True
) -> Iterator[Step]:
    """Every model over the same batches, in one pass; losses are in the labels' own units.

    Without `learn` the models are tested as they are.
    """
    for batch in batches:
        weights = np.ones(batch.rows) if batch.weights is None else batch.weights
        answers = {
            name: model.learn_many(batch.X, batch.y, batch.weights)
            if learn
            else model.predict_many(batch.X)
            for name, model in models.items()
        }
        first, gains = tape.rows, np.empty((batch.rows, tape.columns))
        gains[:, 0] = weights
        for k, (name, model) in enumerate(models.items(), 1):
            gains[:, k] = weights * losses_of(model, batch.y, answers[name])
        yield Step(batch, answers, first, tape.extend(gains))


def running_totals(start: Array, gains: Array) -> Array:
    """Totals after each row, of what each adds to those at the start.

    They are added one after the other, so that the blocks in which rows come do not matter.
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
    """Which rows of a step are the 1st, 2nd, 4th, 8th ... of the stream."""
    power = 1 << step.first.bit_length()  # the first one above the rows before
    while power <= step.first + len(step.totals):
        yield power - step.first - 1
        power *= 2


def losses_of(model: Model, y: Any, answers: Array) -> Array:
    """The loss of each row, [rows], in the units of its label."""
    loss = on_vectors(model.loss_)
    if isinstance(model.loss_, Softmax):
        y = np.eye(loss.d)[np.asarray(y, np.int64)]
    shape = len(answers), loss.d
    return values_of(loss, *(np.array(v, np.float64).reshape(shape) for v in (y, answers)))
