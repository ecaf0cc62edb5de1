"""The tables of docs/intervals.md, and the targets."""

from collections.abc import Iterator

import numpy as np

from benchmarks import common
from benchmarks.accuracy import datasets
from benchmarks.accuracy.markdown import markdown
from benchmarks.intervals.methods import COVERAGES, METHODS
from benchmarks.intervals.results import FILE, Key, Runs, read

OURS = "spanboost"
OTHERS = {  # methods that are compared with, and their titles
    "lightgbm": "LightGBM",
    "river": "River",
    "capymoa-mve": "CapyMOA MVE",
    "capymoa-adapi": "CapyMOA AdaPI",
}
SETS = ("abalone", "ailerons", "elevators", "cal_housing", "house8l", "fried", "casp", "demandf")
SHOWN = 0.9  # the coverage of the table of widths
OFF, STEADY, SHARE = 0.01, 0.9, 0.8  # distance of coverages, share of windows, share of runs


def coverages(runs: Runs | None = None) -> str:
    """Return the table of the coverage of spanboost, by data set."""
    runs = read(FILE) if runs is None else runs
    head = ["data", "order", "rows"]
    for one in COVERAGES:
        head += [f"{one:.0%}", "windows within 5 points"]
    rows = []
    for key in _keys(runs):
        if key.method == OURS:
            each = [runs[key][str(one)] for one in COVERAGES]
            found = [
                cell for one in each for cell in (f"{one['coverage']:.2%}", f"{one['close']:.0%}")
            ]
            rows.append([*_names(key), f"{runs[key]['rows']:,}", *found])
    return markdown(head, rows)


def widths(runs: Runs | None = None) -> str:
    """Return the table of widths at equal coverage, and of pinball losses, by data set."""
    runs = read(FILE) if runs is None else runs
    titles = {OURS: OURS, **OTHERS}
    head = [f"{what}: {title}" for what in ("width", "loss") for title in titles.values()]
    rows = []
    for data, order in dict.fromkeys(key[:2] for key in _keys(runs)):
        cells = []
        for name in ("equal_width", "pinball_loss"):
            found = [_relative(runs, Key(data, order, method), name) for method in titles]
            least = min(one for one in found if one is not None)
            cells += ["-" if one is None else _marked(one, one == least) for one in found]
        rows.append([*_names(Key(data, order, OURS)), *cells])
    return markdown(["data", "order", *head], rows)


def counts(runs: Runs | None = None) -> str:
    """Return the table that counts the runs in which spanboost is better, by method."""
    runs = read(FILE) if runs is None else runs
    head = ["compared with", "coverage", "narrower", "mean width", "lower loss", "mean loss"]
    rows = []
    for method, title in OTHERS.items():
        for coverage in COVERAGES:
            pairs = [_ratios(runs, method, coverage, n) for n in ("equal_width", "pinball_loss")]
            if pairs[0]:
                cells = [cell for ratios in pairs for cell in _counted(ratios)]
                rows.append([title, f"{coverage:.0%}", *cells])
    return markdown(head, rows)


def targets(runs: Runs) -> Iterator[list[str]]:
    """Yield each target, how far it is met, and whether it is."""
    ours = [row for key, row in runs.items() if key.method == OURS]
    for coverage in COVERAGES:
        each = [row[str(coverage)] for row in ours]
        right = sum(abs(one["coverage"] - coverage) <= OFF for one in each)
        steady = sum(one["close"] >= STEADY for one in each)
        yield _target(f"coverage of {coverage:.0%} within 1 point", right, len(each), 1.0)
        yield _target(
            f"coverage of {coverage:.0%} within 5 points in nine tenths of the windows",
            steady,
            len(each),
            1.0,
        )
    for method, title in OTHERS.items():
        for coverage in COVERAGES:
            ratios = _ratios(runs, method, coverage, "equal_width")
            lower = sum(one < 1 for one in ratios)
            name = f"narrower than {title} at an equal coverage of {coverage:.0%}"
            yield _target(name, lower, len(ratios), SHARE)


def _target(name: str, met: int, runs: int, share: float) -> list[str]:
    verdict = common.yes_no(met >= share * runs if runs else None)
    return [name, f"{met} of {runs} runs", f">= {share:.0%}", verdict]


def _keys(runs: Runs) -> list[Key]:
    rank = list(METHODS)
    return sorted(runs, key=lambda key: (SETS.index(key.data), key.order, rank.index(key.method)))


def _names(key: Key) -> list[str]:
    return [key.data, datasets.ORDERS[key.order]]


def _relative(runs: Runs, key: Key, name: str) -> float | None:
    """Return a figure relative to the spread of the labels."""
    row = runs.get(key)
    return row[str(SHOWN)][name] / row["spread"] if row else None


def _marked(value: float, best: bool) -> str:
    return f"**{value:.3f}**" if best else f"{value:.3f}"


def _ratios(runs: Runs, other: str, coverage: float, name: str) -> list[float]:
    """Return our figures divided by those of another method."""
    figure = str(coverage)
    return [
        row[figure][name] / runs[key._replace(method=other)][figure][name]
        for key, row in runs.items()
        if key.method == OURS and key._replace(method=other) in runs
    ]


def _counted(ratios: list[float]) -> list[str]:
    mean = 100 * (float(np.exp(np.mean(np.log(ratios)))) - 1)
    return [f"{sum(one < 1 for one in ratios)} of {len(ratios)}", f"{mean:+.1f} %"]
