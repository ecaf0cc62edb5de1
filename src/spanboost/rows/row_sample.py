"""A small random sample of the rows that a model has learned, to measure its features.

The first rows are all kept. After that, row number t replaces a random row of the sample with
probability size / min(t, WINDOW): the sample is uniform over the first WINDOW rows, and later it
slowly forgets old rows. In addition, a random row of every STEP rows replaces the oldest such row
in the second half of the sample, which follows a stream that changes. The draws depend only on the
numbers of the rows. Blocks of any size, and runs that were interrupted and resumed, keep the same
rows.

The sample is bounded. It has fewer rows if they have many columns, and sparse rows with more than
WIDEST entries are not kept.
"""

from bisect import bisect_left
from typing import Any

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.random_numbers import hash_integers
from spanboost.rows.block import Block
from spanboost.rows.slots import BlockSlots, new_slots

LARGEST = 512  # rows
SMALLEST = 16  # rows, however many columns they have
CELLS = 2**18  # numbers in dense rows
WIDEST = 1024  # entries of a sparse row
WINDOW = 50_000
STEP = 8  # one of them is a recent row of the sample
_KEY = hash_integers(np.uint64(0x5A))  # other draws than those of replay
_RECENT_KEY = hash_integers(np.uint64(0x5B))
_AHEAD = 1024  # row numbers that are drawn at once


class RowSample:
    """Some of the rows that were learned, with their labels in the units of the user."""

    largest, most_cells, window = LARGEST, CELLS, WINDOW

    def __init__(self) -> None:
        self.kept = 0  # number of rows
        self.rows: Any = None
        self.labels: Array = np.zeros((0, 0))
        self.weights: Array = np.zeros(0)
        self._next = 0  # no row with a smaller number will be kept
        self._first = 0  # number of the first row that is drawn ahead
        self._drawn: Array = np.zeros(0, np.int64)  # its draw and the next ones
        self._ahead: list[int] = []  # numbers of the rows among them that will be kept

    def offer(self, rows: Any, labels: Array, weights: Array, number: int) -> None:
        """Keep some of the rows of an encoded block.

        labels: [rows, outputs] in the units of the user, or class numbers.
        number: how many rows were learned before; rows of weight 0 are not learned.
        """
        if not self.may_keep(number + len(weights) - 1):
            return
        self._reserve(rows, labels.shape[1])
        learned = weights.nonzero()[0]
        index, slots = self._places(rows, learned, self._draws(number, len(learned)))
        self.rows.put(rows, index, slots)
        self.labels[slots] = labels.take(index, axis=0)
        self.weights[slots] = weights.take(index)
        if self.kept == self.size:
            self._next = self._next_kept(number + len(learned))

    def may_keep(self, number: int) -> bool:
        """Return whether a row up to this number may be kept; if not, none has to be offered."""
        return number >= self._next

    @property
    def size(self) -> int:
        """The largest number of rows."""
        return len(self.weights)

    def state(self) -> dict[str, Array]:
        """Return the rows as arrays by name; empty without rows."""
        if self.kept == 0:
            return {}
        kept: dict[str, Array] = self.rows.state(np.arange(self.kept))
        return kept | {"labels": self.labels[: self.kept], "weights": self.weights[: self.kept]}

    def restore(self, rows: Any, labels: Array, weights: Array) -> None:
        """Set the rows of an empty sample."""
        self._reserve(rows, labels.shape[1])
        self.kept = len(weights)
        self.rows.put(rows, np.arange(self.kept), np.arange(self.kept))
        self.labels[: self.kept], self.weights[: self.kept] = labels, weights

    def _reserve(self, rows: Any, outputs: int) -> None:
        """Allocate the sample for rows of this kind, on the first call."""
        if self.rows is None:
            size = self.size_for(rows)
            self.rows = new_slots(rows, size)
            self.labels, self.weights = np.zeros((size, outputs)), np.zeros(size)

    def size_for(self, rows: Any) -> int:
        """Return how many rows of the kind of an encoded block there is room for."""
        dense = rows.X if isinstance(rows, Block) else rows
        width = int(np.prod(dense.shape[1:])) if isinstance(dense, np.ndarray) else 1
        return min(self.largest, max(self.most_cells // max(width, 1), SMALLEST))

    def _places(self, rows: Any, learned: Array, slots: Array) -> tuple[Array, Array]:
        """Return the positions of the rows to keep, in order, and their slots.

        learned, slots: the positions of the learned rows, and their draws.
        """
        if isinstance(rows, Block) and len(rows.data):
            fits = rows.indptr[learned + 1] - rows.indptr[learned] <= WIDEST
            learned, slots = learned[fits], slots[fits]
        if self.kept < self.size:
            new = min(self.size - self.kept, len(slots))
            slots = np.concatenate([self.kept + np.arange(new), slots[new:]])
            self.kept += new
        kept = slots < self.size
        return learned[kept], slots[kept]

    def _draws(self, number: int, count: int) -> Array:
        """Return the draws of `count` rows from this number on."""
        if count > _AHEAD:
            return self._draw(np.arange(number, number + count))
        if not self._first <= number <= number + count <= self._first + len(self._drawn):
            self._first, self._drawn = number, self._draw(np.arange(number, number + _AHEAD))
            self._ahead = (number + np.flatnonzero(self._drawn < self.size)).tolist()
        return self._drawn[number - self._first : number - self._first + count]

    def _next_kept(self, number: int) -> int:
        """Return the first row number from this one on that is kept, or a smaller number."""
        place = bisect_left(self._ahead, number)
        return self._ahead[place] if place < len(self._ahead) else self._first + len(self._drawn)

    def _draw(self, numbers: Array) -> Array:
        """Return a random integer for each row number; the row is kept if it is a slot."""
        drawn, steps, half = self._uniform(numbers), numbers // STEP, self.size // 2
        chosen = hash_integers(steps.astype(np.uint64) + _RECENT_KEY) % np.uint64(STEP)
        recent = (numbers % STEP == chosen) & (drawn >= half)
        return np.where(recent, half + steps % half, drawn)

    def _uniform(self, numbers: Array) -> Array:
        """Return a random integer below its number, or below the window, for each row."""
        uniform = (hash_integers(numbers.astype(np.uint64) + _KEY) >> np.uint64(11)) * 2.0**-53
        drawn: Array = (uniform * np.minimum(numbers + 1, self.window)).astype(np.int64)
        return drawn


class RowMemory(RowSample):
    """Rows to fit an estimator to: all of them, up to a number; then a sample, or the last ones.

    size: the largest number of rows; there are fewer if they have many columns.
    recent: keep the last rows. Otherwise all rows so far are equally likely to be kept.
    """

    most_cells, window = 2**27, 2**62

    def __init__(self, size: int, recent: bool) -> None:
        super().__init__()
        self.largest, self.recent = size, recent

    @property
    def cells(self) -> int:
        """Number of entries of the sparse rows."""
        return self.rows.cells if isinstance(self.rows, BlockSlots) else 0

    def take(self) -> tuple[Any, Array, Array]:
        """Return copies of the rows, their labels and their weights, the oldest slot first."""
        kept = np.arange(self.kept)
        return self.rows.take(kept), self.labels[kept], self.weights[kept]

    def _draw(self, numbers: Array) -> Array:
        return numbers % self.size if self.recent else self._uniform(numbers)
