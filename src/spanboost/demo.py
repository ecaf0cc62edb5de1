"""`spanboost demo`: each base learner alone and boosted, on a stream whose rule changes."""

import math
from collections.abc import Iterator
from typing import TextIO

from spanboost.arrays import Array
from spanboost.booster import Booster, HullBoost, SpanBoost
from spanboost.data.generated import drifting
from spanboost.evaluate import progressive
from spanboost.learners.ball import LinearBall
from spanboost.learners.finite import FiniteClass, symmetric
from spanboost.learners.linear import LinearSGD
from spanboost.learners.protocol import Learner

WAYS = ("alone", "Alg 1", "Alg 2")


def base_learners(features: int) -> dict[str, Learner]:
    """The base learners of the demonstration, by name."""
    steps = [
        lambda x, j=j, cut=cut: 1.0 if x[j] > cut else -1.0
        for j in range(features)
        for cut in (-0.6, -0.2, 0.2, 0.6)
    ]
    return {
        "linear": LinearSGD(),
        "ball": LinearBall(x_norm=math.sqrt(features)),
        "thresholds": FiniteClass(symmetric(steps)),
    }


def models(learners: dict[str, Learner], n: int) -> dict[str, Booster]:
    """Every base learner alone (one copy, given the loss itself) and under both boosters."""
    made: dict[str, Booster] = {}
    for name, learner in learners.items():
        made[f"{name} alone"] = HullBoost(learner, n=1)
        made[f"{name} Alg 1"] = SpanBoost(learner, n=n)
        made[f"{name} Alg 2"] = HullBoost(learner, n=n)
    return made


def blocks(X: Array, y: Array, size: int = 1024) -> Iterator[tuple[Array, Array]]:
    """The stream in blocks."""
    for start in range(0, len(y), size):
        yield X[start : start + size], y[start : start + size]


def run(rows: int, n: int, seed: int, out: TextIO) -> None:
    """Print the progressive table, then the improvement of boosting for each learner."""
    X, y = drifting(rows, seed)
    learners = base_learners(X.shape[1])
    names = list(learners)
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
    final: dict[str, float] = {}
    for point in progressive(models(learners, n), blocks(X, y)):
        cells = "".join(f"{loss:9.4f}" for loss in point.loss.values())
        print(f"{point.rows:>10,}{cells}", file=out, flush=True)
        final = point.loss
    print(file=out)
    for name in names:
        alone = final[f"{name} alone"]
        gains = ", ".join(f"{way} {1 - final[f'{name} {way}'] / alone:+.0%}" for way in WAYS[1:])
        print(f"improvement over {name} alone: {gains}", file=out)
