"""A fixed set of models on fixed rows: what they predict and store must never change.

`python tests/support/frozen_models.py` writes the files of `tests/models/files`. Version 0.1.0
wrote them. Every later version has to load them and to predict the same numbers. The label range
"growing" was called "auto" then.
"""

import sys
from pathlib import Path

import numpy as np

from spanboost import (
    AutoBoost,
    HullBoost,
    LinearBall,
    LinearSGD,
    Network,
    Rows,
    SpanBoost,
    Stumps,
    Symmetrised,
    Trees,
)
from spanboost.losses import Huber, Quantile, Softmax
from spanboost.parallel.team import Team

FOLDER = Path(__file__).parents[1] / "models" / "files"
ROWS = 120


def numbers(rows=ROWS):
    rng = np.random.default_rng(7)
    X = rng.uniform(-1, 1, (rows, 4))
    y = 0.5 * X[:, 0] - 0.3 * X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=rows)
    return X, y.clip(-1, 1)


def named(rows=ROWS):
    X, y = numbers(rows)
    cities = ["Ulm", "Bonn", "Kiel"]
    given = [
        {"size": float(x[0]), "age": float(x[1]), "city": cities[t % 3]} for t, x in enumerate(X)
    ]
    return given, 100 + 20 * y


def coded(rows=ROWS):
    X, y = numbers(rows)
    codes = np.random.default_rng(8).integers(-1, 5, (rows, 2))
    return Rows(X[:, :2], codes), y + 0.1 * (codes[:, 0] == 2)


def signs(rows=ROWS):
    X, y = numbers(rows)
    return X, np.where(y > 0, 1.0, -1.0)


def classes(rows=ROWS):
    X, _ = numbers(rows)
    return X, np.digitize(X[:, 0], [-0.3, 0.3])


MODELS = {
    "span-linear": (lambda: SpanBoost(LinearSGD(), n=4), numbers),
    "span-linear-named-auto-range": (
        lambda: SpanBoost(LinearSGD(), n=4, label_range="growing"),
        named,
    ),
    "hull-stumps": (lambda: HullBoost(Stumps(), n=4), numbers),
    "span-network-huber": (lambda: SpanBoost(Network(hidden=3), n=3, loss=Huber(0.5)), numbers),
    "span-trees-replay": (
        lambda: SpanBoost(Trees(depth=3), n=3, eta=0.4, replay=1, memory=40, label_range="growing"),
        coded,
    ),
    "span-ball-linear-feedback": (
        lambda: SpanBoost(LinearBall(x_norm=2.0), n=4, feedback="linear"),
        numbers,
    ),
    "hull-symmetrised": (
        lambda: HullBoost(Symmetrised(LinearBall(x_norm=2.0)), n=2, feedback="linear"),
        numbers,
    ),
    "hull-quantile": (lambda: HullBoost(LinearSGD(), n=2, loss=Quantile(0.9)), numbers),
    "span-logistic": (lambda: SpanBoost(Stumps(), n=3, loss="logistic", D=6.0), signs),
    "span-softmax": (lambda: SpanBoost(LinearSGD(), n=2, loss=Softmax(3), D=6.0), classes),
    "committee-trees": (lambda: Team(SpanBoost(Trees(depth=2), n=2), workers=2), numbers),
    "auto-fast": (lambda: AutoBoost(budget="fast", label_range="growing"), named),
    "auto-fast-logistic": (lambda: AutoBoost("logistic", budget="fast"), signs),
}


def learn(name):
    """The model of this name after its rows, and what it predicted before each label."""
    make, rows = MODELS[name]
    model = make()
    X, y = rows()
    before = model.learn_many(X, y)
    return model.model() if isinstance(model, Team) else model, before


if __name__ == "__main__":
    from spanboost import save

    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    folder.mkdir(exist_ok=True)
    for name in MODELS:
        model, before = learn(name)
        save(model, folder / f"{name}.sb")
        after = model.predict_many(MODELS[name][1]()[0])
        np.savez(folder / f"{name}.npz", before=before, after=after)
        print(name, (folder / f"{name}.sb").stat().st_size)
