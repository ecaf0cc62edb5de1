"""Models from the plain parameters that estimators of other ecosystems take."""

from typing import Any

import numpy as np

from spanboost.checks import is_integer, is_number
from spanboost.compiling.arrays import Array
from spanboost.learners.trees import Trees
from spanboost.losses import Logistic, Softmax, on_vectors, predicts_scores, resolve
from spanboost.models.auto import AnyModel, AutoBoost
from spanboost.models.booster import HullBoost, SpanBoost
from spanboost.models.recipe import AUTO, LEARNERS, ROOM


def new_model(
    learner: Any,
    *,
    booster: str,
    n: int | None,
    step: float | None,
    loss: Any,
    budget: str,
    label_range: tuple[float, float] | str | None,
    replay: int,
    memory: int,
    seed: int,
    names: tuple[str, str],
) -> AnyModel:
    """A fresh model; a ValueError in one sentence where it cannot be.

    learner: a name, "auto" among them, or a learner; label_range: None where predictions are scores
    of classes; names: what n and the step are called there.
    """
    if booster not in ("span", "hull"):
        raise ValueError(f"booster={booster!r} is not known: 'span' or 'hull'")
    resolved = resolve(loss)
    if label_range is not None:
        _check_regression(resolved)
    elif predicts_scores(resolved):
        label_range = (-1, 1)
    shared: dict[str, Any] = {"loss": loss, "label_range": label_range, "seed": seed}
    if isinstance(learner, str) and learner == AUTO:
        if (n, step, booster, replay) != (None, None, "span", 0):
            raise ValueError(
                f"booster, {names[0]}, {names[1]} and replay belong to one learner, and "
                "learner='auto' is many with their own: name one, such as learner='trees'"
            )
        return AutoBoost(budget=budget, **shared)
    learner = _named(learner) if isinstance(learner, str) else learner
    n = n if n is not None else 100 if isinstance(learner, Trees) else 32
    _check_steps(n, step, names)
    shared |= {"n": n, "replay": replay, "memory": memory}
    shared["D"] = ROOM if isinstance(resolved, Logistic | Softmax) else 1.0
    if booster == "span":
        return SpanBoost(learner, eta=step, **shared)
    if step is not None:
        raise ValueError(
            f"{names[1]} is for booster='span': Algorithm 2, 'hull', has steps of its own"
        )
    return HullBoost(learner, **shared)


def _named(learner: str) -> Any:
    if learner not in LEARNERS:
        known = ", ".join(map(repr, (AUTO, *LEARNERS)))
        raise ValueError(f"learner={learner!r} is not known: {known}, or an object")
    return LEARNERS[learner]()


def _check_regression(loss: Any) -> None:
    """Refuse losses of classes, and of vectors."""
    if predicts_scores(loss) or on_vectors(loss).d > 1:
        raise ValueError(
            f"loss={loss!r} does not predict one number for a row: for classes there is "
            "BoostingClassifier, for vectors SpanBoost itself"
        )


def _check_steps(n: Any, step: Any, names: tuple[str, str]) -> None:
    """Refuse what the boosters would refuse, under the names that were given."""
    if not (is_integer(n) and n >= 1):
        raise ValueError(f"{names[0]}={n!r} is not allowed: a whole number, at least 1")
    if step is not None and not (is_number(step) and step * n >= 1 - 1e-12 and step <= 1):
        raise ValueError(
            f"{names[1]}={step!r} is not allowed: from 1 / {names[0]} = {1 / n:g} to 1"
        )


def class_codes(classes: Array, y: Array) -> Array:
    """Labels as a loss takes them: -1 and 1 of two classes, else their numbers."""
    if len(classes) < 2:
        raise ValueError("there must be two classes or more, and y has 1 class only")
    codes = np.searchsorted(classes, y).clip(max=len(classes) - 1)
    strange = classes[codes] != y
    if strange.any():
        raise ValueError(f"the label {y[strange][0]!s:.40} is none of the classes {classes}")
    return codes if len(classes) > 2 else 2.0 * codes - 1


def probabilities(scores: Array) -> Array:
    """Of all classes [rows, classes]: from log-odds of the second [rows], or scores of all."""
    if scores.ndim == 1:
        scores = np.column_stack([np.zeros_like(scores), scores])
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))
