"""`python -m benchmarks.certificates`: measured bounds on the regret, on real data sets."""

import argparse
import json
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import common
from benchmarks.accuracy.markdown import markdown
from spanboost import AutoBoost, HullBoost, LinearBall, Rows, SpanBoost, Trees
from spanboost.atomic_files import atomic_write
from spanboost.data.batch import as_batch
from spanboost.paper import datasets
from spanboost.theory.certificate import FROM_MIDDLE, IN_BALL, LINEAR, Witness
from spanboost.theory.measured_pass import BLOCK

ABOUT = """\
Learn real data sets in one pass, under squared loss, and print the certificate of the pass: the
regret against the best linear function in hindsight, the measured bound on it, and the theorem's
bound where there is one. All figures are sums over the rows, in units in which labels span [-1, 1].

`span` and `hull` are Algorithms 1 and 2 over LinearBall with linear feedback, which the theorems
cover. Its rows are the features divided by their largest values, categories as indicators, and a
constant, divided by the norm of the longest row. `trees` is the command line's model for
--learner trees, and `auto` is AutoBoost with its defaults, label_range="auto" included. Rows are in
file order, or shuffled with seed 0 where the file is grouped by class or place (covtype).

Each run is one line of the results file. Runs that have a line are skipped, so you can stop the
command and start it again.

The last column says whether the bound is at least the regret, as it must be, and less than the loss
of the best constant, so that it says something. Runs with --rows are kept apart from whole runs.
"""
ENDS = """\
examples:
  python -m benchmarks.certificates --data DIR                        run what is missing
  python -m benchmarks.certificates --data DIR --sets abalone --model trees    one line
  python -m benchmarks.certificates --table                           only print the table
"""
FILE = Path(__file__).parent / "results" / "certificates.jsonl"
SETS = ("abalone", "cal_housing", "casp", "covtype")
MODELS = ("span", "hull", "trees", "auto")
BY_THEOREM = ("span", "hull")


class Key(NamedTuple):
    """What distinguishes runs."""

    model: str
    data: str
    first_rows: int | None  # None: all rows


class Stream(NamedTuple):
    """A data set: its rows for trees and for the ball, its labels, and their range."""

    X: Any
    unit: np.ndarray  # rows of norm at most 1
    y: np.ndarray
    low: float
    high: float


def read(folder: Path | None, name: str, rows: int | None) -> Stream:
    """Read a data set."""
    one = datasets.SETS[name]
    table = common.table_of(folder, name).unify_dictionaries().combine_chunks()
    y = np.asarray(one.label(np.asarray(table.column("label").to_pylist())), np.float64)
    order = np.arange(len(y))
    if not one.ordered:
        np.random.default_rng(0).shuffle(order)
    order = order[:rows]
    features = table.drop_columns("label")
    is_text = {field.name: hasattr(field.type, "index_type") for field in features.schema}
    numbers = common.numbers_of(features, [n for n in is_text if not is_text[n]])
    codes = [features.column(n).chunk(0).indices.to_numpy() for n in is_text if is_text[n]]
    parts = [np.ones((len(y), 1)), numbers / np.maximum(np.abs(numbers).max(axis=0), 1e-300)]
    parts += [np.eye(code.max() + 1)[code] for code in codes]
    unit = np.column_stack(parts).astype(np.float64)
    unit /= np.linalg.norm(unit, axis=1).max() * (1 + 1e-12)
    X: Any = numbers[order]
    if codes:
        X = Rows(X, np.column_stack(codes).astype(np.int64)[order])
    return Stream(X, unit[order], y[order], float(y.min()), float(y.max()))


def new_model(name: str, stream: Stream) -> Any:
    """Return a new model."""
    limits = {"label_range": (stream.low, stream.high), "feedback": "linear"}
    if name == "span":
        return SpanBoost(LinearBall(x_norm=1.0), 32, **limits)
    if name == "hull":
        return HullBoost(LinearBall(x_norm=1.0), 32, **limits)
    return SpanBoost(Trees(), 100, label_range="auto") if name == "trees" else AutoBoost()


