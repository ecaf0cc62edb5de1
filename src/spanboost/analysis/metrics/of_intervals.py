"""Metrics of prediction intervals and quantiles: coverage, width, pinball loss and CRPS."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from spanboost.analysis.metrics.errors import finite
from spanboost.analysis.metrics.states import fill_state, merge_states, state_to_json
from spanboost.analysis.progressive import running_totals
from spanboost.compiling.arrays import Array
from spanboost.models.quantiles.asked_levels import (
    check_increasing,
    interval_levels,
    parse_levels,
)
from spanboost.rows.label_values import to_matrix
from spanboost.rows.validation import refuse_first
from spanboost.rows.weights import check_weights


def pinball_losses(y: ArrayLike, quantiles: ArrayLike, levels: Sequence[float]) -> Array:
    """Return the pinball loss of each quantile, [rows, level].

    It is the share of the level times the distance if the label is above the quantile, and the
    rest times the distance if it is below. The true quantile has the lowest expected loss.

    >>> pinball_losses([10.0], [[8.0, 12.0]], [0.1, 0.9]).round(2).tolist()
    [[0.2, 0.2]]
    """
    values, shares = quantile_array(quantiles, len(levels)), np.asarray(levels, np.float64)
    above = label_array(y, len(values))[:, None] - values
    return np.maximum(shares * above, (shares - 1) * above)


def crps(y: ArrayLike, quantiles: ArrayLike, levels: Sequence[float]) -> Array:
    """Return the continuous ranked probability score of each row, [rows], from its quantiles.

    It is twice the integral of the pinball loss over all levels; each level counts for the levels
    that are nearest to it. For a single quantile, the median, it is the absolute error. The result
    depends on the levels: from the 19 default ones, it is 0.6 % below the exact value for a
    normal distribution. So compare it only with values from the same levels.

    levels: of the quantiles, in increasing order.

    >>> crps([10.0, 10.0], [[7.0], [12.0]], [0.5]).tolist()
    [3.0, 2.0]
    """
    check_increasing(levels, "levels")
    own = np.asarray(levels, np.float64)
    edges = np.concatenate([[0.0], (own[1:] + own[:-1]) / 2, [1.0]])
    scores: Array = 2 * (pinball_losses(y, quantiles, levels) * np.diff(edges)).sum(axis=1)
    return scores


def interval_array(intervals: ArrayLike) -> Array:
    """Return intervals as an array [rows, 2]; those of estimators may be [rows, 2, 1]."""
    ends = np.asarray(intervals, np.float64)
    if ends.ndim == 3 and ends.shape[2] == 1:
        ends = ends[:, :, 0]
    if ends.ndim != 2 or ends.shape[1] != 2:
        several = "; for one of several coverages, pass intervals[:, :, k]" * (ends.ndim == 3)
        raise ValueError(
            f"intervals must be an array of shape [rows, 2] (got {list(ends.shape)}){several}"
        )
    refuse_first(np.isnan(ends).any(axis=1), lambda t: "an end of the interval is NaN")
    refuse_first(
        ends[:, 0] > ends[:, 1],
        lambda t: f"the interval must be (low, high) (got {ends[t, 0]:g}, {ends[t, 1]:g})",
    )
    return ends


def quantile_array(quantiles: ArrayLike, levels: int) -> Array:
    """Return quantiles as an array [rows, levels]; a ValueError if they have another shape."""
    values = np.asarray(quantiles, np.float64)
    if values.ndim != 2 or values.shape[1] != levels:
        raise ValueError(
            f"quantiles must be an array of shape [rows, {levels}], with a column for each level "
            f"(got {list(values.shape)})"
        )
    refuse_first(np.isnan(values).any(axis=1), lambda t: "a quantile is NaN")
    return values


def label_array(y: ArrayLike, rows: int) -> Array:
    """Return labels as an array [rows]; a ValueError if they are not one finite number per row."""
    labels = to_matrix(y, rows, 1, "labels")[:, 0]
    refuse_first(~np.isfinite(labels), lambda t: f"the label must be finite (got {labels[t]:g})")
    return labels


class FiniteMeans(NamedTuple):
    """Weighted sums of several values; a row whose value is infinite is left out of its mean."""

    sums: Array  # [values, 3] weights of all rows, weights of rows with a finite value, values

    def add(self, weights: Array, values: Array) -> None:
        """Add rows: values [rows, values]."""
        if not len(weights):
            return
        known = np.isfinite(values)
        each = np.repeat(weights[:, None], values.shape[1], axis=1)
        finite_weights = np.where(known, each, 0.0)
        gains = np.stack([each, finite_weights, finite_weights * np.where(known, values, 0.0)], 2)
        flat = gains.reshape(len(weights), -1)
        self.sums[...] = running_totals(self.sums.ravel(), flat)[-1].reshape(self.sums.shape)

    def means(self) -> list[float | None]:
        """Return the mean of each value; None without rows."""
        with np.errstate(all="ignore"):
            return [finite(mean) for mean in self.sums[:, 2] / self.sums[:, 1]]

    def left_out(self, k: int) -> float | None:
        """Return the share of rows whose value k is infinite."""
        total, known, _ = self.sums[k].tolist()
        return 1 - known / total if total > 0 else None


def new_finite_means(values: int) -> FiniteMeans:
    """Return the sums over no rows."""
    return FiniteMeans(np.zeros((values, 3)))


class _Means:
    """Base class of metrics that are means over rows."""

    def __init__(self, state: dict[str, Any] | None = None) -> None:
        self.rows, self._sums = 0, new_finite_means(self.values)
        if state is not None:
            fill_state(self._sums, state.get("sums"))
            self.rows = int(state["rows"])

    values = 1  # numbers that a row adds

    def __repr__(self) -> str:
        known = {name: value for name, value in self.results().items() if value is not None}
        metrics = ", ".join(f"{name} {value:z.4g}" for name, value in known.items())
        rows = f"{self.rows:,} row{'' if self.rows == 1 else 's'}"
        return f"<{type(self).__name__}: {rows}{'; ' if metrics else ''}{metrics}>"

    def results(self) -> dict[str, float | None]:
        """Return the metrics by name; None if undefined."""
        raise NotImplementedError

    def state(self) -> dict[str, Any]:
        """Return everything as JSON values, to continue later."""
        return {"rows": self.rows, "sums": state_to_json(self._sums)}

    def _add(self, values: Array, weights: Any) -> None:
        self._sums.add(check_weights(weights, len(values), True, np.float64), values)
        self.rows += len(values)

    def _merge(self, other: Self, both: Self) -> Self:
        both._sums, both.rows = merge_states(self._sums, other._sums), self.rows + other.rows
        return both


class IntervalMetrics(_Means):
    """Coverage, width and pinball loss of intervals, updated row by row in constant memory.

    coverage: the share of labels that the intervals should cover.
    state: what `state` returned, to continue.

    `results` returns the metrics by name:

    - coverage: the share of labels inside, both ends included
    - width: the mean width
    - pinball_loss: the mean of the pinball losses of both ends; lower is better
    - infinite: the share of rows whose interval is infinite; width and pinball loss are means over
      the other rows

    Rows count with their weights. The sum of two `IntervalMetrics` has the metrics of all rows.

    >>> metrics = IntervalMetrics(coverage=0.8)
    >>> metrics.add([1.0, 2.0, 9.0], [[0.0, 2.0], [1.0, 5.0], [2.0, 8.0]])
    >>> {name: round(value, 4) for name, value in metrics.results().items()}
    {'coverage': 0.6667, 'width': 4.0, 'pinball_loss': 0.3667, 'infinite': 0.0}
    """

    values = 3

    def __init__(self, coverage: float = 0.9, state: dict[str, Any] | None = None) -> None:
        self.coverage, self.levels = coverage, interval_levels(coverage)
        super().__init__(state)

    def add(self, y: ArrayLike, intervals: ArrayLike, weights: ArrayLike | None = None) -> None:
        """Add rows: their labels, the intervals [rows, 2] or [rows, 2, 1], and their weights."""
        ends = interval_array(intervals)
        labels, (low, high) = label_array(y, len(ends)), ends.T
        inside = (low <= labels) & (labels <= high)
        with np.errstate(all="ignore"):  # infinite ends
            losses = pinball_losses(labels, ends, self.levels).mean(axis=1)
            values = np.column_stack([inside, high - low, losses])
        self._add(values, weights)

    def results(self) -> dict[str, float | None]:
        """Return the metrics by name; None if undefined."""
        names = ("coverage", "width", "pinball_loss")
        means = dict(zip(names, self._sums.means(), strict=True))
        return means | {"infinite": self._sums.left_out(1)}

    def __add__(self, other: Self) -> IntervalMetrics:
        if self.coverage != other.coverage:
            raise ValueError(
                f"the intervals have different coverages: {self.coverage} and {other.coverage}"
            )
        return self._merge(other, type(self)(self.coverage))


class QuantileMetrics(_Means):
    """CRPS and pinball loss of quantiles, updated row by row in constant memory.

    levels: the levels of the quantiles, in increasing order.
    state: what `state` returned, to continue.

    `results` returns the means over all rows: `crps`, the continuous ranked probability score, and
    `pinball_loss`, the average over the levels. Rows with infinite quantiles are left out. The CRPS
    is that of these levels: from the 19 default ones, it is 0.6 % below the exact value for a
    normal distribution. Compare it only with values from the same levels.

    >>> metrics = QuantileMetrics([0.25, 0.5, 0.75])
    >>> metrics.add([1.0, 2.0], [[0.0, 1.0, 2.0], [0.0, 3.0, 4.0]])
    >>> {name: round(value, 4) for name, value in metrics.results().items()}
    {'crps': 0.6875, 'pinball_loss': 0.3333}
    """

    values = 2

    def __init__(self, levels: Sequence[float], state: dict[str, Any] | None = None) -> None:
        self.levels = tuple(parse_levels(levels, "levels"))
        check_increasing(self.levels, "levels")
        super().__init__(state)

    def add(self, y: ArrayLike, quantiles: ArrayLike, weights: ArrayLike | None = None) -> None:
        """Add rows: their labels, the quantiles [rows, level], and their weights."""
        with np.errstate(all="ignore"):  # infinite quantiles
            scores = crps(y, quantiles, self.levels)
            losses = pinball_losses(y, quantiles, self.levels).mean(axis=1)
        self._add(np.column_stack([scores, losses]), weights)

    def results(self) -> dict[str, float | None]:
        """Return the metrics by name; None if undefined."""
        return dict(zip(("crps", "pinball_loss"), self._sums.means(), strict=True))

    def __add__(self, other: Self) -> QuantileMetrics:
        if self.levels != other.levels:
            raise ValueError("the quantiles have different levels")
        return self._merge(other, type(self)(self.levels))
