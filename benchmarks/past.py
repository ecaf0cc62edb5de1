"""AutoBoost with and without past labels, on streams in file order and shuffled."""

import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import common, results_files
from benchmarks.accuracy import datasets
from benchmarks.accuracy.stream import Clock, blocks
from spanboost import AutoBoost, Rows, __version__

FILE = results_files.FOLDER / "past.jsonl"
ABOUT = """\
Learn streams with and without past labels; recent rows are off. The error is the mean squared error
on the second half of a stream; each row is predicted before it is learned. Each run is one line in
the results file. Runs that have a line are skipped, so you can stop the command and start it again.
At the end the command prints a table of ratios, with past labels to without. The streams of River
come with its package.
"""
ENDS = """\
examples:
  python -m benchmarks.past                       run what is missing, print the table
  python -m benchmarks.past --streams demandf     one stream
"""
SETS = (
    *("abalone", "letter", "cal_housing", "shuttle", "bank", "casp", "adult", "covtype"),
    *("ailerons", "elevators", "fried", "house8l", "demandf"),
)
RIVER = {
    "airline": "AirlinePassengers",
    "chick_weights": "ChickWeights",
    "sp500": "SP500Stocks",
    "trump": "TrumpApproval",
    "water": "WaterFlow",
}
KEYS = {"demandf": (0, 1)}  # store and article


class Key(NamedTuple):
    """One run."""

    name: str
    order: str
    past: str  # "off", "on" or "key"
    rows: int


def load(name: str, order: str, folder: Path | None, most: int) -> tuple[Any, np.ndarray]:
    """Return the rows and labels of a stream."""
    if name not in RIVER:
        data = datasets.load(name, order, folder, most)
        return data.rows(), data.y
    X, y = _river(RIVER[name])
    kept = datasets.positions(len(y), order)[:most]
    return X[kept], y[kept]


def _river(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return a stream of River as numbers; a time becomes several of them."""
    from river import datasets as streams

    from spanboost.rows.times import as_moment, is_time, time_entries

    rows, labels = [], []
    for x, y in getattr(streams, name)():
        row: dict[str, float] = {}
        for key, value in x.items():
            row |= time_entries(key, as_moment(value)) if is_time(value) else {key: float(value)}
        rows.append(list(row.values()))
        labels.append(float(y))
    return np.array(rows, np.float32), np.array(labels)


def measure(key: Key, folder: Path | None) -> dict[str, Any]:
    """Learn a stream; return the errors and the time."""
    X, y = load(key.name, key.order, folder, key.rows)
    column = KEYS[key.name] if key.past == "key" else None
    given: dict[str, Any] = {"past": key.past != "off", "key": column, "recent": False}
    model, clock, answers = AutoBoost(**given), Clock(), []
    model.threads = 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        AutoBoost(**given).learn_many(_part(X, slice(64)), y[:64])
        for part in blocks(len(y), 2000):
            with clock:
                answers.append(model.learn_many(_part(X, part), y[part]))
    squares = (np.concatenate(answers) - y) ** 2
    stage = model.past_stage
    return {
        "second_half": float(squares[len(y) // 2 :].mean()),
        "whole": float(squares.mean()),
        "cpu": clock.cpu,
        "trees": None if stage is None else bool(stage.sleep.awake),
        "season": None if stage is None else int(stage.state.season[0]),
        "version": __version__,
    }


def table(found: dict[Key, dict[str, Any]]) -> str:
    """Return the ratios of all streams, with and without past labels, as a table."""
    lines = [
        "| stream | order | second half | whole stream | time |",
        "|" + " --- |" * 5,
    ]
    means: dict[str, list[float]] = {}
    for key, row in found.items():
        base = found.get(key._replace(past="off"))
        if key.past == "off" or base is None:
            continue
        title = key.name + (", by key" if key.past == "key" else "")
        ratios = [row[name] / base[name] for name in ("second_half", "whole", "cpu")]
        shown = " | ".join(f"{ratio:.3f}" for ratio in ratios)
        lines.append(f"| {title} | {datasets.ORDERS[key.order]} | {shown} |")
        if key.past == "on":
            means.setdefault(key.order, []).append(ratios[0])
    for order, ratios in means.items():
        mean = float(np.exp(np.log(ratios).mean()))
        lines.append(f"| geometric mean | {datasets.ORDERS[order]} | {mean:.3f} | | |")
    return "\n".join(lines)


def _part(X: Any, part: slice) -> Any:
    return X.take(part) if isinstance(X, Rows) else X[part]


def main() -> None:
    """Run what was not run before, and print the table."""
    parser = common.resumable_parser("past", ABOUT, ENDS, FILE)
    common.add_rows(parser, 20_000, "Rows of each stream")
    common.add_choice(parser, "--streams", (*RIVER, *SETS), "streams")
    args = parser.parse_args()
    wanted = [
        Key(name, order, past, args.rows)
        for name in args.streams
        for order in datasets.ORDERS
        for past in ("off", "on", *(["key"] if name in KEYS else []))
    ]
    for key in wanted:
        if not args.table and key not in results_files.read(args.results, Key):
            common.say(" ".join(map(str, key)))
            results_files.record(args.results, key, measure(key, args.data))
    found = results_files.read(args.results, Key)
    print(table({key: found[key] for key in wanted if key in found}))


if __name__ == "__main__":
    main()
