"""`python -m benchmarks.batch_intervals`: the coverage of intervals after scikit-learn's `fit`."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from benchmarks import batch, common, results_files
from benchmarks.accuracy.markdown import markdown

ABOUT = """\
Fit BoostingRegressor(intervals=True) to three quarters of a data set, and measure the share of the
labels of the other quarter that its 90 % and 50 % intervals contain. Splits are random, and sets
with more than 4,000 rows are sampled.

Each split of a data set is one line of the results file. Splits that have a line are skipped, so
you can stop the command and start it again.

Target: the average coverage is within 1 point of what was asked for.
"""
ENDS = """\
examples:
  python -m benchmarks.batch_intervals --data DIR                 run what is missing
  python -m benchmarks.batch_intervals --data DIR --sets abalone  one data set
  python -m benchmarks.batch_intervals --table                    only print the table
"""
FILE = results_files.FOLDER / "batch_intervals.jsonl"
SETS = ("abalone", "cal_housing", "house8l", "elevators")
SPLITS = {"fast": 20, "default": 5}  # for each budget
ROWS = 4000
COVERAGES = (0.9, 0.5)


class Key(NamedTuple):
    """One split of a data set, for one budget."""

    data: str
    budget: str
    split: int


def run(key: Key, X: Any, y: np.ndarray) -> dict[str, Any]:
    """Fit a model to one split; return the figures of a line of the results file."""
    from sklearn.model_selection import train_test_split

    from spanboost.sklearn import BoostingRegressor

    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=key.split)
    model = BoostingRegressor(budget=key.budget, intervals=True, random_state=key.split)
    _, intervals = model.fit(X_train, y_train).predict_interval(X_test, list(COVERAGES))
    inside = (intervals[:, 0] <= y_test[:, None]) & (y_test[:, None] <= intervals[:, 1])
    return {"rows": len(y), "coverage": inside.mean(axis=0).tolist(), "passes": model.n_epochs_}


def table(runs: dict[Key, dict[str, Any]]) -> Iterable[str]:
    """Yield the table and a summary."""
    lines = []
    for name, budget in sorted({(key.data, key.budget) for key in runs}):
        rows = [row for key, row in sorted(runs.items()) if key[:2] == (name, budget)]
        found = np.array([row["coverage"] for row in rows])
        spans = [f"{low:.3f} to {high:.3f}" for low, high in zip(*_ends(found), strict=True)]
        means = [f"{mean:.3f}" for mean in found.mean(axis=0)]
        pairs = [cell for pair in zip(means, spans, strict=True) for cell in pair]
        lines.append([name, budget, f"{rows[0]['rows']:,}", str(len(rows)), *pairs])
    heads = [head for one in COVERAGES for head in (f"{one:.0%} intervals", "each split")]
    yield markdown(["data", "budget", "rows", "splits", *heads], lines)
    every = np.array([row["coverage"] for row in runs.values()])
    means = " and ".join(f"{mean:.3f}" for mean in every.mean(axis=0))
    yield f"average over {len(every)} splits: {means}"


def _ends(found: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return found.min(axis=0), found.max(axis=0)


def main() -> None:
    """Run what is missing, and print the table."""
    parser = common.resumable_parser("batch_intervals", ABOUT, ENDS, FILE)
    common.add_choice(parser, "--sets", SETS, "Data sets")
    args = parser.parse_args()
    for name in args.sets if not args.table else []:
        X, y = batch.load(name, args.data)
        X, y = X[:ROWS], y[:ROWS]
        for key in (Key(name, one, k) for one, most in SPLITS.items() for k in range(most)):
            if key not in results_files.read(args.results, Key):
                row = run(key, X, y)
                results_files.record(args.results, key, row)
                common.say(f"{name} {key.budget} {key.split}: {row['coverage']}")
    for line in table(results_files.read(args.results, Key)):
        print(line)


if __name__ == "__main__":
    main()
