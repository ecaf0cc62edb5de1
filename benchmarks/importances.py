"""`python -m benchmarks.importances`: feature importances against permutation importance."""

import argparse
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import common, results_files
from benchmarks.accuracy import datasets
from benchmarks.accuracy.markdown import markdown
from spanboost import AutoBoost, SpanBoost, Trees, feature_importances

ABOUT = """\
Learn the first 80 % of a data set in one pass. Compare the importances that the model reports,
from the rows it has kept, with permutation importance on the remaining rows: Spearman's rank
correlation over the features, and the share of the feature that is first by permutation. The gains
of the splits of trees, which earlier versions reported, are shown beside them. Rows are shuffled
with seed 0.

Each run is one line of the results file. Runs that have a line are skipped, so you can stop the
command and start it again.
"""
ENDS = """\
examples:
  python -m benchmarks.importances --data DIR                    run what is missing
  python -m benchmarks.importances --data DIR --sets abalone     one set
  python -m benchmarks.importances --table                       only print the table
"""
FILE = results_files.FOLDER / "importances.jsonl"
SETS = (
    *("friedman", "abalone", "cal_housing", "house8l", "ailerons", "elevators", "casp"),
    *("adult", "bank", "shuttle"),
)
MODELS = ("auto", "trees")
ROWS = 20_000
TEST_ROWS = 4_000


class Key(NamedTuple):
    """One run."""

    data: str
    model: str


def run(key: Key, folder: Path | None, rows: int) -> dict[str, Any]:
    """Learn one data set; return the figures of a line of the results file."""
    data = datasets.load(key.data, "shuffled", folder, rows)
    X, y = data.rows(), data.y
    binary = len(np.unique(y)) == 2
    if binary:
        y = np.where(y > y.min(), 1.0, -1.0)
    model = _new_model(key.model, binary)
    cut = int(0.8 * len(y))
    model.learn_many(_part(X, slice(0, cut)), y[:cut])
    start = time.process_time()
    ours = feature_importances(model)
    seconds = time.process_time() - start
    test = slice(cut, min(len(y), cut + TEST_ROWS))
    exact = feature_importances(model, _part(X, test), y[test])
    features = _features(X)
    first = max(features, key=lambda name: exact.get(name, 0.0))
    shares = {"kept rows": ours, "gains": _gains(model)}
    return {
        "rows": len(y),
        "features": len(features),
        "first": _title(data, first),
        "exact": round(exact.get(first, 0.0), 4),
        "correlation": {
            name: round(correlation(one, exact, features), 4) for name, one in shares.items()
        },
        "share": {name: round(one.get(first, 0.0), 4) for name, one in shares.items()},
        "seconds": round(seconds, 2),
    }


def correlation(found: dict[Any, float], exact: dict[Any, float], features: list[Any]) -> float:
    """Return Spearman's rank correlation of two importances."""
    from scipy.stats import spearmanr

    both = ([one.get(name, 0.0) for name in features] for one in (found, exact))
    return float(spearmanr(*both).statistic)


def _new_model(name: str, binary: bool) -> Any:
    loss = "logistic" if binary else "squared"
    if name == "auto":
        return AutoBoost(loss=loss)
    scores: dict[str, Any] = {"D": 3.0, "B": 6.0} if binary else {"label_range": "auto"}
    return SpanBoost(Trees(), 100, 0.1, loss=loss, **scores)


def _part(X: Any, rows: slice) -> Any:
    return X.take(rows) if hasattr(X, "codes") else X[rows]


def _features(X: Any) -> list[Any]:
    """Return the names of all features, as `feature_importances` names them."""
    numbers, codes = (X.numbers, X.codes) if hasattr(X, "codes") else (X, np.zeros((1, 0)))
    columns = 0 if numbers is None else numbers.shape[1]
    return [*range(columns), *(f"code {j}" for j in range(codes.shape[1]))]


def _title(data: datasets.Data, feature: Any) -> str:
    columns = [one.name for one in data.columns if bool(one.categories) == isinstance(feature, str)]
    return columns[int(str(feature).removeprefix("code "))]


def _gains(model: Any) -> dict[Any, float]:
    """Return each feature's share in the gain of all splits of the trees with most weight."""
    parts = {name: one for name, one in model.parts.items() if isinstance(one.learner, Trees)}
    best = parts[max(parts, key=lambda name: model.weights_[name])] if parts else model
    bank = best.core.state.bank
    inner = bank.link > 0
    gains = np.bincount(bank.place[inner] // 2, bank.spread[inner])
    shares = gains / gains.sum()
    return {f"code {f // 2}" if f % 2 else f // 2: float(one) for f, one in enumerate(shares)}


def cells(key: Key, row: dict[str, Any]) -> list[str]:
    """Return a run as a line of the table."""
    ranks = [f"{row['correlation'][name]:.2f}" for name in ("gains", "kept rows")]
    shares = [f"{row['share'][name]:.2f}" for name in ("gains", "kept rows")]
    counts = [f"{row['rows']:,}", str(row["features"])]
    first = [row["first"], *shares, f"{row['exact']:.2f}"]
    return [key.model, key.data, *counts, *ranks, *first, f"{row['seconds']:.1f}"]


def table(runs: dict[Key, dict[str, Any]]) -> Iterable[str]:
    """Yield the table and the means."""
    head = ["model", "data", "rows", "features", "correlation: gains", "kept rows"]
    head += ["most important", "share: gains", "kept rows", "test rows", "seconds"]
    shown = sorted(runs, key=lambda key: (MODELS.index(key.model), SETS.index(key.data)))
    yield markdown(head, [cells(key, runs[key]) for key in shown])
    for name in MODELS:
        each = [runs[key]["correlation"] for key in shown if key.model == name]
        if each:
            old, new = (np.mean([one[how] for one in each]) for how in ("gains", "kept rows"))
            yield f"{name}: mean rank correlation {old:.2f} (gains), {new:.2f} (kept rows)"


def parser() -> argparse.ArgumentParser:
    """Return the parser of the options."""
    made = common.resumable_parser("importances", ABOUT, ENDS, FILE)
    common.add_choice(made, "--sets", SETS, "Data sets")
    common.add_choice(made, "--models", MODELS, "Models")
    common.add_rows(made, ROWS, "Use only N rows of a set")
    return made


def main() -> None:
    """Run what is missing, and print the table."""
    args = parser().parse_args()
    known = results_files.read(args.results, Key)
    for key in [Key(data, model) for data in args.sets for model in args.models]:
        if key not in known and not args.table:
            row = run(key, args.data, args.rows)
            results_files.record(args.results, key, row)
            common.say(f"{key.data} {key.model}: {row['correlation']}")
    for line in table(results_files.read(args.results, Key)):
        print(line)


if __name__ == "__main__":
    main()
