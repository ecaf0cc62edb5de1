"""Residuals of similar rows: one small window for each cell of a grid.

The shape of the residuals depends on the row: labels near an end of their range have a long tail on
the other side. So rows are sorted into cells by the rank of their forecast, and by that of the
forecast of their scale, among the last rows. A quantile is the mean of those of the nearest cells
and of all rows. Cells with few residuals count less. Weights do not depend on the level, so
quantiles of different levels never cross.
"""

from typing import NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel
from spanboost.models.quantiles.sorted_window import (
    SortedWindow,
    insert_value,
    is_sound,
    new_window,
    read_share,
)

FORECASTS, ROOTS = 8, 2  # cells by the rank of each
ROWS = 250  # in the window of each cell, and in those of the ranks
EQUAL = 100.0  # a cell with this many residuals counts as much as all rows


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

    def clear_cells(self) -> None:
        """Remove all residuals."""
        self.counts[:] = 0

    def find_cells(self, forecast: float, root: float) -> None:
        """Set the nearest cells of a row, and their weights, for `read_cells`."""
        x = self.forecasts.rank_value(forecast) * FORECASTS - 0.5
        y = self.roots.rank_value(root) * ROOTS - 0.5
        x, y = max(0.0, min(x, FORECASTS - 1.0)), max(0.0, min(y, ROOTS - 1.0))
        i, j = min(int(x), FORECASTS - 2), min(int(y), ROOTS - 2)
        for k in range(4):
            right, up = k % 2, k // 2
            self.near[k] = (i + right) * ROOTS + j + up
            share = (x - i if right else 1 - x + i) * (y - j if up else 1 - y + j)
            size = self.counts[self.near[k], 0]
            self.weight[k] = share * size / (size + EQUAL)

    def read_cells(self, share: float, common: float) -> float:
        """Return the quantile of the current row, given that of all rows."""
        quantile, rest = 0.0, 1.0
        for k in range(4):
            if self.weight[k] > 0:
                cell = self.near[k]
                own = read_share(self.ordered[cell], self.counts[cell, 0], share)
                quantile += self.weight[k] * own
                rest -= self.weight[k]
        return quantile + rest * common

    def add_to_cell(self, forecast: float, root: float, residual: float) -> None:
        """Add the residual of a row to its cell, and its forecasts to the ranks."""
        i = min(int(self.forecasts.rank_value(forecast) * FORECASTS), FORECASTS - 1)
        j = min(int(self.roots.rank_value(root) * ROOTS), ROOTS - 1)
        cell = i * ROOTS + j
        insert_value(self.ring[cell], self.ordered[cell], self.counts[cell], residual)
        self.forecasts.add_value(forecast)
        self.roots.add_value(root)


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
    )


def are_sound(cells: ResidualCells) -> bool:
    """Return whether all indices are in range and all windows are in order."""
    each = zip(cells.ring, cells.ordered, cells.counts, strict=True)
    windows = [SortedWindow(*one) for one in each]
    inside = (cells.near >= 0) & (cells.near < len(cells.ring))
    return bool(inside.all()) and all(
        is_sound(one) for one in (cells.forecasts, cells.roots, *windows)
    )
