"""`python -m benchmarks.headline`: the tables of README.md and docs/performance.md, filled in anew.

They are made from benchmarks/results alone, and stand between two comments that name them; a test
holds them against the results.
"""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.accuracy import results as accuracy
from benchmarks.accuracy import speeds as timed
from benchmarks.accuracy import verdicts
from benchmarks.accuracy.datasets import ORDERS, TASKS
from benchmarks.accuracy.markdown import markdown
from benchmarks.accuracy.methods import METHODS
from benchmarks.accuracy.results import Key
from benchmarks.accuracy.verdicts import AUTO, DEMANDS, Demand

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results"
PAGES = ("README.md", "docs/performance.md")
BLOCK = re.compile(r"(<!-- table: (\S+), .*? -->\n)\n.*?(<!-- end of table -->)", re.DOTALL)
COLUMNS = {AUTO: "AutoBoost", "lightgbm-batch": "LightGBM", "xgboost-batch": "XGBoost"}
HEADLINES = ("against VW", "against River's linear")


def main() -> None:
    """Fill in all pages."""
    for page in PAGES:
        file = ROOT / page
        file.write_text(filled(file.read_text()))
        print(f"written: {page}")


def filled(text: str) -> str:
    """A page with its tables made anew."""
    return BLOCK.sub(lambda found: f"{found[1]}\n{TABLES[found[2]]()}\n{found[3]}", text)


def counts() -> str:
    """How often AutoBoost has less error, demand by demand."""
    runs = accuracy.read(accuracy.FILE)
    found = {demand: verdicts.find(runs, demand, AUTO) for demand in DEMANDS if demand.ours == AUTO}
    rows = [_count(demand, one) for demand, one in found.items() if one.contests]
    return markdown(["AutoBoost against", "order of the rows", "", "data sets"], rows)


def _count(demand: Demand, found: verdicts.Found) -> list[str]:
    how = "less error" if demand.margin == 1 else f"at most {demand.margin - 1:.0%} more"
    share = f"{len(found.won(demand.margin))} of {len(found.contests)}"
    missing = f" ({len(found.missing)} not run)" if found.missing else ""
    order = " and ".join("of the file" if order == "file" else order for order in demand.orders)
    return [demand.against, order, how, share + missing]


def errors() -> str:
    """The errors of AutoBoost and of batch libraries, data set by data set."""
    runs = accuracy.read(accuracy.FILE)
    head = [
        "data",
        "rows",
        *(f"{title}, {_order(o)}" for o in ORDERS for title in COLUMNS.values()),
    ]
    rows = []
    for data in TASKS:
        groups = [[runs.get(Key("accuracy", data, o, name)) for name in COLUMNS] for o in ORDERS]
        there = [row for group in groups for row in group if row and "rows" in row]
        size = f"{there[0]['rows']:,}" if there else "-"
        rows.append([data, size, *(cell for group in groups for cell in _cells(group))])
    return markdown(head, rows)


def _order(order: str) -> str:
    return {"file": "file order", "shuffled": "shuffled"}[order]


def _cells(group: list[dict[str, Any] | None]) -> list[str]:
    shares = [
        row["mse"] / row["variance"] if row and row.get("variance") else None for row in group
    ]
    least = min((share for share in shares if share is not None), default=None)
    return [
        "-" if share is None else f"**{share:.3g}**" if share == least else f"{share:.3g}"
        for share in shares
    ]


def speed() -> str:
    """What compares with another library: lines of the speed benchmark, and timed runs."""
    rows = [
        [row["measure"], *map(_number, (row["ours"], row["theirs"], row["ratio"]))]
        for row in _read("speed")["rows"]
        if any(words in row["measure"] for words in HEADLINES)
    ]
    return markdown(["rows a second", "spanboost", "the other", "ratio"], [*rows, *_timed()])


def _timed() -> Iterator[list[str]]:
    runs = accuracy.read(accuracy.FILE)
    for ours, theirs, _ in timed.RATIOS:
        for data, ratio in timed.ratios(runs, ours, theirs).items():
            both = (timed.speed_of(runs, data, name) for name in (ours, theirs))
            name = f"{METHODS[ours].title}, {data}, against {METHODS[theirs].title}"
            yield [name, *map(_number, both), _number(ratio)]


def speeds() -> str:
    """All lines of the speed benchmark."""
    head = ["measured", "unit", "spanboost", "the other", "ratio", "must", "met"]
    cells = []
    for row in _read("speed")["rows"]:
        met = "-" if row["met"] is None else "yes" if str(row["met"]) == "True" else "**no**"
        numbers = [_number(row[name]) for name in ("ours", "theirs", "ratio")]
        cells.append([row["measure"], row["unit"], *numbers, row["must"] or "-", met])
    return markdown(head, cells)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def memory() -> str:
    """Peak memory after few and many rows."""
    rows = [
        [row["learner"], *(f"{row[when] / 2**20:.0f}" for when in ("before", "after"))]
        for row in _read("memory")["rows"]
    ]
    return markdown(["learner", "MiB after 100,000 rows", "after 10,000,000"], rows)


def _read(name: str) -> dict[str, Any]:
    return json.loads((RESULTS / f"{name}.json").read_text())


TABLES: dict[str, Callable[[], str]] = {
    "counts": counts,
    "errors": errors,
    "speed": speed,
    "speeds": speeds,
    "memory": memory,
}

if __name__ == "__main__":
    main()
