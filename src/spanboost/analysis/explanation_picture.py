"""The plot of an explanation: bars from the base to the prediction."""

from __future__ import annotations

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
    format_rounded,
    limit_ticks,
    present,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from spanboost.analysis.explanation import Explanation

_NAME = 40  # characters of the name of a feature


def plot(
    explanation: Explanation, what: str, most: int, path: str | Path | None, ax: Axes | None
) -> Axes:
    """Plot an explanation of a number; `Explanation.plot` describes the other parameters.

    what: what the parts add up to, in words.
    """
    size = 7, 1.6 + 0.3 * len(explanation.main_parts(most))
    return present(Plot(partial(_draw, explanation, what, most), size), path, ax)[0]


def _draw(explanation: Explanation, what: str, most: int, panels: Panels) -> None:
    (axes,) = panels.axes
    base, *parts = explanation.main_parts(most)
    amounts = np.array([part.amount for part in parts], np.float64)
    ends = base.amount + np.cumsum(amounts)
    positions = np.arange(len(parts))
    colours = [COLOURS[0] if amount >= 0 else COLOURS[1] for amount in amounts]
    axes.barh(positions, amounts, left=ends - amounts, height=0.6, color=colours)
    for position, amount, end in zip(positions, amounts, ends, strict=True):
        axes.annotate(
            format_rounded(amount, "+"),
            (max(end, end - amount), position),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize="small",
        )
    names = [name if len(name) <= _NAME else f"{name[: _NAME - 3]}..." for name, _ in parts]
    axes.set_yticks(positions, names)
    axes.invert_yaxis()
    values = [base.amount, *ends]
    width = axes.get_window_extent().width / axes.figure.dpi
    share = min(0.75 / width, 0.4)  # three quarters of an inch for the numbers next to the bars
    room = share * (max(values) - min(values)) / (1 - share) or 1.0
    axes.set_xlim(min(values) - room / 4, max(values) + room)
    axes.set_axisbelow(True)
    axes.grid(visible=False, axis="y")
    for amount, style in ((base.amount, ":"), (explanation.prediction, "-")):
        axes.axvline(amount, color=INK, linewidth=0.8, linestyle=style)
    axes.set_xlabel(what)
    limit_ticks(axes)
    axes.xaxis.set_major_formatter(format_amount)
    limits = format_rounded(base.amount), format_rounded(explanation.prediction)
    space = " " if panels.own else "\n"  # axes of the user may be narrow
    axes.set_title(f"base {limits[0]},{space}{what} {limits[1]}")
