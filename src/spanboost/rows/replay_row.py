"""One new row and the rows that are replayed after it, in arrays that are used again."""

from functools import partial

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import Caller, kernel
from spanboost.rows.block import Block
from spanboost.rows.replay import ReplayMemory
from spanboost.rows.slots import BlockSlots


class ReplayRow:
    """What `ReplayMemory.pieces` yields for one new row of numbers, whose label is a number.

    rows, labels, weights: the new row, and then the replayed rows.
    """

    def __init__(
        self, memory: ReplayMemory, block: Block, label: Array, weight: Array, call: Caller
    ) -> None:
        self._memory, kept = memory, memory.rows
        self._slots = np.zeros(1 + memory.times, np.int64)
        self.rows: Block = kept.take(self._slots)
        self.labels, self.weights = memory.labels[self._slots], memory.weights[self._slots]
        given = block.X, block.codes, label, weight
        stored = kept.X, kept.codes, memory.labels, memory.weights
        piece = self.rows.X, self.rows.codes, self.labels, self.weights
        factor = memory.weights.dtype.type(memory.weight)
        args = *given, *stored, *piece, self._slots, factor
        self._write = partial(call.find(replay_row, *args), *args)

    def write(self) -> None:
        """Keep the new row, and write it and the rows to replay into the arrays."""
        memory = self._memory
        self._slots[0], self._slots[1:] = memory.learned % memory.ring, memory.next_slots()
        self._write()

    def count(self) -> None:
        """Count the new row, which was learned."""
        self._memory.learned += 1


def can_replay_single(memory: ReplayMemory) -> bool:
    """Return whether `ReplayRow` can write the next row: a dense one that is not the first."""
    dense = isinstance(memory.rows, BlockSlots) and not memory.rows.sparse
    return dense and memory.learned > 0 and not memory.classes


def replay_row(
    new_X: Array,
    new_codes: Array,
    new_labels: Array,
    new_weights: Array,
    kept_X: Array,
    kept_codes: Array,
    kept_labels: Array,
    kept_weights: Array,
    X: Array,
    codes: Array,
    labels: Array,
    weights: Array,
    slots: Array,
    factor: float,
) -> None:
    """Keep a new row in the first of these slots; read the rows of all of them.

    factor: on the weights of the others.
    """
    first = slots[0]
    copy_row(new_X, new_codes, new_labels, 0, kept_X, kept_codes, kept_labels, first)
    kept_weights[first] = new_weights[0]
    for t in range(slots.shape[0]):
        copy_row(kept_X, kept_codes, kept_labels, slots[t], X, codes, labels, t)
        weights[t] = kept_weights[slots[t]] * factor if t > 0 else kept_weights[slots[t]]


@kernel
def copy_row(
    X: Array,
    codes: Array,
    labels: Array,
    row: int,
    to_X: Array,
    to_codes: Array,
    to_labels: Array,
    to: int,
) -> None:
    """Copy a row and its label."""
    for j in range(X.shape[1]):
        to_X[to, j] = X[row, j]
    for j in range(codes.shape[1]):
        to_codes[to, j] = codes[row, j]
    to_labels[to, 0] = labels[row, 0]
