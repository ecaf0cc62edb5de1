"""Speed, accuracy and memory of AutoBoost with several classes, in processes of their own.

This file is also the script that such a process runs. It imports nothing from this folder, so the
Python of another environment can run it with another version of spanboost.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np


class Case(NamedTuple):
    """A stream of classes."""

    name: str
    classes: int
    rows: int
    must: str | None  # rows per second
    block: int = 4096  # rows
    repeats: int = 3


CASES = (
    Case("covtype", 7, 20_000, ">= 20000"),
    Case("letter", 26, 20_000, ">= 5000"),
    Case("generated", 1000, 4_000, None, block=500, repeats=1),
)
UNITS = {"rows/s": "rows/s", "accuracy": "", "log-loss": "", "memory": "MiB", "file": "MB"}


def classes(setting: "Setting") -> "Iterator[Row]":
    """Measure all streams; compare with another environment if there is one."""
    pythons = [sys.executable] + ([setting.old] if setting.old else [])
    for case in CASES:
        runs: dict[str, list[dict[str, float]]] = {python: [] for python in pythons}
        for _ in range(1 if setting.quick else case.repeats):
            for python in pythons:  # in turn, so that other load affects all of them
                runs[python].append(_run(python, setting, case))
        ours, *others = (_best(runs[python]) for python in pythons)
        for name, unit in UNITS.items():
            measure = f"AutoBoost, {case.name}, {case.classes} classes, {name}"
            must = case.must if name == "rows/s" else None
            yield Row(measure, unit, ours[name], None, must)
            if others:
                against = f"{measure}, against the other version"
                yield Row(against, unit, ours[name], others[0][name])


def _run(python: str, setting: "Setting", case: Case) -> dict[str, float]:
    """Return the figures of one process."""
    rows = case.rows // 4 if setting.quick else case.rows
    numbers = map(str, (case.classes, rows, case.block))
    command = [python, __file__, str(setting.folder), case.name, *numbers]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def _best(runs: list[dict[str, float]]) -> dict[str, float]:
    """Return the figures of the fastest run; the others do not differ between runs."""
    return max(runs, key=lambda run: run["rows/s"])


def measure_classes(folder: str, name: str, number: int, rows: int, block: int) -> dict[str, float]:
    """Return the figures of one stream, on whose second half predictions are scored."""
    from spanboost import AutoBoost, save
    from spanboost.losses import Softmax

    X, y = _generated(number, rows) if name == "generated" else _shuffled(folder, name, rows)
    AutoBoost(loss=Softmax(number)).learn_many(X[:200], y[:200])  # compiles
    model, starts = AutoBoost(loss=Softmax(number)), range(0, rows, block)
    begin = time.perf_counter()
    parts = [model.learn_many(X[a : a + block], y[a : a + block]) for a in starts]
    seconds = time.perf_counter() - begin
    scores, label = np.concatenate(parts)[rows // 2 :], y[rows // 2 :]
    scores -= scores.max(axis=1, keepdims=True)
    chance = scores[np.arange(len(label)), label] - np.log(np.exp(scores).sum(axis=1))
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "model.sb"
        save(model, path)
        size = path.stat().st_size
    return {
        "rows/s": rows / seconds,
        "accuracy": float(np.mean(scores.argmax(axis=1) == label)),
        "log-loss": float(-chance.mean()),
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "file": size / 1e6,
    }


def _shuffled(folder: str, name: str, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the first shuffled rows of a data set, and their classes."""
    import pyarrow.parquet as pq

    table = pq.read_table(f"{folder}/{name}.parquet")
    order = np.random.default_rng(0).permutation(table.num_rows)[:rows]
    X = np.column_stack([table.column(one).to_numpy() for one in table.column_names[:-1]])
    _, y = np.unique(table.column("label").to_pylist(), return_inverse=True)
    return X[order].astype(np.float32), y[order]


def _generated(number: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points around the centres of classes, in ten dimensions, and their classes."""
    rng = np.random.default_rng(0)
    centres, y = rng.standard_normal((number, 10)), rng.integers(0, number, rows)
    return (centres[y] + 0.3 * rng.standard_normal((rows, 10))).astype(np.float32), y


if __name__ == "__main__":
    print(json.dumps(measure_classes(*sys.argv[1:3], *map(int, sys.argv[3:]))))
else:
    from benchmarks.measure import Row, Setting
