"""`spanboost reproduce`: run the paper's experiments and print its figures next to ours."""

import json
import sys
import time
from argparse import Namespace
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import mean, median
from typing import Any

from spanboost.atomic_files import atomic_write, check_writable
from spanboost.cli.output import report, reproduction_report
from spanboost.cli.ray_options import cluster_of
from spanboost.errors import UserError
from spanboost.paper import dataset_folder
from spanboost.paper.cells import FEEDBACKS, ORDERS, Cell, CellStore
from spanboost.paper.datasets import SETS
from spanboost.paper.protocol import SCALES, Grid
from spanboost.paper.published import ALGORITHMS, LEARNERS
from spanboost.paper.reproduce import Selection, Watcher, find_datasets, reproduce, total_work
from spanboost.paper.summary import AVERAGED, VIEWS, SummaryLine, as_json, improvements, lines

WHOSE = ("ours", "paper")
NAMES = {"linear": "SGD", "stumps": "stumps", "network": "networks"}


def run(args: Namespace) -> int:
    """Run the requested experiments on the data sets found, and report the missing ones."""
    for path in filter(None, (args.json, args.report)):
        check_writable(path)
    if args.report:
        report.check(args.report)
    folder = Path(args.data) if args.data else dataset_folder.default_folder()
    names = args.sets or list(SETS)
    if args.download:
        _download(names, folder)
    available, absent = find_datasets(names, folder)
    for name, why in absent.items():
        print(f"spanboost: {name} is left out: {why}", file=sys.stderr)
    if not available:
        raise UserError(
            f"no data set found in {folder}; name the folder with --data or SPANBOOST_DATA, or "
            "download the data sets with --download"
        )
    selection = Selection(available, args.learners or LEARNERS, args.orders or ORDERS, FEEDBACKS)
    began = time.perf_counter()
    with cluster_of(args) as cluster, _Progress(total_work(selection), args.quiet) as bar:
        store = CellStore(Path(args.work))
        try:
            cells, facts = reproduce(selection, folder, store, bar.watcher(), Grid(), cluster)
        except KeyboardInterrupt:
            print(
                f"\nspanboost: finished results are in {args.work}; run the same command to resume",
                file=sys.stderr,
            )
            raise
    seconds = time.perf_counter() - began
    print("\n".join(format_tables(cells)))
    result = as_json(cells, absent) | {
        "grid": Grid()._asdict() | {"scale": {"span": 1.0, "hull": SCALES}},
        "seconds": round(seconds, 3),
        "processor_seconds": None if args.ray else round(sum(cell.seconds for cell in cells), 3),
    }
    if args.json:
        with atomic_write(args.json) as file:
            file.write(json.dumps(result, indent=1, allow_nan=False).encode())
    if args.report:
        report.save(args.report, reproduction_report.page(args.words, cells, facts, absent))
    return 0


def format_tables(cells: Sequence[Cell]) -> list[str]:
    """Return both tables of the paper, for each feedback and row order, as lines of text."""
    out: list[str] = []
    for feedback in FEEDBACKS:
        for view, words in VIEWS.items():
            table = lines(cells, feedback, view)
            if table:
                out += _table_2(table, f"{feedback} feedback, {words}")
            if table and view in AVERAGED:
                out += _table_1(table, f"{feedback} feedback, {words}")
    return out


def _table_2(table: Sequence[SummaryLine], words: str) -> list[str]:
    head = ["data", "learner", "alone", "Alg 1", "gain", "Alg 2", "gain"]
    better = "* our learner alone has a lower loss than the paper's boosted ones"
    return [
        f"\nTable 2, {words}: loss on the second half (the paper's)",
        *_columns([*head, "rate", "rate n eta", "rate n"], map(_cells, table), 2),
        *([better] if any(line.already_better for line in table) else []),
    ]


