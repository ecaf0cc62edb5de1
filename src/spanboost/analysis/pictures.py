"""Plots of a pass and of models, one function for each.

All of them return the axes of Matplotlib and take two options:

path: the file to write, PNG or SVG. Without one, notebooks show the plot, and scripts call
    `pyplot.show()`.
ax: axes to draw into, for a figure of your own. A plot with two panels takes two axes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from spanboost.analysis import interval_picture, loss_curves, partial_sums
from spanboost.analysis.figures import (
    COLOURS,
    INK,
    Panels,
    Plot,
    format_amount,
    format_count,
    limit_ticks,
    present,
)
from spanboost.analysis.points import MAP, draw_points, limits_of
from spanboost.analysis.progressive import LossTape
from spanboost.compiling.arrays import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from spanboost.analysis.evaluation import Evaluation

BARS = 20  # of the most important features
WINDOWS = 60  # of the quantiles of residuals
plot_intervals = interval_picture.plot_intervals
moves_and_losses = partial_sums.moves_and_losses  # what `plot_stages` draws
THIN = {"linewidth": 0.8, "linestyle": (0, (6, 3)), "alpha": 0.7}


def plot_losses(
    losses: Mapping[str, ArrayLike | Evaluation] | Evaluation,
    constant: float | None = None,
    moments: Sequence[int] = (),
    *,
    path: str | Path | None = None,
    ax: Sequence[Axes] | None = None,
) -> tuple[Axes, Axes]:
    """Plot loss curves of models: running averages, and averages of windows.

    losses: for each model's name, the loss of each row [rows], in order, or the result of
        `evaluate`; or the result of `evaluate` for one model.
    constant: the average loss of the best constant prediction.
    moments: numbers of rows to mark, such as those where drift was detected.
    """
    named = {"model": losses} if hasattr(losses, "losses") else losses
    _check_names(named, "losses", "models to the losses of all rows")
    each = [np.asarray(getattr(one, "losses", one), np.float64) for one in named.values()]
    if len({one.shape for one in each}) > 1 or each[0].ndim != 1:
        shapes = ", ".join(f"{name}: {one.shape}" for name, one in zip(named, each, strict=True))
        raise ValueError(f"all models need the losses of the same rows (got shapes {shapes})")
    with closing(LossTape(1 + len(each))) as tape:
        tape.extend(np.column_stack([np.ones(len(each[0])), *each]))
        return loss_curves.plot(list(named), tape, constant, moments, path, ax)


def plot_predictions(
    truth: ArrayLike | Evaluation,
    predictions: ArrayLike | None = None,
    of: int | None = None,
    *,
    path: str | Path | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Plot predictions against labels.

    truth: the labels, [rows], or the result of `evaluate`, which has labels and predictions.
    predictions: [rows].
    of: the number of all rows if these are a sample.
    """
    draw = partial(_predictions, *_numbers(truth, predictions), of)
    return present(Plot(draw, (6, 5)), path, ax)[0]


def plot_classes(
    truth: ArrayLike,
    chances: ArrayLike,
    names: Sequence[Any] | None = None,
    of: int | None = None,
    *,
    path: str | Path | None = None,
    ax: Sequence[Axes] | None = None,
) -> tuple[Axes, Axes]:
    """Plot the mean predicted probabilities of the rows of each class, and their calibration.

    truth: the label of each row, or the number of its class, [rows].
    chances: the predicted probabilities, [rows, classes]; [rows] are those of the second of two
        classes.
    names: the labels of the classes, in the order of the probabilities; None: the labels in
        `truth`, sorted, as for `predict_proba` of scikit-learn.
    of: the number of all rows if these are a sample.
    """
    shares = np.asarray(chances, np.float64)
    shares = np.column_stack([1 - shares, shares]) if shares.ndim == 1 else shares
    numbers, labels = _class_numbers(np.asarray(truth), shares, names)
    draw = partial(_classes, numbers, shares, [str(label) for label in labels], of)
    matrix, calibration = present(Plot(draw, (10, 4.6), 2), path, ax)
    return matrix, calibration


