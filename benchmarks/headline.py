"""`python -m benchmarks.headline`: write the tables in README.md and on pages of docs.

The tables are made from benchmarks/results. On a page, two comments enclose each table; the first
names it. A test compares the pages with the results.
"""

import json
import math
import re
import statistics
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks import calibration, interval_cost
from benchmarks.accuracy import results as accuracy
from benchmarks.accuracy import speeds as timed
from benchmarks.accuracy import verdicts
from benchmarks.accuracy.datasets import ORDERS, TASKS
from benchmarks.accuracy.markdown import markdown
from benchmarks.accuracy.methods import METHODS
from benchmarks.accuracy.results import Key
from benchmarks.accuracy.verdicts import AUTO, TARGETS, Target
from benchmarks.intervals import tables as intervals
from benchmarks.results_files import read
from benchmarks.wild import summary as wild

Runs = accuracy.Results
ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results"
PAGES = (
    "README.md",
    "docs/performance.md",
    "docs/wild.md",
    "docs/auto.md",
    "docs/intervals.md",
)
BLOCK = re.compile(r"(<!-- table: (\S+), .*? -->\n)\n.*?(<!-- end of table -->)", re.DOTALL)
BATCH = {"L": "lightgbm-batch", "X": "xgboost-batch"}
COLUMNS = {
    AUTO: "AutoBoost, always learning",
    "previous-label": "previous label",
    "lightgbm-batch": "LightGBM, frozen after half",
    "lightgbm-refit": "LightGBM, refitted 10 times",
}
SHOWN = {  # in the table of errors; a shuffled stream tells nothing by its last label
    "file": tuple(COLUMNS),
    "shuffled": tuple(name for name in COLUMNS if name != "previous-label"),
}
HEADLINES = ("against VW", "against River's linear")


def main() -> None:
    """Write the tables of all pages."""
    for page in PAGES:
        file = ROOT / page
        file.write_text(filled(file.read_text()))
        print(f"written: {page}")


def filled(text: str) -> str:
    """Return the page with its tables replaced."""
    return BLOCK.sub(lambda found: f"{found[1]}\n{TABLES[found[2]]()}\n{found[3]}", text)


def counts() -> str:
    """Return the table that counts the data sets on which AutoBoost has less error."""
    runs = read(accuracy.FILE, Key)
    found = {target: verdicts.find(runs, target, AUTO) for target in TARGETS if target.ours == AUTO}
    rows = [_count(target, one) for target, one in found.items() if one.contests]
    return markdown(["compared with", "order of rows", "error of AutoBoost", "data sets"], rows)


def _count(target: Target, found: verdicts.Found) -> list[str]:
    share = f"{len(found.won(target.margin))} of {len(found.contests)}"
    missing = f" ({len(found.missing)} not measured)" if found.missing else ""
    return [target.against, target.order, target.how, share + missing]


def errors() -> str:
    """Return the table of errors of AutoBoost and LightGBM, by data set."""
    runs = read(accuracy.FILE, Key)
    head = [
        "data",
        "rows",
        *(f"{ORDERS[order]}: {COLUMNS[name]}" for order in ORDERS for name in SHOWN[order]),
    ]
    rows = []
    for data in TASKS:
        groups = [[runs.get(Key("accuracy", data, o, name)) for name in SHOWN[o]] for o in ORDERS]
        there = [row for group in groups for row in group if row and "rows" in row]
        size = f"{there[0]['rows']:,}" if there else "-"
        rows.append([data, size, *(cell for group in groups for cell in _cells(group))])
    times = (_time(runs, name, order) for order in ORDERS for name in SHOWN[order])
    return markdown(head, [*rows, ["time, median (AutoBoost = 1)", "", *times]])


def _time(runs: Runs, name: str, order: str) -> str:
    """Return the median over the data sets of a method's time, relative to that of AutoBoost."""
    names = name, AUTO
    pairs = ([runs.get(Key("accuracy", data, order, one)) for one in names] for data in TASKS)
    times = [
        theirs["seconds"] / ours["seconds"]
        for theirs, ours in pairs
        if theirs and ours and "seconds" in theirs and ours.get("seconds")
    ]
    return f"{statistics.median(times):.2g}" if times else "-"


def _cells(group: list[dict[str, Any] | None]) -> list[str]:
    shares = [
        row["mse"] / row["variance"] if row and row.get("variance") else None for row in group
    ]
    least = min((share for share in shares if share is not None), default=None)
    return [
        "-" if share is None else f"**{share:.3g}**" if share == least else f"{share:.3g}"
        for share in shares
    ]


