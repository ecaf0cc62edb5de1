"""`python -m benchmarks.batch`: scikit-learn's `fit` and `score`, against HistGradientBoosting."""

import argparse
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import common, results_files
from benchmarks.accuracy.markdown import markdown

ABOUT = """\
Fit BoostingClassifier and BoostingRegressor of spanboost.sklearn with their defaults, and
HistGradientBoosting of scikit-learn with its defaults, to three quarters of a data set. Compare
their scores on the other quarter: accuracy for classes, R^2 for numbers. Splits are random; those
of classes are stratified. Columns of categories are categories for both. Sets with more than 20,000
rows are sampled. Sets with fewer than 5,000 rows are split five times, others twice.

Each split of a data set is one line of the results file. Splits that have a line are skipped, so
you can stop the command and start it again.

Target: the average score is at most 2 % below that of HistGradientBoosting.
"""
ENDS = """\
examples:
  python -m benchmarks.batch --data DIR              run what is missing
  python -m benchmarks.batch --data DIR --sets wine  one data set
  python -m benchmarks.batch --table                 only print the table
"""
FILE = results_files.FOLDER / "batch.jsonl"
BUNDLED = ("wine", "breast_cancer", "digits", "diabetes")  # with scikit-learn
CLASSES = ("wine", "breast_cancer", "digits", "bank", "adult", "shuttle")
SETS = (*BUNDLED, "abalone", "cal_housing", "bank", "adult", "house8l", "elevators", "shuttle")
ROWS, FEW = 20_000, 5_000
LEAST = 0.98  # the score that is allowed, relative to HistGradientBoosting


class Key(NamedTuple):
    """One split of a data set."""

    data: str
    split: int


def load(name: str, folder: Path | None) -> tuple[Any, np.ndarray]:
    """Return a data set as a frame and labels; categories are columns of categories."""
    import pandas as pd
    from sklearn import datasets

    if name in BUNDLED:
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        return pd.DataFrame(X), y
    frame = common.table_of(folder, name).to_pandas()
    frame = frame.sample(min(ROWS, len(frame)), random_state=0).reset_index(drop=True)
    y = frame.pop("label").to_numpy()
    for column in frame.columns[frame.dtypes == "category"]:
        frame[column] = frame[column].cat.remove_unused_categories()
    return frame, y.astype(str) if name in CLASSES else y.astype(float)


def splits(rows: int) -> int:
    """Return the number of splits of a data set."""
    return 5 if rows < FEW else 2


def run(key: Key, X: Any, y: np.ndarray) -> dict[str, Any]:
    """Fit all models to one split; return the figures of a line of the results file."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.model_selection import train_test_split

    from spanboost.sklearn import BoostingClassifier, BoostingRegressor

    classes = key.data in CLASSES
    rival = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    own = BoostingClassifier if classes else BoostingRegressor
    models = {
        "hist": rival(random_state=0, categorical_features="from_dtype"),
        "once": own(random_state=0, n_epochs=1),
        "auto": own(random_state=0),
    }
    parts = train_test_split(
        X, y, test_size=0.25, random_state=key.split, stratify=y if classes else None
    )
    X_train, X_test, y_train, y_test = parts
    scores, seconds = {}, {}
    for name, model in models.items():
        start = time.perf_counter()
        model.fit(X_train, y_train)
        seconds[name] = round(time.perf_counter() - start, 2)
        scores[name] = model.score(X_test, y_test)
    return {
        "rows": len(y),
        "scores": scores,
        "seconds": seconds,
        "passes": models["auto"].n_epochs_,
    }


def averages(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Return the average scores over the splits of a data set."""
    return {name: float(np.mean([row["scores"][name] for row in rows])) for name in ROLES}


ROLES = {"hist": "HistGradientBoosting", "once": "one pass", "auto": "default"}


def table(runs: dict[Key, dict[str, Any]]) -> Iterable[str]:
    """Yield the table and a summary."""
    lines, ratios = [], []
    for name in (one for one in SETS if any(key.data == one for key in runs)):
        rows = [runs[key] for key in sorted(runs) if key.data == name]
        score = averages(rows)
        ratios.append(score["auto"] / score["hist"])
        passes = sorted({row["passes"] for row in rows})
        number = f"{passes[0]}" if len(passes) == 1 else f"{passes[0]} to {passes[-1]}"
        seconds = [np.median([row["seconds"][one] for row in rows]) for one in ("hist", "auto")]
        figures = [f"{score[one]:.3f}" for one in ROLES]
        measure = "accuracy" if name in CLASSES else "R^2"
        difference = f"{100 * (ratios[-1] - 1):+.1f} %"
        times = [f"{one:.1f} s" for one in seconds]
        lines.append([name, f"{rows[0]['rows']:,}", measure, *figures, difference, number, *times])
    head = ["data", "rows", "score", *ROLES.values(), "difference", "passes"]
    yield markdown([*head, "time, HistGradientBoosting", "time, default"], lines)
    met = sum(ratio >= LEAST for ratio in ratios)
    worst = 100 * (min(ratios, default=1.0) - 1)
    yield f"{met} of {len(ratios)} sets within 2 % or better; smallest difference {worst:+.1f} %"


def parser() -> argparse.ArgumentParser:
    """Return the parser of the options."""
    made = common.resumable_parser("batch", ABOUT, ENDS, FILE)
    common.add_choice(made, "--sets", SETS, "Data sets")
    return made


def main() -> None:
    """Run what is missing, and print the table."""
    args = parser().parse_args()
    for name in args.sets if not args.table else []:
        X, y = load(name, args.data)
        for key in (Key(name, split) for split in range(splits(len(y)))):
            if key not in results_files.read(args.results, Key):
                row = run(key, X, y)
                results_files.record(args.results, key, row)
                common.say(f"{name} {key.split}: {row['scores']}, {row['passes']} passes")
    for line in table(results_files.read(args.results, Key)):
        print(line)


if __name__ == "__main__":
    main()
