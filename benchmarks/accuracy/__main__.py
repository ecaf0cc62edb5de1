"""`python -m benchmarks.accuracy`: compare spanboost with other libraries."""

import argparse
import json
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
from benchmarks.results_files import read, record

ABOUT = """\
Run spanboost and other libraries on the same streams: every data set, in file order and in one
fixed shuffle. Each method makes one pass with default settings and predicts each row before it
learns from it. The score is the squared loss on the second half. Libraries that learn row by row in
Python or Java run on the first 20,000 rows, for at most two minutes of processor time. They are
compared with spanboost on the rows they reached.

Each run is a separate process and one line in the results file. Existing results are kept, so you
can stop the command and start it again; --again repeats runs. At the end the command writes the
page and prints the targets, with the result for each.
"""
ENDS = """\
examples:
  python -m benchmarks.accuracy                                 run what is missing, write the page
  python -m benchmarks.accuracy --methods peers                 run the other libraries only
  python -m benchmarks.accuracy --methods ours --again ours     run spanboost again, after a change
  python -m benchmarks.accuracy --data casp --orders shuffled   one data set in one order
  python -m benchmarks.accuracy --speed                         measure speed, on an idle machine
  python -m benchmarks.accuracy --table                         only write the page
"""
SPEED_DATA = ("cal_housing", "casp", "friedman")
SPEED_METHODS = ("river-arf", "capymoa-sgbr", "trees", "auto-fast", "auto-default")
PATIENCE = 6  # a run may take this many times its limit if the machine is busy
ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "accuracy.md"


def parser() -> argparse.ArgumentParser:
    """Return the parser of the options."""
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
        help="Folder with the data sets as NAME.parquet (default: $SPANBOOST_DATA)",
    )
    common.add_choice(made, "--data", TASKS, "Data sets")
    common.add_choice(made, "--orders", ORDERS, "Orders of the rows")
    for option, default, about in (
        ("--methods", ["baselines", "peers", "ours"], "Methods to run (default: all)"),
        ("--again", [], "Methods to run even if results exist (default: none)"),
    ):
        made.add_argument(
            option, nargs="+", choices=CHOICES, default=default, metavar="NAME", help=about
        )
    made.add_argument(
        "--results",
        type=Path,
        default=results.FILE,
        metavar="FILE",
        help="Results file (default: benchmarks/results/accuracy.jsonl)",
    )
    made.add_argument(
        "--page",
        type=Path,
        default=PAGE,
        metavar="FILE",
        help="Page to write (default: docs/accuracy.md)",
    )
    only = made.add_mutually_exclusive_group()
    only.add_argument(
        "--table", action="store_true", help="Run nothing; write the page and print the targets"
    )
    only.add_argument(
        "--speed", action="store_true", help="Time short runs; see benchmarks/README.md"
    )
    return made


CHOICES = {
    "baselines": named("baseline"),
    "peers": named("batch", "tuned", "chunks", "ceiling", "streaming"),
    "ours": named("ours"),
    **{name: [name] for name in METHODS},
}


def chosen(names: list[str]) -> list[str]:
    """Return the chosen methods, in the order in which they run."""
    meant = {method for name in names for method in CHOICES[name]}
    return [method for method in METHODS if method in meant]


def wanted(args: argparse.Namespace) -> Iterator[Key]:
    """Yield the keys of the chosen runs."""
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
    """Execute one run in a new process and return its result, or its error."""
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
        return json.loads(out.read_text())


def describe(row: dict[str, Any]) -> str:
    """Return a result as one line of text."""
    if "error" in row:
        return row["error"]
    relative = f" ({row['mse'] / row['variance']:.4f} of the variance)" if row["variance"] else ""
    unfinished = "" if row["complete"] else f", the first {row['rows']:,} rows"
    speed = f"{row['rows_per_s']:,.0f} rows/s, {row['peak_mib']:,.0f} MiB"
    return f"{row['mse']:.5g}{relative}{unfinished}, {speed}"


def main() -> None:
    """Run what is missing, write the page and print the targets."""
    args = parser().parse_args()
    if not args.table:
        keys = results.missing(wanted(args), read(args.results, Key), chosen(args.again))
        for i, key in enumerate(keys, 1):
            row = run(key, args.folder)
            record(args.results, key, row)
            name = f"{key.method} on {key.data}, {ORDERS[key.order]}"
            common.say(f"{i}/{len(keys)} {name}: {describe(row)}")
    found = read(args.results, Key)
    args.page.write_text(tables.page(found))
    common.say(f"wrote {args.page}")
    head = ["method", "compared with", "order of rows", "target", "result", "met"]
    common.show(head, tables.targets(found))


if __name__ == "__main__":
    main()
