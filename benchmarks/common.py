"""Code shared by the benchmarks: options, data, learners, timing, tables and result files."""

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import spanboost

LEARNERS: dict[str, tuple[str, dict[str, Any]]] = {
    "linear": ("LinearSGD", {}),
    "stumps": ("Stumps", {}),
    "stumps-intercept": ("Stumps", {"intercept": True}),
    "network": ("Network", {}),
}
PACKAGES = ("numpy", "numba", "scipy", "pyarrow", "vowpalwabbit", "river", "scikit-learn")
WIDTH = 10  # features of the generated stream


class Stream(NamedTuple):
    """Rows in memory, in a form that `learn_many` accepts, and their labels."""

    X: Any
    y: np.ndarray


class Timed(NamedTuple):
    """The shortest time of a job, and the result of its first, untimed run."""

    seconds: float
    result: Any


def parser(name: str, about: str, ends: str) -> argparse.ArgumentParser:
    """Return a parser with the options that every benchmark has."""
    made = argparse.ArgumentParser(
        prog=f"python -m benchmarks.{name}",
        description=about,
        epilog=ends,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    results = Path(__file__).parent / "results" / f"{name}.json"
    made.add_argument(
        "--json",
        type=Path,
        default=results,
        metavar="FILE",
        help=f"Results file (default: benchmarks/results/{name}.json)",
    )
    made.add_argument(
        "--quick", action="store_true", help="Use small sizes, to check that the command works"
    )
    return made


class _ResumableParser(argparse.ArgumentParser):
    """A parser that refuses to print a table without results."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse arguments, and check that --table has results."""
        found, rest = super().parse_known_args(args, namespace)
        if found.table and not found.results.is_file():
            self.error(
                f"{found.results} does not exist, so there are no results to print; "
                f"`{self.prog} --data DIR` makes them"
            )
        return found, rest


def resumable_parser(name: str, about: str, ends: str, file: Path) -> argparse.ArgumentParser:
    """Return the parser of a benchmark that stores each run and continues where it stopped."""
    made = _ResumableParser(
        prog=f"python -m benchmarks.{name}",
        description=about,
        epilog=ends,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_data(made)
    made.add_argument(
        "--results",
        type=Path,
        default=file,
        metavar="FILE",
        help=f"Results file (default: benchmarks/results/{file.name})",
    )
    made.add_argument("--table", action="store_true", help="Run nothing; print the table")
    return made


def add_rows(to: argparse.ArgumentParser, default: int | None, about: str) -> None:
    """Add the option for the number of rows of a data set."""
    shown = "all rows" if default is None else default
    to.add_argument(
        "--rows",
        type=at_least_one,
        default=default,
        metavar="N",
        help=f"{about} (default: {shown})",
    )


def add_data(to: argparse.ArgumentParser) -> None:
    """Add the option for the folder with the data sets."""
    to.add_argument(
        "--data",
        type=Path,
        default=os.environ.get("SPANBOOST_DATA"),
        metavar="DIR",
        help="Folder with the data sets as NAME.parquet (default: $SPANBOOST_DATA)",
    )


def add_choice(to: argparse.ArgumentParser, option: str, names: Iterable[str], what: str) -> None:
    """Add an option that accepts one or more of the names (default: all)."""
    names = list(names)
    listed = ", ".join(names)
    to.add_argument(
        option,
        nargs="+",
        choices=names,
        default=names,
        metavar="NAME",
        help=f"{what}: one or more of {listed} (default: all)",
    )


def learner(name: str, **parameters: Any) -> Any:
    """Create a base learner by its name in LEARNERS."""
    kind, fixed = LEARNERS[name]
    return getattr(spanboost, kind)(**fixed, **parameters)


def table_of(folder: Path | None, name: str) -> Any:
    """Read a data set as an Arrow table; the label is the last column."""
    from pyarrow import parquet

    file = folder / f"{name}.parquet" if folder else None
    if file is None or not file.is_file():
        raise SystemExit(
            f"{name}.parquet not found"
            + (f" in {folder}." if folder else ".")
            + " Set the folder with --data DIR or SPANBOOST_DATA."
        )
    return parquet.read_table(file)


def numbers_of(table: Any, names: Iterable[str]) -> np.ndarray:
    """Return numeric columns as one float32 array."""
    return np.column_stack([table.column(name).to_numpy().astype(np.float32) for name in names])


def generated(rows: int, seed: int = 0) -> Stream:
    """Generate a stream of ten dense features with a nearly linear label in [-1, 1]."""
    X = np.random.default_rng(seed).uniform(-1, 1, (rows, WIDTH)).astype(np.float32)
    return Stream(X, (0.1 * X.sum(axis=1) * np.abs(X[:, 0])).astype(np.float64))


def race(repeats: int, *jobs: Callable[[], Any]) -> list[Timed]:
    """Time alternating jobs and return the shortest of `repeats` times for each.

    The jobs alternate so that other work on the machine affects all of them. Each job runs once
    before, untimed, so compiling and first memory accesses do not count.
    """
    results = [job() for job in jobs]
    times = [[seconds(job) for job in jobs] for _ in range(repeats)]
    return [Timed(min(t), r) for t, r in zip(zip(*times, strict=True), results, strict=True)]


def seconds(job: Callable[[], Any]) -> float:
    """Return the seconds that one call takes."""
    start = time.perf_counter()
    job()
    return time.perf_counter() - start


def meets(value: float, must: str) -> bool:
    """Return whether a value meets a target such as ">= 15" or "<= 2"."""
    sign, bound = must.split()
    return value >= float(bound) if sign == ">=" else value <= float(bound)


def yes_no(met: bool | None) -> str:
    """Return a result as text for a table."""
    return "-" if met is None else "yes" if met else "NO"


def say(text: str) -> None:
    """Print progress to standard error."""
    print(text, file=sys.stderr, flush=True)


def at_least_one(text: str) -> int:
    """Parse a command-line value that must be at least 1."""
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1 (got {number})")
    return number


def counted(items: Iterable[Any], total: int, what: str) -> Iterator[Any]:
    """Yield the items, and report progress after every tenth of them."""
    for i, item in enumerate(items, 1):
        if i * 10 // total > (i - 1) * 10 // total:
            say(f"{what}: {i} of {total}")
        yield item


def show(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table with text aligned left and numbers aligned right."""
    cells = [list(head), *map(list, rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    right = [all(row[j][:1] in "+-.0123456789" for row in cells[1:]) for j in range(len(head))]
    for k, row in enumerate(cells):
        if k == 1:
            print("  ".join("-" * width for width in widths))
        aligned = zip(row, widths, right, strict=True)
        print("  ".join(c.rjust(w) if r else c.ljust(w) for c, w, r in aligned).rstrip())


def save(file: Path, rows: Any, **settings: Any) -> None:
    """Write results as JSON, with the settings and the machine."""
    file.parent.mkdir(parents=True, exist_ok=True)
    content = {"settings": settings, "machine": machine(), "rows": rows}
    file.write_text(json.dumps(content, indent=1, default=str) + "\n")
    say(f"wrote {file}")


def machine() -> dict[str, Any]:
    """Return the processor, number of cores, load and versions."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.is_file() else []
    model = next((s.partition(":")[2].strip() for s in lines if s.startswith("model name")), "")
    versions = {"python": platform.python_version(), "spanboost": spanboost.__version__}
    for name in PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return {
        "cpu": model or platform.processor(),
        "cores": os.cpu_count(),
        "load": os.getloadavg(),
        "system": f"{platform.system()} {platform.machine()}",
        "versions": versions,
    }
