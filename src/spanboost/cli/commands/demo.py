"""`spanboost demo`: each base learner alone and boosted, on a stream whose rule changes."""

from collections.abc import Iterator
from contextlib import closing
from typing import TextIO

import numpy as np

from spanboost.analysis.progressive import LossTape, progressive, rows_to_show
from spanboost.compiling.arrays import Array
from spanboost.data.batch import Batch
from spanboost.data.generated import make_drifting_stream
from spanboost.learners.linear import LinearSGD
from spanboost.learners.network import Network
from spanboost.learners.protocol import Learner
from spanboost.learners.stumps import Stumps
from spanboost.models.booster import Booster, HullBoost, SpanBoost

WAYS = ("alone", "Alg 1", "Alg 2")


LEARNERS: dict[str, Learner] = {  # those of the paper's experiments
    "linear": LinearSGD(),
    "stumps": Stumps(),
    "network": Network(),
}


def models(learners: dict[str, Learner], n: int) -> dict[str, Booster]:
    """Every base learner alone (one copy, given the loss itself) and under both boosters."""
    made: dict[str, Booster] = {}
    for name, learner in learners.items():
        made[f"{name} alone"] = HullBoost(learner, n=1)
        made[f"{name} Alg 1"] = SpanBoost(learner, n=n)
        made[f"{name} Alg 2"] = HullBoost(learner, n=n)
    return made


def batches(X: Array, y: Array, size: int = 1024) -> Iterator[Batch]:
    """The stream in batches."""
    whole = Batch(X, y, None, "generated", np.arange(1, len(y) + 1))
    for start in range(0, len(y), size):
        yield whole.part(start, min(start + size, len(y)))


def save(rows: int, seed: int, path: str) -> None:
    """The stream as a CSV file, its label last."""
    X, y = make_drifting_stream(rows, seed)
    names = [*(f"x{j}" for j in range(X.shape[1])), "label"]
    table = np.column_stack([X, y])
    np.savetxt(path, table, "%.6g", ",", header=",".join(names), comments="")


def run(rows: int, n: int, seed: int, out: TextIO) -> None:
    """Print the progressive table, then the improvement of boosting for each learner."""
    X, y = make_drifting_stream(rows, seed)
    names = list(LEARNERS)
    width = 9 * len(WAYS)
    print(
        f"A generated stream of {rows:,} rows, 8 features; its rule changes after row "
        f"{rows // 2:,}.\nEach learner alone and boosted, {n} copies: Algorithm 1 (span) and "
        "Algorithm 2 (hull).\nAverage squared loss so far; every row is predicted before its label "
        "is seen.\n",
        file=out,
    )
    print(" " * 10 + "".join(f"{name:>{width}}" for name in names), file=out)
    print(f"{'rows':>10}" + "".join(f"{way:>9}" for _ in names for way in WAYS), file=out)
    made = models(LEARNERS, n)

    def show(row: int, totals: Array) -> None:
        cells = "".join(f"{loss:9.4f}" for loss in totals[1:] / totals[0])
        print(f"{row:>10,}{cells}", file=out, flush=True)

    with closing(LossTape(1 + len(made))) as tape:
        for step in progressive(made, batches(X, y), tape):
            for row in rows_to_show(step):
                show(step.first + row + 1, step.totals[row])
        if rows & (rows - 1):  # not shown yet
            show(rows, tape.last)
        final = dict(zip(made, tape.average(0, rows), strict=True))
    print(file=out)
    for name in names:
        alone = final[f"{name} alone"]
        gains = ", ".join(f"{way} {1 - final[f'{name} {way}'] / alone:+.0%}" for way in WAYS[1:])
        print(f"improvement over {name} alone: {gains}", file=out)
