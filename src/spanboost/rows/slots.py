"""Slots for rows that a model keeps: for replay (replay.py) and as a sample (row_sample.py)."""

import copy
from typing import Any

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.rows.block import Block, ObjectRows
from spanboost.rows.room import new_room


def new_slots(rows: Any, slots: int) -> "BlockSlots | ArraySlots | ObjectSlots":
    """Return empty slots for rows of the kind of an encoded block."""
    if isinstance(rows, Block):
        return BlockSlots(rows, slots)
    return ArraySlots(rows, slots) if isinstance(rows, np.ndarray) else ObjectSlots(slots)


class BlockSlots:
    """Slots for rows of a `Block`."""

    def __init__(self, like: Block, slots: int) -> None:
        self.kind, self.mask = type(like), like.mask
        self.X = new_room((slots, like.X.shape[1]), like.X.dtype)
        self.codes = new_room((slots, like.codes.shape[1]), np.int64)
        # sparse rows by slot: (columns, values), each of its own length
        self.sparse = not like.X.shape[1]
        self.empty = np.zeros(0, np.int64), np.zeros(0, like.data.dtype)
        self.entries: dict[int, tuple[Array, Array]] = {}

    @property
    def cells(self) -> int:
        """Number of entries of the sparse rows."""
        return sum(len(columns) for columns, _ in self.entries.values())

    def put(self, block: Block, index: Array, to: Array) -> None:
        """Write these rows of a block into these slots."""
        if self.codes.shape[1]:
            self.codes[to] = block.codes.take(index, axis=0)
        if not self.sparse:
            self.X[to] = block.X.take(index, axis=0)
        else:
            first, last = block.indptr[index].tolist(), block.indptr[index + 1].tolist()
            for slot, a, b in zip(to.tolist(), first, last, strict=True):
                self.entries[slot] = block.indices[a:b].copy(), block.data[a:b].copy()

    def take(self, index: Array) -> Block:
        """Return the rows of these slots."""
        indptr, indices, data = self._entries(index)
        most = int(np.diff(indptr).max()) if self.sparse else 0
        room = 2 + self.X.shape[1] + most + self.codes.shape[1]
        return self.kind(
            X=self.X[index],
            indptr=indptr,
            indices=indices,
            data=data,
            codes=self.codes[index],
            mask=self.mask,
            feature=np.zeros(room, np.int64),  # as in `block_of`
            x=np.zeros(room, self.X.dtype),
            z=np.zeros(room, self.X.dtype),
        )

    def state(self, index: Array) -> dict[str, Array]:
        """Return the rows of these slots as arrays by name."""
        indptr, indices, data = self._entries(index)
        parts = {"indptr": indptr, "indices": indices, "data": data}
        return parts | {"X": self.X[index], "codes": self.codes[index]}

    def _entries(self, index: Array) -> tuple[Array, Array, Array]:
        indptr = np.zeros(len(index) + 1, np.int64)
        if not self.sparse:
            return indptr, *self.empty
        rows = [self.entries[slot] for slot in index.tolist()]
        np.cumsum([len(columns) for columns, _ in rows], out=indptr[1:])
        return indptr, np.concatenate([c for c, _ in rows]), np.concatenate([v for _, v in rows])


class ArraySlots:
    """Slots for rows that are arrays."""

    def __init__(self, like: Array, slots: int) -> None:
        self.X = new_room((slots, *like.shape[1:]), like.dtype)

    def put(self, rows: Array, index: Array, to: Array) -> None:
        """Write these rows of a block into these slots."""
        self.X[to] = rows.take(index, axis=0)

    def take(self, index: Array) -> Array:
        """Return the rows of these slots."""
        return self.X[index]

    def state(self, index: Array) -> dict[str, Array]:
        """Return the rows of these slots as arrays by name."""
        return {"X": self.X[index]}


class ObjectSlots:
    """Slots for rows of any kind."""

    def __init__(self, slots: int) -> None:
        self.X: list[Any] = [None] * slots

    def put(self, rows: ObjectRows, index: Array, to: Array) -> None:
        """Copy these rows of a block into these slots."""
        for t, slot in zip(index.tolist(), to.tolist(), strict=True):
            self.X[slot] = copy.copy(rows.row(t))  # the caller may reuse the object

    def take(self, index: Array) -> ObjectRows:
        """Return the rows of these slots."""
        return ObjectRows([self.X[slot] for slot in index.tolist()])
