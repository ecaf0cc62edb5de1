"""Residuals of similar rows: one small window for each cell of a grid.

The shape of the residuals depends on the row: labels near an end of their range have a long tail on
the other side. So rows are sorted into cells by the rank of their forecast, and by that of the
forecast of their scale, among the last rows. A quantile is the mean of those of the nearest cells
and of all rows. Cells with few residuals count less. Weights do not depend on the level, so
quantiles of different levels never cross.
"""

from typing import NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array, unsigned
from spanboost.compiling.kernels import kernel
from spanboost.models.quantiles.sorted_window import (
    SortedWindow,
    count_below,
    insert_value,
    is_sound,
    new_window,
    read_between,
    read_share,
)

FORECASTS, ROOTS = 8, 2  # cells by the rank of each
ROWS = 250  # in the window of each cell, and in those of the ranks
EQUAL = 100.0  # a cell with this many residuals counts as much as all rows
CHUNK = 64  # rows that are ranked at a time


class CellScratch(NamedTuple):
    """Scratch space, from `rank_row` to `add_to_cell`."""

    place: Array  # [2] of the row that was ranked last
    rank: Array  # [CHUNK, 2] of the forecasts and roots of some rows, among those of earlier rows


@kernel
class ResidualCells(NamedTuple):
    """The windows of all cells."""

    forecasts: SortedWindow  # of the last rows
    roots: SortedWindow  # forecasts of the scales of the last rows
    ring: Array  # [cells, ROWS] residuals in the order of the rows
    ordered: Array  # [cells, ROWS] the same, ascending
    counts: Array  # [cells, 2] residuals in the window, next place in the ring
    near: Array  # [4] the nearest cells of the current row
    weight: Array  # [4] of these cells
    scratch: CellScratch

    def clear_cells(self) -> None:
        """Remove all residuals."""
        self.counts[:] = 0

    def rank_row(self, t: int, forecast: float, root: float) -> None:
        """Set the ranks of row t, for `find_cells` and `add_to_cell`."""
        place, rank = self.scratch.place, self.scratch.rank[unsigned(t)]
        place[0], place[1] = self.forecasts.place_of(forecast), self.roots.place_of(root)
        rank[0], rank[1] = self.forecasts.rank_of(place[0]), self.roots.rank_of(place[1])

    def add_to_ranks(self, forecast: float, root: float, due: bool) -> None:
        """Add the row that was ranked last to the ranks, if this is due or there is room."""
        if due or self.forecasts.counts[0] < ROWS:
            self.forecasts.insert_at(forecast, self.scratch.place[0])
            self.roots.insert_at(root, self.scratch.place[1])

    def find_cells(self, t: int) -> None:
        """Set the nearest cells of row t, and their weights, for `read_cells`."""
        rank = self.scratch.rank[unsigned(t)]
        x, y = rank[0] * FORECASTS - 0.5, rank[1] * ROOTS - 0.5
        x, y = max(0.0, min(x, FORECASTS - 1.0)), max(0.0, min(y, ROOTS - 1.0))
        i, j = min(int(x), FORECASTS - 2), min(int(y), ROOTS - 2)
        for k in range(4):
            right, up = k % 2, k // 2
            self.near[k] = (i + right) * ROOTS + j + up
            share = (x - i if right else 1 - x + i) * (y - j if up else 1 - y + j)
            size = self.counts[unsigned(self.near[k]), 0]
            self.weight[k] = share * size / (size + EQUAL)

    def read_cells(self, share: float, common: float) -> float:
        """Return the quantile of the current row, given that of all rows."""
        quantile, rest, place = 0.0, 1.0, share * (ROWS + 1) - 1
        if self.are_full() and 0 < place < ROWS - 1:  # one place for all of them
            j = unsigned(place)
            for k in range(4):
                own = read_between(self.ordered[unsigned(self.near[k])], j, place)
                quantile += self.weight[k] * own
                rest -= self.weight[k]
            return quantile + rest * common
        for k in range(4):
            if self.weight[k] > 0:
                cell = self.near[k]
                own = read_share(self.ordered[cell], self.counts[cell, 0], share)
                quantile += self.weight[k] * own
                rest -= self.weight[k]
        return quantile + rest * common

    def are_full(self) -> bool:
        """Return whether the nearest cells are full."""
        residuals = 0
        for k in range(4):
            residuals += self.counts[unsigned(self.near[k]), 0]
        return residuals == 4 * ROWS

    def add_to_cell(self, t: int, residual: float, due: bool) -> None:
        """Add the residual of row t to its cell, if this is due or there is room."""
        rank = self.scratch.rank[unsigned(t)]
        i = min(int(rank[0] * FORECASTS), FORECASTS - 1)
        j = min(int(rank[1] * ROOTS), ROOTS - 1)
        cell = unsigned(i * ROOTS + j)
        if due or self.counts[cell, 0] < ROWS:
            ring, ordered, counts = self.ring[cell], self.ordered[cell], self.counts[cell]
            insert_value(ring, ordered, counts, residual, count_below(ordered, counts[0], residual))


def new_cells() -> ResidualCells:
    """Return empty cells."""
    cells = FORECASTS * ROOTS
    return ResidualCells(
        new_window(ROWS),
        new_window(ROWS),
        np.zeros((cells, ROWS)),
        np.zeros((cells, ROWS)),
        np.zeros((cells, 2), np.int64),
        np.zeros(4, np.int64),
        np.zeros(4),
        CellScratch(np.zeros(2, np.int64), np.zeros((CHUNK, 2))),
    )


def are_sound(cells: ResidualCells) -> bool:
    """Return whether all indices are in range and all windows are in order."""
    each = zip(cells.ring, cells.ordered, cells.counts, strict=True)
    windows = [SortedWindow(*one) for one in each]
    inside = (cells.near >= 0) & (cells.near < len(cells.ring))
    return bool(inside.all()) and all(
        is_sound(one) for one in (cells.forecasts, cells.roots, *windows)
    )
