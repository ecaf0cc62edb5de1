"""`python -m benchmarks.counts`: counts and positive numbers, AutoBoost against LightGBM."""

import argparse
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from benchmarks import common
from spanboost import AutoBoost
from spanboost.analysis.metrics.of_means import deviances
from spanboost.losses import resolve

ABOUT = """\
AutoBoost and LightGBM with the same loss learn the first half of each set and predict the second.
AutoBoost is also scored while it continues to learn. The figures are mean deviances on the second
half. Generated sets need no files; with --data there are also real ones. Needs LightGBM.
"""
ROWS = 20_000


class Case(NamedTuple):
    """A set and its loss."""

    name: str
    loss: str
    X: Any
    y: Any


def generated(name: str, loss: str, scale: float) -> Case:
    """Return labels whose mean is a smooth function with steps and a product."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (ROWS, 8))
    effects = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.7 * (X[:, 3] > 0.3) + 0.5 * X[:, 4]
    means = scale * np.exp(effects)
    if loss == "poisson":
        return Case(name, loss, X, rng.poisson(means).astype(float))
    if loss == "gamma":
        return Case(name, loss, X, rng.gamma(2, means / 2))
    events = rng.poisson(means / scale)
    return Case(name, loss, X, np.where(events > 0, rng.gamma(2 * events + 1e-9, scale / 2), 0.0))


def real(folder: Any, name: str, loss: str, *, shuffled: bool = True) -> Case:
    """Return the first rows of a data set; categories are codes."""
    table = common.table_of(folder, name).to_pandas()
    table = table.sample(frac=1, random_state=0) if shuffled else table
    table = table.iloc[:ROWS].copy()
    y = table.pop("label").to_numpy(float)
    for column in table.columns:
        if table[column].dtype.kind not in "iufb":
            table[column] = table[column].astype("category").cat.codes
    return Case(name, loss, table.to_numpy(float), y + (loss == "gamma" and y.min() <= 0))


def cases(folder: Any) -> Iterator[Case]:
    """Yield all sets; real ones only if there is a folder."""
    yield generated("counts, mean 0.2", "poisson", 0.2)
    yield generated("counts, mean 3", "poisson", 3.0)
    yield generated("counts, mean 200", "poisson", 200.0)
    yield generated("positive numbers", "gamma", 3.0)
    yield generated("numbers, often 0", "tweedie:1.5", 3.0)
    if folder is None:
        return
    yield real(folder, "abalone", "poisson")
    yield real(folder, "demandf", "poisson", shuffled=False)
    yield real(folder, "house8l", "gamma")
    yield real(folder, "cal_housing", "gamma")
    yield real(folder, "house8l", "tweedie:1.5")


def lightgbm_predictions(case: Case, half: int) -> Any:
    """Return LightGBM's predictions for the second half, with its defaults."""
    import lightgbm

    name, _, power = case.loss.partition(":")
    parameters = {"objective": name, "verbose": -1, "seed": 0}
    parameters |= {"tweedie_variance_power": float(power)} if power else {}
    rows = lightgbm.Dataset(case.X[:half], case.y[:half])
    return lightgbm.train(parameters, rows, 100).predict(case.X[half:])


def measure(case: Case) -> list[float]:
    """Return the deviances of a constant, LightGBM, AutoBoost frozen and AutoBoost learning."""
    half, power = len(case.y) // 2, resolve(case.loss).power
    model = AutoBoost(case.loss)
    model.learn_many(case.X[:half], case.y[:half])
    frozen = model.predict_many(case.X[half:])
    learning = model.learn_many(case.X[half:], case.y[half:])
    constant = np.full(len(learning), case.y[:half].mean())
    answers = (constant, lightgbm_predictions(case, half), frozen, learning)
    return [float(deviances(power, case.y[half:], one).mean()) for one in answers]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.counts", description=ABOUT)
    common.add_data(parser)
    args = parser.parse_args()
    print("| data | loss | constant | LightGBM | AutoBoost, frozen | AutoBoost, learning |")
    print("|---|---|---|---|---|---|")
    for case in cases(args.data):
        figures = " | ".join(f"{figure:.4g}" for figure in measure(case))
        print(f"| {case.name} | `{case.loss}` | {figures} |", flush=True)


if __name__ == "__main__":
    main()
