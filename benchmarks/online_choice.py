"""`python -m benchmarks.online_choice`: n and eta chosen online, against the best in hindsight."""

import argparse
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import common, results_files
from benchmarks.accuracy import datasets
from benchmarks.accuracy.markdown import markdown
from spanboost import LinearSGD, SpanBoost, Stumps, Trees
from spanboost.data.batch import as_batch
from spanboost.models.spec import default_copies
from spanboost.tuning.grid import configurations
from spanboost.tuning.search import Sweep

ABOUT = """\
Learn data sets in one pass with SpanBoost(learner, n="auto", eta="auto"), under squared loss, and
compare its progressive loss with that of the best fixed booster in hindsight: every number of
copies from 1 to 32 (trees: 100) with every step in 0.03, 0.05, 0.1, 0.2, 0.3, 0.5 and 1 that
Algorithm 1 allows. The label range is that of the file for all of them. Labels of classes are
numbers, as in the paper. Rows are in file order, or shuffled with seed 0 where the file is grouped
by class or place.

Each run is one line of the results file. Runs that have a line are skipped, so you can stop the
command and start it again.

Target: the loss is at most 2 % above that of the best fixed booster, on the whole stream and on its
second half.
"""
ENDS = """\
examples:
  python -m benchmarks.online_choice --data DIR                       run what is missing
  python -m benchmarks.online_choice --data DIR --sets abalone --learner trees   one line
  python -m benchmarks.online_choice --table                          only print the table
"""
FILE = results_files.FOLDER / "online_choice.jsonl"
LEARNERS = {"linear": LinearSGD, "stumps": Stumps, "trees": Trees}
SHUFFLED = ("activity", "covtype", "shuttle", "bank")  # files that are grouped by class or place
SETS = (
    *("abalone", "abalone_4977", "letter", "cal_housing", "house8l", "ailerons", "elevators"),
    *("fried", "shuttle", "bank", "casp", "adult", "a9a", "demandf", "activity", "census"),
    "covtype",
)
ETAS = (0.03, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0)
ROWS = 20_000
LARGEST = 1.02  # the loss that is allowed, relative to the best in hindsight


class Key(NamedTuple):
    """One run."""

    data: str
    learner: str


class Halves(NamedTuple):
    """Average losses of the whole stream and of its second half."""

    whole: float
    second: float


def run(key: Key, folder: Path | None, rows: int) -> dict[str, Any]:
    """Learn one data set; return the figures of a line of the results file."""
    order = "shuffled" if key.data in SHUFFLED else "file"
    data = datasets.load(key.data, order, folder, rows)
    X, y, learner = data.rows(), data.y, LEARNERS[key.learner]()
    limits = float(y.min()), float(y.max())
    start = time.process_time()
    model = SpanBoost(learner, n="auto", eta="auto", label_range=limits)
    ours = halves((model.learn_many(X, y) - y) ** 2)
    seconds = time.process_time() - start
    fixed = SpanBoost(learner, default_copies(learner), label_range=limits)
    default = halves((fixed.learn_many(X, y) - y) ** 2)
    best, alone = in_hindsight(learner, X, y, limits, default)
    weights = {name: round(weight, 4) for name, weight in model.weights_.items() if weight > 0.01}
    losses = {"auto": ours, "default": default, "alone": alone, "best": best}
    return {
        "rows": len(y),
        "losses": {name: loss._asdict() for name, loss in losses.items()},
        "weights": weights,
        "seconds": round(seconds, 2),
    }


def in_hindsight(
    learner: Any, X: Any, y: np.ndarray, limits: tuple[float, float], default: Halves
) -> tuple[Halves, Halves]:
    """Return the least losses of fixed boosters, the default included, and those of the learner.

    The best booster of the whole stream need not be the best of its second half.
    """
    n, batch, half = default_copies(learner), as_batch(X, y), len(y) // 2
    etas = [eta for eta in ETAS if n * eta >= 1]
    sweep = Sweep(configurations(learner, {"eta": etas}, "span", n, label_range=limits))
    sweep.learn(batch.part(0, half))
    sweep.mark()
    sweep.learn(batch.part(half, len(y)))
    result = sweep.result()
    second = result.loss_rest
    whole = (half * result.loss_first + (len(y) - half) * second) / len(y)
    alone = etas.index(1.0), 0
    least = Halves(
        min(float(np.nanmin(whole)), default.whole), min(float(np.nanmin(second)), default.second)
    )
    return least, Halves(float(whole[alone]), float(second[alone]))


def halves(losses: np.ndarray) -> Halves:
    """Return the averages of the losses of rows."""
    return Halves(float(losses.mean()), float(losses[len(losses) // 2 :].mean()))


def ratios(row: dict[str, Any]) -> Halves:
    """Return the loss of the online choice, relative to the best in hindsight."""
    ours, best = row["losses"]["auto"], row["losses"]["best"]
    return Halves(ours["whole"] / best["whole"], ours["second"] / best["second"])


def cells(key: Key, row: dict[str, Any]) -> list[str]:
    """Return a run as a line of the table."""
    losses, ratio = row["losses"], ratios(row)
    second = [losses[name]["second"] for name in ("alone", "default", "best")]
    figures = [f"{loss:.4g}" for loss in (*second, losses["auto"]["second"])]
    percent = [f"{100 * (one - 1):+.1f} %" for one in (ratio.second, ratio.whole)]
    return [key.learner, key.data, f"{row['rows']:,}", *figures, *percent]


def table(runs: dict[Key, dict[str, Any]]) -> Iterable[str]:
    """Yield the table and a summary for each learner."""
    head = ["learner", "data", "rows", "alone", "default", "best fixed", "auto"]
    rank = list(LEARNERS)
    shown = sorted(runs, key=lambda key: (rank.index(key.learner), SETS.index(key.data)))
    lines = [cells(key, runs[key]) for key in shown]
    yield markdown([*head, "auto - best, second half", "whole"], lines)
    for name in LEARNERS:
        each = [ratios(runs[key]) for key in shown if key.learner == name]
        if each:
            met = sum(max(one) <= LARGEST for one in each)
            worst = 100 * (max(map(max, each)) - 1)
            median = 100 * (float(np.median([one.second for one in each])) - 1)
            yield (
                f"{name}: {met} of {len(each)} sets within 2 %; largest difference {worst:+.1f} %, "
                f"median on the second half {median:+.1f} %"
            )


def parser() -> argparse.ArgumentParser:
    """Return the parser of the options."""
    made = common.resumable_parser("online_choice", ABOUT, ENDS, FILE)
    common.add_choice(made, "--sets", SETS, "Data sets")
    common.add_choice(made, "--learner", LEARNERS, "Learners")
    common.add_rows(made, ROWS, "Learn only the first N rows of a set")
    return made


def main() -> None:
    """Run what is missing, and print the table."""
    args = parser().parse_args()
    keys = [Key(data, learner) for data in args.sets for learner in args.learner]
    known = results_files.read(args.results, Key)
    for key in keys if not args.table else []:
        if key not in known:
            row = run(key, args.data, args.rows)
            results_files.record(args.results, key, row)
            common.say(f"{key.data} {key.learner}: {ratios(row)}")
    for line in table(results_files.read(args.results, Key)):
        print(line)


if __name__ == "__main__":
    main()
