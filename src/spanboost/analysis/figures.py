"""Figures of all plots: their style, the axes they draw into, and their files."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spanboost.atomic_files import atomic_write, check_writable
from spanboost.errors import UserError, install_hint

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK = "#010203"  # text and axes: a colour used for nothing else, so that a page can replace it
# Okabe and Ito's palette for colour-blind readers; a seventh model repeats the first one, dashed
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
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


class Panels(NamedTuple):
    """The axes that a plot draws into."""

    axes: tuple[Any, ...]  # one for each panel
    own: bool  # whether the plot has a figure of its own

    @property
    def figure(self) -> Any:
        """The figure of the axes."""
        return self.axes[0].figure

    def legend(self, columns: int) -> None:
        """Add a legend of the first panel: below the panels, or inside axes of the user."""
        handles, labels = self.axes[0].get_legend_handles_labels()
        if not labels:
            return
        if self.own:
            columns = min(columns, len(labels))
            where = {"loc": "outside lower center", "ncols": columns}
            self.figure.legend(handles, labels, frameon=False, **where)
        else:
            self.axes[0].legend(handles, labels, frameon=False)


class Plot(NamedTuple):
    """How to draw a plot."""

    draw: Callable[[Panels], None]
    size: tuple[float, float]  # of its own figure, in inches
    panels: int = 1
    across: int | None = None  # panels in a line; None: all of them

    def figure(self) -> "Figure":
        """Return the plot in a new figure."""
        from matplotlib.figure import Figure

        figure, across = Figure(figsize=self.size, layout="constrained"), self.across or self.panels
        down = -(-self.panels // across)
        every = figure.subplots(down, across, squeeze=False).ravel()
        for unused in every[self.panels :]:
            unused.remove()
        self.draw(Panels(tuple(every[: self.panels]), own=True))
        return figure


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


def present(plot: Plot, path: str | Path | None = None, ax: Any = None) -> "tuple[Axes, ...]":
    """Draw a plot and return its axes, one for each panel.

    path: the file to write. Without one, pyplot gets the figure: notebooks show it, scripts call
        `pyplot.show()`.
    ax: draw into these axes instead, one for each panel, in the style of their figure.
    """
    if ax is not None:
        return _draw_into(plot, path, ax)
    check_matplotlib() if path is None else check_plot_path(path)
    from matplotlib import style

    with style.context(["default", LOOK]):
        figure = plot.figure()
    if path is None:
        from matplotlib import pyplot

        pyplot.figure(FigureClass=lambda *_, **__: figure)
    else:
        write(path, figure)
    return tuple(figure.axes[: plot.panels])


def _draw_into(plot: Plot, path: str | Path | None, ax: Any) -> "tuple[Axes, ...]":
    """Draw a plot into the axes of the user."""
    if path is not None:
        raise ValueError("path and ax cannot be combined: save the figure with ax.figure.savefig")
    check_matplotlib()
    from matplotlib.axes import Axes

    axes = tuple(np.ravel(np.array(ax, dtype=object)))
    if len(axes) != plot.panels or not all(isinstance(one, Axes) for one in axes):
        wanted = "one axes" if plot.panels == 1 else f"{plot.panels} axes, one for each panel,"
        raise ValueError(f"ax must be {wanted} of Matplotlib (got {ax!r})")
    plot.draw(Panels(axes, own=False))
    return axes


def write(path: str | Path, figure: "Figure") -> None:
    """Write a figure to a PNG or SVG file, chosen by its suffix."""
    data = _render(Path(path).suffix.lower()[1:], figure, facecolor="white")
    with atomic_write(path) as file:
        file.write(data)


def inline(draw: "Callable[[], Figure]") -> str:
    """Return a figure as an <svg> element whose text has the colour of the page around it."""
    check_matplotlib()
    from matplotlib import style

    with style.context(["default", LOOK]):
        return inline_figure(draw())


def inline_figure(figure: "Figure") -> str:
    """Return a figure that was drawn before as an <svg> element."""
    text = _render("svg", figure, facecolor="none").decode()
    return text[text.index("<svg") :].replace(INK, "currentColor")


def _render(format: str, figure: "Figure", facecolor: str) -> bytes:
    from matplotlib import style

    file = io.BytesIO()
    # the bytes must not depend on the date, the version or the user's settings
    metadata = {
        "png": {"Software": None},
        "svg": dict.fromkeys(("Creator", "Date", "Format", "Type")),
    }
    with style.context(["default", LOOK]):
        look: dict[str, Any] = {"metadata": metadata[format], "dpi": 150, "facecolor": facecolor}
        figure.savefig(file, format=format, **look)
    return file.getvalue()


def format_count(rows: float, _: Any = None) -> str:
    """Return a number of rows as short text: 1500 is "1.5k"."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if rows >= size:
            return f"{rows / size:g}{letter}"
    return f"{rows:g}"


def limit_ticks(axes: Any) -> None:
    """Leave room between the tick labels of amounts on the x axis: at most one for 0.9 inches."""
    from matplotlib.ticker import MaxNLocator

    width = axes.get_window_extent().width / axes.figure.dpi
    most = int(np.clip(width / 0.9, 2, 9))
    axes.xaxis.set_major_locator(MaxNLocator(most, steps=[1, 2, 2.5, 5, 10]))


def format_rounded(amount: float, sign: str = "") -> str:
    """Return an amount as short text with at least four digits; `sign` "+" shows the sign."""
    whole = 1000 <= abs(amount) < 1e7
    return f"{amount:{sign},.0f}" if whole else f"{amount:{sign}.4g}"


def format_amount(loss: float, _: Any = None) -> str:
    """Return a loss as short text."""
    return f"{loss:,.0f}" if 1000 <= abs(loss) < 1e7 else f"{loss:g}"
