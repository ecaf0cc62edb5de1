"""`python -m benchmarks.calibration`: probabilities of classes, as they are and calibrated."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import common, results_files
from benchmarks.accuracy import datasets
from benchmarks.accuracy.markdown import markdown
from benchmarks.accuracy.worker import stamp
from spanboost import AutoBoost, Calibrated, LinearSGD, SpanBoost, Trees
from spanboost.analysis.metrics.calibration import new_reliability
from spanboost.losses import Softmax
from spanboost.models.model import Model
from spanboost.models.predictions import probabilities

ABOUT = """\
Learn eight data sets, with two to 26 classes, and measure the probabilities that were predicted
before each label: log-loss and expected calibration error in the second half, and the total
log-loss, of the model alone and in Calibrated.

Each run is one line of the results file. Runs that have a line are skipped, so you can stop the
command and start it again.

Target: the total log-loss is at most 2 nats higher, and the calibration error at most 0.002.
"""
ENDS = """\
examples:
  python -m benchmarks.calibration --data DIR              run what is missing
  python -m benchmarks.calibration --data DIR --sets bank  one data set
  python -m benchmarks.calibration --table                 only print the table
"""
FILE = results_files.FOLDER / "calibration.jsonl"
ROWS = 20_000
SETS = {  # and their numbers of classes
    "adult": 2,
    "bank": 2,
    "census": 2,
    "a9a": 2,
    "shuttle": 7,
    "covtype": 7,
    "activity": 5,
    "letter": 26,
}
MODELS: dict[str, Callable[[Any], Model]] = {
    "AutoBoost()": lambda loss: AutoBoost(loss=loss),
    "SpanBoost(Trees())": lambda loss: SpanBoost(Trees(), loss=loss),
    "SpanBoost(LinearSGD(), n=16)": lambda loss: SpanBoost(LinearSGD(), n=16, loss=loss),
}
NATS, POINTS = 2.0, 0.002  # how much the calibration may cost


class Key(NamedTuple):
    """One run."""

    data: str
    order: str
    model: str


Runs = dict[Key, dict[str, Any]]


def run(key: Key, folder: Path | None, rows: int) -> dict[str, Any]:
    """Learn one data set with and without calibration; return the figures of a line."""
    data = datasets.load(key.data, key.order, folder, rows, labels=_class_numbers)
    classes, number = data.y, SETS[key.data]
    y, loss = (2.0 * classes - 1, "logistic") if number == 2 else (classes, Softmax(number))
    found: dict[str, Any] = {"rows": len(y), "classes": number}
    for name, wrap in (("alone", lambda one: one), ("calibrated", Calibrated)):
        scores = wrap(MODELS[key.model](loss)).learn_many(data.rows(), y)
        found[name] = measure(probabilities(scores), classes)
    return found | {"load": round(os.getloadavg()[0], 2), "stamp": stamp()}


def _class_numbers(labels: np.ndarray) -> np.ndarray:
    return np.unique(labels, return_inverse=True)[1]


def measure(chances: np.ndarray, classes: np.ndarray) -> dict[str, float]:
    """Return the total log-loss, and log-loss and calibration error in the second half."""
    losses = -np.log(chances[np.arange(len(classes)), classes])
    half, best = len(classes) // 2, chances.argmax(axis=1)
    event, chance = best == classes, chances.max(axis=1)
    if chances.shape[1] == 2:
        event, chance = classes == 1, chances[:, 1]
    reliability = new_reliability()
    reliability.add(np.ones(len(classes) - half), chance[half:], event[half:])
    error = reliability.error()
    return {
        "total": float(losses.sum()),
        "log_loss": float(losses[half:].mean()),
        "error": 0.0 if error is None else error,
        "accuracy": float((best == classes)[half:].mean()),
    }


def table(runs: Runs | None = None) -> str:
    """Return the table of log-losses and calibration errors."""
    runs = results_files.read(FILE, Key) if runs is None else runs
    head = ["model", "data", "order", "classes", "log-loss", "calibrated"]
    head += ["calibration error", "calibrated", "change of the total log-loss"]
    rows = []
    for key in sorted(runs, key=_rank):
        row = runs[key]
        cells = [f"{row[one]['log_loss']:.4f}" for one in ("alone", "calibrated")]
        cells += [f"{row[one]['error']:.2%}" for one in ("alone", "calibrated")]
        names = [f"`{key.model}`", key.data, datasets.ORDERS[key.order], str(row["classes"])]
        rows.append([*names, *cells, f"{_excess(row):+,.1f} nats"])
    return markdown(head, rows)


def _rank(key: Key) -> tuple[int, int, str]:
    return list(MODELS).index(key.model), list(SETS).index(key.data), key.order


def _excess(row: dict[str, Any]) -> float:
    return float(row["calibrated"]["total"] - row["alone"]["total"])


def main() -> None:
    """Run what is missing, and print the table."""
    parser = common.resumable_parser("calibration", ABOUT, ENDS, FILE)
    common.add_choice(parser, "--sets", SETS, "Data sets")
    common.add_rows(parser, ROWS, "Use only the first N rows of a set")
    args = parser.parse_args()
    chosen = [Key(data, o, m) for m in MODELS for data in args.sets for o in datasets.ORDERS]
    for key in chosen if not args.table else []:
        if key not in results_files.read(args.results, Key):
            row = run(key, args.data, args.rows)
            results_files.record(args.results, key, row)
            common.say(f"{' '.join(key)}: {_excess(row):+.1f} nats")
    runs = results_files.read(args.results, Key)
    print(table(runs))
    costs = [_excess(row) for row in runs.values()]
    worse = [row["calibrated"]["error"] - row["alone"]["error"] for row in runs.values()]
    print(f"total log-loss: at most {max(costs):+.1f} nats; met: {max(costs) <= NATS}")
    print(f"calibration error: at most {max(worse):+.2%}; met: {max(worse) <= POINTS}")


if __name__ == "__main__":
    main()
