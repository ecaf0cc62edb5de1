"""Lines of a result table, and code shared by the measurements."""

import os
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import common
from benchmarks.common import Stream
from spanboost import SpanBoost


class Row(NamedTuple):
    """A line of the table: a measurement and its target."""

    measure: str
    unit: str
    ours: float
    theirs: float | None = None
    must: str | None = None
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """Our figure divided by the other one."""
        return None if self.theirs is None else self.ours / self.theirs

    @property
    def met(self) -> bool | None:
        """Whether the ratio, or our figure if there is no ratio, meets the target."""
        value = self.ours if self.ratio is None else self.ratio
        return None if self.must is None else common.meets(value, self.must)


class Setting(NamedTuple):
    """The options chosen by the user."""

    folder: Path | None
    learners: Sequence[str]
    repeats: int
    quick: bool
    old: str | None = None  # the Python of an environment with another version of spanboost

    def stream(self, name: str) -> Stream:
        """Return a data set as a stream, repeated if it is too short."""
        from scipy.sparse import csr_matrix

        table = common.table_of(self.folder, name)
        length = 20_000 if self.quick else 200_000
        X = common.numbers_of(table, table.column_names[:-1])
        label = table.column("label").to_numpy()
        take = np.arange(length) % len(label)
        if name == "covtype":
            return Stream(X[take], np.where(label[take] == 2, 1.0, -1.0))
        return Stream(csr_matrix(X[take]), label[take].astype(np.float64))


def learn(base: Any, n: int, stream: Stream) -> np.ndarray:
    """Run one pass of progressive validation and return the predictions."""
    return SpanBoost(base, n=n).learn_many(stream.X, stream.y)


def measure_all(
    args: Namespace,
    sections: Mapping[str, Callable[[Setting], Iterator[Row]]],
    setting: Setting,
    busy: str,
) -> None:
    """Measure, print and save the chosen sections; `busy` says how load affects them."""
    load = os.getloadavg()[0]
    rows: list[Row] = []
    for name in args.only:
        for row in sections[name](setting):
            common.say(f"{name}: {row.measure}")
            rows.append(row)
    publish(args, rows, load, busy, repeats=args.repeats)


def publish(args: Namespace, rows: Sequence[Row], load: float, busy: str, **more: Any) -> None:
    """Print and save the results; `load` is the load before the measurements."""
    show(rows)
    if load > 0.5:
        print(f"\nThe machine was busy (load {load:.1f}), so {busy}.")
    content = [{**row._asdict(), "ratio": row.ratio, "met": row.met} for row in rows]
    common.save(args.json, content, quick=args.quick, load_before=load, **more)


def main(
    name: str,
    about: str,
    ends: str,
    sections: Mapping[str, Callable[[Setting], Iterator[Row]]],
    repeats: int,
) -> None:
    """Run a benchmark command: parse the options, measure and print the table."""
    parser = common.parser(name, about, ends)
    common.add_data(parser)
    common.add_choice(parser, "--only", sections, "Parts of the table")
    parser.add_argument(
        "--repeats",
        type=common.at_least_one,
        default=repeats,
        help=f"Timed runs; the best counts (default: {repeats})",
    )
    args = parser.parse_args()
    setting = Setting(args.data, (), args.repeats, args.quick)
    measure_all(args, sections, setting, busy="jobs with several threads are too slow")


def show(rows: Sequence[Row]) -> None:
    """Print the table."""
    common.show(
        ["measurement", "unit", "ours", "other", "ratio", "target", "met", "notes"],
        (
            (
                row.measure,
                row.unit,
                figure(row.ours, row.unit),
                figure(row.theirs, row.unit),
                figure(row.ratio),
                row.must or "-",
                common.yes_no(row.met),
                row.note,
            )
            for row in rows
        ),
    )


def figure(value: float | None, unit: str = "") -> str:
    """Format a number for the table."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if unit == "rows/s" or value >= 100 else f"{value:.2f}"
