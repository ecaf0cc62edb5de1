"""What the benchmarks share: options, data, learners, timing, tables and result files."""

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
    """Rows in memory, as `learn_many` takes them, and their labels."""

    X: Any
    y: np.ndarray


class Timed(NamedTuple):
    """The least time a job took, and what its first, untimed run returned."""

    seconds: float
    result: Any


def parser(name: str, about: str, ends: str) -> argparse.ArgumentParser:
    """The options every benchmark has."""
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
        help=f"where the results go (default: benchmarks/results/{name}.json)",
    )
    made.add_argument(
        "--quick", action="store_true", help="small sizes: to see that it runs, not to quote"
    )
    return made


def add_data(to: argparse.ArgumentParser) -> None:
    """The option for the folder of data sets."""
    to.add_argument(
        "--data",
        type=Path,
        default=os.environ.get("SPANBOOST_DATA"),
        metavar="DIR",
        help="folder of the data sets, NAME.parquet each (default: $SPANBOOST_DATA)",
    )


def add_choice(to: argparse.ArgumentParser, option: str, names: Iterable[str], what: str) -> None:
    """An option that takes one or more of these names, all of them if it is not given."""
    names = list(names)
    listed = ", ".join(names)
    to.add_argument(
        option,
        nargs="+",
        choices=names,
        default=names,
        metavar="NAME",
        help=f"{what}, out of {listed} (default: all)",
    )


def learner(name: str, **parameters: Any) -> Any:
    """A base learner by its name here."""
    kind, fixed = LEARNERS[name]
    return getattr(spanboost, kind)(**fixed, **parameters)


def table_of(folder: Path | None, name: str) -> Any:
    """A data set as an Arrow table; the label is its last column."""
    from pyarrow import parquet

    file = folder / f"{name}.parquet" if folder else None
    if file is None or not file.is_file():
        raise SystemExit(
            f"{name}.parquet is needed: give its folder by --data DIR or in SPANBOOST_DATA"
            + (f" (it is not in {folder})." if folder else ".")
        )
    return parquet.read_table(file)


def numbers_of(table: Any, names: Iterable[str]) -> np.ndarray:
    """Columns of numbers side by side, as the learners' float32."""
    return np.column_stack([table.column(name).to_numpy().astype(np.float32) for name in names])


def generated(rows: int, seed: int = 0) -> Stream:
    """A stream of ten dense features whose label, in [-1, 1], is linear in them but for a bend."""
    X = np.random.default_rng(seed).uniform(-1, 1, (rows, WIDTH)).astype(np.float32)
    return Stream(X, (0.1 * X.sum(axis=1) * np.abs(X[:, 0])).astype(np.float64))


def race(repeats: int, *jobs: Callable[[], Any]) -> list[Timed]:
    """Time jobs in turn, so that all meet the same disturbances; of each, the best of `repeats`.

    Every job runs once before, untimed: compiling and first touches do not count.
    """
    results = [job() for job in jobs]
    times = [[seconds(job) for job in jobs] for _ in range(repeats)]
    return [Timed(min(t), r) for t, r in zip(zip(*times, strict=True), results, strict=True)]


def seconds(job: Callable[[], Any]) -> float:
    """How long one call takes."""
    start = time.perf_counter()
    job()
    return time.perf_counter() - start


def meets(value: float, must: str) -> bool:
    """Whether a figure is as demanded: must is ">= 15" or "<= 2"."""
    sign, bound = must.split()
    return value >= float(bound) if sign == ">=" else value <= float(bound)


def yes_no(met: bool | None) -> str:
    """A verdict in a table."""
    return "-" if met is None else "yes" if met else "NO"


def say(text: str) -> None:
    """Progress, apart from the results."""
    print(text, file=sys.stderr, flush=True)


def at_least_one(text: str) -> int:
    """A number of things, from the command line."""
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{number} is not at least 1")
    return number


def counted(items: Iterable[Any], total: int, what: str) -> Iterator[Any]:
    """The items as they come; says after every tenth of them how far it is."""
    for i, item in enumerate(items, 1):
        if i * 10 // total > (i - 1) * 10 // total:
            say(f"{what}: {i} of {total}")
        yield item


def show(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print an aligned table: words to the left, figures to the right."""
    cells = [list(head), *map(list, rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    right = [all(row[j][:1] in "+-.0123456789" for row in cells[1:]) for j in range(len(head))]
    for k, row in enumerate(cells):
        if k == 1:
            print("  ".join("-" * width for width in widths))
        aligned = zip(row, widths, right, strict=True)
        print("  ".join(c.rjust(w) if r else c.ljust(w) for c, w, r in aligned).rstrip())


def save(file: Path, rows: Any, **settings: Any) -> None:
    """Write results, with what they were measured on, as JSON."""
    file.parent.mkdir(parents=True, exist_ok=True)
    content = {"settings": settings, "machine": machine(), "rows": rows}
    file.write_text(json.dumps(content, indent=1, default=str) + "\n")
    say(f"written: {file}")


def machine() -> dict[str, Any]:
    """Processor, cores, load and versions."""
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
