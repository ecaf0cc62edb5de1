"""Quantiles around point forecasts: forecast + scale * quantile of the last residuals."""

from typing import NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel
from spanboost.models.quantiles.levels import CalibratedLevels, new_levels
from spanboost.models.quantiles.residuals import Residuals, new_residuals, sound_residuals
from spanboost.models.quantiles.scales import Scales, new_scales, set_medians


@kernel
class QuantileForecaster(NamedTuple):
    """The state of the quantiles of a model."""

    levels: CalibratedLevels
    residuals: Residuals
    scales: Scales

    @property
    def sound(self) -> bool:
        """Whether all indices are in range; compiled code does not check."""
        return sound_residuals(self.residuals) and bool((self.scales.median > 0).all())

    def predict_levels(self, forecast: float, root: float, out: Array) -> float:
        """Set out[k] to the quantile of level k, and return the scale of the row.

        root: forecast of sqrt|residual|.
        """
        scale = self.scales.mix_scales(root)
        for k in range(out.shape[0]):
            quantile = self.residuals.read_level(self.levels.level[k], self.levels.used[k])
            out[k] = forecast + scale * quantile
        return scale


def new_forecaster(levels: Array) -> QuantileForecaster:
    """Return a forecaster for these levels that has seen no row."""
    return QuantileForecaster(new_levels(levels), new_residuals(), new_scales())


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
            state.residuals.add_residual(residual / scale)
            state.scales.learn_scales(abs(residual), roots[t])


def restart_forecaster(state: QuantileForecaster, residuals: Array, roots: Array) -> None:
    """Forget all residuals and read every level as it is; the scales are those of these residuals.

    The weights of the scales stay the same.
    """
    state.levels.restart_levels()
    state.residuals.clear_residuals()
    set_medians(state.scales, np.abs(residuals), roots)


def add_residuals(state: QuantileForecaster, residuals: Array, roots: Array) -> None:
    """Add the residuals of some rows; the scales and levels stay the same."""
    for t in range(residuals.shape[0]):
        state.residuals.add_residual(residuals[t] / state.scales.mix_scales(roots[t]))