def _cells(line: SummaryLine) -> list[str]:
    ours, paper, models = line.ours, line.paper, line.cell.models
    baseline, span, hull = models["baseline"], models["span"], models["hull"]
    step = "" if span.eta is None else f" {span.eta:g}"
    return [
        line.cell.set,
        line.cell.learner,
        f"{ours.baseline:.4f} ({paper.baseline:.4f})" + "*" * line.already_better,
        f"{ours.span:.4f} ({paper.span:.4f})",
        f"{ours.improvement('span'):+.1%}",
        f"{ours.hull:.4f} ({paper.hull:.4f})",
        f"{ours.improvement('hull'):+.1%}",
        f"{baseline.rate:g}",
        f"{span.rate:g} {span.n}{step}",
        f"{hull.rate:g} {hull.n}",
    ]


def _table_1(table: Sequence[SummaryLine], words: str) -> list[str]:
    sets = len({line.cell.set for line in table})
    ours, paper = ([improvements(table, take, w) for take in (mean, median)] for w in WHOSE)
    rows = [
        [
            NAMES[learner],
            *(
                f"{mine[learner][a]:+.2%} ({theirs[learner][a]:+.2%})"
                for mine, theirs in zip(ours, paper, strict=True)
                for a in ALGORITHMS
            ),
        ]
        for learner in ours[0]
    ]
    return [
        f"\nTable 1, {words}: relative improvement (the paper's), data sets: {sets}",
        *_columns(["learner", "average Alg 1", "Alg 2", "median Alg 1", "Alg 2"], rows, 1),
    ]


def _columns(head: Sequence[str], rows: Iterable[Sequence[str]], names: int) -> list[str]:
    """Return a table as lines of text; the first `names` columns are aligned left."""
    every = [head, *rows]
    widths = [max(map(len, column)) for column in zip(*every, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if k < names else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in every
    ]


class _Progress:
    """A progress bar on a terminal; elsewhere, a line for every cell."""

    def __init__(self, total: float, quiet: bool) -> None:
        self.quiet, self.total = quiet, total
        self._bar: Any = None

    def __enter__(self) -> "_Progress":
        if not self.quiet and sys.stderr.isatty():
            from tqdm import tqdm

            form = "{percentage:3.0f}% |{bar}| {elapsed} of {remaining} left {postfix}"
            self._bar = tqdm(total=self.total, bar_format=form, leave=False, file=sys.stderr)
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def watcher(self) -> Watcher:
        """Return the callbacks that update the progress."""
        return Watcher(self._on_start, self._on_work, self._on_finish)

    def _on_start(self, what: str) -> None:
        if self._bar is not None:
            self._bar.set_postfix_str(what)

    def _on_work(self, amount: float) -> None:
        if self._bar is not None:
            with self._bar.get_lock():  # several threads may update it
                self._bar.update(amount)

    def _on_finish(self, cell: Cell, was_known: bool) -> None:
        if self.quiet or self._bar is not None:
            return
        losses = ", ".join(f"{way} {one.second_half:.4f}" for way, one in cell.models.items())
        took = "already done" if was_known else f"{cell.seconds:.0f} s"
        names = f"{cell.set} {cell.order} {cell.learner} {cell.feedback}"
        print(f"{names}: {losses} ({took})", file=sys.stderr, flush=True)


def _download(names: Sequence[str], folder: Path) -> None:
    """Download missing data sets; print an error for each one that fails."""
    from tqdm import tqdm

    for name in names:
        if dataset_folder.table_path(SETS[name], folder).is_file():
            continue
        with tqdm(
            desc=name, unit="B", unit_scale=True, leave=False, file=sys.stderr, disable=None
        ) as bar:

            def show(done: int, total: int | None, bar: Any = bar) -> None:
                bar.total = total
                bar.update(done - bar.n)

            try:
                dataset_folder.download(SETS[name], folder, show)
            except UserError as error:
                print(f"spanboost: {error}", file=sys.stderr)
