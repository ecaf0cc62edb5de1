"""The losses so far of AutoBoost and its experts, each on rows that it had not learned yet."""

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import Caller
from spanboost.errors import ModelFileError
from spanboost.losses import on_vectors, scores_of, values_of

LOSSES = "losses."  # prefix of the arrays in a file
LARGEST = 1e150  # larger losses of a row count as this, whose square is finite


class AverageLoss(NamedTuple):
    """The average loss of a model on the rows so far."""

    loss: float
    weight: float  # the total weight of the rows; their number, if all weights are 1

    def __str__(self) -> str:
        return f"{self.loss:z.6g}, the average over {self.weight:,.15g} rows before learning them"


class LossRecord:
    """Sums over the rows, in the order of the stream: the same for blocks of any size.

    sums: [K + 2] the weights of the rows, the losses of the K experts, those of the model.
    """

    def __init__(self, experts: int) -> None:
        self.sums = np.zeros(experts + 2)

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
        with np.errstate(over="ignore"):  # of wild labels
            weighted = np.minimum(losses * weights[:, None], LARGEST)
        each = np.column_stack([weights, weighted])
        each[weights == 0] = 0  # the loss of a row that does not count may be infinite
        totals = np.cumsum(np.vstack([self.sums, each]), axis=0)
        self.sums = totals[-1]
        return totals

    def restore(self, arrays: dict[str, Array]) -> None:
        """Set the sums to those of a file; files of earlier versions have none."""
        sums = arrays.pop("sums", None)
        if sums is None:
            return
        if sums.shape != self.sums.shape or sums.dtype != self.sums.dtype or not sums[0] >= 0:
            raise ModelFileError("the losses of the experts do not match the experts")
        self.sums = sums.copy()


class LossRow:
    """Adds the losses of single rows of weight 1, in arrays that are used again.

    Predictions must be numbers without a log link.
    """

    def __init__(self, record: LossRecord, loss: Any) -> None:
        self._record, self._added = record, np.ones(len(record.sums))
        self._predictions = np.zeros(len(self._added) - 1)
        arrays = on_vectors(loss), self._predictions, np.zeros(1), self._added[1:]
        self._write = partial(Caller().find(write_losses, *arrays, 0.0), *arrays)

    def add(self, label: float, forecasts: Array, answer: float) -> None:
        """Add the losses of one row: [K] forecasts of the experts, and the answer of the model."""
        self._predictions[:-1], self._predictions[-1] = forecasts, answer
        self._write(label)
        self._record.sums = self._record.sums + self._added


def write_losses(loss: Any, predictions: Array, scratch: Array, out: Array, label: float) -> None:
    """Set out[k] to the loss of each prediction under a label."""
    scratch[0] = label
    loss.values(scratch, predictions.reshape((1, -1)), out)
    for k in range(out.shape[0]):
        out[k] = min(out[k], LARGEST)
