"""Quantiles around forecasts: forecast + scale * quantile of the residuals of similar rows.

Many labels may be at an end of their range, such as counts of 0. Quantiles beyond the end are
clipped to it. So that those of similar rows are, too, the residual of such a label counts as one
scale larger.
"""

from typing import NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel
from spanboost.compiling.random_numbers import scramble
from spanboost.models.quantiles.cells import CHUNK, ResidualCells, are_sound, new_cells
from spanboost.models.quantiles.curves import CurvePoints, new_points
from spanboost.models.quantiles.levels import LIMIT, CalibratedLevels, new_levels
from spanboost.models.quantiles.scales import Scales, new_scales, set_medians
from spanboost.models.quantiles.sorted_window import (
    WINDOW,
    SortedWindow,
    is_sound,
    new_window,
)

AT_END = 1.0  # scales that a label at an end of its range counts as further away
EVERY = 4  # windows that are full take one row in this many, which saves time


class RowScratch(NamedTuple):
    """Scratch space, from `rank_rows` and `scale_rows` to `learn_rows`, and quantile curves."""

    due: Array  # [CHUNK] whether full windows take the row
    fresh: Array  # [CHUNK] whether the scales start again with the row
    scale: Array  # [CHUNK] of the quantiles of the row
    unit: Array  # [CHUNK] of its residual
    points: CurvePoints
    common: Array  # [points] the curve of the residuals of all rows
    curve: Array  # [points] that of the current row


@kernel
class QuantileForecaster(NamedTuple):
    """The state of the quantiles of a model."""

    levels: CalibratedLevels
    residuals: SortedWindow  # of the last rows, in units of their scales
    cells: ResidualCells  # the same, of similar rows
    scales: Scales
    rows: Array  # [1] rows learned
    scratch: RowScratch

    @property
    def sound(self) -> bool:
        """Whether all indices are in range; compiled code does not check."""
        return (
            is_sound(self.residuals)
            and are_sound(self.cells)
            and bool((self.scales.median > 0).all())
            and bool(self.rows[0] >= 0 and (self.scales.runs >= 0).all())
        )

    def is_due(self) -> bool:
        """Return whether full windows take the next row.

        The rows are as good as random, so a stream that repeats itself has them in all its phases.
        """
        return scramble(self.rows[0]) < 2**32 // EVERY

    def rank_rows(self, forecasts: Array, roots: Array, weights: Array) -> None:
        """Rank the rows of a chunk, each among rows before it, and count those that are learned."""
        for t in range(forecasts.shape[0]):
            self.cells.place_row(t, forecasts[t], roots[t])
            self.scratch.due[t] = self.is_due()
            if weights[t] > 0:
                self.cells.add_to_ranks(forecasts[t], roots[t], self.scratch.due[t])
                self.rows[0] += 1

    def scale_rows(self, forecasts: Array, roots: Array, labels: Array, weights: Array) -> None:
        """Set the scales of the rows of a chunk, and learn each after its scale."""
        for t in range(forecasts.shape[0]):
            scale, size = self.scales.mix_scales(roots[t]), abs(labels[t] - forecasts[t])
            self.scratch.scale[t] = self.scratch.unit[t] = scale
            self.scratch.fresh[t] = weights[t] > 0 and self.scales.follow_units(size, roots[t])
            if weights[t] > 0:
                if self.scales.rows[0] == 0 and size > 0:
                    self.scratch.unit[t] = size  # the first residual sets the scale
                self.scales.learn_scales(size, roots[t])

    def learn_rows(
        self,
        forecasts: Array,
        labels: Array,
        weights: Array,
        limits: Array,
        wanted: Array,
        out: Array,
    ) -> None:
        """Set out[t, j] to the quantile of row t and level wanted[j], and learn t afterwards."""
        for t in range(forecasts.shape[0]):
            forecast, scale = forecasts[t], self.scratch.scale[t]
            self.cells.mix_curves(t, self.scratch.common, self.scratch.curve)
            self.read_levels(wanted, forecast, scale, out[t])
            if weights[t] > 0:
                self.compare_label(labels[t], forecast, scale, limits)
                if self.scratch.fresh[t]:
                    self.forget_residuals()
                residual = (labels[t] - forecast) / self.scratch.unit[t]
                self.add_residual(t, residual + AT_END * side_of(labels[t], limits))

    def read_levels(self, wanted: Array, forecast: float, scale: float, out: Array) -> None:
        """Set out[j] to the quantile of level wanted[j] of the row whose curves were mixed last."""
        for j in range(wanted.shape[0]):
            out[j] = self.read_level(wanted[j], forecast, scale)

    def read_level(self, k: int, forecast: float, scale: float) -> float:
        """Return the quantile of level k of the row whose curves were mixed last.

        It is infinite while there are too few residuals for the level. The median of no residuals
        is the forecast.
        """
        level, odds = self.levels.level[k], self.levels.used[k]
        if self.residuals.lacks_values(level):
            return np.inf if level > 0.5 else -np.inf
        if abs(odds) >= LIMIT:
            return np.inf if odds > 0 else -np.inf
        return forecast + scale * self.scratch.points.read_curve(self.scratch.curve, k, odds)

    def read_within(self, k: int, forecast: float, scale: float, limits: Array) -> float:
        """Return the quantile of level k as users see it, clipped to the limits of labels."""
        return min(max(self.read_level(k, forecast, scale), limits[0]), limits[1])

    def compare_label(self, label: float, forecast: float, scale: float, limits: Array) -> None:
        """Move the levels after the label of the row whose curves were mixed last.

        Quantiles never cross, so only those near the place of the label on the curve are read.
        """
        odds = self.scratch.points.find_odds(self.scratch.curve, (label - forecast) / scale)
        below, number = self.levels.levels_before(odds), self.levels.h.shape[0]
        while below < number and self.read_within(below, forecast, scale, limits) < label:
            below += 1
        while below > 0 and self.read_within(below - 1, forecast, scale, limits) >= label:
            below -= 1
        up_to = below
        while up_to < number and self.read_within(up_to, forecast, scale, limits) == label:
            up_to += 1
        self.levels.move_levels(below, up_to)

    def add_residual(self, t: int, residual: float) -> None:
        """Add the residual of row t, in units of its scale, if this is due or there is room."""
        due = self.scratch.due[t]
        if due or self.residuals.counts[0] < WINDOW:
            self.residuals.add_value(residual)
            self.fill_common()
        self.cells.add_to_cell(t, residual, due, self.scratch.points)

    def forget_residuals(self) -> None:
        """Remove all residuals; the calibrated levels stay, so their coverage does, too."""
        self.residuals.clear_window()
        self.cells.clear_cells()
        self.fill_curves()

    def fill_common(self) -> None:
        """Set the curve of the residuals of all rows."""
        size, common = self.residuals.counts[0], self.scratch.common
        self.scratch.points.fill_curve(self.residuals.ordered, size, common)

    def fill_curves(self) -> None:
        """Set all curves, which files do not contain."""
        self.fill_common()
        self.cells.fill_cells(self.scratch.points)