def certify(name: str, stream: Stream) -> dict[str, Any]:
    """Learn a stream; return its figures."""
    model, start = new_model(name, stream), time.perf_counter()
    witness, loss = Witness(model), 0.0
    batch = as_batch(stream.unit if name in BY_THEOREM else stream.X, stream.y)
    for first in range(0, batch.rows, BLOCK):
        part = batch.part(first, min(first + BLOCK, batch.rows))
        answers = model.learn_many(part.X, part.y)
        loss += float(((answers - part.y) ** 2).sum())
        witness.add(part.X, part.y, None, answers)
    certificate = witness.certificate(loss)
    named = {one.comparator: one for one in certificate.comparisons}
    kind = {"span": FROM_MIDDLE, "hull": IN_BALL}.get(name, LINEAR)
    one, constant = named[kind], certificate.comparisons[-1]
    units = ((stream.high - stream.low) / 2) ** 2
    assert one.measured is not None
    return {
        "rows": batch.rows,
        "loss": one.loss / units,
        "comparator": one.comparator_loss / units,
        "regret": one.regret / units,
        "measured": one.measured.total / units,
        "terms": {cause: value / units for cause, value in one.measured.terms.items()},
        "expert": one.measured.part,
        "theorem": None if one.promise is None else one.promise.bound / units,
        "constant": constant.comparator_loss / units,
        "constant_bound": None if constant.measured is None else constant.measured.total / units,
        "seconds": time.perf_counter() - start,
    }


def cells(run: dict[str, Any]) -> list[str]:
    """Return a run as a line of the table."""
    ratio = run["measured"] / run["regret"] if run["regret"] > 0 else None
    useful = run["regret"] <= run["measured"] < run["constant"]
    theorem = "-" if run["theorem"] is None else f"{run['theorem']:,.0f}"
    figures = [f"{run[key]:,.1f}" for key in ("constant", "comparator", "regret", "measured")]
    share = "-" if ratio is None else f"{ratio:.2f}"
    named = [run["model"], run["data"], f"{run['rows']:,}"]
    return [*named, *figures, share, theorem, common.yes_no(useful)]


def parser() -> argparse.ArgumentParser:
    """Return the parser of the options."""
    made = common.resumable_parser("certificates", ABOUT, ENDS, FILE)
    common.add_choice(made, "--sets", SETS, "Data sets")
    common.add_choice(made, "--model", MODELS, "Models")
    common.add_rows(made, None, "Learn only the first N rows, and show only such runs")
    return made


def main() -> None:
    """Run what is missing, and print the table."""
    args = parser().parse_args()
    lines = args.results.read_text().splitlines() if args.results.is_file() else []
    runs = {key_of(one): one for one in map(json.loads, lines)}
    for data in () if args.table else args.sets:
        missing = [name for name in args.model if Key(name, data, args.rows) not in runs]
        stream = read(args.data, data, args.rows) if missing else None
        for name in missing:
            assert stream is not None
            key = Key(name, data, args.rows)
            runs[key] = {"data": data, "model": name, "first_rows": args.rows}
            runs[key] |= certify(name, stream)
            common.say(json.dumps(runs[key]))
            with atomic_write(args.results) as out:
                out.write("".join(json.dumps(run) + "\n" for run in runs.values()).encode())
    shown = [runs[key] for key in sorted(runs, key=rank) if key.first_rows == args.rows]
    head = ["model", "data", "rows", "best constant", "best linear", "regret", "measured bound"]
    print(markdown([*head, "bound / regret", "theorem's bound", "useful"], map(cells, shown)))
    ratios = [
        run["measured"] / run["regret"]
        for run in shown
        if run["model"] in BY_THEOREM and run["regret"] > 0
    ]
    if ratios:
        print(f"median of bound / regret over span and hull: {np.median(ratios):.2f}")


def key_of(run: dict[str, Any]) -> Key:
    """Return the key of a run in the results file."""
    return Key(run["model"], run["data"], run.get("first_rows"))


def rank(key: Key) -> tuple[int, int]:
    """Return the place of a run in the table."""
    return MODELS.index(key.model), SETS.index(key.data)


if __name__ == "__main__":
    main()
