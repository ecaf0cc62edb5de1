"""`python -m benchmarks.pareto`: draw error against rows per second, from stored results.

It measures nothing. The figures are those of `benchmarks.accuracy`, for shuffled rows and for the
data sets that every method in the picture has finished. A method is on the front if no other one is
both faster and more accurate.
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.accuracy import results as accuracy
from benchmarks.accuracy.methods import METHODS, named
from benchmarks.accuracy.results import Key
from benchmarks.results_files import read
from spanboost.analysis.figures import COLOURS, Panels, Plot, format_count, present

LEFT_OUT = "xgboost-chunk-10"  # its error, twice the variance, would leave little room for others
BELOW = {"capymoa-sgbr", "xgboost-chunk-1-slow", "auto-fast", "auto-default"}  # labels
PICTURE = Path(__file__).parents[1] / "docs" / "pareto.svg"
GROUPS = {
    "ours": "spanboost",
    "streaming": "streaming libraries",
    "chunks": "batch libraries, trained in chunks",
    "batch": "batch libraries, fitted to the first half",
    "ceiling": "batch libraries, refitted",
}
LEAST = 5  # data sets that a method must have finished


class Point(NamedTuple):
    """The mean results of a method."""

    method: str
    speed: float  # rows per second
    error: float  # in variances of the labels


def main() -> None:
    """Write the picture, and print the figures in it."""
    points, sets = mean_results(read(accuracy.FILE, Key))
    front = pareto_front(points)
    for one in sorted(points, key=lambda one: -one.speed):
        mark = "front" if one in front else ""
        print(f"{METHODS[one.method].title:24}{one.speed:12,.0f} rows/s{one.error:9.4f}  {mark}")
    print(f"geometric means over {', '.join(sets)} (shuffled)")
    present(Plot(lambda panels: draw(panels, points, front), (7.5, 4.8)), PICTURE)
    print(f"written: {PICTURE.relative_to(PICTURE.parents[1])}")


def mean_results(runs: dict[Key, dict[str, Any]]) -> tuple[list[Point], list[str]]:
    """Return the geometric means of all methods over the data sets they share, and these sets."""
    done: dict[str, dict[str, Any]] = {}
    for key, row in runs.items():
        if (key.kind, key.order) == ("accuracy", "shuffled") and row.get("complete"):
            done.setdefault(key.method, {})[key.data] = row
    shown = [name for name in named(*GROUPS) if len(done.get(name, ())) >= LEAST]
    shown.remove(LEFT_OUT)
    sets = sorted(set.intersection(*(set(done[name]) for name in shown)))
    points = []
    for name in shown:
        rows = [done[name][data] for data in sets]
        speed = np.log([row["rows_per_s"] for row in rows]).mean()
        error = np.log([row["mse"] / row["variance"] for row in rows]).mean()
        points.append(Point(name, float(np.exp(speed)), float(np.exp(error))))
    return points, sets


def pareto_front(points: list[Point]) -> list[Point]:
    """Return the methods that no other one beats in both figures, the fastest first."""
    front: list[Point] = []
    for one in sorted(points, key=lambda one: (-one.speed, one.error)):
        if not front or one.error < front[-1].error:
            front.append(one)
    return front


def draw(panels: Panels, points: list[Point], front: list[Point]) -> None:
    """Draw the methods and the front."""
    (ax,) = panels.axes
    ax.plot(*zip(*((one.speed, one.error) for one in front), strict=True), "--", color="0.6", lw=1)
    for colour, (group, title) in zip(COLOURS, GROUPS.items(), strict=False):
        members = [one for one in points if METHODS[one.method].group == group]
        if members:
            places = [one.speed for one in members], [one.error for one in members]
            ax.scatter(*places, color=colour, s=36, label=title, zorder=3)
        for one in members:
            text = METHODS[one.method].title
            where = (-6, 6) if one.method == "lightgbm-batch" else (6, 4)
            where = (6, -12) if one.method in BELOW else where
            side = "right" if where[0] < 0 else "left"
            ax.annotate(text, one[1:], where, textcoords="offset points", fontsize=8, ha=side)
    ax.set(xscale="log", yscale="log", xlabel="rows per second", ylabel="error / variance")
    ax.xaxis.set_major_formatter(format_count)
    ax.yaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_minor_formatter("{x:g}")
    ax.margins(0.12)
    panels.legend(3)


if __name__ == "__main__":
    main()
