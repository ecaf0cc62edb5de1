"""Models from the plain parameters that estimators of other ecosystems take."""

from typing import Any

import numpy as np

from spanboost.arrays import Array
from spanboost.auto import AnyModel, AutoBoost
from spanboost.booster import HullBoost, SpanBoost
from spanboost.learners.trees import Trees
from spanboost.losses import Logistic, Softmax, predicts_scores, resolve
from spanboost.recipe import AUTO, LEARNERS, ROOM


def new_model(
    learner: Any,
    *,
    booster: str,
    n: int | None,
    step: float | None,
    loss: Any,
    budget: str,
    label_range: tuple[float, float] | str,
    seed: int,
    names: tuple[str, str],
) -> AnyModel:
    """A fresh model; a ValueError in one sentence where it cannot be.

    learner: a name, "auto" among them, or a learner; names: what n and the step are called there.
    """
    if booster not in ("span", "hull"):
        raise ValueError(f"booster={booster!r} is not known: 'span' or 'hull'")
    shared: dict[str, Any] = {"loss": loss, "label_range": label_range, "seed": seed}
    resolved = resolve(loss)
    if predicts_scores(resolved):
        shared["label_range"] = (-1, 1)
    if isinstance(learner, str) and learner == AUTO:
        if (n, step, booster) != (None, None, "span"):
            raise ValueError(
                f"booster, {names[0]} and {names[1]} belong to one learner, and learner='auto' is "
                "many with their own: name one, such as learner='trees'"
            )
        return AutoBoost(budget=budget, **shared)
    if isinstance(learner, str):
        if learner not in LEARNERS:
            known = ", ".join(map(repr, (AUTO, *LEARNERS)))
            raise ValueError(f"learner={learner!r} is not known: {known}, or an object")
        learner = LEARNERS[learner]()
    shared["n"] = n if n is not None else 100 if isinstance(learner, Trees) else 32
    shared["D"] = ROOM if isinstance(resolved, Logistic | Softmax) else 1.0
    if booster == "span":
        return SpanBoost(learner, eta=step, **shared)
    if step is not None:
        raise ValueError(
            f"{names[1]} is for booster='span': Algorithm 2, 'hull', has steps of its own"
        )
    return HullBoost(learner, **shared)


def probabilities(scores: Array) -> Array:
    """Of all classes [rows, classes]: from log-odds of the second [rows], or scores of all."""
    if scores.ndim == 1:
        scores = np.column_stack([np.zeros_like(scores), scores])
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))
