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
from spanboost.models.quantiles.curves import CurvePoints, fill_knots, find_place
from spanboost.models.quantiles.sorted_window import (
    SortedWindow,
    count_below,
    insert_value,
    is_sound,
    new_window,
)

FORECASTS, ROOTS = 8, 2  # cells by the rank of each
ROWS = 250  # in the window of each cell, and in those of the ranks
EQUAL = 100.0  # a cell with this many residuals counts as much as all rows
CHUNK = 64  # rows that are ranked at a time


class CellScratch(NamedTuple):
    """Scratch space, from `place_row` to `add_to_cell`, and what follows from the windows."""

    place: Array  # [CHUNK, 2] of some rows in the grid
    forecasts: Array  # [FORECASTS] the middles of the cells
    roots: Array  # [ROOTS]
    curves: Array  # [cells, points] the quantile curves of all cells


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

    def place_row(self, t: int, forecast: float, root: float) -> None:
        """Find the place of row t in the grid, for `mix_curves` and `add_to_cell`."""
        place = self.scratch.place[unsigned(t)]
        place[0] = find_place(self.scratch.forecasts, forecast)
        place[1] = find_place(self.scratch.roots, root)

    def add_to_ranks(self, forecast: float, root: float, due: bool) -> None:
        """Add a row to those that the grid depends on, if this is due or there is room."""
        if due or self.forecasts.counts[0] < ROWS:
            self.forecasts.add_value(forecast)
            self.roots.add_value(root)
            self.fill_grid()

    def fill_grid(self) -> None:
        """Set the middles of the cells."""
        fill_knots(self.forecasts.ordered, self.forecasts.counts[0], self.scratch.forecasts)
        fill_knots(self.roots.ordered, self.roots.counts[0], self.scratch.roots)

    def find_cells(self, t: int) -> None:
        """Set the nearest cells of row t, and their weights, for `mix_curves`."""
        x, y = self.scratch.place[unsigned(t), 0], self.scratch.place[unsigned(t), 1]
        i, j = min(int(x), FORECASTS - 2), min(int(y), ROOTS - 2)
        for k in range(4):
            right, up = k % 2, k // 2
            self.near[k] = (i + right) * ROOTS + j + up
            share = (x - i if right else 1 - x + i) * (y - j if up else 1 - y + j)
            size = self.counts[unsigned(self.near[k]), 0]
            self.weight[k] = share * size / (size + EQUAL)

    def mix_curves(self, t: int, common: Array, out: Array) -> None:
        """Set the quantile curve of row t, given that of all rows."""
        self.find_cells(t)
        curves, near, weight = self.scratch.curves, self.near, self.weight
        a, b = curves[unsigned(near[0])], curves[unsigned(near[1])]
        c, d = curves[unsigned(near[2])], curves[unsigned(near[3])]
        rest = 1.0 - weight[0] - weight[1] - weight[2] - weight[3]
        for g in range(out.shape[0]):
            cells = weight[0] * a[g] + weight[1] * b[g] + weight[2] * c[g] + weight[3] * d[g]
            out[g] = cells + rest * common[g]

    def add_to_cell(self, t: int, residual: float, due: bool, points: CurvePoints) -> None:
        """Add the residual of row t to its cell, if this is due or there is room."""
        x, y = self.scratch.place[unsigned(t), 0], self.scratch.place[unsigned(t), 1]
        cell = unsigned(int(x + 0.5) * ROOTS + int(y + 0.5))
        if due or self.counts[cell, 0] < ROWS:
            ring, ordered, counts = self.ring[cell], self.ordered[cell], self.counts[cell]
            insert_value(ring, ordered, counts, residual, count_below(ordered, counts[0], residual))
            points.fill_curve(ordered, counts[0], self.scratch.curves[cell])

    def fill_cells(self, points: CurvePoints) -> None:
        """Set the grid, and the curves of all cells."""
        self.fill_grid()
        for cell in range(self.counts.shape[0]):
            points.fill_curve(self.ordered[cell], self.counts[cell, 0], self.scratch.curves[cell])


def new_cells(points: int) -> ResidualCells:
    """Return empty cells, with curves of this many points."""
    cells = FORECASTS * ROOTS
    return ResidualCells(
        new_window(ROWS),
        new_window(ROWS),
        np.zeros((cells, ROWS)),
        np.zeros((cells, ROWS)),
        np.zeros((cells, 2), np.int64),
        np.zeros(4, np.int64),
        np.zeros(4),
        CellScratch(
            np.zeros((CHUNK, 2)), np.zeros(FORECASTS), np.zeros(ROOTS), np.zeros((cells, points))
        ),
    )


def are_sound(cells: ResidualCells) -> bool:
    """Return whether all indices are in range and all windows are in order."""
    each = zip(cells.ring, cells.ordered, cells.counts, strict=True)
    windows = [SortedWindow(*one) for one in each]
    inside = (cells.near >= 0) & (cells.near < len(cells.ring))
    return bool(inside.all()) and all(
        is_sound(one) for one in (cells.forecasts, cells.roots, *windows)
    )
