"""Plots of a pass and of models, one function for each; the suffix chooses PNG or SVG."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from spanboost.analysis import loss_curves
from spanboost.analysis.loss_curves import (
    COLOURS,
    INK,
    check_plot_path,
    format_amount,
    format_count,
    write,
)
from spanboost.analysis.progressive import LossTape
from spanboost.compiling.arrays import Array

SCATTERED = 2000  # draw up to this many points one by one, more as a density
WINDOWS = 60  # of the quantiles of residuals
MAP = "viridis"
THIN = {"linewidth": 0.8, "linestyle": (0, (6, 3)), "alpha": 0.7}


def save_losses(
    path: str | Path,
    losses: Mapping[str, Any],
    constant: float | None = None,
    moments: Sequence[int] = (),
) -> None:
    """Plot loss curves of models.

    losses: for each model's name, the loss of each row [rows], in order.
    constant: the average loss of the best constant prediction.
    moments: numbers of rows to mark, such as those where drift was detected.
    """
    each = [np.asarray(one, np.float64) for one in losses.values()]
    with closing(LossTape(1 + len(each))) as tape:
        tape.extend(np.column_stack([np.ones(len(each[0])), *each]))
        loss_curves.save(path, list(losses), tape, constant, moments)


def save_predictions(path: str | Path, truth: Any, predictions: Any, of: int | None = None) -> None:
    """Plot predictions against labels; `of` is the number of all rows if these are a sample."""
    check_plot_path(path)
    write(path, lambda: _predictions(np.asarray(truth), np.asarray(predictions), of))


def save_classes(
    path: str | Path, truth: Any, chances: Any, names: Sequence[str], of: int | None = None
) -> None:
    """Plot the mean predicted probabilities of the rows of each class, and their calibration.

    truth: the class of each row, [rows] integers.
    chances: the predicted probabilities, [rows, classes].
    of: the number of all rows if these are a sample.
    """
    check_plot_path(path)
    write(path, lambda: _classes(np.asarray(truth, np.int64), np.asarray(chances), names, of))


def save_residuals(
    path: str | Path,
    residuals: Any,
    rows: Any = None,
    of: int | None = None,
    name: str = "label - prediction",
) -> None:
    """Plot residuals over time.

    rows: their row numbers in the stream, counted from 1.
    of: the number of all rows if these are a sample.
    name: the label of the axis.
    """
    check_plot_path(path)
    residuals = np.asarray(residuals)
    rows = np.arange(1, len(residuals) + 1) if rows is None else np.asarray(rows)
    write(path, lambda: _residuals(residuals, rows, of, name))


def save_stages(path: str | Path, moves: Any, losses: Any) -> None:
    """Plot the two results of `analysis.partial_sums.moves_and_losses`, each [N]."""
    check_plot_path(path)
    write(path, lambda: _stages(np.asarray(moves), np.asarray(losses)))


def save_sigma(path: str | Path, rows: Any, sigma: Any) -> None:
    """Plot the shrinkage sigma of Algorithm 1, [times, N]; `rows` learned by then, [times]."""
    check_plot_path(path)
    write(path, lambda: _sigma(np.asarray(rows), np.asarray(sigma)))


def save_importances(path: str | Path, importances: Mapping[Any, float], name: str) -> None:
    """Plot feature importances, the largest first; `name` is the label of the axis."""
    check_plot_path(path)
    write(path, lambda: _importances(importances, name))


def _new_figure(width: float, height: float, panels: int = 1) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(1, panels)


def _predictions(truth: Array, predictions: Array, of: int | None) -> Any:
    figure, axes = _new_figure(6, 5)
    good = np.isfinite(truth) & np.isfinite(predictions)
    truth, predictions = truth[good], predictions[good]
    _draw_points(figure, axes, truth, predictions)
    low, high = _limits(np.append(truth, predictions))
    axes.plot([low, high], [low, high], color=INK, **THIN)
    axes.set_xlim(low, high)
    axes.set_ylim(low, high)
    axes.set_aspect("equal")
    axes.set_xlabel("label")
    axes.set_ylabel("prediction")
    axes.set_title(_title("predictions and labels", len(truth), of))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(format_amount)
    return figure


def _classes(truth: Array, chances: Array, names: Sequence[str], of: int | None) -> Any:
    figure, (matrix, calibration) = _new_figure(10, 4.6, 2)
    K = len(names)
    shares = np.array(
        [
            chances[truth == k].mean(axis=0) if (truth == k).any() else np.full(K, np.nan)
            for k in range(K)
        ]
    )
    image = matrix.imshow(shares, cmap=MAP, vmin=0, vmax=1)
    matrix.grid(visible=False)
    figure.colorbar(image, ax=matrix, label="mean probability")
    step = max(1, -(-K // 12))  # at most a dozen names
    for set_ticks in (matrix.set_xticks, matrix.set_yticks):
        set_ticks(range(0, K, step), [f"{name:.12}" for name in names[::step]])
    if K <= 8:
        for (i, j), share in np.ndenumerate(shares):
            if np.isfinite(share):
                matrix.text(
                    j,
                    i,
                    f"{share:.2f}",
                    ha="center",
                    va="center",
                    color="#ffffff" if share < 0.6 else "#000000",
                )
    matrix.set_xlabel("predicted class")
    matrix.set_ylabel("label")
    matrix.set_title(_title("mean probability of each class", len(truth), of))
    _draw_calibration(calibration, np.eye(K)[truth], chances)
    return figure


def _draw_calibration(axes: Any, outcomes: Array, chances: Array) -> None:
    """Draw the observed frequency of classes against their predicted probability.

    With two classes, only the second counts.
    """
    if chances.shape[1] == 2:
        outcomes, chances = outcomes[:, 1:], chances[:, 1:]
    bins = np.minimum((chances.ravel() * 10).astype(int), 9)
    number = np.bincount(bins, minlength=10)
    filled = number > 0
    predicted = np.bincount(bins, chances.ravel(), 10)[filled] / number[filled]
    observed = np.bincount(bins, outcomes.ravel(), 10)[filled] / number[filled]
    axes.plot([0, 1], [0, 1], color=INK, **THIN)
    axes.plot(predicted, observed, "o-", color=COLOURS[0], markersize=4)
    axes.set_aspect("equal")
    axes.set_xlabel("predicted probability")
    axes.set_ylabel("observed frequency")
    axes.set_title("calibration")


def _residuals(residuals: Array, rows: Array, of: int | None, name: str) -> Any:
    figure, axes = _new_figure(10, 4.6)
    good = np.isfinite(residuals)
    residuals, rows = residuals[good], rows[good]
    _draw_points(figure, axes, rows, residuals)
    axes.axhline(0, color=INK, **THIN)
    parts = [part for part in np.array_split(np.arange(len(rows)), WINDOWS) if len(part) >= 10]
    if parts:
        middle = [rows[part].mean() for part in parts]
        levels = np.array([np.quantile(residuals[part], (0.05, 0.5, 0.95)) for part in parts])
        for k, label in ((1, "median"), (0, "5% and 95%"), (2, "")):
            dash = "-" if k == 1 else (0, (3, 2))
            axes.plot(middle, levels[:, k], linestyle=dash, color=COLOURS[1], label=label)
        figure.legend(loc="outside lower center", ncols=2, frameon=False)
    axes.set_ylim(_limits(residuals))
    axes.set_xlabel("rows")
    axes.set_ylabel(name)
    axes.set_title(_title("residuals over time", len(rows), of))
    axes.xaxis.set_major_formatter(format_count)
    axes.yaxis.set_major_formatter(format_amount)
    return figure


def _stages(moves: Array, losses: Array) -> Any:
    from matplotlib.ticker import MaxNLocator

    figure, (left, right) = _new_figure(10, 4.2, 2)
    stage = np.arange(1, len(moves) + 1)
    left.bar(stage, moves, width=0.8, color=COLOURS[0])
    left.set_title("how far each stage moves the prediction")
    right.plot(
        stage, losses, color=COLOURS[1], marker="o" if len(stage) <= 40 else "", markersize=3
    )
    right.set_title("average loss after each stage")
    for axes in (left, right):
        axes.set_xlabel("stage")
        axes.set_xlim(0.2, len(stage) + 0.8)
        axes.xaxis.set_major_locator(MaxNLocator(8, integer=True, steps=[1, 2, 5, 10]))
        axes.yaxis.set_major_formatter(format_amount)
    return figure


def _sigma(rows: Array, sigma: Array) -> Any:
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize
    from matplotlib.ticker import MaxNLocator

    figure, axes = _new_figure(8, 4.2)
    N = sigma.shape[1]
    colours = ScalarMappable(Normalize(1, max(N, 2)), colormaps[MAP])
    each = colours.to_rgba(np.arange(1, N + 1))
    for i in range(N):
        mark = "o" if len(rows) <= 20 else ""
        axes.plot(rows, sigma[:, i], color=each[i], linewidth=1, marker=mark, markersize=3)
    if N > 1:
        figure.colorbar(colours, ax=axes, label="stage", ticks=MaxNLocator(6, integer=True))
    axes.set_ylim(-0.02, max(0.1, 1.05 * float(sigma.max(initial=0))))
    axes.set_xlabel("rows")
    axes.set_ylabel("sigma")
    axes.set_title("shrinkage sigma of Algorithm 1")
    axes.xaxis.set_major_formatter(format_count)
    return figure


def _importances(importances: Mapping[Any, float], name: str) -> Any:
    figure, axes = _new_figure(7, 1.4 + 0.28 * len(importances))
    names = [text if len(text) <= 40 else f"{text[:37]}..." for text in map(str, importances)]
    positions = np.arange(len(names))
    axes.barh(positions, list(importances.values()), color=COLOURS[0])
    axes.set_yticks(positions, names)
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set_xlabel(name)
    axes.xaxis.set_major_formatter(format_amount)
    axes.set_title("feature importance")
    return figure


def _draw_points(figure: Any, axes: Any, x: Array, y: Array) -> None:
    """Draw the points, or their density if there are many."""
    if len(x) <= SCATTERED:
        size = 14 if len(x) <= 200 else 5
        axes.scatter(x, y, s=size, color=COLOURS[0], alpha=0.6, linewidths=0)
        return
    inside = (y >= _limits(y)[0]) & (y <= _limits(y)[1])
    cells = axes.hexbin(
        x[inside], y[inside], gridsize=(60, 30), bins="log", mincnt=1, cmap=MAP, linewidths=0.1
    )
    figure.colorbar(cells, ax=axes, label="rows", format="%g")


def _limits(values: Array) -> tuple[float, float]:
    """Return a range that contains all points, or 99.9% of them if there are many."""
    if not len(values):
        return -1.0, 1.0
    cut = 0.0005 if len(values) > SCATTERED else 0.0
    low, high = np.quantile(values, (cut, 1 - cut))
    margin = 0.04 * (high - low) or 0.5 * abs(high) or 1.0
    return float(low - margin), float(high + margin)


def _title(text: str, shown: int, of: int | None) -> str:
    return text if of is None or of <= shown else f"{text}: {shown:,} of {of:,} rows"
