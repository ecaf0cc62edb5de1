"""`python -m benchmarks.foreign`: learners of other libraries, alone and boosted."""

import argparse
import copy
import time
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import common, results_files
from benchmarks.accuracy import datasets
from benchmarks.accuracy.markdown import markdown
from spanboost import SpanBoost, VowpalWabbit

ABOUT = """\
Learn data sets in one pass with learners of other libraries: the learner alone, a fixed number of
copies (n=10), and the default of SpanBoost for such learners, which chooses the number of copies
and the step online. Figures are progressive mean squared errors, relative to the variance of the
labels. Columns are scaled to mean 0 and variance 1, and labels to [-1, 1]. Rows are shuffled with
seed 0. Learners whose library is not installed are skipped.

Each run is one line of the results file. Runs that have a line are skipped, so you can stop the
command and start it again.

Target: the default is at most 1 % worse than the learner alone.
"""
ENDS = """\
examples:
  python -m benchmarks.foreign --data DIR                                 run what is missing
  python -m benchmarks.foreign --data DIR --sets abalone --learners sgd   one line
  python -m benchmarks.foreign --table                                    only print the table
"""
FILE = results_files.FOLDER / "foreign.jsonl"
SETS = ("abalone", "cal_housing", "house8l", "ailerons", "elevators", "casp")
ROWS = 10_000
LARGEST = 1.01  # the loss that is allowed, relative to the learner alone


def _sgd() -> Any:
    from sklearn.linear_model import SGDRegressor

    return SGDRegressor(random_state=0)


def _mlp() -> Any:
    from sklearn.neural_network import MLPRegressor

    return MLPRegressor(hidden_layer_sizes=(20,), random_state=0)


def _river_linear() -> Any:
    from river.linear_model import LinearRegression

    return LinearRegression()


def _hoeffding() -> Any:
    from river.tree import HoeffdingTreeRegressor

    return HoeffdingTreeRegressor()


def _vw() -> Any:
    return VowpalWabbit("")


LEARNERS: dict[str, tuple[str, str, Callable[[], Any]]] = {  # title, library, learner
    "sgd": ("scikit-learn SGDRegressor", "sklearn", _sgd),
    "mlp": ("scikit-learn MLPRegressor", "sklearn", _mlp),
    "river-linear": ("River LinearRegression", "river", _river_linear),
    "hoeffding": ("River HoeffdingTreeRegressor", "river", _hoeffding),
    "vw": ("Vowpal Wabbit", "vowpalwabbit", _vw),
}


class Key(NamedTuple):
    """One run."""

    data: str
    learner: str


def run(key: Key, folder: Path | None, rows: int) -> dict[str, Any]:
    """Learn one data set; return the figures of a line of the results file."""
    X, y = load(key.data, folder, rows)
    start = LEARNERS[key.learner][2]
    # one copy with step 1 is the learner alone
    models = {
        "alone": SpanBoost(start(), n=1, eta=1.0),
        "n=10": SpanBoost(start(), n=10),
        "default": SpanBoost(start()),
    }
    losses, seconds = {}, {}
    for name, model in models.items():
        began = time.process_time()
        errors = (copy.deepcopy(model).learn_many(X, y) - y) ** 2 / y.var()
        seconds[name] = round(time.process_time() - began, 1)
        losses[name] = {
            "whole": float(errors.mean()),
            "second": float(errors[len(y) // 2 :].mean()),
        }
    return {"rows": len(y), "losses": losses, "seconds": seconds}


def load(name: str, folder: Path | None, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return scaled columns, and labels in [-1, 1]."""
    data = datasets.load(name, "shuffled", folder, rows)
    X = data.one_hot()[1].astype(np.float64)
    X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9)
    low, high = data.y.min(), data.y.max()
    return np.clip(X, -10, 10), (2 * data.y - low - high) / (high - low)


def ratio(row: dict[str, Any], name: str, part: str) -> float:
    """Return the loss of a booster, relative to the learner alone."""
    return float(row["losses"][name][part] / row["losses"]["alone"][part])


def cells(key: Key, row: dict[str, Any]) -> list[str]:
    """Return a run as a line of the table."""
    losses = [row["losses"][name]["whole"] for name in ("alone", "n=10", "default")]
    changes = [ratio(row, *one) for one in (("n=10", "whole"), ("default", "whole"))]
    percent = [f"{100 * (one - 1):+.1f} %" for one in changes]
    return [
        *(LEARNERS[key.learner][0], key.data, f"{row['rows']:,}"),
        *(f"{loss:.3f}" for loss in losses),
        *percent,
    ]


def table(runs: dict[Key, dict[str, Any]]) -> Iterable[str]:
    """Yield the table and a summary for each learner."""
    rank = list(LEARNERS)
    shown = sorted(runs, key=lambda key: (rank.index(key.learner), SETS.index(key.data)))
    head = ["learner", "data", "rows", "alone", "n=10", "default", "n=10 - alone"]
    yield markdown([*head, "default - alone"], [cells(key, runs[key]) for key in shown])
    for name in LEARNERS:
        each = [ratio(runs[key], "default", "whole") for key in shown if key.learner == name]
        if each:
            met = sum(one <= LARGEST for one in each)
            mean = 100 * (float(np.exp(np.mean(np.log(each)))) - 1)
            yield f"{name}: {met} of {len(each)} sets within 1 %; mean change {mean:+.1f} %"


def parser() -> argparse.ArgumentParser:
    """Return the parser of the options."""
    made = common.resumable_parser("foreign", ABOUT, ENDS, FILE)
    common.add_choice(made, "--sets", SETS, "Data sets")
    common.add_choice(made, "--learners", LEARNERS, "Learners")
    common.add_rows(made, ROWS, "Use only N rows of a set")
    return made


def main() -> None:
    """Run what is missing, and print the table."""
    args = parser().parse_args()
    known = results_files.read(args.results, Key)
    for key in [Key(data, learner) for data in args.sets for learner in args.learners]:
        installed = find_spec(LEARNERS[key.learner][1]) is not None
        if key not in known and installed and not args.table:
            row = run(key, args.data, args.rows)
            results_files.record(args.results, key, row)
            common.say(f"{key.data} {key.learner}: {ratio(row, 'default', 'whole'):.3f}")
    for line in table(results_files.read(args.results, Key)):
        print(line)


if __name__ == "__main__":
    main()
