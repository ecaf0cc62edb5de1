"""Several targets: one model for each, and all of them learn the same rows."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.interrupts import finishes
from spanboost.models.html import model_html, section
from spanboost.models.model import Model


class TargetModels:
    """Models of several targets, which share nothing.

    Targets may have any scales, losses of numbers apply to each of them, and every model is the one
    of its target alone. A booster with a loss on vectors would use one label range for all targets,
    so those with large numbers would decide what it learns.
    """

    def __init__(self, models: Sequence[Model]) -> None:
        self.models = list(models)

    def __repr__(self) -> str:
        return f"<{len(self.models)} models, one for each target: {self.models}>"

    def _repr_html_(self) -> str:
        parts = [section(f"target {j}", model_html(one)) for j, one in enumerate(self.models)]
        return section(f"{len(parts)} models, one for each target", "".join(parts))

    @property
    def threads(self) -> int | None:
        """The number of threads of each model, one after the other."""
        return self.models[0].threads

    @threads.setter
    def threads(self, number: int | None) -> None:
        for model in self.models:
            model.threads = number

    @finishes
    def learn_many(self, X: Any, Y: Array, weights: Any = None) -> Array:
        """Learn labels [rows, targets]; return the predictions, each made before its label.

        If a row is invalid for one of the models, none of them learns.
        """
        pairs = list(zip(self.models, Y.T, strict=True))
        blocks = [model.check(X, y, weights) for model, y in pairs]
        answers = [one.learn_checked(part) for one, part in zip(self.models, blocks, strict=True)]
        return np.column_stack(answers)

    def predict_many(self, X: Any) -> Array:
        """Return predictions [rows, targets]."""
        return np.column_stack([model.predict_many(X) for model in self.models])


def models_of(fitted: Model | TargetModels) -> list[Model]:
    """Return the models of all targets."""
    return fitted.models if isinstance(fitted, TargetModels) else [fitted]


def join_targets(models: Sequence[Model], several: bool) -> Any:
    """Return the models of several targets as one object, or the model of the only target."""
    return TargetModels(models) if several else models[0]


def check_targets(fitted: Model | TargetModels, y: Array) -> None:
    """Raise a ValueError if labels do not have the number of targets that was learned before."""
    known = f"[rows, {len(fitted.models)}]" if isinstance(fitted, TargetModels) else "[rows]"
    given = "[rows]" if y.ndim == 1 else f"[rows, {y.shape[1]}]"
    if known != given:
        raise ValueError(f"y must have the shape {known}, as in the first call (got {given})")
