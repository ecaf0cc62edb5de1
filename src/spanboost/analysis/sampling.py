"""A uniform sample of a stream's rows, in constant memory, for plots."""

import numpy as np

from spanboost.compiling.arrays import Array


class RowSample:
    """A uniform random sample of at most `size` rows of a stream.

    The sample depends only on the stream, not on how its rows are grouped in blocks.

    >>> sample = RowSample(3)
    >>> for t in range(1000):
    ...     sample.add(np.array([[float(t), -float(t)]]))
    >>> sample.of, sample.rows.shape
    (1000, (3, 2))
    """

    def __init__(self, size: int) -> None:
        self.size, self.of = size, 0  # `of` counts all rows
        self.rows: Array = np.zeros((0, 0))  # in the order of the stream
        self._draw = np.random.default_rng(0)
        self._keys: Array = np.zeros(0)  # the rows with the smallest keys are kept

    def add(self, rows: Array) -> None:
        """Add the next rows, [rows, columns]."""
        keys = np.append(self._keys, self._draw.random(len(rows)))
        rows = np.concatenate([self.rows, rows]) if self.of else rows
        self.of += len(keys) - len(self._keys)
        if len(keys) > self.size:
            kept = np.sort(np.argpartition(keys, self.size)[: self.size])
            keys, rows = keys[kept], rows[kept]
        self._keys, self.rows = keys, rows
