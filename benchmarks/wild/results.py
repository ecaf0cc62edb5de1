"""The results file: one line of JSON for each run."""

import json
from collections.abc import Container
from pathlib import Path
from typing import Any, NamedTuple

FILE = Path(__file__).parents[1] / "results" / "wild.jsonl"


class Key(NamedTuple):
    """The identity of a run."""

    label: str  # the code that was measured
    stream: str
    model: str
    loss: str
    seed: int


Results = dict[Key, dict[str, Any]]


def read(file: Path) -> Results:
    """Read all results."""
    lines = file.read_text().splitlines() if file.is_file() else []
    found = (json.loads(line) for line in lines)
    return {Key(*(row.pop(name) for name in Key._fields)): row for row in found}


def drop(file: Path, keys: Container[Key]) -> None:
    """Remove the results of these runs."""
    kept = {key: row for key, row in read(file).items() if key not in keys}
    fresh = file.with_suffix(".new")
    fresh.write_text("".join(_line(key, row) for key, row in kept.items()))
    fresh.replace(file)


def append(file: Path, key: Key, row: dict[str, Any]) -> None:
    """Add the result of one run."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as out:
        out.write(_line(key, row))


def _line(key: Key, row: dict[str, Any]) -> str:
    return json.dumps(key._asdict() | row) + "\n"
