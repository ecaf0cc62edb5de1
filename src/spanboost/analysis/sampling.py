"""A few of many rows, in constant memory: for pictures of streams of any length."""

import numpy as np

from spanboost.compiling.arrays import Array


class RowSample:
    """So many rows of a stream, each of its rows as likely as any other; all of a short one.

    The same stream gives the same sample, whatever the blocks it came in.

    >>> few = Sample(3)
    >>> for t in range(1000):
    ...     few.add(np.array([[float(t), -float(t)]]))
    >>> few.of, few.rows.shape
    (1000, (3, 2))
    """

    def __init__(self, size: int) -> None:
        self.size, self.of = size, 0
        self.rows: Array = np.zeros((0, 0))  # in order
        self._draw = np.random.default_rng(0)
        self._keys: Array = np.zeros(0)  # the smallest are kept

    def add(self, rows: Array) -> None:
        """Further rows, [rows, columns]."""
        keys = np.append(self._keys, self._draw.random(len(rows)))
        rows = np.concatenate([self.rows, rows]) if self.of else rows
        self.of += len(keys) - len(self._keys)
        if len(keys) > self.size:
            kept = np.sort(np.argpartition(keys, self.size)[: self.size])
            keys, rows = keys[kept], rows[kept]
        self._keys, self.rows = keys, rows
