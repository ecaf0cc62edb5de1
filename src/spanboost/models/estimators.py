"""Functions shared by the estimators for scikit-learn and River."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from inspect import Parameter, Signature
from typing import Any

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.errors import ParameterError, suggest_loss
from spanboost.learners.constructors import unknown_parameter
from spanboost.losses import (
    Absolute,
    Gamma,
    Huber,
    Poisson,
    Squared,
    on_vectors,
    predicts_scores,
    resolve,
)
from spanboost.losses.constants import WITH_NUMBER
from spanboost.models.model import Model
from spanboost.models.model_spec import ModelSpec
from spanboost.models.spec import (
    AutoSpec,
    parameter_names,
    shared_defaults,
)

SKLEARN_LOSSES = {
    "squared_error": Squared(),
    "absolute_error": Absolute(),
    "huber": Huber(),
    "poisson": Poisson(),
    "gamma": Gamma(),
}


def constructor(
    names: Mapping[str, str],
    *,
    keyword_only_after: str | None = None,
    then: str | None = None,
    **own: Any,
) -> Callable[..., None]:
    """Return an `__init__` that stores its arguments.

    They are parameters of `ModelSpec`, the estimator's own, and those that all front ends share.
    Both libraries read the parameters of an estimator from the signature of its `__init__`.

    names: parameters of `ModelSpec`, and what the estimator calls them; the defaults are the same.
    keyword_only_after: the last parameter that may be given by position; None for all of them.
    then: the method to call when everything is stored.
    own: further parameters and their defaults.
    """
    spec = {one.name: one.default for one in fields(ModelSpec)}
    spec["recent"] = AutoSpec.recent  # as in Python; the command line's models are often exported
    defaults = {local: spec[name] for name, local in names.items()} | own | shared_defaults()
    types = {names.get(one.name, one.name): one.type for one in fields(ModelSpec)}
    kind: Any = Parameter.POSITIONAL_OR_KEYWORD
    parameters = [Parameter("self", kind)]
    for name, default in defaults.items():
        annotation = Parameter.empty if name in own else types[name]
        parameters.append(Parameter(name, kind, default=default, annotation=annotation))
        kind = Parameter.KEYWORD_ONLY if name == keyword_only_after else kind
    signature = Signature(parameters)

    def __init__(*args: Any, **kwargs: Any) -> None:  # noqa: N807
        for name in kwargs.keys() - signature.parameters.keys():
            raise TypeError(unknown_parameter(type(args[0]).__name__, name, names, defaults))
        given = signature.bind(*args, **kwargs)
        given.apply_defaults()
        estimator = given.arguments.pop("self")
        for name, value in given.arguments.items():
            setattr(estimator, name, value)
        if then is not None:
            getattr(estimator, then)()

    __init__.__signature__ = signature  # type: ignore[attr-defined]
    return __init__


def new_model(estimator: Any, names: Mapping[str, str], **given: Any) -> Model:
    """Return a new model with the parameters of an estimator.

    names: as for `constructor`; given: parameters of `ModelSpec` that the estimator does not have.
    """
    local = dict(names) | {name: name for name in shared_defaults()}
    stored = {name: getattr(estimator, own) for name, own in local.items()}
    if isinstance(stored["learner"], str) and stored["learner"] == "ball":
        raise ValueError("learner 'ball' needs a bound on the rows: pass LinearBall(x_norm=...)")
    with parameter_names({**names, "eta": names["step"]}):
        return ModelSpec(**stored | given).build()


def check_regression_loss(loss: Any) -> None:
    """Raise a ParameterError for a loss that does not predict one number for each row."""
    if predicts_scores(loss) or on_vectors(loss).d > 1:
        raise ParameterError(
            "loss",
            f"must predict one number for each row (got {loss!r}): use BoostingClassifier for "
            "classes, SpanBoost for vectors",
        )


def sklearn_regression_loss(loss: Any) -> Any:
    """Return the loss of a name that scikit-learn's users know; a loss object stays as it is."""
    if isinstance(loss, str) and loss.partition(":")[0] not in WITH_NUMBER:
        loss = named_loss(loss, SKLEARN_LOSSES, "'quantile:TAU'", "'tweedie:POWER'")
    check_regression_loss(resolve(loss))
    return loss


def class_codes(classes: Array, y: Array) -> Array:
    """Return labels as the loss expects them: -1 and 1 for two classes, else class numbers."""
    if len(classes) < 2:
        raise ValueError("a classifier needs at least two classes, but y has only 1 class")
    codes = np.searchsorted(classes, y).clip(max=len(classes) - 1)
    strange = classes[codes] != y
    if strange.any():
        raise ValueError(f"the label {y[strange][0]!s:.40} is not one of the classes {classes}")
    return codes if len(classes) > 2 else 2.0 * codes - 1


def named_loss(loss: Any, losses: Mapping[str, Any], *others: str) -> Any:
    """Return the loss of a name that the estimator knows; `others` are further values it takes."""
    if not isinstance(loss, str) or loss not in losses:
        names = " or ".join([*map(repr, losses), *others])
        raise ValueError(f"loss must be {names} (got {loss!r}){suggest_loss(loss, losses)}")
    return losses[loss]
