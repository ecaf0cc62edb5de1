"""Predict with the learner alone, and rely on boosted copies as the evidence for them grows.

At first, all candidates of a mixture have similar weights. A stream can be too short to make up for
what the poor ones cost then. Nothing is known about a learner of another library, so boosting it
must prove itself first. The gain is the sum of the differences between the losses of the learner
alone and of the mixture. The prediction is an average, in which the mixture has the share

    gain / (FULL_EVIDENCE * sqrt(sum of the squared differences)), between 0 and 1.

If the differences are noise around 0, the quotient without the constant is about a standard normal
variable. An average harms less than a choice between the two, which would change back and forth.
"""

from typing import Any

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.models.loss_record import LossRecord

FULL_EVIDENCE = 3.0  # standard deviations at which the mixture predicts alone


class Caution:
    """The losses so far of the learner alone, which is the first candidate, and of the mixture.

    squares: the sum of the squared differences between the two losses of each row.
    """

    squares = 0.0  # of pickles of earlier versions

    def __init__(self) -> None:
        self.record = LossRecord(1)

    def predict(self, forecasts: Array, answers: Array) -> Array:
        """Return averages of the predictions of the first candidate and of the mixture.

        forecasts: [rows, d, K] of the candidates; answers: those of the mixture.
        """
        return _average(self.record.sums[None], np.array([self.squares]), forecasts, answers)

    def learn(
        self, loss: Any, labels: Array, weights: Array, forecasts: Array, answers: Array
    ) -> Array:
        """Return predictions as `predict` does, each before its label, and add the losses."""
        totals = self.record.add(loss, labels, weights, forecasts[:, :, :1], answers)
        differences = np.diff(totals[:, 1] - totals[:, 2])
        squares = np.cumsum(np.append(self.squares, differences**2))
        self.squares = float(squares[-1])
        return _average(totals[:-1], squares[:-1], forecasts, answers)


def _average(totals: Array, squares: Array, forecasts: Array, answers: Array) -> Array:
    gains, full = totals[:, 1] - totals[:, 2], FULL_EVIDENCE * np.sqrt(squares)
    shares = np.divide(gains, full, out=np.zeros(len(gains)), where=full > 0).clip(0, 1)
    shares = shares.reshape(-1, *[1] * (answers.ndim - 1))
    alone = forecasts[:, :, 0].reshape(answers.shape)
    return (1 - shares) * alone + shares * answers
