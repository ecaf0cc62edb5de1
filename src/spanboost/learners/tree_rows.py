"""The rows that trees are reading, the leaves that they reach, and those that wait to be counted.

Trees read a row as an array of values (candidates.py). A chunk of rows is loaded once and then read
by every tree of a bank.
"""

from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array, unsigned
from spanboost.compiling.kernels import kernel
from spanboost.core.scalar_stages import PassedRows, new_passed_rows
from spanboost.rows.block import Row

ROWS = 512  # most rows in a chunk
PLACES = 2**16  # and most places in all of its rows, so that they stay in a cache
WAITING = 64  # most rows in the queue


@kernel
class TreeValues(NamedTuple):
    """The values of the rows of a chunk."""

    values: Array  # [ROWS, place, GROUP] values as candidates.py reads them, for each of a group
    numbers: Array  # [ROWS, 2 place] the same memory, for short addresses
    pairs: Array  # [ROWS, place] the same memory; one number holds the values for a group
    filled: Array  # [ROWS, width] the places that are set; a cell has two
    cells: Array  # [ROWS] number of cells
    number: Array  # [1] number of rows
    coded: Array  # [1] whether a row has category codes

    def load(self, t: int, x: Row) -> None:
        """Write the values of row t, each to its two places, and 0 to all others."""
        numbers, filled, places = self.numbers[t], self.filled[t], self.values.shape[1]
        low, high = numbers.dtype.type(-np.inf), numbers.dtype.type(np.inf)
        if not self.has_places(t, x):  # else all places are written again
            for a in range(self.cells[t]):
                write_pairs(numbers, filled[a], 0, 0)
        cells, coded = 0, self.coded[0]
        for a in range(x.feature.shape[0]):
            p, v = 2 * x.feature[a], x.x[a]
            if p < places:  # else no split uses the feature
                missing = np.isnan(v)
                write_pairs(numbers, p, low if missing else v, high if missing else v)
                filled[cells] = p
                cells += 1
            coded |= x.feature[a] & 1
        self.cells[t], self.coded[0] = cells, coded

    def has_places(self, t: int, x: Row) -> bool:
        """Return whether the values of row t are at the places of these features."""
        filled, same = self.filled[t], x.feature.shape[0] == self.cells[t]
        for a in range(x.feature.shape[0] if same else 0):
            same &= filled[a] == 2 * x.feature[a]
        return same


@kernel
def write_pairs(numbers: Array, place: int, low: float, high: float) -> None:
    """Write the values of a cell, for each of a group: `low` at its first place, then `high`."""
    first = unsigned(2 * place)
    numbers[first] = numbers[first + unsigned(1)] = low
    numbers[first + unsigned(2)] = numbers[first + unsigned(3)] = high


class RowQueue(NamedTuple):
    """Rows that wait to be counted by the candidates of the leaves they have reached."""

    length: Array  # [1] number of rows
    row: Array  # [WAITING] number of the row in the chunk
    record: Array  # [WAITING] the record of the leaf
    weight: Array  # [WAITING]
    distance: Array  # [WAITING, sums] what the candidates sum up (split_sums.py)
    value: Array  # [WAITING, C] what the candidates compare with their thresholds
    pair: Array  # [WAITING, group] the same memory; one number holds the values of a group


class TreeScratch(NamedTuple):
    """The rows of a chunk, and what the trees do with them."""

    rows: TreeValues
    queue: RowQueue
    node: Array  # [tree * rows] the leaf that each row reaches, in some trees
    slope: Array  # [d, N] slopes of the losses
    target: Array  # [d] target of one copy
    drawn: Array  # [group] random numbers
    gain: Array  # [C] gains of the candidates of a leaf
    passed: PassedRows

    def renewed(self, n: int, features: int = 0, width: int = 0) -> "TreeScratch":
        """Return empty scratch space for n trees, with room for at least as much as here."""
        places, cells = self.rows.values.shape[1], self.rows.filled.shape[1]
        if 2 * features > places:
            features = max(features, places)  # doubled, so that many small steps are cheap
        room = max(features, places // 2), max(width, cells)
        sums, candidates = self.queue.distance.shape[1], self.queue.value.shape[1]
        dtype = self.rows.values.dtype
        return new_tree_scratch(n, len(self.target), sums, candidates, *room, dtype)


def new_tree_scratch(
    n: int, d: int, sums: int, candidates: int, features: int, width: int, dtype: Any
) -> TreeScratch:
    """Return room for rows with this many features, of which `width` are in one row."""
    places = max(2 * features, 2)  # one at least: the search for leaves reads a value even at roots
    number = min(max(PLACES // places, 1), ROWS)
    double = {np.float32: np.float64, np.float64: np.complex128}[np.dtype(dtype).type]
    values, value = np.zeros((number, places, 2), dtype), np.zeros((WAITING, candidates), dtype)
    return TreeScratch(
        rows=TreeValues(
            values=values,
            numbers=values.reshape(number, 2 * places),
            pairs=values.reshape(number, 2 * places).view(double),
            filled=np.zeros((number, width), np.int64),
            cells=np.zeros(number, np.int64),
            number=np.zeros(1, np.int64),
            coded=np.zeros(1, np.int64),
        ),
        queue=RowQueue(
            length=np.zeros(1, np.int64),
            row=np.zeros(WAITING, np.int64),
            record=np.zeros(WAITING, np.int64),
            weight=np.zeros(WAITING, dtype),
            distance=np.zeros((WAITING, sums), dtype),
            value=value,
            pair=value.view(double),
        ),
        node=np.zeros(max(n, number), np.int64),
        slope=np.zeros((d, n), dtype),
        target=np.zeros(d, dtype),
        drawn=np.zeros(candidates // 2),
        gain=np.zeros(candidates, dtype),
        passed=new_passed_rows(number, dtype),
    )
