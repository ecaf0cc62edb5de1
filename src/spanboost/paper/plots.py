"""Plots of a reproduction: improvements, losses against the number of copies, learning curves."""

from collections.abc import Callable, Sequence
from typing import Any

from spanboost.analysis.figures import COLOURS, INK, format_amount, inline
from spanboost.paper.cells import Cell
from spanboost.paper.published import ALGORITHMS, LEARNERS
from spanboost.paper.summary import Result, SummaryLine
from spanboost.paper.tables import TITLES

ACROSS = 4  # panels in a row
WORDS = {"baseline": "alone", "span": "Algorithm 1", "hull": "Algorithm 2"}
LOOKS = {"baseline": INK, "span": COLOURS[0], "hull": COLOURS[1]}


def improvements(lines: Sequence[SummaryLine], result: Result) -> str:
    """Plot the share of the learner's loss that boosting saves, ours next to the paper's."""
    return inline(lambda: _improvements(lines, result))


def against_n(lines: Sequence[SummaryLine], feedback: str) -> str:
    """Plot losses of the first half against the number of copies, for each data set."""
    return inline(lambda: _panels([line.cells[feedback] for line in lines], _copies))


def curves(lines: Sequence[SummaryLine], feedback: str) -> str:
    """Plot the average loss of each hundredth of the stream, for each data set."""
    return inline(lambda: _panels([line.cells[feedback] for line in lines], _curve))


def _improvements(table: Sequence[SummaryLine], result: Result) -> Any:
    from matplotlib.figure import Figure
    from matplotlib.ticker import PercentFormatter

    learners = [name for name in LEARNERS if any(line.learner == name for line in table)]
    sets = list(dict.fromkeys(line.set for line in table))
    figure = Figure(figsize=(10, 1.6 + 0.32 * len(sets)), layout="constrained")
    panels = figure.subplots(1, len(learners), sharey=True, squeeze=False)[0]
    for axes, learner in zip(panels, learners, strict=True):
        for line in (line for line in table if line.learner == learner):
            for k, algorithm in enumerate(ALGORITHMS):
                y = sets.index(line.set) + (k - 0.5) * 0.3
                look = {"color": LOOKS[algorithm], "markersize": 6}
                ours, paper = line.gain(result, algorithm), line.gain(None, algorithm)
                axes.plot([paper, ours], [y, y], color=LOOKS[algorithm], linewidth=0.8, alpha=0.5)
                axes.plot([ours], [y], "o", label=f"{WORDS[algorithm]}, ours", **look)
                hollow = {"markerfacecolor": "none", "label": f"{WORDS[algorithm]}, the paper's"}
                axes.plot([paper], [y], "o", **look, **hollow)
        axes.axvline(0, color=INK, linewidth=0.8)
        axes.set_title(TITLES[learner])
        axes.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    panels[0].set_yticks(range(len(sets)), sets)
    panels[0].invert_yaxis()
    _legend(figure, panels[0], 4)
    return figure


def _panels(table: Sequence[Cell], draw: Callable[[Any, Cell], None]) -> Any:
    from matplotlib.figure import Figure

    down = -(-len(table) // ACROSS)
    figure = Figure(figsize=(10, 2.1 * down + 0.5), layout="constrained")
    panels = figure.subplots(down, ACROSS, squeeze=False).ravel()
    for axes, cell in zip(panels, table, strict=False):
        draw(axes, cell)
        axes.set_title(cell.set)
        axes.yaxis.set_major_formatter(format_amount)
        axes.tick_params(labelsize=8)
    for axes in panels[len(table) :]:
        axes.remove()
    _legend(figure, panels[0], 3)
    return figure


def _copies(axes: Any, cell: Cell) -> None:
    models = cell.models
    level = models["baseline"].first_half
    axes.axhline(level, color=INK, linewidth=1, linestyle=(0, (6, 3)), label=WORDS["baseline"])
    shown = [level]
    for way in ALGORITHMS:
        points = [(n, loss) for n, loss in enumerate(models[way].against_n, 1) if loss is not None]
        axes.plot(*zip(*points, strict=True), color=LOOKS[way], label=WORDS[way])
        losses = sorted(loss for _, loss in points)
        shown += [losses[0], losses[int(0.9 * (len(losses) - 1))]]
    room = 0.15 * (max(shown) - min(shown)) or 1e-9
    axes.set_ylim(min(shown) - room, max(shown) + room)  # losses of few copies may lie far above


def _curve(axes: Any, cell: Cell) -> None:
    for way, one in cell.models.items():
        share = [100 * (k + 1) / len(one.curve) for k in range(len(one.curve))]
        axes.plot(share, one.curve, color=LOOKS[way], linewidth=1, label=WORDS[way])
    axes.axvline(50, color=INK, linewidth=0.6, alpha=0.5)
    axes.set_ylim(bottom=0)


def _legend(figure: Any, axes: Any, columns: int) -> None:
    handles, labels = axes.get_legend_handles_labels()
    each = dict(zip(labels, handles, strict=True))
    figure.legend(each.values(), each, loc="outside lower center", ncols=columns, frameon=False)
