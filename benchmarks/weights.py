"""`python -m benchmarks.weights`: AutoBoost with rows that all have the same weight."""

import argparse
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks import common
from spanboost import AutoBoost, WeightWarning

ABOUT = """\
AutoBoost learns the first rows of each set, shuffled, with one weight for all rows. The figures
are mean squared errors on the second half, divided by the variance of the labels.
"""
ROWS = 8000
WEIGHTS = (1.0, 10.0, 30.0, 100.0, 500.0)
SETS = "abalone", "cal_housing", "elevators", "fried", "house8l"


def error(X: Any, y: Any, budget: str, weight: float) -> float:
    """Return the error on the second half; each row is predicted before it is learned."""
    model, second = AutoBoost(budget=budget), slice(len(y) // 2, None)
    misses = model.learn_many(X, y, np.full(len(y), weight)) - y
    return float(np.mean(misses[second] ** 2) / np.var(y[second]))


def rows_of(folder: Any) -> Iterator[list[str]]:
    """Yield the rows of the table."""
    for name in SETS:
        table = common.table_of(folder, name).to_pandas()
        table = table.sample(frac=1, random_state=0)[:ROWS]
        y = table.pop("label").to_numpy(float)
        X = table.select_dtypes("number").to_numpy(float)
        for budget in ("fast", "default"):
            errors = (error(X, y, budget, weight) for weight in WEIGHTS)
            yield [name, budget, *(f"{one:.4f}" for one in errors)]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.weights", description=ABOUT)
    common.add_data(parser)
    args = parser.parse_args()
    warnings.simplefilter("ignore", WeightWarning)
    common.show(["data", "budget", *(f"weight {one:g}" for one in WEIGHTS)], rows_of(args.data))


if __name__ == "__main__":
    main()
