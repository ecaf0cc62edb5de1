"""Plots of a tuning run: the loss by number of copies, and by each parameter."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spanboost.analysis.figures import COLOURS, INK, Panels, Plot, format_amount, present
from spanboost.compiling.arrays import Array
from spanboost.tuning.grid import BOOSTERS
from spanboost.tuning.result import (
    Choice,
    TuningResult,
    describe,
    values_of,
    varied_names,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CURVES = len(COLOURS)  # configurations in the plot by number of copies
ACROSS = 3  # most plots in a line
NAMES = {"eta": "step eta", "rate": "learning rate", "scale": "scale lambda"}


def plot(
    tuned: TuningResult, path: str | Path | None = None, ax: "Sequence[Axes] | None" = None
) -> "tuple[Axes, ...]":
    """Plot a tuning run, and return one axes for the copies and for each parameter.

    The same losses give the same bytes.

    path: the file to write, PNG or SVG; None shows the plots in notebooks.
    ax: axes to draw into, as many as there are plots.
    """
    number = 1 + len(_swept(tuned))
    across = 2 if number in (2, 4) else min(ACROSS, number)
    size = 4.4 * across, 3.6 * -(-number // across) + 0.8
    return present(Plot(partial(_draw, tuned), size, number, across), path, ax)


def _swept(tuned: TuningResult) -> list[str]:
    """Return the parameters with more than one value, apart from the booster."""
    return [name for name in varied_names(tuned) if name != "booster"]


def _draw(tuned: TuningResult, panels: Panels) -> None:
    by_copies, *others = panels.axes
    best = tuned.best()
    _plot_by_copies(by_copies, tuned, varied_names(tuned), best)
    for axes, name in zip(others, _swept(tuned), strict=True):
        _plot_by_value(axes, tuned, name, best)
    for axes in panels.axes:
        axes.yaxis.set_major_formatter(format_amount)
        axes.set_ylabel("average loss")
    panels.legend(min(2, len(panels.axes)))


def _plot_by_copies(axes: Any, tuned: TuningResult, names: list[str], best: Choice) -> None:
    """Plot the best configurations: solid on the first part, dashed on the rest."""
    from matplotlib.ticker import MaxNLocator

    copies = np.arange(1, tuned.loss_first.shape[1] + 1)
    shown: list[Array] = []
    for k, one in enumerate(_configurations_to_draw(tuned)):
        losses = tuned.loss_first[one.configuration], tuned.loss_rest[one.configuration]
        look = {"color": COLOURS[k], "linewidth": 1.5, "markersize": 3.5}
        if np.isfinite(losses[0]).sum() == 1:
            look["marker"] = "o"
        axes.plot(copies, losses[0], label=describe(one.settings, names), **look)
        axes.plot(copies, losses[1], linestyle=(0, (2, 1.5)), **look | {"linewidth": 1.0})
        shown += losses
    _mark_best(axes, best.n, best.loss_first)
    _limit_losses(axes, np.concatenate(shown))
    axes.set_title("loss on the first part (dashed: the rest)")
    axes.set_xlabel("copies n")
    axes.xaxis.set_major_locator(MaxNLocator(7, integer=True))


def _configurations_to_draw(tuned: TuningResult) -> list[Choice]:
    """Return the best configurations, with at least one of each booster."""
    each = tuned.best_of_each()
    shown, rest = each[:CURVES], each[CURVES:]
    boosters = {one.settings["booster"] for one in shown}
    other = [one for one in rest if one.settings["booster"] not in boosters]
    return [*shown[:-1], other[0]] if other else shown


def _plot_by_value(axes: Any, tuned: TuningResult, name: str, best: Choice) -> None:
    """Plot the least loss for each value of a parameter, by booster."""
    values = values_of(tuned, name)
    categorical = any(isinstance(value, str | bool | None) for value in values)
    positions = list(range(len(values))) if categorical else values
    for k, booster in enumerate(BOOSTERS):
        losses = [_least_loss(tuned, booster, name, value) for value in values]
        if np.isfinite(losses).any():
            axes.plot(positions, losses, "o-", color=INK, alpha=(1, 0.45)[k], markersize=4)
            last = np.flatnonzero(np.isfinite(losses))[-1]
            above = (4, (4, -12)[k])  # one name above its line, one below: lines can coincide
            place = (positions[last], losses[last])
            axes.annotate(booster, place, xytext=above, textcoords="offset points")
    if name in best.settings:
        _mark_best(axes, positions[values.index(best.settings[name])], best.loss_first)
    if categorical:
        axes.set_xticks(positions, map(str, values))
    elif min(values) > 0 and max(values) >= 8 * min(values):
        axes.set_xscale("log")
        axes.set_xticks(values, [f"{value:g}" for value in values])
        axes.minorticks_off()
    axes.margins(x=0.12)
    axes.set_title("least loss on the first part")
    axes.set_xlabel(NAMES.get(name, name))


def _least_loss(tuned: TuningResult, booster: str, name: str, value: Any) -> float:
    try:
        return tuned.best(booster=booster, **{name: value}).loss_first
    except ValueError:  # the booster has no such parameter, or no finite loss with it
        return float("nan")


def _mark_best(axes: Any, x: float, y: float) -> None:
    axes.plot([x], [y], "o", color=INK, markersize=9, markerfacecolor="none")


def _limit_losses(axes: Any, losses: Array) -> None:
    """Limit the axis so that a few much larger losses do not hide the others."""
    losses = losses[np.isfinite(losses)]
    low, high = losses.min(), np.quantile(losses, 0.9)
    if losses.max() > low + 3 * (high - low) > low:
        axes.set_ylim(low - 0.1 * (high - low), low + 2 * (high - low))
