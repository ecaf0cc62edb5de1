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

    def predict_levels(self, forecast: float, root: float, out: Array) -> float:
        """Set out[k] to the quantile of level k, and return the scale of the row.

        root: forecast of sqrt|residual|. A quantile is infinite while there are too few residuals
        for its level. The median of no residuals is the forecast.
        """
        scale = self.scales.mix_scales(root)
        self.cells.find_cells(forecast, root)
        for k in range(out.shape[0]):
            share = self.residuals.safe_share(self.levels.level[k], self.levels.share_at(k))
            if share <= 0:
                out[k] = -np.inf
            elif share >= 1:
                out[k] = np.inf
            else:
                common = read_share(self.residuals.ordered, self.residuals.counts[0], share)
                out[k] = forecast + scale * self.cells.read_cells(share, common)
        return scale

    def add_residual(self, forecast: float, root: float, residual: float) -> None:
        """Add the residual of a row, in units of its scale."""
        self.residuals.add_value(residual)
        self.cells.add_to_cell(forecast, root, residual)


def new_forecaster(levels: Array) -> QuantileForecaster:
    """Return a forecaster for these levels that has seen no row."""
    return QuantileForecaster(new_levels(levels), new_window(), new_cells(), new_scales())


def predict_quantiles(
    state: QuantileForecaster, forecasts: Array, roots: Array, out: Array
) -> None:
    """Set out[t] to the quantiles of row t."""
    for t in range(out.shape[0]):
        state.predict_levels(forecasts[t], roots[t], out[t])


def learn_quantiles(
    state: QuantileForecaster,
    forecasts: Array,
    roots: Array,
    labels: Array,
    weights: Array,
    out: Array,
) -> None:
    """Predict as `predict_quantiles` does, and learn each row after its prediction."""
    for t in range(out.shape[0]):
        scale = state.predict_levels(forecasts[t], roots[t], out[t])
        if weights[t] > 0:
            state.levels.move_levels(out[t], labels[t])
            residual = labels[t] - forecasts[t]
            if state.scales.rows[0] == 0 and residual != 0:
                scale = abs(residual)  # the first one sets the scale
            state.add_residual(forecasts[t], roots[t], residual / scale)
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
