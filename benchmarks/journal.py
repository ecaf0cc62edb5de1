"""`python -m benchmarks.journal`: compare the service's journal with SQLite in WAL mode."""

import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from benchmarks import common
from spanboost.service.storage.journal import Journal
from spanboost.service.storage.state import Entry

ABOUT = """\
Write the same rows with ids to the journal, whose ids are looked up in memory, and to SQLite
(synchronous=FULL; the rows as one blob, the ids in an indexed table). The two alternate. Each
group of rows is on disk before the next one starts.
"""
ENDS = "example:\n  python -m benchmarks.journal\n"


def groups(rows: int, number: int) -> Iterator[Entry]:
    """Yield groups of rows with ten numeric features."""
    rng = np.random.default_rng(0)
    for k in range(number):
        X = rng.uniform(-1, 1, (rows, 10)).tolist()
        some = [{f"x{j}": value for j, value in enumerate(x)} for x in X]
        yield Entry([f"{k}-{t}" for t in range(rows)], some, [0.5] * rows, None)


def log(folder: Path) -> Callable[[Entry], None]:
    """Return a function that writes to the journal."""
    journal = Journal(folder / "journal")
    list(journal.read())
    known = set[str | None]()

    def write(entry: Entry) -> None:
        journal.append(entry.encode())
        known.update(entry.ids)

    return write


def sqlite(folder: Path) -> Callable[[Entry], None]:
    """Return a function that writes to SQLite."""
    base = sqlite3.connect(folder / "state.db", isolation_level=None)
    base.execute("pragma journal_mode=wal")
    base.execute("pragma synchronous=full")
    base.execute("create table entries(number integer primary key, body blob)")
    base.execute("create table ids(id text primary key) without rowid")

    def write(entry: Entry) -> None:
        base.execute("begin immediate")
        base.execute("insert into entries(body) values(?)", (entry.encode(),))
        base.executemany("insert into ids values(?)", ((id,) for id in entry.ids))
        base.execute("commit")

    return write


def main() -> None:
    """Measure and print the table."""
    parser = common.parser("journal", ABOUT, ENDS)
    args = parser.parse_args()
    table, content = [], []
    for rows, number in ((1, 300), (100, 200), (1000, 100)):
        with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
            writers = {"journal": log(Path(one)), "SQLite": sqlite(Path(other))}
            times: dict[str, list[float]] = {name: [] for name in writers}
            for entry in groups(rows, number // 10 if args.quick else number):
                for name, write in writers.items():
                    began = time.perf_counter()
                    write(entry)
                    times[name].append(time.perf_counter() - began)
        for name, each in times.items():
            speed = rows * len(each) / sum(each)
            median, p99 = (1000 * float(np.quantile(each, q)) for q in (0.5, 0.99))
            table.append((str(rows), name, f"{speed:,.0f}", f"{median:.2f}", f"{p99:.2f}"))
            content.append(
                {"rows": rows, "name": name, "speed": speed, "median": median, "p99": p99}
            )
    common.show(["rows in a group", "store", "rows/s", "median ms", "p99 ms"], table)
    common.save(args.json, content, quick=args.quick)


if __name__ == "__main__":
    main()