def ratios() -> str:
    """Return the table of errors relative to the better batch library, by data set."""
    runs = read(accuracy.FILE, Key)
    head = ["data"]
    for title in ("shuffled", "file order"):
        head += [f"{title}: batch", "trees", "AutoBoost", "vs. refitted"]
    rows = []
    for data in TASKS:
        cells = [cell for order in ("shuffled", "file") for cell in _ratios(runs, data, order)]
        rows.append([data, *cells])
    return markdown(head, rows)


def _ratios(runs: Runs, data: str, order: str) -> list[str]:
    batch = {letter: runs.get(Key("accuracy", data, order, name)) for letter, name in BATCH.items()}
    there = {letter: row for letter, row in batch.items() if row and row.get("variance")}
    if not there:
        return ["-"] * 4
    letter, best = min(there.items(), key=lambda item: item[1]["mse"])
    ours = [verdicts.ratio(runs, data, order, name, BATCH[letter]) for name in ("trees", AUTO)]
    refitted = verdicts.ratio(runs, data, order, AUTO, "lightgbm-refit")
    cells = ["-" if one is None else f"{one:.3f}" for one in (*ours, refitted)]
    return [f"{best['mse'] / best['variance']:.4f} ({letter})", *cells]


def budgets() -> str:
    """Return the table of errors of AutoBoost's budgets, relative to the default."""
    runs = read(accuracy.FILE, Key)
    rows = []
    for name in ("auto-fast", "auto-thorough"):
        pairs = product(TASKS, ORDERS)
        found = [verdicts.ratio(runs, data, order, name, AUTO) for data, order in pairs]
        there = [one for one in found if one]
        mean = math.exp(sum(map(math.log, there)) / len(there))
        share = f"{sum(one < 1 for one in there)} of {len(there)}"
        rows.append([METHODS[name].title, f"{mean:.3f}", share])
    return markdown(["budget", "error / default, geometric mean", "streams with less error"], rows)


def speed() -> str:
    """Return the table of speeds compared with other libraries."""
    rows = [
        [*_sides(row["measure"]), *map(_number, (row["ours"], row["theirs"], row["ratio"]))]
        for row in _read("speed")["rows"]
        if any(words in row["measure"] for words in HEADLINES)
    ]
    head = ["spanboost model", "compared with", "rows/s", "other, rows/s", "ratio"]
    return markdown(head, [*rows, *_timed()])


def _sides(measure: str) -> tuple[str, str]:
    ours, _, theirs = measure.partition(", against ")
    return ours, theirs or "-"


def _timed() -> Iterator[list[str]]:
    runs = read(accuracy.FILE, Key)
    for ours, theirs, _ in timed.RATIOS:
        for data, ratio in timed.ratios(runs, ours, theirs).items():
            both = (timed.speed_of(runs, data, name) for name in (ours, theirs))
            names = f"{METHODS[ours].title}, {data}", METHODS[theirs].title
            yield [*names, *map(_number, both), _number(ratio)]


def speeds() -> str:
    """Return the table of all lines of the speed benchmark."""
    head = ["spanboost model", "compared with", "unit", "spanboost", "other", "ratio"]
    cells = []
    for row in _read("speed")["rows"]:
        numbers = [_number(row[name]) for name in ("ours", "theirs", "ratio")]
        cells.append([*_sides(row["measure"]), row["unit"], *numbers])
    return markdown(head, cells)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def memory() -> str:
    """Return the table of peak memory after few and after many rows."""
    rows = [
        [row["learner"], *(f"{row[when] / 2**20:.0f}" for when in ("before", "after"))]
        for row in _read("memory")["rows"]
    ]
    return markdown(["learner", "MiB after 100,000 rows", "MiB after 10,000,000 rows"], rows)


def roofline() -> str:
    """Return the table of bare loops, by data set."""
    times: dict[str, dict[str, float]] = {}
    for row in _read("roofline")["rows"]:
        times.setdefault(row["loop"], {})[row["data"]] = row["us"]
    sets = list(next(iter(times.values())))
    rows = [[loop, *(f"{found[data]:.2f}" for data in sets)] for loop, found in times.items()]
    return markdown(["loop over 128 copies", *(f"us/row, {data}" for data in sets)], rows)


def interval_times() -> str:
    """Return the table of the times that intervals take."""
    return interval_cost.table(_read("interval_cost")["rows"])


def _read(name: str) -> dict[str, Any]:
    return json.loads((RESULTS / f"{name}.json").read_text())


TABLES: dict[str, Callable[[], str]] = {
    "counts": counts,
    "errors": errors,
    "ratios": ratios,
    "budgets": budgets,
    "speed": speed,
    "speeds": speeds,
    "memory": memory,
    "roofline": roofline,
    "wild-squared": wild.squared,
    "wild-absolute": wild.absolute,
    "interval-cost": interval_times,
    "interval-coverages": intervals.coverages,
    "interval-widths": intervals.widths,
    "interval-counts": intervals.counts,
    "calibration": calibration.table,
}

if __name__ == "__main__":
    main()
