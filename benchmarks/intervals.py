"""`python -m benchmarks.intervals`: prediction intervals compared with those of other libraries."""

import argparse
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import common, results_files
from benchmarks.accuracy import datasets
from benchmarks.accuracy.markdown import markdown
from spanboost import AutoBoost, IntervalMetrics, Intervals
from spanboost.models.intervals import interval_levels

ABOUT = """\
Predict intervals for 80, 90 and 95 % of the labels, and measure them on the second half of each
data set: coverage, coverage in windows of 1,000 rows, mean width and pinball loss.

- spanboost: Intervals(AutoBoost()), which predicts each row before it learns from it.
- lightgbm: two quantile regressions for each coverage, fitted to the first half without its last
  tenth and conformalised on that tenth (CQR). They do not learn from the second half.
- river: conf.RegressionJackknife with a window of 1,000 residuals around an adaptive random forest,
  which predicts each row before it learns from it.

Each run is one line of the results file. Runs that have a line are skipped, so you can stop the
command and start it again.

Targets: coverage within 1 point, and within 5 points in nine tenths of the windows; a lower pinball
loss than the others on four fifths of the runs.
"""
ENDS = """\
examples:
  python -m benchmarks.intervals --data DIR                            run what is missing
  python -m benchmarks.intervals --data DIR --sets abalone --methods spanboost   two lines
  python -m benchmarks.intervals --table                               only print the table
"""
FILE = results_files.FOLDER / "intervals.jsonl"
SETS = ("abalone", "ailerons", "elevators", "cal_housing", "house8l", "fried", "casp", "demandf")
COVERAGES = (0.8, 0.9, 0.95)
ROWS, WINDOW = 20_000, 1000
OFF, CLOSE = 0.01, 0.05  # how far coverages may be from what was asked for


class Key(NamedTuple):
    """One run."""

    data: str
    order: str
    method: str


def spanboost_intervals(data: datasets.Data) -> np.ndarray:
    """Return [rows, coverages, 2] intervals of spanboost."""
    levels = [level for one in COVERAGES for level in interval_levels(one)]
    found = Intervals(AutoBoost()).learn_quantiles(data.rows(), data.y, levels)
    return found.reshape(-1, len(COVERAGES), 2)


def lightgbm_intervals(data: datasets.Data) -> np.ndarray:
    """Return intervals of conformalised quantile regression; those of the first half are NaN."""
    import lightgbm

    X, y, half = data.matrix(), data.y, len(data.y) // 2
    fitted, found = half - half // 10, np.full((len(y), len(COVERAGES), 2), np.nan)
    for k, coverage in enumerate(COVERAGES):
        ends = []
        for level in interval_levels(coverage):
            model = lightgbm.LGBMRegressor(objective="quantile", alpha=level, verbose=-1, n_jobs=1)
            model.fit(X[:fitted], y[:fitted], categorical_feature=data.categorical)
            ends.append(model.predict(X[fitted:]))
        low, high = np.sort(ends, axis=0)  # quantiles may cross
        size = half - fitted
        scores = np.maximum(low[:size] - y[fitted:half], y[fitted:half] - high[:size])
        share = min(1.0, np.ceil((size + 1) * coverage) / size)
        margin = np.quantile(scores, share, method="higher")
        found[half:, k] = np.column_stack([low[size:] - margin, high[size:] + margin])
    return found


def river_intervals(data: datasets.Data) -> np.ndarray:
    """Return intervals of River's wrapper around a forest; one wrapper for each coverage."""
    from river import conf, forest

    names, matrix = data.one_hot()
    model = forest.ARFRegressor(seed=0)
    wrappers = [
        conf.RegressionJackknife(_Forecast(), confidence_level=one, window_size=WINDOW)
        for one in COVERAGES
    ]
    found = np.empty((len(data.y), len(COVERAGES), 2))
    for t, (values, label) in enumerate(zip(matrix.tolist(), data.y.tolist(), strict=True)):
        x = dict(zip(names, values, strict=True))
        forecast = {"forecast": model.predict_one(x) or 0.0}  # one forest for all wrappers
        for k, wrapper in enumerate(wrappers):
            interval = wrapper.predict_one(forecast, with_interval=True)
            found[t, k] = interval.lower, interval.upper
            wrapper.learn_one(forecast, label)
        model.learn_one(x, label)
    return found


class _Forecast:
    """A regressor whose forecast is a feature."""

    def predict_one(self, x: dict[str, float]) -> float:
        return x["forecast"]

    def learn_one(self, x: dict[str, float], y: float) -> None:
        pass


METHODS: dict[str, Callable[[datasets.Data], np.ndarray]] = {
    "spanboost": spanboost_intervals,
    "lightgbm": lightgbm_intervals,
    "river": river_intervals,
}


