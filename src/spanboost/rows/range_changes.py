"""Changes of the label range within a block, as compiled code lists them."""

from typing import NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel

ROOM = 64  # changes that are listed at once
CENTRE, HALF = 0, 1  # entries of a frame: the centre of the label range, and its half-width


@kernel
class RangeChanges(NamedTuple):
    """Changes of the label range within a block, and how far the block was read."""

    row: Array  # [ROOM] the row is learned in the new range
    frame: Array  # [ROOM, 2] new centre and half-width
    exact: Array  # [ROOM] whether what was learned keeps its value in the units of the labels
    done: Array  # [2] rows read, changes found

    def add(self, frame: Array, exact: bool) -> None:
        """Add a change at the current row."""
        k = self.done[1]
        self.row[k], self.exact[k] = self.done[0], exact
        self.frame[k, CENTRE], self.frame[k, HALF] = frame[CENTRE], frame[HALF]
        self.done[1] += 1


def new_changes() -> RangeChanges:
    """Return room for changes, at the start of a block."""
    return RangeChanges(
        np.zeros(ROOM, np.int64), np.zeros((ROOM, 2)), np.zeros(ROOM, bool), np.zeros(2, np.int64)
    )
