"""Run one method on one data set, and measure its intervals on the second half."""

import os
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import results_files
from benchmarks.accuracy import datasets
from benchmarks.accuracy.worker import stamp, versions
from benchmarks.intervals.methods import COVERAGES, METHODS
from spanboost import IntervalMetrics

FILE = results_files.FOLDER / "intervals.jsonl"
WINDOW = 1000  # rows
CLOSE = 0.05  # a window is close if its coverage is within this distance of what was asked for


class Key(NamedTuple):
    """One run."""

    data: str
    order: str
    method: str


Row = dict[str, Any]
Runs = dict[Key, Row]


def read(file: Path) -> Runs:
    """Read all results."""
    return results_files.read(file, Key)


def run(key: Key, folder: Path | None, rows: int) -> Row:
    """Predict the intervals of one data set; return the figures of a line of the results file."""
    data, method = datasets.load(key.data, key.order, folder, rows), METHODS[key.method]
    start, half = time.process_time(), len(data.y) // 2
    intervals = method.find(data)[half:]
    seconds, y = time.process_time() - start, data.y[half:]
    ours = {"stamp": stamp()} if key.method == "spanboost" else {}
    return {
        "rows": len(data.y),
        "spread": float(np.abs(y - np.median(y)).mean()),
        **{str(one): measure(one, y, intervals[:, k]) for k, one in enumerate(COVERAGES)},
        "cpu_seconds": round(seconds, 2),
        "seed": datasets.SEED,
        "load": round(os.getloadavg()[0], 2),
        "versions": versions(method.packages),
        **ours,
    }


def measure(coverage: float, y: np.ndarray, intervals: np.ndarray) -> Row:
    """Return the metrics of intervals, the close windows, and the width at equal coverage."""
    metrics = IntervalMetrics(coverage)
    metrics.add(y, intervals)
    inside = (intervals[:, 0] <= y) & (y <= intervals[:, 1])
    length = min(WINDOW, len(y))
    windows = [inside[t : t + length].mean() for t in range(0, len(y) - length + 1, length)]
    close = np.mean([round(abs(one - coverage), 9) <= CLOSE for one in windows])
    farthest = max(windows, key=lambda one: abs(one - coverage))
    return metrics.results() | {
        "close": float(close),
        "farthest": float(farthest),
        "equal_width": equal_width(coverage, y, intervals),
    }


def equal_width(coverage: float, y: np.ndarray, intervals: np.ndarray) -> float:
    """Return the mean width of intervals that are changed until they cover exactly this share.

    Either all are multiplied by the same factor, or the same margin is added to all ends; the
    narrower ones count. So widths of methods that cover different shares can be compared.
    """
    known = np.isfinite(intervals).all(axis=1)
    y, intervals = y[known], intervals[known]
    middle, half = intervals.mean(axis=1), np.diff(intervals, axis=1)[:, 0] / 2
    distance = np.abs(y - middle)
    with np.errstate(all="ignore"):
        factors = np.nan_to_num(distance / half, nan=0.0, posinf=np.finfo(float).max)
    scaled = half * np.quantile(factors, coverage, method="higher")
    moved = np.maximum(half + np.quantile(distance - half, coverage, method="higher"), 0)
    return float(2 * min(scaled.mean(), moved.mean()))