def plot_residuals(
    truth: ArrayLike | Evaluation,
    predictions: ArrayLike | None = None,
    of: int | None = None,
    *,
    rows: ArrayLike | None = None,
    name: str = "label - prediction",
    path: str | Path | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Plot residuals, the labels minus the predictions, over time.

    truth: the labels, [rows], or the result of `evaluate`, which has labels and predictions.
    predictions: [rows].
    of: the number of all rows if these are a sample.
    rows: their row numbers in the stream, counted from 1; None: they are all rows.
    name: the label of the axis.
    """
    labels, answers = _numbers(truth, predictions)
    places = np.arange(1, len(labels) + 1) if rows is None else np.asarray(rows)
    draw = partial(_residuals, labels.astype(float) - answers, places, of, name)
    return present(Plot(draw, (10, 4.6)), path, ax)[0]


def plot_stages(
    moves: ArrayLike,
    losses: ArrayLike,
    *,
    path: str | Path | None = None,
    ax: Sequence[Axes] | None = None,
) -> tuple[Axes, Axes]:
    """Plot the two results of `analysis.partial_sums.moves_and_losses`, each [N]."""
    draw = partial(_stages, np.asarray(moves), np.asarray(losses))
    left, right = present(Plot(draw, (10, 4.2), 2), path, ax)
    return left, right


def plot_sigma(
    rows: ArrayLike, sigma: ArrayLike, *, path: str | Path | None = None, ax: Axes | None = None
) -> Axes:
    """Plot the shrinkage sigma of Algorithm 1, [times, N]; `rows` learned by then, [times]."""
    draw = partial(_sigma, np.asarray(rows), np.asarray(sigma))
    return present(Plot(draw, (8, 4.2)), path, ax)[0]


def plot_importances(
    importances: Mapping[Any, float],
    name: str = "share of the increase in loss",
    *,
    path: str | Path | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Plot the 20 most important features.

    importances: the result of `feature_importances`, or names and numbers in any order.
    name: the label of the axis.
    """
    _check_names(importances, "importances", "features to numbers, as feature_importances returns")
    shown = dict(sorted(importances.items(), key=lambda item: -item[1])[:BARS])
    size = 7, 1.4 + 0.28 * len(shown)
    return present(Plot(partial(_importances, shown, len(importances), name), size), path, ax)[0]


def _check_names(given: Any, name: str, content: str) -> None:
    """Raise a TypeError if the argument of this name is no mapping."""
    if not isinstance(given, Mapping):
        raise TypeError(f"{name} must map the names of {content} (got {type(given).__name__})")


def _numbers(truth: Any, predictions: Any) -> tuple[Array, Array]:
    """Return labels and predictions as arrays; a ValueError if they are not numbers, one per row.

    truth: numbers, or the result of `evaluate`, which has both.
    """
    if hasattr(truth, "predictions"):
        truth, predictions = truth.labels, truth.predictions
    labels, answers = np.asarray(truth), np.asarray(predictions)
    kinds = {labels.dtype.kind, answers.dtype.kind}
    if labels.shape != answers.shape or labels.ndim != 1 or not kinds <= set("biuf"):
        raise ValueError(
            "labels and predictions must be numbers, one of each per row "
            f"(got shapes {labels.shape} and {answers.shape})"
        )
    return labels, answers


def _class_numbers(
    truth: Array, chances: Array, names: Sequence[Any] | None
) -> tuple[Array, Sequence[Any]]:
    """Return the number of each row's class, and the labels of all classes."""
    if chances.ndim != 2 or truth.shape != chances.shape[:1]:
        raise ValueError(
            "plot_classes needs one label and the probabilities of all classes for each row "
            f"(got shapes {truth.shape} and {chances.shape})"
        )
    K, found = chances.shape[1], np.unique(truth).tolist()
    labels = names if names is not None else found if len(found) == K else range(K)
    if len(labels) == K and set(found) <= {*labels}:
        places = {label: k for k, label in enumerate(labels)}
        return np.array([places[label] for label in truth.tolist()], np.int64), labels
    if len(labels) == K and truth.dtype.kind in "biuf" and set(found) <= {*range(K)}:
        return truth.astype(np.int64), labels
    raise ValueError(
        f"names must be the labels of the {K} classes, in the order of the probabilities "
        f"(got {names!r:.60})"
    )


def _predictions(truth: Array, predictions: Array, of: int | None, panels: Panels) -> None:
    (axes,) = panels.axes
    good = np.isfinite(truth) & np.isfinite(predictions)
    truth, predictions = truth[good], predictions[good]
    draw_points(axes, truth, predictions)
    low, high = limits_of(np.append(truth, predictions))
    axes.plot([low, high], [low, high], color=INK, **THIN)
    axes.set_xlim(low, high)
    axes.set_ylim(low, high)
    axes.set_aspect("equal")
    limit_ticks(axes)
    axes.set_xlabel("label")
    axes.set_ylabel("prediction")
    axes.set_title(_title("predictions and labels", len(truth), of))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(format_amount)


def _classes(
    truth: Array, chances: Array, names: Sequence[str], of: int | None, panels: Panels
) -> None:
    matrix, calibration = panels.axes
    K = len(names)
    shares = np.array(
        [
            chances[truth == k].mean(axis=0) if (truth == k).any() else np.full(K, np.nan)
            for k in range(K)
        ]
    )
    image = matrix.imshow(shares, cmap=MAP, vmin=0, vmax=1)
    matrix.grid(visible=False)
    panels.figure.colorbar(image, ax=matrix, label="mean probability")
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


def _residuals(residuals: Array, rows: Array, of: int | None, name: str, panels: Panels) -> None:
    from matplotlib.patheffects import withStroke

    (axes,) = panels.axes
    good = np.isfinite(residuals)
    residuals, rows = residuals[good], rows[good]
    draw_points(axes, rows, residuals)
    axes.axhline(0, color=INK, **THIN)
    parts = [part for part in np.array_split(np.arange(len(rows)), WINDOWS) if len(part) >= 10]
    if parts:
        outline = withStroke(linewidth=4, foreground="white")
        middle = [rows[part].mean() for part in parts]
        levels = np.array([np.quantile(residuals[part], (0.05, 0.5, 0.95)) for part in parts])
        for k, label in ((1, "median"), (0, "5% and 95%"), (2, "")):
            dash = "-" if k == 1 else (0, (3, 2))
            line = {"linestyle": dash, "linewidth": 2, "color": COLOURS[1], "label": label}
            axes.plot(middle, levels[:, k], path_effects=[outline], **line)
        panels.legend(2)
    low, high = limits_of(residuals)
    axes.set_ylim(low, high if panels.own else high + 0.3 * (high - low))  # room for the legend
    axes.set_xlabel("rows")
    axes.set_ylabel(name)
    axes.set_title(_title("residuals over time", len(rows), of))
    axes.xaxis.set_major_formatter(format_count)
    axes.yaxis.set_major_formatter(format_amount)


def _stages(moves: Array, losses: Array, panels: Panels) -> None:
    from matplotlib.ticker import MaxNLocator

    left, right = panels.axes
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


def _sigma(rows: Array, sigma: Array, panels: Panels) -> None:
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize
    from matplotlib.ticker import MaxNLocator

    (axes,) = panels.axes
    N = sigma.shape[1]
    colours = ScalarMappable(Normalize(1, max(N, 2)), colormaps[MAP])
    each = colours.to_rgba(np.arange(1, N + 1))
    for i in range(N):
        mark = "o" if len(rows) <= 20 else ""
        axes.plot(rows, sigma[:, i], color=each[i], linewidth=1, marker=mark, markersize=3)
    if N > 1:
        panels.figure.colorbar(colours, ax=axes, label="stage", ticks=MaxNLocator(6, integer=True))
    axes.set_ylim(-0.02, max(0.1, 1.05 * float(sigma.max(initial=0))))
    axes.set_xlabel("rows")
    axes.set_ylabel("sigma")
    axes.set_title("shrinkage sigma of Algorithm 1")
    axes.xaxis.set_major_formatter(format_count)


def _importances(importances: Mapping[Any, float], of: int, name: str, panels: Panels) -> None:
    (axes,) = panels.axes
    names = [text if len(text) <= 40 else f"{text[:37]}..." for text in map(str, importances)]
    positions = np.arange(len(names))
    axes.barh(positions, list(importances.values()), color=COLOURS[0])
    axes.set_yticks(positions, names)
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set_xlabel(name)
    axes.xaxis.set_major_formatter(format_amount)
    rest = f" (the {len(names)} largest of {of:,} features)" if len(names) < of else ""
    axes.set_title(f"feature importance{rest}")


def _title(text: str, shown: int, of: int | None) -> str:
    return text if of is None or of <= shown else f"{text}: {shown:,} of {of:,} rows"
