"""Which of several corrections of a forecast are worth their time.

A correction is judged by the share of the squared error of the forecast that it would remove if it
were multiplied by the best number. Sums are decayed, over about the last 512 rows for which it was
asked. After the first 2,048 labels it is judged every 512 labels: it falls asleep if the share is
below 0.3 %, and wakes up if it is above 0.6 %. While it sleeps, it is asked for one row in eight.

All corrections wake up when the error rises: when the mean of about the last 64 squared errors is
above that of the last 1,024 by more than four of its standard deviations. They then stay awake for
at least 512 labels. All of this depends on the rows alone, so blocks, threads and restarts do not
matter.

The errors and corrections of classes are those of their probabilities.
"""

import math
from typing import NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel

TRIAL = 2048  # labels before the first decision
PERIOD = 512  # labels from one decision to the next
EVERY = 8  # rows from one question to the next, for a correction that sleeps
TOO_LITTLE, ENOUGH = 0.003, 0.006  # shares of the squared error
_FADE = 1 - 1 / 512
_QUICK, _SLOW = 1 / 64, 1 / 1024  # rates of the means of squared errors
_ALARM = 4.0  # standard deviations between the two means
_MEAN, _SQUARE, _RECENT = 0, 1, 2  # of squared errors: slow mean, slow variance, quick mean


@kernel
class Asking(NamedTuple):
    """Decayed products of errors and corrections, and which corrections are awake."""

    error: Array  # [K] squared errors of the forecast, in the rows with this correction
    product: Array  # [K] error times correction
    square: Array  # [K] squared corrections
    awake: Array  # [K] 1 or 0
    level: Array  # [3] of the squared errors in all rows: slow mean, slow variance, quick mean
    seen: Array  # [1] labels learned
    until: Array  # [1] labels before which no correction falls asleep

    def asks(self, k: int) -> bool:
        """Return whether correction k is asked for the next row."""
        return self.awake[k] == 1 or self.seen[0] % EVERY == 0

    def add_products(self, k: int, error: float, product: float, square: float) -> None:
        """Add the products of a row for which correction k was asked."""
        self.error[k] = _FADE * self.error[k] + error
        self.product[k] = _FADE * self.product[k] + product
        self.square[k] = _FADE * self.square[k] + square

    def count_label(self, error: float) -> bool:
        """Count a label, given the squared error of the forecast; decide who is asked.

        Return whether the error has risen, for the first time in this period.
        """
        self.seen[0] += 1
        risen = self.has_risen(error)
        sudden = risen and self.seen[0] >= self.until[0]
        if risen:
            self.until[0] = max(self.until[0], self.seen[0] + PERIOD)
            for k in range(self.awake.shape[0]):
                self.awake[k] = 1
        if self.seen[0] >= self.until[0] and self.seen[0] % PERIOD == 0:
            self.decide_all()
        return sudden

    def has_risen(self, error: float) -> bool:
        """Add a squared error to its means; return whether the last ones are unusually large."""
        level, part = self.level, max(_SLOW, 1 / self.seen[0])
        away = error - level[_MEAN]
        level[_MEAN] += part * away
        level[_SQUARE] += part * (away * (error - level[_MEAN]) - level[_SQUARE])
        level[_RECENT] += max(_QUICK, 1 / self.seen[0]) * (error - level[_RECENT])
        usual = math.sqrt(level[_SQUARE] * _QUICK / (2 - _QUICK))
        return level[_RECENT] - level[_MEAN] > _ALARM * usual

    def decide_all(self) -> None:
        """Put corrections to sleep, or wake them up."""
        for k in range(self.awake.shape[0]):
            share = self.removed_share(k)
            if share < TOO_LITTLE:
                self.awake[k] = 0
            elif share > ENOUGH:
                self.awake[k] = 1

    def removed_share(self, k: int) -> float:
        """Return the share of the squared error that a rescaled correction would have removed."""
        if self.product[k] <= 0 or self.square[k] <= 0 or self.error[k] <= 0:
            return 0.0
        return self.product[k] / self.square[k] * (self.product[k] / self.error[k])

    @property
    def sound(self) -> bool:
        """Whether all counts are valid."""
        counts = self.seen[0], self.until[0]
        return all(0 <= count < 2**62 for count in counts) and bool(
            np.isin(self.awake, (0, 1)).all()
        )


def new_asking(K: int) -> Asking:
    """Return the state before the first label: all corrections are awake."""
    return Asking(
        error=np.zeros(K),
        product=np.zeros(K),
        square=np.zeros(K),
        awake=np.ones(K, np.int64),
        level=np.zeros(3),
        seen=np.zeros(1, np.int64),
        until=np.full(1, TRIAL, np.int64),
    )
