"""The intervals of a pass: exact for --json, rounded in tables, and as a plot."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from spanboost.analysis.interval_picture import LAST, WINDOWS, IntervalPicture
from spanboost.analysis.metrics.interval_tape import CLOSE, IntervalTape
from spanboost.analysis.metrics.tape import window_ends
from spanboost.cli.output.metrics_table import UNDEFINED, count_rows, format_metric
from spanboost.compiling.arrays import Array

TITLES = {"coverage": "coverage", "width": "mean width", "pinball_loss": "pinball loss"}


def intervals_as_json(tape: IntervalTape, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the metrics of the intervals and quantiles of each model, by its name."""
    return {name: _of_model(tape, k) for k, name in enumerate(names)}


def _of_model(tape: IntervalTape, model: int) -> dict[str, Any]:
    parts = tape.parts()
    levels = []
    for coverage in tape.coverages:
        found: dict[str, Any] = {"coverage": coverage}
        for part, ends in parts.items():
            found[part] = tape.intervals(coverage, *ends, model).results()
        windows = tape.windows(coverage, model)
        found["windows"] = {
            "rows": windows.rows,
            "number": windows.number,
            "farthest_coverage": windows.farthest,
            "within_5_points": windows.close,
        }
        levels.append(found)
    scores = {part: tape.quantiles(*ends, model).results()["crps"] for part, ends in parts.items()}
    return {"levels": levels, "crps": scores}


def interval_rows(result: Mapping[str, Any]) -> list[list[str]]:
    """Return the metrics of the first model: a head, and a row for each metric."""
    found = result["intervals"]
    windows = result["windows"]["rows"]
    last = windows[-1] - (windows[-2] if len(windows) > 1 else 0)
    parts = ("whole", "first_half", "second_half", "last_window")
    head = ["intervals", "whole stream", "first half", "second half", f"last {count_rows(last)}"]
    rows = [
        [f"{level['coverage']:g}: {title}", *(_format(key, level[part][key]) for part in parts)]
        for level in found["levels"]
        for key, title in TITLES.items()
    ]
    return [head, *rows, ["CRPS", *(_format("crps", found["crps"][part]) for part in parts)]]


def compared_rows(result: Mapping[str, Any]) -> list[list[str]]:
    """Return the metrics of several models over the whole stream."""
    asked = [level["coverage"] for level in result["intervals"]["levels"]]
    titles = [f"{one:g}: {title}" for one in asked for title in TITLES.values()]
    rows = []
    for name, one in result["compared"].items():
        whole = [level["whole"] for level in one["intervals"]["levels"]]
        cells = [_format(key, level[key]) for level in whole for key in TITLES]
        rows.append([name, *cells, _format("crps", one["intervals"]["crps"]["whole"])])
    return [["whole stream", *titles, "CRPS"], *rows]


def window_lines(result: Mapping[str, Any]) -> list[str]:
    """Return a line about the windows for each coverage."""
    lines = []
    for level in result["intervals"]["levels"]:
        windows = level["windows"]
        if windows["number"]:
            lines.append(
                f"{level['coverage']:g}: coverage within {100 * CLOSE:g} points in "
                f"{windows['within_5_points']:.1%} of {windows['number']:,} windows of "
                f"{count_rows(windows['rows'])}; farthest: {windows['farthest_coverage']:.4f}"
            )
        if level["whole"]["infinite"]:
            lines.append(
                f"{level['coverage']:g}: {level['whole']['infinite']:.2%} of the intervals are "
                "infinite; width and pinball loss are those of the others"
            )
    return lines


def picture_of(tape: IntervalTape) -> IntervalPicture:
    """Return what the plot of the first model shows; the band has the first coverage."""
    coverage = tape.coverages[0]
    last = tape.read(max(0, tape.rows - LAST), tape.rows)
    curves = {one: _curve(tape, one) for one in tape.coverages}
    ends = tape.ends(last, coverage)
    return IntervalPicture(last.labels, ends, last.predictions, coverage, curves)


def _curve(tape: IntervalTape, coverage: float) -> Array:
    ends = window_ends(tape.rows, WINDOWS)
    shares = tape.coverages_between(coverage, ends)
    return np.array([*zip(ends[1:], (np.nan if s is None else s for s in shares), strict=True)])


def _format(key: str, value: float | None) -> str:
    if key == "coverage":
        return UNDEFINED if value is None else f"{value:.4f}"
    return format_metric("loss", value)
