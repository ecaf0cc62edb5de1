"""Loss curves of a pass: each model's running average, and its average over each window of rows.

The other plots, in the same style, are in pictures.py.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
from spanboost.analysis.progressive import LossTape
from spanboost.compiling.arrays import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WINDOWS = 200  # most windows
FEWEST = 20  # windows of a short stream
ROWS = 100  # in a window of a longer one, at least: averages of few rows are mostly noise
POINTS = 400  # points of a running average; more draw the same line
DASHES = ("-", "--", ":")


def plot(
    names: Sequence[str],
    tape: LossTape,
    constant: float | None,
    moments: Sequence[int] = (),
    path: str | Path | None = None,
    ax: "Sequence[Axes] | None" = None,
) -> "tuple[Axes, Axes]":
    """Plot loss curves; see `figures.present` for `path` and `ax`.

    The same losses give the same bytes.

    names: the models' names, in the order of the tape's columns.
    constant: the average loss of the best constant prediction, drawn as a line.
    moments: numbers of rows to mark, such as those where drift was detected.
    """
    running, window = present(_plot(names, tape, constant, moments), path, ax)
    return running, window


def inline_svg(
    names: Sequence[str], tape: LossTape, constant: float | None, moments: Sequence[int] = ()
) -> str:
    """Return loss curves as an <svg> element whose text has the colour of the page around it."""
    return inline(_plot(names, tape, constant, moments).figure)


def running_averages(tape: LossTape) -> tuple[Array, Array]:
    """Return row numbers, evenly spaced on a log scale, and each model's running average loss."""
    rows = np.unique(np.geomspace(1, tape.rows, POINTS).round().astype(np.int64))
    return rows, _averages(tape.sums([0, *rows.tolist()]).cumsum(axis=0))


def window_averages(tape: LossTape) -> tuple[Array, Array]:
    """Return the last rows of equal windows, and each model's average loss in them.

    There are 20 to about 200 windows, of at least 100 rows if the stream is long enough. With fewer
    than 30 rows, every row is a window. The last window also has the remaining rows.
    """
    length = max(1, round(max(tape.rows / WINDOWS, min(ROWS, tape.rows / FEWEST))))
    ends = np.arange(length, tape.rows + 1, length)
    ends[-1] = tape.rows
    return ends, _averages(tape.sums([0, *ends.tolist()]))


def _averages(sums: Array) -> Array:
    """Return average losses from sums; NaN where the weights are all 0."""
    weights = np.where(sums[:, :1] > 0, sums[:, :1], np.nan)
    averages: Array = sums[:, 1:] / weights
    return averages


def _plot(
    names: Sequence[str], tape: LossTape, constant: float | None, moments: Sequence[int]
) -> Plot:
    return Plot(partial(_draw, names, tape, constant, moments), (10, 4.6), 2)


def _draw(
    names: Sequence[str],
    tape: LossTape,
    constant: float | None,
    moments: Sequence[int],
    panels: Panels,
) -> None:
    from matplotlib.ticker import MaxNLocator, NullLocator

    running, window = panels.axes
    rows, averages = running_averages(tape)
    _curves(running, rows, averages, names, constant)
    _scale_losses(running, averages, ratio=3)
    running.set_xscale("log")
    running.xaxis.set_minor_locator(NullLocator())
    running.set_xlim(0.9, 1.1 * tape.rows)
    running.set_title("running average loss")
    ends, averages = window_averages(tape)
    _curves(window, ends, averages, names, constant)
    # losses of single rows vary more
    _scale_losses(window, averages, ratio=3 if ends[0] > 1 else 1000)
    window.xaxis.set_major_locator(MaxNLocator(5, integer=True, steps=[1, 2, 5, 10]))
    window.set_xlim(0, 1.02 * tape.rows)
    window.set_title(
        f"average loss in windows of {ends[0]:,} rows" if ends[0] > 1 else "loss of each row"
    )
    for axes in (running, window):
        for k, moment in enumerate(moments):
            mark = {"color": COLOURS[4], "linewidth": 1.2, "linestyle": (0, (2, 2)), "zorder": 1}
            axes.axvline(moment, label="" if k else "drift", **mark)
        axes.set_xlabel("rows")
        axes.set_ylabel("loss")
        axes.xaxis.set_major_formatter(format_count)
        axes.yaxis.set_major_formatter(format_amount)
    panels.legend(4)


def _curves(
    axes: Any, rows: Array, averages: Array, names: Sequence[str], constant: float | None
) -> None:
    for k, name in enumerate(names):
        axes.plot(
            rows,
            averages[:, k],
            DASHES[k // len(COLOURS) % len(DASHES)],
            color=COLOURS[k % len(COLOURS)],
            linewidth=1.5,
            marker="o" if len(rows) <= 20 else "",
            markersize=3.5,
            label=name,
        )
    if constant is not None:
        thin = {"linewidth": 0.8, "linestyle": (0, (6, 3)), "alpha": 0.7}
        axes.axhline(constant, color=INK, label="best constant", **thin)


def _scale_losses(axes: Any, averages: Array, ratio: float) -> None:
    """Use a log scale if the largest loss is more than `ratio` times the median."""
    from matplotlib.ticker import LogLocator, NullLocator

    finite = averages[np.isfinite(averages)]
    losses = finite[finite > 0]
    if len(losses) <= 0.9 * len(finite) or losses.max() <= ratio * np.median(losses):
        return
    axes.set_yscale("log", nonpositive="mask")
    few = losses.max() < 1e3 * losses.min()
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if few else (1,)))
    axes.yaxis.set_minor_locator(NullLocator())
