"""A plot of where the regret of a booster comes from: cause by cause, and stage by stage."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spanboost.analysis.figures import (
    COLOURS,
    INK,
    Panels,
    Plot,
    format_amount,
    inline,
    present,
)
from spanboost.compiling.arrays import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Regret(NamedTuple):
    """A regret, and the terms of a bound on it."""

    comparator: str
    regret: float
    terms: Mapping[str, float]  # the bound by cause
    stages: Mapping[str, Array]  # those causes that arise in stages, [N] each


def plot_regret(
    regret: Regret, path: str | Path | None = None, ax: "Sequence[Axes] | None" = None
) -> "tuple[Axes, Axes]":
    """Plot a measured bound on a regret; see `figures.present` for `path` and `ax`."""
    causes, stages = present(_plot(regret), path, ax)
    return causes, stages


def inline_regret(regret: Regret) -> str:
    """Return the plot as an <svg> element."""
    return inline(_plot(regret).figure)


def _plot(regret: Regret) -> Plot:
    return Plot(partial(_draw, regret), (10, 4.6), 2)


def _draw(regret: Regret, panels: Panels) -> None:
    causes, stages = panels.axes
    names = list(regret.stages)  # the others are grey
    colours = {name: COLOURS[k % len(COLOURS)] for k, name in enumerate(names)}
    _draw_causes(causes, regret, colours)
    _draw_stages(stages, regret, colours)
    if panels.own:
        panels.figure.suptitle(f"regret against {regret.comparator}", fontsize=11)


def _draw_causes(axes: Any, regret: Regret, colours: Mapping[str, str]) -> None:
    """Draw a waterfall: each cause starts where the causes above it end."""
    from matplotlib.ticker import MaxNLocator

    ends = np.cumsum([0.0, *regret.terms.values()])
    for k, (name, value) in enumerate(regret.terms.items()):
        axes.barh(k, value, left=ends[k], height=0.7, color=colours.get(name, "#8c8c8c"))
        _write_value(axes, k, max(ends[k], ends[k + 1]), value, "+")
    last = len(regret.terms)
    for k, value in ((last, float(ends[-1])), (last + 1, regret.regret)):
        axes.barh(k, value, height=0.7, color=INK, alpha=0.75)
        _write_value(axes, k, max(value, 0.0), value, "")
    axes.set_yticks(range(last + 2), [*regret.terms, "measured bound", "regret"])
    axes.invert_yaxis()
    axes.axvline(0, color=INK, linewidth=0.8)
    low, high = min(ends.min(), regret.regret, 0.0), max(ends.max(), regret.regret, 0.0)
    axes.set_xlim(low - 0.03 * (high - low), high + 0.25 * (high - low))  # room for the numbers
    axes.grid(visible=False, axis="y")
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.xaxis.set_major_formatter(format_amount)
    axes.set_xlabel("loss, summed over all rows")
    axes.set_title("what the bound consists of")


def _write_value(axes: Any, k: int, x: float, value: float, sign: str) -> None:
    kind = ",.0f" if 1000 <= abs(value) < 1e7 else ".3g"
    text = f" {value:{sign}{kind}}"
    axes.text(x, k, text, va="center", fontsize=9)


def _draw_stages(axes: Any, regret: Regret, colours: Mapping[str, str]) -> None:
    """Draw the cost of each stage, stacked: positive causes upwards, negative ones downwards."""
    from matplotlib.ticker import MaxNLocator

    N = len(next(iter(regret.stages.values())))
    stage = np.arange(1, N + 1)
    up, down = np.zeros(N), np.zeros(N)
    for name, values in regret.stages.items():
        bottom = np.where(values >= 0, up, down)
        axes.bar(stage, values, 0.85, bottom=bottom, color=colours.get(name), label=name)
        up += np.maximum(values, 0)
        down += np.minimum(values, 0)
    total = sum(regret.stages.values(), np.zeros(N))
    marker = "o" if N <= 60 else ""
    axes.plot(stage, total, color=INK, linewidth=1.2, marker=marker, markersize=3, label="sum")
    axes.axhline(0, color=INK, linewidth=0.8)
    axes.set_xlim(0.2, N + 0.8)
    room = 0.05 * max(up.max() - down.min(), np.finfo(float).tiny)  # no bar ends at the edge
    axes.set_ylim(down.min() - room, up.max() + room)
    axes.xaxis.set_major_locator(MaxNLocator(8, integer=True, steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_formatter(format_amount)
    axes.set_xlabel("stage")
    axes.set_title("what each stage adds to it")
    axes.legend(frameon=False, fontsize=9, loc="upper right")
