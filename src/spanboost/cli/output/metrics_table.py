"""The metrics of a pass: exact for --json, aligned and rounded in tables for people."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from spanboost.analysis.metrics.collected import Metrics
from spanboost.analysis.metrics.titles import TITLES
from spanboost.compiling.arrays import Array
from spanboost.data.target import as_number

AMOUNTS = ("loss", "log_loss", "rmse", "mae")  # their size depends on the labels
SHOWN_CLASSES = 10  # most classes whose confusion counts are printed
UNDEFINED = "n/a"


def metrics_as_json(
    names: Sequence[str], parts: Mapping[str, Sequence[Metrics]], classes: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """Return the metrics of each model over each part of the stream.

    parts: the metrics of all models, by the name of the part.
    classes: the labels of the classes; empty if the model predicts numbers.
    """
    return {
        name: {part: _as_json(each[k], classes) for part, each in parts.items()}
        for k, name in enumerate(names)
    }


def _as_json(metrics: Metrics, classes: Sequence[str]) -> dict[str, Any]:
    found: dict[str, Any] = metrics.results()
    confusion, reliability = metrics.confusion(), metrics.reliability()
    if confusion is not None:
        found["confusion"] = {"labels": [*classes], "counts": confusion.tolist()}
    if reliability is not None:
        found["reliability"] = _curve_as_json(reliability)
    return found


def _curve_as_json(curve: Array) -> list[dict[str, float]]:
    keys = ("probability", "frequency", "weight")
    return [dict(zip(keys, point, strict=True)) for point in curve.tolist()]


def part_rows(result: Mapping[str, Any]) -> list[list[str]]:
    """Return the loss and the metrics of the first model: a head, and a row for each metric."""
    windows = result["windows"]
    last = windows["rows"][-1] - (windows["rows"][-2] if len(windows["rows"]) > 1 else 0)
    head = ["metric", "whole stream", "first half", "second half", f"last {count_rows(last)}"]
    losses = [result[key] for key in ("loss", "loss_first_half", "loss_second_half")]
    losses.append(windows["loss"][result["model"]][-1])
    parts = list(result.get("metrics", {}).values())
    rows = [
        [_title(key, parts[0]), *(format_metric(key, part[key]) for part in parts)]
        for key in (parts[0] if parts else ())
        if key in TITLES
    ]
    return [head, ["loss", *(format_metric("loss", value) for value in losses)], *rows]


def _title(key: str, metrics: Mapping[str, Any]) -> str:
    """Return the name of a metric; F1 with two classes is about the second one."""
    return f"F1 of {metrics['confusion']['labels'][1]:.20}" if key == "f1" else TITLES[key]


def model_rows(result: Mapping[str, Any]) -> list[list[str]]:
    """Return the losses of several models and their metrics over the whole stream."""
    compared = result["compared"]
    keys = [key for key in result.get("metrics", {}).get("whole", ()) if key in TITLES]
    head = ["whole stream", "loss", "loss, second half", *(TITLES[key] for key in keys)]
    rows = []
    for name, one in compared.items():
        losses = [format_metric("loss", one[key]) for key in ("loss", "loss_second_half")]
        whole = one["metrics"]["whole"] if keys else {}
        rows.append([name, *losses, *(format_metric(key, whole[key]) for key in keys)])
    return [head, *rows]


def confusion_rows(metrics: Mapping[str, Any]) -> list[list[str]]:
    """Return the confusion counts of one part of the stream, with sorted labels.

    The list is empty for numeric labels, and for more than SHOWN_CLASSES classes.
    """
    confusion = metrics.get("confusion")
    if confusion is None or len(confusion["labels"]) > SHOWN_CLASSES:
        return []
    labels, counts = confusion["labels"], confusion["counts"]
    order = sorted(range(len(labels)), key=lambda k: _place(labels[k]))
    return [
        ["label \\ prediction", *(labels[k] for k in order)],
        *([labels[j], *(f"{counts[j][k]:,.10g}" for k in order)] for j in order),
    ]


def _place(label: str) -> tuple[bool, float, str]:
    """Return the key that sorts labels: numbers by size, then texts by the alphabet."""
    number = as_number(label)
    return (number is None, number or 0.0, label)


def align(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield a table as lines: the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for first, *others in rows:
        cells = (f"  {cell:>{width}}" for cell, width in zip(others, widths[1:], strict=True))
        yield f"{first:<{widths[0]}}{''.join(cells)}".rstrip()


def format_metric(name: str, value: float | None) -> str:
    """Return a metric as text, rounded; never a negative zero."""
    if value is None or math.isnan(value):
        return UNDEFINED
    return f"{value:z#.6g}".rstrip(".") if name in AMOUNTS else f"{value:z.4f}"


def count_rows(rows: int) -> str:
    """Return a number of rows in words."""
    return "row" if rows == 1 else f"{rows:,} rows"
