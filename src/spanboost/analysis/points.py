"""Clouds of points in plots, or their density if there are many."""

from typing import Any

import numpy as np

from spanboost.analysis.figures import COLOURS
from spanboost.compiling.arrays import Array

SCATTERED = 2000  # draw up to this many points one by one, more as a density
MAP = "viridis"


def draw_points(axes: Any, x: Array, y: Array) -> None:
    """Draw the points, or their density if there are many."""
    from matplotlib.ticker import LogLocator

    if len(x) <= SCATTERED:
        size = 14 if len(x) <= 200 else 5
        axes.scatter(x, y, s=size, color=COLOURS[0], alpha=0.6, linewidths=0)
        return
    inside = (y >= limits_of(y)[0]) & (y <= limits_of(y)[1])
    cells = axes.hexbin(
        x[inside], y[inside], gridsize=(60, 30), bins="log", mincnt=1, cmap=MAP, linewidths=0.1
    )
    bar = axes.inset_axes((1.03, 0, 0.03, 1))  # as high as the plot, whatever its shape
    ticks = LogLocator(subs=(1, 2, 5))
    axes.figure.colorbar(cells, cax=bar, label="rows", format="%g", ticks=ticks).minorticks_off()


def limits_of(values: Array) -> tuple[float, float]:
    """Return a range that contains all points, or 99.9% of them if there are many."""
    if not len(values):
        return -1.0, 1.0
    cut = 0.0005 if len(values) > SCATTERED else 0.0
    low, high = np.quantile(values, (cut, 1 - cut))
    margin = 0.04 * (high - low) or 0.5 * abs(high) or 1.0
    return float(low - margin), float(high + margin)
