"""spanboost: AutoBoost with its three budgets, and boosted trees alone."""

import os
from typing import Any

import numpy as np

from benchmarks.accuracy.datasets import SEED, Data
from benchmarks.accuracy.stream import Clock, Run, blocks
from spanboost import AutoBoost, Rows, SpanBoost, Trees

BLOCK = 4_096
WARM = 256  # rows learned by another model first, to load compiled code


def model(kind: str) -> Any:
    """Create "trees", or AutoBoost with a budget, with default settings."""
    if kind == "trees":
        return SpanBoost(Trees(depth=8), n=100, eta=0.1, label_range="auto", seed=SEED)
    return AutoBoost(budget=kind, seed=SEED)


def ours(kind: str, data: Data, limit: float) -> Run:
    """Learn the stream in blocks; each row is predicted before its label is seen."""
    X, y = data.rows(), data.y
    model(kind).learn_many(_part(X, slice(WARM)), y[:WARM])
    learned, clock, answers = model(kind), Clock(), []
    for part in blocks(len(y), BLOCK):
        with clock:
            answers.append(learned.learn_many(_part(X, part), y[part]))
        if clock.seconds > limit:
            break
    predictions = np.concatenate(answers)
    threads = 1 if kind == "trees" else os.cpu_count() or 1
    return Run(predictions, clock.seconds, len(predictions), threads)


def _part(X: Any, part: slice) -> Any:
    if not isinstance(X, Rows):
        return X[part]
    return Rows(None if X.numbers is None else X.numbers[part], X.codes[part])
