"""Fill the tables of docs/reproduction.md: `python website/reproduction_page.py FOUND.json ...`.

The files are written by `spanboost reproduce --json`; several of them are merged. Their cells are
stored without curves in benchmarks/results/reproduction.json. A test fills the page from there.
"""

import json
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from spanboost.paper.cells import cell_from_json
from spanboost.paper.protocol import Grid
from spanboost.paper.reproduce import facts_from_json
from spanboost.paper.tables import Table, tables

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reproduction.md"
STORED = ROOT / "benchmarks" / "results" / "reproduction.json"
PLACE = re.compile(r"(<!-- table ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
DIGITS = 7


def merge(found: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the data sets and cells of several runs, without curves."""
    result: dict[str, Any] = {"grid": None, "data": {}}
    cells: dict[tuple[str, ...], Any] = {}
    for one in found:
        result["grid"] = one["grid"]
        result["data"] |= one["data"]
        for cell in one["cells"]:
            name = tuple(cell[key] for key in ("set", "order", "learner", "feedback"))
            cells[name] = {**cell, "seconds": 0, "models": _without_curves(cell["models"])}
    return result | {"cells": list(cells.values())}


def _without_curves(models: Mapping[str, Any]) -> dict[str, Any]:
    rounded = {
        way: {
            key: float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value
            for key, value in one.items()
        }
        for way, one in models.items()
    }
    return {way: one | {"against_n": [], "curve": []} for way, one in rounded.items()}


def stored_tables(state: Mapping[str, Any]) -> dict[str, Table]:
    """Return the tables of stored results."""
    grid = Grid(**{key: _as_tuple(value) for key, value in state["grid"].items()})
    facts = {name: facts_from_json(one) for name, one in state["data"].items()}
    return tables([cell_from_json(one) for one in state["cells"]], facts, grid)


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def fill(page: str, found: Mapping[str, Table]) -> str:
    """Return the page with the tables in their places."""

    def text(place: re.Match[str]) -> str:
        title, *lines = found[place[2]].as_lines()
        return "\n".join([place[1], f"**{title}**", *lines, "", place[3]])

    return PLACE.sub(text, page)


def main(files: Iterable[str]) -> None:
    """Store the results of some runs, and fill the page with them."""
    state = merge(json.loads(Path(file).read_text()) for file in files)
    lines = ",\n".join(json.dumps(cell) for cell in state.pop("cells"))
    STORED.write_text(f'{json.dumps(state)[:-1]}, "cells": [\n{lines}\n]}}\n')
    PAGE.write_text(fill(PAGE.read_text(), stored_tables(json.loads(STORED.read_text()))))


if __name__ == "__main__":
    main(sys.argv[1:])