@kernel
def side_of(label: float, limits: Array) -> float:
    """Return 1 for a label at the upper end of its range, -1 at the lower end, and 0 in between."""
    if label >= limits[1]:
        return 1.0
    return -1.0 if label <= limits[0] else 0.0


def new_forecaster(levels: Array) -> QuantileForecaster:
    """Return a forecaster for these levels that has seen no row."""
    points, rows = new_points(levels.tolist()), np.zeros(1, np.int64)
    number = len(points.odds)
    scratch = RowScratch(
        due=np.zeros(CHUNK, np.bool_),
        fresh=np.zeros(CHUNK, np.bool_),
        scale=np.ones(CHUNK),
        unit=np.ones(CHUNK),
        points=points,
        common=np.zeros(number),
        curve=np.zeros(number),
    )
    parts = new_levels(levels), new_window(), new_cells(number), new_scales()
    return QuantileForecaster(*parts, rows, scratch)


def predict_quantiles(
    state: QuantileForecaster, forecasts: Array, roots: Array, wanted: Array, out: Array
) -> None:
    """Set out[t, j] to the quantile of row t and level wanted[j]."""
    for t in range(out.shape[0]):
        state.cells.place_row(0, forecasts[t], roots[t])
        state.cells.mix_curves(0, state.scratch.common, state.scratch.curve)
        state.read_levels(wanted, forecasts[t], state.scales.mix_scales(roots[t]), out[t])


def learn_quantiles(
    state: QuantileForecaster,
    forecasts: Array,
    roots: Array,
    labels: Array,
    weights: Array,
    limits: Array,
    wanted: Array,
    out: Array,
) -> None:
    """Predict as `predict_quantiles` does, and learn each row after its prediction.

    limits: [2] the smallest and the largest possible label, to which users clip the quantiles.

    Neither ranks nor scales depend on the quantiles. So they are computed first, for a chunk of
    rows: short loops take less time than a long one.
    """
    for first in range(0, out.shape[0], CHUNK):
        part = slice(first, min(first + CHUNK, out.shape[0]))
        state.rank_rows(forecasts[part], roots[part], weights[part])
        state.scale_rows(forecasts[part], roots[part], labels[part], weights[part])
        state.learn_rows(forecasts[part], labels[part], weights[part], limits, wanted, out[part])


def restart_forecaster(state: QuantileForecaster, residuals: Array, roots: Array) -> None:
    """Forget all residuals and read every level as it is; the scales are those of these residuals.

    The weights of the scales stay the same.
    """
    state.levels.restart_levels()
    state.forget_residuals()
    set_medians(state.scales, np.abs(residuals), roots)


def add_residuals(state: QuantileForecaster, residuals: Array, roots: Array, sides: Array) -> None:
    """Add the residuals of some rows to those of all; the scales, levels and cells stay the same.

    Without residuals in cells, the quantiles are those of split conformal prediction.

    sides: what `side_of` returns for the labels.
    """
    for t in range(residuals.shape[0]):
        residual = residuals[t] / state.scales.mix_scales(roots[t])
        state.residuals.add_value(residual + AT_END * sides[t])
    state.fill_common()
