"""When the trees that read past labels learn, and when they sleep.

Linear functions of past labels cost almost nothing, but trees take time. They learn the first 4,096
labels. After that, they are judged every 1,024 labels by the share of the squared error that their
corrections, multiplied by the best number, would have removed. If it is below 1 %, they sleep. They
wake up if the share of the linear function has risen since then, by half and 1 %, and for another
4,096 labels when 4^7, 4^8, 4^9 ... labels were learned. All of this depends on the rows alone, so
blocks, threads and restarts do not matter.
"""

from typing import NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel

PERIOD = 1024  # labels from one decision to the next
TRIAL = 4 * PERIOD  # labels that the trees learn before they are judged
WORTH = 0.01  # the share of the squared error that they must remove
_FADE = 1 - 1 / 2048
_LINEAR, _TREES = 0, 1


@kernel
class Sleep(NamedTuple):
    """Decayed products of errors and corrections, and when the trees woke up."""

    error: Array  # [1] squared errors of the forecasts
    products: Array  # [2] error times correction: of the linear function, of the trees
    squares: Array  # [2] squared corrections
    seen: Array  # [1] labels learned
    woken: Array  # [1] the count when the trees woke up; -1 while they sleep
    before: Array  # [1] the share of the linear function when the trees fell asleep

    @property
    def awake(self) -> bool:
        """Whether the trees learn the next row."""
        return self.woken[0] >= 0

    def add_correction(self, error: float, linear: float, trees: float) -> None:
        """Add the error of a forecast and the two corrections of it; decide at the end of a period.

        All three are in the model's units.
        """
        self.error[0] = _FADE * self.error[0] + error * error
        self.add_product(_LINEAR, error, linear)
        self.add_product(_TREES, error, trees)
        self.seen[0] += 1
        if self.seen[0] % PERIOD == 0:
            self.decide()

    def add_product(self, which: int, error: float, correction: float) -> None:
        """Add the products of one correction."""
        self.products[which] = _FADE * self.products[which] + error * correction
        self.squares[which] = _FADE * self.squares[which] + correction * correction

    def removed(self, which: int) -> float:
        """Return the share of the squared error that rescaled corrections would have removed."""
        if self.products[which] <= 0 or self.squares[which] <= 0 or self.error[0] <= 0:
            return 0.0
        best = self.products[which] / self.squares[which]
        return best * self.products[which] / self.error[0]

    def decide(self) -> None:
        """Wake the trees up, or put them to sleep."""
        count = self.seen[0]
        if self.woken[0] < 0:
            if self.removed(_LINEAR) >= 1.5 * self.before[0] + WORTH or is_power_of_four(count):
                self.woken[0] = count
                self.products[_TREES], self.squares[_TREES] = 0.0, 0.0
        elif count - self.woken[0] >= TRIAL and self.removed(_TREES) < WORTH:
            self.woken[0] = -1
            self.before[0] = self.removed(_LINEAR)

    @property
    def sound(self) -> bool:
        """Whether all counts are valid."""
        return bool(self.seen[0] >= 0 and -1 <= self.woken[0] <= self.seen[0])


@kernel
def is_power_of_four(number: int) -> bool:
    """Return whether a number is 1, 4, 16 and so on."""
    while number % 4 == 0:
        number //= 4
    return number == 1


def new_sleep() -> Sleep:
    """Return the state before the first label: the trees are awake."""
    return Sleep(
        error=np.zeros(1),
        products=np.zeros(2),
        squares=np.zeros(2),
        seen=np.zeros(1, np.int64),
        woken=np.zeros(1, np.int64),
        before=np.zeros(1),
    )


def add_corrections(
    sleep: Sleep,
    errors: Array,
    linear: Array,
    trees: Array,
    weights: Array,
    first: int,
    last: int,
) -> None:
    """Add the rows first <= t < last that have a weight."""
    for t in range(first, last):
        if weights[t] > 0:
            sleep.add_correction(errors[t], linear[t], trees[t])
