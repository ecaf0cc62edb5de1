"""Loss curves of a pass: of every model the average so far, and the average of each window.

Other pictures, in the same look, are in pictures.py.
"""

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from spanboost.analysis.progressive import LossTape
from spanboost.atomic_files import atomic_write, check_writable
from spanboost.compiling.arrays import Array
from spanboost.errors import UserError

WINDOWS = 200
POINTS = 400  # of a running average; more draw the same line
INK = "#010203"  # of all that is no curve: a colour of its own, so that a page can replace it
# Okabe and Ito's, told apart by the colour-blind; a seventh model begins again with other dashes
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
    """A UserError where no plot can be written, before anything is done for it."""
    if Path(path).suffix.lower() not in (".png", ".svg"):
        raise UserError(f"{path}: plots are .png or .svg files")
    check_writable(path)
    check_matplotlib()


def check_matplotlib() -> None:
    """A UserError where it is not installed."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise UserError("plots need matplotlib: pip install 'spanboost[plot]'") from None


def save(
    path: str | Path,
    names: Sequence[str],
    tape: LossTape,
    constant: float | None,
    moments: Sequence[int] = (),
) -> None:
    """Draw loss curves into a file, PNG or SVG by its suffix; the same losses give the same bytes.

    moments: rows to be marked, those of drift for one.
    """
    check_plot_path(path)
    write(path, lambda: _figure(names, tape, constant, moments))


def write(path: str | Path, figure: Callable[[], Any]) -> None:
    """Draw a figure into a file, PNG or SVG by its suffix."""
    data = _drawn(Path(path).suffix.lower()[1:], figure, facecolor="white")
    with atomic_write(path) as file:
        file.write(data)


def inline_svg(
    names: Sequence[str], tape: LossTape, constant: float | None, moments: Sequence[int] = ()
) -> str:
    """An <svg> element for a page, whose text is drawn in the colour of the page's own."""
    return inline(lambda: _figure(names, tape, constant, moments))


def inline(figure: Callable[[], Any]) -> str:
    """A figure as an <svg> element."""
    check_matplotlib()
    text = _drawn("svg", figure, facecolor="none").decode()
    return text[text.index("<svg") :].replace(INK, "currentColor")


def running(tape: LossTape) -> tuple[Array, Array]:
    """Numbers of rows, evenly spaced in their logarithm, and each model's average loss so far."""
    rows = np.unique(np.geomspace(1, tape.rows, POINTS).round().astype(np.int64))
    totals = np.array([tape.at(int(row)) for row in rows])
    return rows, _averages(totals)


def windowed(tape: LossTape) -> tuple[Array, Array]:
    """The last rows of some 200 windows of one length, and each model's average loss in them.

    Of a short stream every row is a window. The last one also has what is left over.
    """
    length = max(1, round(tape.rows / WINDOWS))
    ends = np.arange(length, tape.rows + 1, length)
    ends[-1] = tape.rows
    totals = np.array([tape.at(0), *(tape.at(int(row)) for row in ends)])
    return ends, _averages(np.diff(totals, axis=0))


def _averages(totals: Array) -> Array:
    """NaN where the weights are all 0."""
    weights = np.where(totals[:, :1] > 0, totals[:, :1], np.nan)
    averages: Array = totals[:, 1:] / weights
    return averages


def _drawn(format: str, figure: Callable[[], Any], facecolor: str) -> bytes:
    from matplotlib import style

    file = io.BytesIO()
    # no dates, no versions, and nothing of the user's own settings
    nothing = {
        "png": {"Software": None},
        "svg": dict.fromkeys(("Creator", "Date", "Format", "Type")),
    }
    with style.context(["default", LOOK]):
        look = {"metadata": nothing[format], "dpi": 150, "facecolor": facecolor}
        figure().savefig(file, format=format, **look)
    return file.getvalue()


def _figure(
    names: Sequence[str], tape: LossTape, constant: float | None, moments: Sequence[int] = ()
) -> Any:
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator, NullLocator

    figure = Figure(figsize=(10, 4.6), layout="constrained")
    so_far, window = figure.subplots(1, 2)
    rows, averages = running(tape)
    _curves(so_far, rows, averages, names, constant)
    _scale_losses(so_far, averages, ratio=3)
    so_far.set_xscale("log")
    so_far.xaxis.set_minor_locator(NullLocator())
    so_far.set_xlim(0.9, 1.1 * tape.rows)
    so_far.set_title("average loss so far")
    ends, averages = windowed(tape)
    _curves(window, ends, averages, names, constant)
    _scale_losses(window, averages, ratio=3 if ends[0] > 1 else 1000)  # single rows' are far apart
    window.xaxis.set_major_locator(MaxNLocator(5, integer=True, steps=[1, 2, 5, 10]))
    window.set_xlim(0, 1.02 * tape.rows)
    window.set_title(
        f"average loss of each {ends[0]:,} rows" if ends[0] > 1 else "loss of each row"
    )
    for axes in (so_far, window):
        for k, moment in enumerate(moments):
            mark = {"color": COLOURS[4], "linewidth": 1.2, "linestyle": (0, (2, 2)), "zorder": 1}
            axes.axvline(moment, label="" if k else "drift", **mark)
        axes.set_xlabel("rows")
        axes.xaxis.set_major_formatter(format_count)
        axes.yaxis.set_major_formatter(format_amount)
    handles, labels = so_far.get_legend_handles_labels()
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
    """Losses that reach far beyond the usual one are compared by their logarithms."""
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
    """A number of rows, as short as it can be said."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if rows >= size:
            return f"{rows / size:g}{letter}"
    return f"{rows:g}"


def format_amount(loss: float, _: Any = None) -> str:
    """A loss, as short as it can be said."""
    return f"{loss:,.0f}" if 1000 <= abs(loss) < 1e7 else f"{loss:g}"
