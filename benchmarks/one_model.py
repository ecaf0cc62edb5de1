"""Measure one default model in a new process: memory, file, pickle, or the first call.

`benchmarks.memory` and `benchmarks.first_call` run this file with the Python of two environments.
It uses only what both versions of the library have.
"""

import json
import os
import pickle
import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROWS, COLUMNS = 8000, 8


def stream(loss: str, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and labels for a loss."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, COLUMNS))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=rows)
    if loss == "logistic":
        return X, np.where(y > 0, 1.0, -1.0)
    return X, np.digitize(y, [-0.5, 0.5]) if loss == "softmax" else y


def resident() -> int:
    """Return the resident memory of this process in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def sizes() -> dict[str, float]:
    """Return the memory of a model that has learned, its file and its pickle, in bytes."""
    from spanboost import AutoBoost, load, save

    X, y = stream("squared", ROWS)
    AutoBoost().learn_many(X[:100], y[:100])  # loads the compiled code
    model, before = AutoBoost(), resident()
    model.learn_many(X, y)
    memory = resident() - before
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.sb")
        saving, _ = best(lambda: save(model, path))
        loading, _ = best(lambda: load(path))
        file = path.stat().st_size
    return {
        "memory": memory,
        "file": file,
        "pickle": len(pickle.dumps(model)),
        "saving": saving,
        "loading": loading,
    }


def best(job: object) -> tuple[float, object]:
    """Return the least CPU seconds of three runs, and the last result."""
    times = []
    for _ in range(3):
        began = time.process_time()
        result = job()  # type: ignore[operator]
        times.append(time.process_time() - began)
    return min(times), result


def first_call(learner: str, loss: str) -> dict[str, float]:
    """Return the seconds until the first block is learned, and the CPU time of all processes."""
    began = time.perf_counter()
    from spanboost import AutoBoost, LinearSGD, SpanBoost

    auto = learner == "auto"
    model = AutoBoost(loss=loss) if auto else SpanBoost(LinearSGD(), n=32, label_range=(-9, 9))
    X, y = stream(loss, 100)
    model.learn_many(X, y)
    wall = time.perf_counter() - began
    return {"wall": wall, "cpu": time.process_time() + _children()}


def _children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    task, *words = sys.argv[1:]
    print(json.dumps({"sizes": sizes, "first_call": first_call}[task](*words)))
