"""A plot of intervals: the band around the last labels, and the coverage over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

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
from spanboost.analysis.metrics.of_intervals import interval_array, label_array
from spanboost.analysis.metrics.tape import window_ends
from spanboost.compiling.arrays import Array
from spanboost.models.quantiles.asked_levels import interval_levels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LAST = 200  # rows in the band
WINDOWS = 60  # points of the coverage over time
THIN: dict[str, Any] = {"linewidth": 0.8, "linestyle": (0, (6, 3)), "alpha": 0.7}


class IntervalPicture(NamedTuple):
    """What the plot shows."""

    labels: Array  # [last] of the last rows
    ends: Array  # [last, 2] their intervals
    predictions: Array | None  # [last]
    coverage: float  # of the intervals
    curves: Mapping[float, Array]  # [windows, 2] last row and coverage, by what was asked for


def plot_intervals(
    y: ArrayLike,
    intervals: ArrayLike,
    predictions: ArrayLike | None = None,
    coverage: float = 0.9,
    *,
    path: str | Path | None = None,
    ax: Sequence[Axes] | None = None,
) -> tuple[Axes, Axes]:
    """Plot intervals with the labels of the last 200 rows, and the coverage over all rows.

    y: the labels, [rows]. intervals: [rows, 2], or [rows, 2, 1] as from an estimator.
    predictions: [rows], drawn as a line.
    coverage: the share of labels that the intervals should cover.
    """
    ends = interval_array(intervals)
    labels = label_array(y, len(ends))
    interval_levels(coverage)  # it checks the coverage
    rows = len(labels)
    inside = np.append(0, np.cumsum((ends[:, 0] <= labels) & (labels <= ends[:, 1])))
    windows = np.array(window_ends(rows, WINDOWS))
    curve = np.column_stack([windows[1:], np.diff(inside[windows]) / np.diff(windows)])
    middle = None if predictions is None else np.asarray(predictions, np.float64)[-LAST:]
    picture = IntervalPicture(labels[-LAST:], ends[-LAST:], middle, coverage, {coverage: curve})
    return present_intervals(picture, path, ax)


def present_intervals(
    picture: IntervalPicture, path: str | Path | None, ax: Sequence[Axes] | None = None
) -> tuple[Axes, Axes]:
    """Plot what is computed already; see `figures.present` for `path` and `ax`."""
    left, right = present(_plot(picture), path, ax)
    return left, right


def inline_intervals(picture: IntervalPicture) -> str:
    """Return the plot as an <svg> element."""
    return inline(_plot(picture).figure)


def _plot(picture: IntervalPicture) -> Plot:
    return Plot(partial(_draw, picture), (10, 4.6), 2)


def _draw(picture: IntervalPicture, panels: Panels) -> None:
    left, right = panels.axes
    rows = int(picture.curves[picture.coverage][-1, 0])
    _draw_band(left, picture, rows)
    for k, (asked, curve) in enumerate(picture.curves.items()):
        colour, marker = COLOURS[k % len(COLOURS)], "o" if len(curve) <= 20 else ""
        style = {"linewidth": 1.5, "marker": marker, "markersize": 3.5}
        right.plot(*curve.T, color=colour, label=f"{asked:g}", **style)
        right.axhline(asked, color=colour, **THIN)
    least = min(min(asked, np.nanmin(one[:, 1])) for asked, one in picture.curves.items())
    right.set_ylim(max(-0.02, min(0.6, least - 0.1)), 1.02)
    right.set_xlim(0, 1.02 * rows)
    right.set_title("coverage in windows (dashed: asked for)", pad=24)
    right.set_ylabel("share of labels inside")
    right.set_xlabel("rows")
    right.xaxis.set_major_formatter(format_count)
    if len(picture.curves) > 1:
        right.legend(frameon=False, loc="lower right", ncols=len(picture.curves))


def _draw_band(axes: Any, picture: IntervalPicture, rows: int) -> None:
    labels, ends = picture.labels, picture.ends
    numbers = np.arange(rows - len(labels), rows) + 1
    inside = np.logical_and(ends[:, 0] <= labels, labels <= ends[:, 1])
    finite = np.isfinite(ends).all(axis=1, keepdims=True)
    low, high = np.where(finite, ends, np.nan).T
    axes.fill_between(numbers, low, high, color=COLOURS[0], alpha=0.25, linewidth=0, step="mid")
    if picture.predictions is not None:
        axes.step(numbers, picture.predictions, where="mid", color=COLOURS[0], linewidth=0.8)
    axes.plot(numbers[inside], labels[inside], ".", color=INK, markersize=4, label="label inside")
    outside = {"color": COLOURS[1], "markersize": 5, "label": "label outside"}
    missed = np.flatnonzero(~inside)
    axes.plot(numbers[missed], labels[missed], "x", **outside)
    axes.set_title(f"{picture.coverage:g} intervals of the last {len(labels):,} rows", pad=24)
    axes.set_xlabel("row")
    axes.yaxis.set_major_formatter(format_amount)
    # above the panel: inside, it would cover labels
    axes.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderaxespad=0.2)
