"""The losses so far of AutoBoost and its experts, each on rows that it had not learned yet."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import Caller
from spanboost.errors import ModelFileError
from spanboost.losses import on_vectors, scores_of, values_of

LOSSES = "losses."  # prefix of the arrays in a file


class AverageLoss(NamedTuple):
    """The average loss of a model on the rows so far."""

    loss: float
    weight: float  # the total weight of the rows; their number, if all weights are 1

    def __str__(self) -> str:
        return f"{self.loss:z.6g}, the average over {self.weight:,.15g} rows before learning them"


class _SingleRow(NamedTuple):
    """Arrays for single rows, which are used again."""

    predictions: Array  # [K + 1] of the experts and the model
    added: Array  # [K + 2] what the row adds to the sums
    write: Callable[[float], None]  # sets its losses, given the label


class LossRecord:
    """Sums over the rows, in the order of the stream: the same for blocks of any size.

    sums: [K + 2] the weights of the rows, the losses of the K experts, those of the model.
    """

    _row: _SingleRow | None = None

    def __init__(self, experts: int) -> None:
        self.sums = np.zeros(experts + 2)

    def __getstate__(self) -> dict[str, Any]:
        return {"sums": self.sums}  # the next single row creates its arrays again

    @property
    def weight(self) -> float:
        """The sum of the weights of the rows so far; their number, if all are 1."""
        return float(self.sums[0])

    def averages(self) -> list[float]:
        """Return the average loss of each expert, then that of the model; empty before any row."""
        return (self.sums[1:] / self.weight).tolist() if self.weight > 0 else []

    def add(
        self, loss: Any, labels: Array, weights: Array, forecasts: Array, answers: Array
    ) -> Array:
        """Add the losses of a block; return the sums before each row, and those after the last.

        labels: [rows, d] as the loss takes them.
        forecasts: [rows, d, K] of the experts; answers: those of the model.
        """
        rows, d, K = forecasts.shape
        every = np.concatenate([forecasts, answers.reshape(rows, d, 1)], axis=2)
        scores = np.ascontiguousarray(scores_of(loss, every).transpose(0, 2, 1)).reshape(-1, d)
        targets = np.repeat(labels.astype(np.float64), K + 1, axis=0)
        losses = values_of(on_vectors(loss), targets, scores).reshape(rows, K + 1)
        each = np.column_stack([weights, losses * weights[:, None]])
        each[weights == 0] = 0  # the loss of a row that does not count may be infinite
        totals = np.cumsum(np.vstack([self.sums, each]), axis=0)
        self.sums = totals[-1]
        return totals

    def add_one(self, loss: Any, label: float, forecasts: Array, answer: float) -> None:
        """Add the losses of one row of weight 1, if predictions are numbers without a log link.

        forecasts: [K] of the experts; answer: of the model.
        """
        row = self._row
        if row is None:
            row = self._row = self._new_row(loss)
        row.predictions[:-1], row.predictions[-1] = forecasts, answer
        row.write(label)
        self.sums = self.sums + row.added

    def _new_row(self, loss: Any) -> _SingleRow:
        added = np.ones(len(self.sums))
        predictions = np.zeros(len(added) - 1)
        arrays = on_vectors(loss), predictions, np.zeros(1), added[1:]
        write = Caller().find(write_losses, *arrays, 0.0)
        return _SingleRow(predictions, added, partial(write, *arrays))

    def restore(self, arrays: dict[str, Array]) -> None:
        """Set the sums to those of a file; files of earlier versions have none."""
        sums = arrays.pop("sums", None)
        if sums is None:
            return
        if sums.shape != self.sums.shape or sums.dtype != self.sums.dtype or not sums[0] >= 0:
            raise ModelFileError("the losses of the experts do not match the experts")
        self.sums = sums.copy()


def write_losses(loss: Any, predictions: Array, scratch: Array, out: Array, label: float) -> None:
    """Set out[k] to the loss of each prediction under a label."""
    scratch[0] = label
    loss.values(scratch, predictions.reshape((1, -1)), out)
