"""Plots of a sweep: the loss over the number of copies, and over each parameter."""

from pathlib import Path
from typing import Any

import numpy as np

from spanboost.analysis.loss_curves import COLOURS, INK, format_amount, write
from spanboost.compiling.arrays import Array
from spanboost.tuning.grid import BOOSTERS
from spanboost.tuning.search import Choice, Tuned

CURVES = len(COLOURS)  # configurations that are drawn over the number of copies
ACROSS = 3  # plots beside each other
NAMES = {"eta": "step eta", "rate": "learning rate", "scale": "scale lambda"}


def save(path: str | Path, tuned: Tuned) -> None:
    """Draw into a file, PNG or SVG by its suffix; the same losses give the same bytes."""
    write(path, lambda: _figure(tuned))


def names_of(tuned: Tuned) -> list[str]:
    """The parameters that have more than one value."""
    names = dict.fromkeys(name for one in tuned.configurations for name in one.settings)
    return [name for name in names if len(values_of(tuned, name)) > 1]


def values_of(tuned: Tuned, name: str) -> list[Any]:
    """What a parameter is tried with, in order."""
    found = [one.settings[name] for one in tuned.configurations if name in one.settings]
    return sorted(set(found), key=lambda value: (isinstance(value, str), value))


def words(settings: dict[str, Any], names: list[str]) -> str:
    """What tells a configuration from the others."""
    parts = [f"{name} {settings[name]}" for name in names if name in settings]
    return ", ".join(part.removeprefix("booster ").removeprefix("feedback ") for part in parts)


def _figure(tuned: Tuned) -> Any:
    from matplotlib.figure import Figure

    names = names_of(tuned)
    swept = [name for name in names if name != "booster"]
    number = 1 + len(swept)
    across = 2 if number in (2, 4) else min(ACROSS, number)
    down = -(-number // across)
    figure = Figure(figsize=(4.4 * across, 3.6 * down + 0.8), layout="constrained")
    all_axes = figure.subplots(down, across, squeeze=False).ravel()
    best = tuned.best()
    _over_copies(all_axes[0], tuned, names, best)
    for axes, name in zip(all_axes[1:], swept, strict=False):
        _over_values(axes, tuned, name, best)
    for axes in all_axes[:number]:
        axes.yaxis.set_major_formatter(format_amount)
    for axes in all_axes[number:]:
        axes.remove()
    handles, labels = all_axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(across, 2), frameon=False)
    return figure


def _over_copies(axes: Any, tuned: Tuned, names: list[str], best: Choice) -> None:
    """The best configurations, on the first part and, dashed, on the rest."""
    copies = np.arange(1, tuned.loss_first.shape[1] + 1)
    shown: list[Array] = []
    for k, one in enumerate(_drawn_configurations(tuned)):
        losses = tuned.loss_first[one.configuration], tuned.loss_rest[one.configuration]
        look = {"color": COLOURS[k], "linewidth": 1.5, "markersize": 3.5}
        if np.isfinite(losses[0]).sum() == 1:
            look["marker"] = "o"
        axes.plot(copies, losses[0], label=words(one.settings, names), **look)
        axes.plot(copies, losses[1], linestyle=(0, (2, 1.5)), **look | {"linewidth": 1.0})
        shown += losses
    _ring(axes, best.n, best.loss_first)
    _fit(axes, np.concatenate(shown))
    axes.set_title("loss of the first part; dashed: of the rest")
    axes.set_xlabel("copies n")


def _drawn_configurations(tuned: Tuned) -> list[Choice]:
    """The best ones, and at least one of either booster."""
    each = tuned.best_of_each()
    shown, rest = each[:CURVES], each[CURVES:]
    boosters = {one.settings["booster"] for one in shown}
    other = [one for one in rest if one.settings["booster"] not in boosters]
    return [*shown[:-1], other[0]] if other else shown


def _over_values(axes: Any, tuned: Tuned, name: str, best: Choice) -> None:
    """The best that each value of a parameter leads to, of either booster."""
    values = values_of(tuned, name)
    worded = any(isinstance(value, str | bool | None) for value in values)
    places = list(range(len(values))) if worded else values
    for k, booster in enumerate(BOOSTERS):
        losses = [_least(tuned, booster, name, value) for value in values]
        if np.isfinite(losses).any():
            axes.plot(places, losses, "o-", color=INK, alpha=(1, 0.45)[k], markersize=4)
            last = np.flatnonzero(np.isfinite(losses))[-1]
            axes.annotate(
                booster, (places[last], losses[last]), xytext=(4, 4), textcoords="offset points"
            )
    if name in best.settings:
        _ring(axes, places[values.index(best.settings[name])], best.loss_first)
    if worded:
        axes.set_xticks(places, map(str, values))
    elif min(values) > 0 and max(values) >= 8 * min(values):
        axes.set_xscale("log")
        axes.set_xticks(values, [f"{value:g}" for value in values])
        axes.minorticks_off()
    axes.margins(x=0.12)
    axes.set_title("least loss of the first part")
    axes.set_xlabel(NAMES.get(name, name))


def _least(tuned: Tuned, booster: str, name: str, value: Any) -> float:
    try:
        return tuned.best(booster=booster, **{name: value}).loss_first
    except ValueError:  # the booster has no such parameter, or everything was too much for it
        return float("nan")


def _ring(axes: Any, x: float, y: float) -> None:
    axes.plot([x], [y], "o", color=INK, markersize=9, markerfacecolor="none")


def _fit(axes: Any, losses: Array) -> None:
    """The few copies that lose far more than the rest leave the picture."""
    losses = losses[np.isfinite(losses)]
    low, high = losses.min(), np.quantile(losses, 0.9)
    if losses.max() > low + 3 * (high - low) > low:
        axes.set_ylim(low - 0.1 * (high - low), low + 2 * (high - low))
