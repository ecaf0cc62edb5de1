"""Loss curves of a pass: each model's running average, and its average over each window of rows.

The other plots, in the same style, are in pictures.py.
"""

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from spanboost.analysis.progressive import LossTape
from spanboost.atomic_files import atomic_write, check_writable
from spanboost.compiling.arrays import Array
from spanboost.errors import UserError, install_hint

WINDOWS = 200
POINTS = 400  # points of a running average; more draw the same line
INK = "#010203"  # text and axes: a colour used for nothing else, so that a page can replace it
# Okabe and Ito's palette for colour-blind readers; a seventh model repeats the first one, dashed
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
DASHES = ("-", "--", ":")
LOOK = {
    "svg.hashsalt": "spanboost",
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.15,
    **dict.fromkeys(("axes.edgecolor", "axes.labelcolor", "text.color", "grid.color"), INK),
    **dict.fromkeys(("xtick.color", "ytick.color"), INK),
}


def check_plot_path(path: str | Path) -> None:
    """Raise UserError if a plot cannot be written to `path`."""
    if Path(path).suffix.lower() not in (".png", ".svg"):
        raise UserError(f"{path}: plots are .png or .svg files")
    check_writable(path)
    check_matplotlib()


def check_matplotlib() -> None:
    """Raise UserError if matplotlib is not installed."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise UserError(f"plots need matplotlib: {install_hint('plot')}") from None


def save(
    path: str | Path,
    names: Sequence[str],
    tape: LossTape,
    constant: float | None,
    moments: Sequence[int] = (),
) -> None:
    """Write loss curves to a PNG or SVG file, chosen by its suffix.

    The same losses give the same bytes.

    names: the models' names, in the order of the tape's columns.
    constant: the average loss of the best constant prediction, drawn as a line.
    moments: numbers of rows to mark, such as those where drift was detected.
    """
    check_plot_path(path)
    write(path, lambda: _figure(names, tape, constant, moments))


def write(path: str | Path, figure: Callable[[], Any]) -> None:
    """Write a figure to a PNG or SVG file, chosen by its suffix."""
    data = _render(Path(path).suffix.lower()[1:], figure, facecolor="white")
    with atomic_write(path) as file:
        file.write(data)


def inline_svg(
    names: Sequence[str], tape: LossTape, constant: float | None, moments: Sequence[int] = ()
) -> str:
    """Return loss curves as an <svg> element whose text has the colour of the page around it."""
    return inline(lambda: _figure(names, tape, constant, moments))


def inline(figure: Callable[[], Any]) -> str:
    """Return a figure as an <svg> element."""
    check_matplotlib()
    text = _render("svg", figure, facecolor="none").decode()
    return text[text.index("<svg") :].replace(INK, "currentColor")


def running_averages(tape: LossTape) -> tuple[Array, Array]:
    """Return row numbers, evenly spaced on a log scale, and each model's running average loss."""
    rows = np.unique(np.geomspace(1, tape.rows, POINTS).round().astype(np.int64))
    totals = np.array([tape.at(int(row)) for row in rows])
    return rows, _averages(totals)


def window_averages(tape: LossTape) -> tuple[Array, Array]:
    """Return the last rows of about 200 equal windows, and each model's average loss in them.

    In a short stream every row is a window. The last window also has the remaining rows.
    """
    length = max(1, round(tape.rows / WINDOWS))
    ends = np.arange(length, tape.rows + 1, length)
    ends[-1] = tape.rows
    totals = np.array([tape.at(0), *(tape.at(int(row)) for row in ends)])
    return ends, _averages(np.diff(totals, axis=0))


def _averages(totals: Array) -> Array:
    """Return average losses from totals; NaN where the weights are all 0."""
    weights = np.where(totals[:, :1] > 0, totals[:, :1], np.nan)
    averages: Array = totals[:, 1:] / weights
    return averages


def _render(format: str, figure: Callable[[], Any], facecolor: str) -> bytes:
    from matplotlib import style

    file = io.BytesIO()
    # the bytes must not depend on the date, the version or the user's settings
    metadata = {
        "png": {"Software": None},
        "svg": dict.fromkeys(("Creator", "Date", "Format", "Type")),
    }
    with style.context(["default", LOOK]):
        look = {"metadata": metadata[format], "dpi": 150, "facecolor": facecolor}
        figure().savefig(file, format=format, **look)
    return file.getvalue()


def _figure(
    names: Sequence[str], tape: LossTape, constant: float | None, moments: Sequence[int] = ()
) -> Any:
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator, NullLocator

    figure = Figure(figsize=(10, 4.6), layout="constrained")
    running, window = figure.subplots(1, 2)
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
    handles, labels = running.get_legend_handles_labels()
    columns = min(4, len(labels))
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False)
    return figure


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


def format_count(rows: float, _: Any = None) -> str:
    """Return a number of rows as short text: 1500 is "1.5k"."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if rows >= size:
            return f"{rows / size:g}{letter}"
    return f"{rows:g}"


def format_amount(loss: float, _: Any = None) -> str:
    """Return a loss as short text."""
    return f"{loss:,.0f}" if 1000 <= abs(loss) < 1e7 else f"{loss:g}"
