"""Quantiles around forecasts: forecast + scale * quantile of the residuals of similar rows."""

from typing import NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel
from spanboost.models.quantiles.cells import ResidualCells, are_sound, new_cells
from spanboost.models.quantiles.levels import CalibratedLevels, new_levels
from spanboost.models.quantiles.scales import Scales, new_scales, set_medians
from spanboost.models.quantiles.sorted_window import (
    SortedWindow,
    is_sound,
    new_window,
    read_share,
)

EVERY = 4  # the ranks of forecasts are those among every fourth row, which saves time


@kernel
class QuantileForecaster(NamedTuple):
    """The state of the quantiles of a model."""

    levels: CalibratedLevels
    residuals: SortedWindow  # of the last rows, in units of their scales
    cells: ResidualCells  # the same, of similar rows
    scales: Scales

    @property
    def sound(self) -> bool:
        """Whether all indices are in range; compiled code does not check."""
        return (
            is_sound(self.residuals)
            and are_sound(self.cells)
            and bool((self.scales.median > 0).all())
        )

    def place_row(self, forecast: float, root: float) -> float:
        """Return the scale of a row, and find its cells, for `read_level`.

        root: forecast of sqrt|residual|.
        """
        self.cells.find_cells(forecast, root)
        return self.scales.mix_scales(root)

    def read_level(self, k: int, forecast: float, scale: float) -> float:
        """Return the quantile of level k of the row that was placed last.

        It is infinite while there are too few residuals for the level. The median of no residuals
        is the forecast.
        """
        share = self.residuals.safe_share(self.levels.level[k], self.levels.share_at(k))
        if share <= 0:
            return -np.inf
        if share >= 1:
            return np.inf
        common = read_share(self.residuals.ordered, self.residuals.counts[0], share)
        return forecast + scale * self.cells.read_cells(share, common)

    def levels_below(self, label: float, forecast: float, scale: float, place: int) -> int:
        """Return the number of levels whose quantiles are below the label.

        place: number of residuals below that of the label. Quantiles never cross, so only those
        near this place are read.
        """
        k, number = self.levels.levels_near(place, self.residuals.counts[0]), self.levels.h.shape[0]
        if k < number and self.read_level(k, forecast, scale) < label:
            k += 1
            while k < number and self.read_level(k, forecast, scale) < label:
                k += 1
            return k
        while k > 0 and self.read_level(k - 1, forecast, scale) >= label:
            k -= 1
        return k

    def add_residual(self, forecast: float, root: float, residual: float, place: int) -> None:
        """Add the residual of the row that was placed last, in units of its scale."""
        ranked = self.residuals.counts[1] % EVERY == 0
        self.residuals.insert_at(residual, place)
        self.cells.add_to_cell(residual)
        self.cells.add_to_ranks(forecast, root, ranked)


def new_forecaster(levels: Array) -> QuantileForecaster:
    """Return a forecaster for these levels that has seen no row."""
    return QuantileForecaster(new_levels(levels), new_window(), new_cells(), new_scales())


def predict_quantiles(
    state: QuantileForecaster, forecasts: Array, roots: Array, wanted: Array, out: Array
) -> None:
    """Set out[t, j] to the quantile of row t and level wanted[j]."""
    for t in range(out.shape[0]):
        scale = state.place_row(forecasts[t], roots[t])
        for j in range(wanted.shape[0]):
            out[t, j] = state.read_level(wanted[j], forecasts[t], scale)


def learn_quantiles(
    state: QuantileForecaster,
    forecasts: Array,
    roots: Array,
    labels: Array,
    weights: Array,
    wanted: Array,
    out: Array,
) -> None:
    """Predict as `predict_quantiles` does, and learn each row after its prediction."""
    for t in range(out.shape[0]):
        scale = state.place_row(forecasts[t], roots[t])
        for j in range(wanted.shape[0]):
            out[t, j] = state.read_level(wanted[j], forecasts[t], scale)
        if weights[t] > 0:
            residual, unit = labels[t] - forecasts[t], scale
            if state.scales.rows[0] == 0 and residual != 0:
                unit = abs(residual)  # the first one sets the scale
            place = state.residuals.place_of(residual / unit)
            below = state.levels_below(labels[t], forecasts[t], scale, place)
            state.levels.move_levels(below)
            state.add_residual(forecasts[t], roots[t], residual / unit, place)
            state.scales.learn_scales(abs(residual), roots[t])


def restart_forecaster(state: QuantileForecaster, residuals: Array, roots: Array) -> None:
    """Forget all residuals and read every level as it is; the scales are those of these residuals.

    The weights of the scales stay the same.
    """
    state.levels.restart_levels()
    state.residuals.clear_window()
    state.cells.clear_cells()
    set_medians(state.scales, np.abs(residuals), roots)


def add_residuals(state: QuantileForecaster, residuals: Array, roots: Array) -> None:
    """Add the residuals of some rows to those of all; the scales, levels and cells stay the same.

    Without residuals in cells, the quantiles are those of split conformal prediction.
    """
    for t in range(residuals.shape[0]):
        state.residuals.add_value(residuals[t] / state.scales.mix_scales(roots[t]))
