"""Results files: one line of JSON for each run, with the fields of its key and its figures."""

import fcntl
import json
from collections.abc import Container, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

FOLDER = Path(__file__).parent / "results"

Key = TypeVar("Key", bound=NamedTuple)
Row = dict[str, Any]


def read(file: Path, key: type[Key]) -> dict[Key, Row]:
    """Read all results; of several with the same key, the last one counts."""
    lines = file.read_text().splitlines() if file.is_file() else []
    found = (json.loads(line) for line in lines if line.strip())
    return {key(*(row.pop(name) for name in key._fields)): row for row in found}


def record(file: Path, key: Key, row: Row) -> None:
    """Store a result under its key; several processes may do so at once."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with _locked(file):
        _write(file, read(file, type(key)) | {key: row})


def drop(file: Path, key: type[Key], keys: Container[Key]) -> None:
    """Remove the results of these runs."""
    with _locked(file):
        _write(file, {one: row for one, row in read(file, key).items() if one not in keys})


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    with file.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _write(file: Path, rows: dict[Any, Row]) -> None:
    fresh = file.with_suffix(".new")
    fresh.write_text("".join(json.dumps(key._asdict() | row) + "\n" for key, row in rows.items()))
    fresh.replace(file)
