"""Bounded replay: after each new row, rows of the recent past are learned again.

The stream is still read once, each row is still predicted before its label is seen, and memory does
not grow: the last `size` rows are kept, and after each new one `times` of them, drawn at random,
are given to the booster as rounds of their own. What one pass leaves on the table is so picked up,
at `times` times the cost. The theorems speak of rows that come once: of none of this.

Which rows come again depends on the seed and on how many rows were learned before, nothing else:
blocks of any size, and runs that were stopped and went on, draw the same ones.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from spanboost.arrays import Array
from spanboost.block import Block, ObjectRows

PIECE = 256  # rows that are laid out at a time, each with those that follow it


class Piece(NamedTuple):
    """New rows and the ones that come again, in the order in which they are learned."""

    rows: Any  # as a learner encodes them
    labels: Array  # [rows, d]
    weights: Array  # [rows]
    place: Array  # where among them the new ones are
    first: int
    last: int  # the new ones are rows `first` to before `last` of the block


class Memory:
    """The last rows that were learned."""

    def __init__(self, times: int, size: int, seed: int) -> None:
        self.times, self.size = times, size
        self.start = np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]
        self.learned = 0  # rows in all
        # behind the rows that can still be drawn, room for a piece that is being laid out
        self.ring = size + PIECE
        self.rows: Any = None
        self.labels: Array = np.zeros((0, 0))
        self.weights: Array = np.zeros(0)

    def pieces(
        self, rows: Any, labels: Array, weights: Array, first: int, last: int
    ) -> Iterator[Piece]:
        """Rows `first` to before `last` of a block, each followed by rows that come again."""
        for start in range(first, last, PIECE):
            yield self._piece(rows, labels, weights, start, min(start + PIECE, last))

    def rescale(self, a: float) -> None:
        """Labels in wider units."""
        self.labels *= a

    def state(self) -> dict[str, Array]:
        """The rows that can still be drawn, the oldest first; nothing if there are none."""
        index = np.arange(max(0, self.learned - self.size), self.learned) % self.ring
        if len(index) == 0:
            return {}
        kept: dict[str, Array] = self.rows.state(index)
        return kept | {"labels": self.labels[index], "weights": self.weights[index]}

    def restore(self, rows: Any, labels: Array, weights: Array, learned: int) -> None:
        """Take these for the last rows of so many."""
        self.learned = learned - len(weights)
        for first in range(0, len(weights), PIECE):
            self._keep(rows, labels, weights, first, min(first + PIECE, len(weights)))

    def _piece(self, rows: Any, labels: Array, weights: Array, first: int, last: int) -> Piece:
        learned = weights[first:last] > 0  # the others are answered, and forgotten
        number = self.learned + np.cumsum(learned) - learned
        slots = self._keep(rows, labels, weights, first, last)
        order = np.column_stack([slots, self._drawn(number) % self.ring])
        comes = np.ones(order.shape, bool)
        comes[:, 1:] = learned[:, None]
        index = order[comes]
        place = np.cumsum(comes.sum(axis=1)) - comes.sum(axis=1)
        return Piece(
            self.rows.take(index), self.labels[index], self.weights[index], place, first, last
        )

    def _keep(self, rows: Any, labels: Array, weights: Array, first: int, last: int) -> Array:
        """Write rows into their slots; those without weight into slots behind the ring."""
        if self.rows is None:
            slots = self.ring + PIECE
            self.rows = _kept(rows, slots)
            self.labels = np.zeros((slots, labels.shape[1]), labels.dtype)
            self.weights = np.zeros(slots, weights.dtype)
        learned = weights[first:last] > 0
        number = self.learned + np.cumsum(learned) - learned
        to: Array = np.where(learned, number % self.ring, self.ring + np.arange(last - first))
        self.rows.put(rows, first, last, to)
        self.labels[to], self.weights[to] = labels[first:last], weights[first:last]
        self.learned += int(learned.sum())
        return to

    def _drawn(self, number: Array) -> Array:
        """[rows, times] which rows come again after each of these, by their numbers."""
        turn = number[:, None] * self.times + np.arange(self.times)
        among = np.minimum(number + 1, self.size)[:, None]
        drawn: Array = number[:, None] - (uniforms(self.start, turn) * among).astype(np.int64)
        return drawn


def uniforms(start: Any, turn: Array) -> Array:
    """A number in [0, 1) for each turn: SplitMix64 (Steele, Lea and Flood 2014), any of its terms.

    Nothing has to be kept of it, and whole arrays are drawn at once.
    """
    z = (turn.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15) + start
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    drawn: Array = (z >> np.uint64(11)) * 2.0**-53
    return drawn


def _kept(rows: Any, slots: int) -> "KeptBlock | KeptArrays | KeptObjects":
    if isinstance(rows, Block):
        return KeptBlock(rows, slots)
    return KeptArrays(rows, slots) if isinstance(rows, np.ndarray) else KeptObjects(slots)


class KeptBlock:
    """Slots for rows of a `Block`; what is sparse of them has the width of the widest so far."""

    def __init__(self, like: Block, slots: int) -> None:
        self.like = type(like)
        self.mask = like.mask
        self.X: Array = np.zeros((slots, like.X.shape[1]), like.X.dtype)
        self.codes: Array = np.zeros((slots, like.codes.shape[1]), np.int64)
        self.indices: Array = np.zeros((slots, 0), np.int64)
        self.data: Array = np.zeros((slots, 0), like.data.dtype)

    def put(self, block: Block, first: int, last: int, to: Array) -> None:
        """Rows `first` to before `last` of a block, into these slots."""
        self.X[to], self.codes[to] = block.X[first:last], block.codes[first:last]
        start, counts = block.indptr[first], np.diff(block.indptr[first : last + 1])
        more = int(counts.max(initial=0)) - self.data.shape[1]
        if more > 0:
            self.indices = np.pad(self.indices, ((0, 0), (0, more)))
            self.data = np.pad(self.data, ((0, 0), (0, more)))
        self.data[to] = 0
        slot = np.repeat(to, counts)
        column = np.arange(len(slot)) - np.repeat(np.cumsum(counts) - counts, counts)
        self.indices[slot, column] = block.indices[start : start + len(slot)]
        self.data[slot, column] = block.data[start : start + len(slot)]

    def take(self, index: Array) -> Block:
        """The rows of these slots; sparse ones end in zeros, which no learner sees."""
        width = self.data.shape[1]
        room = 2 + self.X.shape[1] + width + self.codes.shape[1]  # as for `block_of`
        return self.like(
            X=self.X[index],
            indptr=np.arange(len(index) + 1, dtype=np.int64) * width,
            indices=self.indices[index].ravel(),
            data=self.data[index].ravel(),
            codes=self.codes[index],
            mask=self.mask,
            feature=np.zeros(room, np.int64),
            x=np.zeros(room, self.X.dtype),
            z=np.zeros(room, self.X.dtype),
        )

    def state(self, index: Array) -> dict[str, Array]:
        """The rows of these slots, sparse ones without what follows them."""
        there = self.data[index] != 0
        return {
            "X": self.X[index],
            "codes": self.codes[index],
            "indptr": np.concatenate([[0], np.cumsum(there.sum(axis=1))]),
            "indices": self.indices[index][there],
            "data": self.data[index][there],
        }


class KeptArrays:
    """Slots for rows that are arrays."""

    def __init__(self, like: Array, slots: int) -> None:
        self.X: Array = np.zeros((slots, *like.shape[1:]), like.dtype)

    def put(self, rows: Array, first: int, last: int, to: Array) -> None:
        """Rows `first` to before `last` of a block, into these slots."""
        self.X[to] = rows[first:last]

    def take(self, index: Array) -> Array:
        """The rows of these slots."""
        return self.X[index]

    def state(self, index: Array) -> dict[str, Array]:
        """The rows of these slots."""
        return {"X": self.X[index]}


class KeptObjects:
    """Slots for rows of any kind."""

    def __init__(self, slots: int) -> None:
        self.X: list[Any] = [None] * slots

    def put(self, rows: ObjectRows, first: int, last: int, to: Array) -> None:
        """Rows `first` to before `last` of a block, into these slots."""
        for t, slot in zip(range(first, last), to.tolist(), strict=True):
            self.X[slot] = rows.row(t)

    def take(self, index: Array) -> ObjectRows:
        """The rows of these slots."""
        return ObjectRows([self.X[slot] for slot in index.tolist()])
