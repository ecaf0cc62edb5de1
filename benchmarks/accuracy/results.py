"""The results file: one line of JSON for each key, with its newest run."""

import fcntl
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

FILE = Path(__file__).parents[1] / "results" / "accuracy.jsonl"


class Key(NamedTuple):
    """The identity of a run."""

    kind: str  # "accuracy", or "speed" for short runs on an idle machine
    data: str
    order: str
    method: str


Results = dict[Key, dict[str, Any]]


def read(file: Path) -> Results:
    """Read all results."""
    lines = file.read_text().splitlines() if file.is_file() else []
    found = (json.loads(line) for line in lines if line.strip())
    return {Key(*(row.pop(name) for name in Key._fields)): row for row in found}


def read_one(file: Path) -> dict[str, Any]:
    """Read the result of one run."""
    return json.loads(file.read_text())


def record(file: Path, key: Key, row: dict[str, Any]) -> None:
    """Store a result under its key; several processes may do so at once."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        rows = read(file) | {key: row}
        text = "".join(json.dumps(key._asdict() | row) + "\n" for key, row in rows.items())
        fresh = file.with_suffix(".new")
        fresh.write_text(text)
        fresh.replace(file)


def missing(wanted: Iterable[Key], there: Results, again: Iterable[str]) -> list[Key]:
    """Return the runs that have no result, or that are to be repeated."""
    again = set(again)
    return [key for key in wanted if key not in there or key.method in again]
