"""`spanboost reproduce`: run the paper's experiments and print its figures next to ours."""

import sys
import time
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from spanboost.atomic_files import check_writable
from spanboost.cli.output import report, reproduction_report
from spanboost.cli.output.json_file import STANDARD_OUTPUT, write_json
from spanboost.cli.ray_options import cluster_of
from spanboost.errors import UserError
from spanboost.paper import dataset_folder
from spanboost.paper.cells import Cell, CellStore
from spanboost.paper.datasets import SETS
from spanboost.paper.protocol import Grid
from spanboost.paper.published import LEARNERS
from spanboost.paper.reproduce import (
    DataSetFacts,
    Selection,
    Watcher,
    find_datasets,
    reproduce,
    survey,
    total_work,
)
from spanboost.paper.summary import as_json
from spanboost.paper.tables import tables


def run(args: Namespace) -> int:
    """Run the requested experiments on the data sets found, and report the missing ones."""
    for path in (args.json, args.report):
        if path not in (None, STANDARD_OUTPUT):
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
    began, used = time.perf_counter(), time.process_time()
    grid, facts = Grid(), survey(available, folder)
    selection = Selection(available, args.learners or LEARNERS, args.shuffles)
    work = total_work(selection, facts)
    with cluster_of(args) as cluster, _Progress(work, args.quiet) as bar:
        store = CellStore(Path(args.work))
        try:
            cells = reproduce(selection, facts, folder, store, bar.watcher(), grid, cluster)
        except KeyboardInterrupt:
            print(
                f"\nspanboost: finished results are in {args.work}; run the same command to resume",
                file=sys.stderr,
            )
            raise
    found = tables(cells, facts, grid)
    if args.json != STANDARD_OUTPUT:
        print("\n\n".join("\n".join(table.as_lines()) for table in found.values()))
    took, processor = time.perf_counter() - began, time.process_time() - used
    if not args.quiet:
        print(f"\n{took:.0f} s, {processor:.0f} s of processor time", file=sys.stderr)
    if args.json:
        result = _result(cells, facts, absent, grid) | {
            "seconds": round(took, 3),
            "processor_seconds": None if args.ray else round(processor, 3),
        }
        write_json(args.json, result)
    if args.report:
        page = reproduction_report.page(args.words, cells, facts, absent, found)
        report.save(args.report, page)
    return 0


def _result(
    cells: Sequence[Cell],
    facts: Mapping[str, DataSetFacts],
    absent: Mapping[str, str],
    grid: Grid,
) -> dict[str, Any]:
    summary = as_json(cells, {name: one.order for name, one in facts.items()})
    data = {name: one.as_json() for name, one in facts.items()}
    return {"grid": grid._asdict(), "data": data, "absent": dict(absent)} | summary


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