def run(key: Key, folder: Path | None, rows: int) -> dict[str, Any]:
    """Predict the intervals of one data set; return the figures of a line of the results file."""
    data = datasets.load(key.data, key.order, folder, rows)
    start, half = time.process_time(), len(data.y) // 2
    intervals = METHODS[key.method](data)[half:]
    seconds, y = time.process_time() - start, data.y[half:]
    figures = {str(one): measure(one, y, intervals[:, k]) for k, one in enumerate(COVERAGES)}
    spread = float(np.abs(y - np.median(y)).mean())
    return {"rows": len(data.y), "spread": spread, "seconds": round(seconds, 2), **figures}


def measure(coverage: float, y: np.ndarray, intervals: np.ndarray) -> dict[str, Any]:
    """Return the metrics of intervals, and the share of windows whose coverage is close."""
    metrics = IntervalMetrics(coverage)
    metrics.add(y, intervals)
    inside = (intervals[:, 0] <= y) & (y <= intervals[:, 1])
    length = min(WINDOW, len(y))
    windows = [inside[t : t + length].mean() for t in range(0, len(y) - length + 1, length)]
    close = np.mean([round(abs(one - coverage), 9) <= CLOSE for one in windows])
    return metrics.results() | {"close": float(close)}


def cells(key: Key, row: dict[str, Any], coverage: float = 0.9) -> list[str]:
    """Return a run as a line of the table; widths and losses are relative to the labels' spread."""
    one, spread = row[str(coverage)], row["spread"]
    figures = [f"{one['coverage']:.3f}", f"{one['close']:.0%}"]
    figures += [f"{one[name] / spread:.3f}" for name in ("width", "pinball_loss")]
    order = datasets.ORDERS[key.order]
    return [key.data, order, f"{row['rows']:,}", key.method, *figures]


def table(runs: dict[Key, dict[str, Any]]) -> Iterable[str]:
    """Yield the table for 90 %, and a summary for each coverage and method."""
    rank = list(METHODS)
    shown = sorted(runs, key=lambda key: (SETS.index(key.data), key.order, rank.index(key.method)))
    head = ["data", "order", "rows", "method", "coverage", "windows within 5 points"]
    yield markdown([*head, "width", "pinball loss"], [cells(key, runs[key]) for key in shown])
    for method in METHODS:
        for coverage in COVERAGES:
            each = [runs[key][str(coverage)] for key in shown if key.method == method]
            if each:
                right = sum(abs(one["coverage"] - coverage) <= OFF for one in each)
                steady = sum(one["close"] >= 0.9 for one in each)
                yield (
                    f"{method}, {coverage:g}: coverage within 1 point in {right} of {len(each)} "
                    f"runs, within 5 points in nine tenths of the windows in {steady}"
                )
    for other in rank[1:]:
        yield from compare(runs, other)


def compare(runs: dict[Key, dict[str, Any]], other: str) -> Iterable[str]:
    """Yield in how many runs spanboost has the lower pinball loss."""
    for coverage in COVERAGES:
        name = str(coverage)
        ratios = [
            row[name]["pinball_loss"] / runs[key._replace(method=other)][name]["pinball_loss"]
            for key, row in runs.items()
            if key.method == "spanboost" and key._replace(method=other) in runs
        ]
        if ratios:
            mean = 100 * (float(np.exp(np.mean(np.log(ratios)))) - 1)
            lower = sum(one < 1 for one in ratios)
            yield (
                f"spanboost against {other}, {coverage:g}: lower pinball loss in {lower} of "
                f"{len(ratios)} runs; mean difference {mean:+.1f} %"
            )


def parser() -> argparse.ArgumentParser:
    """Return the parser of the options."""
    made = common.resumable_parser("intervals", ABOUT, ENDS, FILE)
    common.add_choice(made, "--sets", SETS, "Data sets")
    common.add_choice(made, "--orders", datasets.ORDERS, "Orders of the rows")
    common.add_choice(made, "--methods", METHODS, "Methods")
    common.add_rows(made, ROWS, "Use only the first N rows of a set")
    return made


def main() -> None:
    """Run what is missing, and print the table."""
    args = parser().parse_args()
    chosen = [
        Key(data, order, method)
        for data in args.sets
        for order in args.orders
        for method in args.methods
    ]
    known = results_files.read(args.results, Key)
    for key in chosen if not args.table else []:
        if key not in known:
            row = run(key, args.data, args.rows)
            results_files.record(args.results, key, row)
            common.say(" ".join(cells(key, row)))
    for line in table(results_files.read(args.results, Key)):
        print(line)


if __name__ == "__main__":
    main()
