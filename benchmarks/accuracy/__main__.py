"""`python -m benchmarks.accuracy`: the comparison with other libraries, run by run."""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import common
from benchmarks.accuracy import results, tables
from benchmarks.accuracy.datasets import ORDERS, TASKS
from benchmarks.accuracy.methods import METHODS, SHORT, named
from benchmarks.accuracy.results import Key

ABOUT = """\
Runs spanboost and other libraries over the same streams: every data set whole, in file order and
in one fixed shuffle; squared loss on the second half, each row predicted before it is learned, in
one pass, defaults for everybody. Libraries that learn row by row in Python or Java get the first
20,000 rows and two minutes of processor time; they are compared with ours on the rows they reached.

Every run is a process of its own and a line of the results file. Runs that are there are passed
over, so the command can be stopped and started at will; --again repeats some.
"""
ENDS = """\
examples:
  python -m benchmarks.accuracy                                 whatever is missing, then the page
  python -m benchmarks.accuracy --methods peers                 the other libraries only
  python -m benchmarks.accuracy --methods ours --again ours     ours once more, after a change
  python -m benchmarks.accuracy --data casp --orders shuffled   one data set in one order
  python -m benchmarks.accuracy --speed                         speeds, on an idle machine
  python -m benchmarks.accuracy --table                         only the page, from what is there
"""
SPEED_DATA = ("cal_housing", "casp", "friedman")
SPEED_METHODS = ("river-arf", "capymoa-sgbr", "trees", "auto-fast", "auto-default")
PATIENCE = 6  # times the limit: other work on the machine may slow a run down
ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "accuracy.md"


def parser() -> argparse.ArgumentParser:
    """The options."""
    made = argparse.ArgumentParser(
        prog="python -m benchmarks.accuracy",
        description=ABOUT,
        epilog=ENDS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument(
        "--folder",
        type=Path,
        default=os.environ.get("SPANBOOST_DATA"),  # type is applied to it as well
        metavar="DIR",
        help="where the data sets are, NAME.parquet each (default: $SPANBOOST_DATA)",
    )
    common.add_choice(made, "--data", TASKS, "data sets")
    common.add_choice(made, "--orders", ORDERS, "orders")
    for option, default, about in (
        ("--methods", ["peers", "ours"], "methods to run (default: all)"),
        ("--again", [], "methods to run though they are in the results (default: none)"),
    ):
        made.add_argument(
            option, nargs="+", choices=CHOICES, default=default, metavar="NAME", help=about
        )
    made.add_argument(
        "--results",
        type=Path,
        default=results.FILE,
        metavar="FILE",
        help="the results (default: benchmarks/results/accuracy.jsonl)",
    )
    made.add_argument(
        "--page", type=Path, default=PAGE, metavar="FILE", help="default: docs/accuracy.md"
    )
    only = made.add_mutually_exclusive_group()
    only.add_argument("--table", action="store_true", help="run nothing, write the page")
    only.add_argument("--speed", action="store_true", help="time some short runs; see README.md")
    return made


CHOICES = {
    "peers": named("batch", "chunks", "ceiling", "streaming"),
    "ours": named("ours"),
    **{name: [name] for name in METHODS},
}


def chosen(names: list[str]) -> list[str]:
    """The methods that are meant, in the order in which they are run."""
    meant = {method for name in names for method in CHOICES[name]}
    return [method for method in METHODS if method in meant]


def wanted(args: argparse.Namespace) -> Iterator[Key]:
    """The runs asked for."""
    methods, data, orders = chosen(args.methods), args.data, args.orders
    if args.speed:
        methods = [method for method in SPEED_METHODS if method in methods]
        data, orders = [name for name in SPEED_DATA if name in data], ["shuffled"]
    kind = "speed" if args.speed else "accuracy"
    for method in methods:
        for name in TASKS:
            for order in orders:
                if name in data:
                    yield Key(kind, name, order, method)


def run(key: Key, folder: Path | None) -> dict[str, Any]:
    """One run in a fresh process; what went wrong, if it did."""
    most = SHORT if key.kind == "speed" else 0
    longest = PATIENCE * METHODS[key.method].limit
    with tempfile.TemporaryDirectory() as place:
        out = Path(place) / "found.json"
        where = str(folder.resolve()) if folder else ""
        given = [key.data, key.order, key.method, where, str(most), str(out)]
        command = [sys.executable, "-m", "benchmarks.accuracy.worker", *given]
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                timeout=longest,
                check=False,
                cwd=ROOT,
            )
        except subprocess.TimeoutExpired:
            return {"error": f"stopped after {longest:g} s"}
        if done.returncode or not out.is_file():
            last = done.stderr.strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
            return {"error": last[0][:300]}
        return results.read_one(out)


def told(row: dict[str, Any]) -> str:
    """A result in a few words."""
    if "error" in row:
        return row["error"]
    relative = f" ({row['mse'] / row['variance']:.4f} of the variance)" if row["variance"] else ""
    unfinished = "" if row["complete"] else f", the first {row['rows']:,} rows"
    speed = f"{row['rows_per_s']:,.0f} rows/s, {row['peak_mib']:,.0f} MiB"
    return f"{row['mse']:.5g}{relative}{unfinished}, {speed}"


def main() -> None:
    """Run what is missing and write the page."""
    args = parser().parse_args()
    if not args.table:
        keys = results.missing(wanted(args), results.read(args.results), chosen(args.again))
        for i, key in enumerate(keys, 1):
            row = run(key, args.folder)
            results.record(args.results, key, row)
            name = f"{key.method} on {key.data}, {key.order} order"
            common.say(f"{i}/{len(keys)} {name}: {told(row)}")
    args.page.write_text(tables.page(results.read(args.results)))
    common.say(f"written: {args.page}")


if __name__ == "__main__":
    main()
