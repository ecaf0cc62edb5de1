"""Small models of every kind that predicts, and rows to compare their predictions on."""

import numpy as np

from spanboost import (
    AutoBoost,
    HullBoost,
    Intervals,
    LinearSGD,
    Network,
    PredictionSets,
    Ridge,
    Rows,
    SpanBoost,
    Stumps,
    Trees,
)
from spanboost.models.committee import Committee

SMALL_TREES = {"depth": 4, "candidates": 8, "evidence": 0.2, "grace": 4, "delay": 1}
LEARNERS = {
    "linear": LinearSGD(0.5),
    "linear64": LinearSGD(0.5, dtype=np.float64),
    "stumps": Stumps(),
    "intercepts": Stumps(intercept=True, ranking="loss"),
    "network": Network(hidden=3),
    "trees": Trees(**SMALL_TREES),
    "trees64": Trees(**SMALL_TREES, dtype=np.float64),
    "recent": Trees(**SMALL_TREES, recency=2),
    "ridge": Ridge(),
    "shared": Ridge(columns=4),
}
KINDS = ("dense", "codes", "names")
LOSSES = ("squared", "absolute", "logistic", "softmax", "poisson")


def rows_of(kind, T=60, seed=0):
    """Return a block with missing values, unknown categories and values of very different sizes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(T, 4)) * [1.0, 1e-3, 1e4, 1.0]
    X[rng.random(X.shape) < 0.1] = 0.0
    X[rng.random(X.shape) < 0.15] = np.nan
    X[:, 3] = rng.integers(0, 4, T)
    X[rng.random(T) < 0.02, 2] = 1e30
    codes = rng.integers(-1, 3 + 2 * seed, (T, 2))
    if kind == "dense":
        return X
    if kind == "codes":
        return Rows(X[:, :3], codes)
    return [
        {"a": a, "b": b, "city": f"c{code}"} | ({} if code == 2 else {"d": d})
        for (a, b, _, d), code in zip(X.tolist(), codes[:, 0].tolist(), strict=True)
    ]


def labels_of(loss, T=60, seed=0):
    """Return labels that depend on the rows of `rows_of`."""
    X = rows_of("dense", T, seed)
    y = np.nan_to_num(X[:, 0]) + np.sign(np.nan_to_num(X[:, 1])) + X[:, 3]
    if loss == "logistic":
        return np.where(y > 1, 1.0, -1.0)
    if loss == "softmax":
        return np.clip(np.round(y), 0, 2).astype(int)
    return np.abs(np.round(y)) if loss == "poisson" else 100 + 7 * y


def trained(model, kind, loss, T=60, seed=0):
    """Return the model after it has learned rows."""
    model.learn_many(rows_of(kind, T, seed), labels_of(loss, T, seed))
    return model


def span(learner, loss="squared", n=3, **given):
    """Return a booster with a label range that fits the loss."""
    scores = loss in ("logistic", "softmax")
    return SpanBoost(
        LEARNERS[learner], n, loss=loss, label_range=(-1, 1) if scores else "auto", **given
    )


MODELS = {
    **{name: (lambda name=name: span(name)) for name in LEARNERS},
    "hull": lambda: HullBoost(LEARNERS["trees"], 3, label_range="auto"),
    "linear feedback": lambda: SpanBoost(
        LEARNERS["trees"], 3, 0.5, feedback="linear", D=0.4, B=0.4, label_range="auto"
    ),
    "small ball": lambda: span("trees", n=6, D=0.3, B=0.3),
    "replay": lambda: span("trees", replay=2, memory=8),
    "online choice": lambda: SpanBoost(LEARNERS["trees"], "auto", "auto", label_range="auto"),
    "committee": lambda: Committee(
        [span("trees"), trained(span("trees"), "dense", "squared", seed=3)]
    ),
}
COMPILED = {  # too slow as plain Python
    "auto": lambda: AutoBoost(budget="fast"),
    "auto logistic": lambda: AutoBoost(budget="fast", loss="logistic"),
    "auto softmax": lambda: AutoBoost(budget="fast", loss="softmax"),
    "auto poisson": lambda: AutoBoost(budget="fast", loss="poisson"),
    "intervals": lambda: Intervals(AutoBoost(budget="fast")),
    "sets": lambda: PredictionSets(AutoBoost(budget="fast", loss="softmax")),
}
LOSS_OF = {
    "auto logistic": "logistic",
    "auto softmax": "softmax",
    "auto poisson": "poisson",
    "sets": "softmax",
}
