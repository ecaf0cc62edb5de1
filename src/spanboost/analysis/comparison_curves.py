"""Curves of comparisons: the difference of two models' average losses, with its interval."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from spanboost.analysis.figures import (
    COLOURS,
    INK,
    Panels,
    Plot,
    format_amount,
    format_count,
    inline,
    present,
)
from spanboost.compiling.arrays import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GROWTH = 32  # each row that is kept is about 1/32 later than the one before
FIRST = 10  # the first row with a band; before it, most differences are still limited
SHOWN = 30  # the range of losses covers the intervals after 1/30 of all rows


class ComparisonCurve:
    """Some of the rows of what `Comparison.add` returns: few, evenly spaced on a log scale.

    A stream of a billion rows keeps about 600. They do not depend on how rows are grouped.
    """

    def __init__(self) -> None:
        self.rows = 0  # number of all rows
        self._next = 1
        self._points: list[Array] = []
        self._last: Array = np.zeros(4)

    def add(self, after_each_row: Array) -> None:
        """Add what `Comparison.add` returned for the next rows."""
        first, self.rows = self.rows, self.rows + len(after_each_row)
        while self._next <= self.rows:
            point = after_each_row[self._next - first - 1]
            self._points.append(np.array([self._next, *point]))
            self._next += max(1, self._next // GROWTH)
        if len(after_each_row):
            self._last = np.array([self.rows, *after_each_row[-1]])

    def points(self) -> Array:
        """Return [points, 4]: row, difference, and both ends of the interval."""
        done = self._points and self._points[-1][0] == self.rows
        return np.array(self._points if done or not self.rows else [*self._points, self._last])


def plot(
    first: str,
    curves: Mapping[str, ComparisonCurve],
    path: str | Path | None = None,
    ax: "Axes | None" = None,
) -> "Axes":
    """Plot curves; see `figures.present` for `path` and `ax`.

    first: the name of the model that all others are compared with.
    curves: the curve of each other model, by its name.
    """
    return present(_plot(first, curves), path, ax)[0]


def inline_svg(first: str, curves: Mapping[str, ComparisonCurve]) -> str:
    """Return the plot as an <svg> element whose text has the colour of the page around it."""
    return inline(_plot(first, curves).figure)


def _plot(first: str, curves: Mapping[str, ComparisonCurve]) -> Plot:
    return Plot(partial(_draw, first, curves), (10, 4.6))


def _draw(first: str, curves: Mapping[str, ComparisonCurve], panels: Panels) -> None:
    from matplotlib.ticker import NullLocator

    (axes,) = panels.axes
    ends = [0.0]
    for k, (name, curve) in enumerate(curves.items(), 1):  # the colour of the loss curves
        rows, difference, low, high = curve.points().T
        colour = COLOURS[k % len(COLOURS)]
        axes.plot(rows, difference, color=colour, linewidth=1.5, label=f"{first} - {name}")
        known = np.isfinite(low) & (rows >= FIRST)
        axes.fill_between(
            rows[known], low[known], high[known], color=colour, alpha=0.2, linewidth=0
        )
        late = known & (rows >= curve.rows / SHOWN)
        ends += [*low[late], *high[late]]
    axes.axhline(0, color=INK, linewidth=0.8)
    margin = 0.08 * (max(ends) - min(ends)) or 1.0
    axes.set_ylim(min(ends) - margin, max(ends) + margin)
    axes.set_xscale("log")
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlim(0.9, 1.1 * max(curve.rows for curve in curves.values()))
    axes.set_xlabel("rows")
    axes.set_ylabel("difference of average losses")
    axes.xaxis.set_major_formatter(format_count)
    axes.yaxis.set_major_formatter(format_amount)
    axes.set_title(f"above 0: {first} has the higher loss; the bands are valid at every row")
    panels.legend(3)
