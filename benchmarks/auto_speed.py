"""Speed of AutoBoost's budgets, measured in processes of their own.

This file is also the script that such a process runs. It imports nothing from this folder, so the
Python of another environment can run it with another version of spanboost.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import numpy as np

BUDGETS = {"fast": ">= 250000", "default": ">= 60000", "thorough": ">= 20000"}
LATENCIES = {"learn_one": "<= 100", "predict_one": "<= 20"}  # microseconds, of the default
BLOCK = 4096  # rows
SINGLE = 200  # rows that are timed one by one


def auto(setting: "Setting") -> "Iterator[Row]":
    """Measure all budgets; compare with another environment if there is one."""
    pythons = [sys.executable] + ([setting.old] if setting.old else [])
    for budget, must in BUDGETS.items():
        runs: dict[str, list[dict[str, float]]] = {python: [] for python in pythons}
        for _ in range(1 if setting.quick else max(setting.repeats, 3)):
            for python in pythons:  # in turn, so that other load affects all of them
                runs[python].append(_run(python, setting, budget))
        figures = [_best(runs[python]) for python in pythons]
        targets = {"rows/s": must} | (LATENCIES if budget == "default" else {})
        for name in figures[0]:
            ours, *others = (figure[name] for figure in figures)
            other = others[0] if others else None
            if name == "error":
                against = ", against the other version" if other else ""
                yield Row(f"AutoBoost {budget}, error / variance{against}", "", ours, other)
                continue
            unit = "rows/s" if name == "rows/s" else "us/row"
            measure = f"AutoBoost {budget}, {'learn_many' if unit == 'rows/s' else name}"
            yield Row(measure, unit, ours, None, targets.get(name))
            if other:
                yield Row(f"{measure}, against the other version", unit, ours, other)


def _run(python: str, setting: "Setting", budget: str) -> dict[str, float]:
    """Return the figures of one process."""
    command = [python, __file__, str(setting.folder), budget, str(5000 if setting.quick else 20640)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def _best(runs: list[dict[str, float]]) -> dict[str, float]:
    """Return the best figure of several runs."""
    return {name: (max if name == "rows/s" else min)(run[name] for run in runs) for name in runs[0]}


def measure_budget(folder: str, budget: str, rows: int) -> dict[str, float]:
    """Return rows per second in blocks, microseconds for single rows, and the error."""
    from spanboost import AutoBoost

    X, y = _cal_housing(folder, rows)
    starts = range(0, len(y), BLOCK)
    warm = AutoBoost(budget=budget)  # compiles
    warm.learn_many(X[:200], y[:200])
    warm.learn_one(X[0].tolist(), y[0])
    warm.predict_one(X[0].tolist())
    model = AutoBoost(budget=budget)
    begin = time.perf_counter()
    parts = [model.learn_many(X[a : a + BLOCK], y[a : a + BLOCK]) for a in starts]
    seconds = time.perf_counter() - begin
    half = len(y) // 2
    error = np.mean((np.concatenate(parts) - y)[half:] ** 2) / np.var(y[half:])
    single = list(zip(X[:SINGLE].tolist(), y[:SINGLE].tolist(), strict=True))
    return {
        "rows/s": len(y) / seconds,
        "learn_one": _microseconds(lambda: [model.learn_one(x, label) for x, label in single]),
        "predict_one": _microseconds(lambda: [model.predict_one(x) for x, _ in single]),
        "error": float(error),
    }


def _cal_housing(folder: str, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the first shuffled rows of cal_housing, and their labels in [0, 1]."""
    import pyarrow.parquet as pq

    table = pq.read_table(f"{folder}/cal_housing.parquet")
    order = np.random.default_rng(0).permutation(table.num_rows)[:rows]
    columns = [table.column(name).to_numpy()[order] for name in table.column_names]
    X, label = np.column_stack(columns[:-1]).astype(np.float32), columns[-1].astype(np.float64)
    return X, (label - 14999) / (500001 - 14999)


def _microseconds(run: Callable[[], object]) -> float:
    """Return the time for one of the single rows: the best of five runs."""
    best = np.inf
    for _ in range(5):
        begin = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - begin)
    return float(best / SINGLE * 1e6)


if __name__ == "__main__":
    print(json.dumps(measure_budget(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
else:
    from benchmarks.measure import Row, Setting
