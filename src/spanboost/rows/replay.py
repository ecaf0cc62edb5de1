"""Bounded replay: after each new row, some recent rows are learned again.

The stream is still read once, each row is still predicted before its label is seen, and memory is
bounded: the last `size` rows are kept. After each new row, `times` of the rows before it are drawn
at random and passed to the booster as rounds of their own. The model thus learns more from each
row, at 1 + `times` times the cost. The theorems do not cover replay: they assume that each row
comes once.

The draws depend only on `times`, `size`, the seed and the number of rows learned before. Blocks of
any size, and runs that were interrupted and resumed, draw the same rows.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.random_numbers import hash_integer, hash_integers
from spanboost.rows.room import new_room
from spanboost.rows.slots import BlockSlots, new_slots

ROUNDS = 1024  # approximate number of rounds in a piece
MOST_UNITS = 1e6  # largest label that is learned under a log link, in units
FARTHEST = 1e30  # largest factor: products with labels are finite in float32


class Piece(NamedTuple):
    """New rows and replayed rows, in the order in which they are learned."""

    rows: Any  # as encoded by the learner
    labels: Array  # [rounds, d]
    weights: Array  # [rounds]
    place: Array  # positions of the new rows among them
    first: int  # the new rows are the rows first <= t < last of the block
    last: int


class ReplayMemory:
    """The rows that were learned last."""

    def __init__(
        self, times: int, size: int, seed: int, weight: float = 1.0, classes: bool = False
    ) -> None:
        """Keep `size` rows; `classes`: labels are unit vectors, of which only the class is kept."""
        self.times, self.size, self.weight, self.classes = times, size, weight, classes
        self.key = hash_integers(np.uint64(seed % 2**64))
        self.learned = 0  # total number of rows learned
        self.piece = max(1, ROUNDS // (1 + times))  # new rows in a piece
        # room for the rows that can still be drawn, and for the new rows of a piece
        self.ring = size + self.piece
        self.rows: Any = None
        self.labels: Array = np.zeros((0, 0))
        self.weights: Array = np.zeros(0)

    def reserve(self, rows: Any, d: int, dtype: Any) -> None:
        """Allocate the memory for rows of this kind, on the first call."""
        if self.rows is None:
            slots = self.ring + self.piece  # after the ring, for rows that are only predicted
            columns = 1 if self.classes else d
            self.labels, self.weights = new_room((slots, columns), dtype), new_room(slots, dtype)
            self.rows = new_slots(rows, slots)

    @property
    def cells(self) -> int:
        """Number of entries of the sparse rows in memory."""
        return self.rows.cells if isinstance(self.rows, BlockSlots) else 0

    def pieces(
        self, rows: Any, labels: Array, weights: Array, first: int, last: int
    ) -> Iterator[Piece]:
        """Yield the rows first <= t < last of a block, each followed by replayed rows."""
        for start in range(first, last, self.piece):
            stop = min(start + self.piece, last)
            if stop - start == 1 and weights[start] > 0:
                yield self._single_piece(rows, labels, weights, start)
            else:
                yield self._next_piece(rows, labels, weights, start, stop)
            self.learned += int(np.count_nonzero(weights[start:stop]))  # they are learned now

    def _labels(self, slots: Array, d: int) -> Array:
        """Return the labels in these slots, [slots, d]."""
        if not self.classes:
            return self.labels[slots]
        labels = np.zeros((len(slots), d), self.labels.dtype)
        labels[np.arange(len(slots)), self.labels[slots, 0].astype(np.int64)] = 1
        return labels

    def _kept(self, labels: Array) -> Array:
        """Return labels [rows, d] as they are kept."""
        return labels.argmax(axis=1)[:, None] if self.classes else labels

    def rescale(self, a: float, *, bounded: bool = True) -> None:
        """Multiply the labels by a, after the label range changed.

        bounded: whether the range contains all labels; otherwise they are below `MOST_UNITS`.

        A range shrinks after labels near its centre only. With a long memory, there may be others.
        """
        labels = self.labels[: min(self.learned, self.ring)]  # unused slots take no memory
        labels *= min(a, FARTHEST)
        if a > 1 and bounded:
            norms = np.hypot.reduce(np.abs(labels), axis=1, keepdims=True)
            labels /= np.maximum(norms, 1)
        elif a > 1:
            np.minimum(labels, MOST_UNITS, out=labels)

    def state(self) -> dict[str, Array]:
        """Return the rows that can still be drawn, oldest first; empty without rows."""
        index = np.arange(max(0, self.learned - self.size), self.learned) % self.ring
        if len(index) == 0:
            return {}
        kept: dict[str, Array] = self.rows.state(index)
        return kept | {"labels": self.labels[index], "weights": self.weights[index]}

    def restore(self, rows: Any, labels: Array, weights: Array, learned: int) -> None:
        """Restore the memory: these are the last of `learned` rows, as `state` returned them."""
        self.reserve(rows, labels.shape[1], labels.dtype)
        slots = np.arange(learned - len(weights), learned) % self.ring
        self.rows.put(rows, np.arange(len(weights)), slots)
        self.labels[slots], self.weights[slots] = labels, weights
        self.learned = learned

    def _next_piece(self, rows: Any, labels: Array, weights: Array, first: int, last: int) -> Piece:
        learned = weights[first:last] > 0  # the others are predicted and not kept
        number = self.learned + np.cumsum(learned) - learned
        slots = np.where(learned, number % self.ring, self.ring + np.arange(last - first))
        self.rows.put(rows, np.arange(first, last), slots)
        self.labels[slots] = self._kept(labels[first:last])
        self.weights[slots] = weights[first:last]
        order = np.column_stack([slots, self._draw(number) % self.ring])
        used = np.ones(order.shape, bool)
        used[:, 1:] = (learned & (number > 0))[:, None]  # nothing to draw before the first row
        index, rounds = order[used], used.sum(axis=1)
        factors = np.full(order.shape, self.weight, self.weights.dtype)
        factors[:, 0] = 1  # new rows come first
        return Piece(
            self.rows.take(index),
            self._labels(index, labels.shape[1]),
            self.weights[index] * factors[used],
            np.cumsum(rounds) - rounds,
            first,
            last,
        )

    def _single_piece(self, rows: Any, labels: Array, weights: Array, row: int) -> Piece:
        """Return the piece of one new row, as `_next_piece` does, in a third of the time."""
        slot = self.learned % self.ring
        self.rows.put(rows, np.array([row]), np.array([slot]))
        self.labels[slot], self.weights[slot] = self._kept(labels[row : row + 1])[0], weights[row]
        index = np.array([slot, *self.next_slots()], np.int64)
        drawn_weights = self.weights[index]
        drawn_weights[1:] *= self.weights.dtype.type(self.weight)
        place = np.zeros(1, np.int64)
        drawn = self.rows.take(index), self._labels(index, labels.shape[1]), drawn_weights
        return Piece(*drawn, place, row, row + 1)

    def next_slots(self) -> list[int]:
        """Return the slots of the rows to replay after the next new row."""
        number, slots = self.learned, list[int]()
        among, key = min(number, self.size), int(self.key)
        for k in range(self.times if number else 0):  # nothing to draw before the first row
            bits = hash_integer(number * self.times + k + key) >> 11
            slots.append((number - 1 - int(bits * 2.0**-53 * among)) % self.ring)
        return slots

    def _draw(self, number: Array) -> Array:
        """Return the numbers of the rows to replay after each of these rows, [rows, times]."""
        turn = number[:, None] * self.times + np.arange(self.times)
        uniform = (hash_integers(turn.astype(np.uint64) + self.key) >> np.uint64(11)) * 2.0**-53
        among = np.minimum(number, self.size)[:, None]
        drawn: Array = number[:, None] - 1 - (uniform * among).astype(np.int64)
        return drawn
