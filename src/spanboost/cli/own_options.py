"""The options that a loaded model was created with, as far as its file has them."""

from argparse import Namespace
from collections.abc import Collection, Mapping
from typing import Any

from spanboost.cli.from_args import OF_DATA, OF_MODELS, option_name, refuse_with_model
from spanboost.data.schema import Schema
from spanboost.data.target import BinaryTarget, ClassTarget
from spanboost.errors import UsageError
from spanboost.models.calibrated import Calibrated
from spanboost.models.intervals import Intervals
from spanboost.models.model import Model
from spanboost.models.model_spec import AUTO, LEARNERS
from spanboost.models.sets import PredictionSets

_WRAPPERS = {"intervals": Intervals, "sets": PredictionSets, "calibrate": Calibrated}
_SETS = ("ignore", "categorical")  # options whose order means nothing


def accept_own_options(
    args: Namespace, option: str, model: Model, allowed: Collection[str] = ()
) -> None:
    """Forget options that repeat those of a loaded model; raise UsageError for all others.

    option: the option that names the model.
    allowed: options that may be given; they stay as they are.
    """
    own = own_options(model)
    for name, wrapper in _WRAPPERS.items():
        if getattr(args, name, None) and isinstance(model, wrapper):
            setattr(args, name, False)
    for name in (*OF_MODELS, *OF_DATA):
        given = getattr(args, name, None)
        if given is None or own.get(name) is None or name in allowed:
            continue
        if _comparable(name, given) != _comparable(name, own[name]):
            raise UsageError(
                f"{option_name(name)} cannot be combined with {option}, which loads a complete "
                f"model: it has {_text(own[name])} (got {_text(given)})"
            )
        setattr(args, name, None)
    refuse_with_model(args, option, allowed)


def own_options(model: Model) -> dict[str, Any]:
    """Return the values of a model by the names of options; None if they are not known."""
    parameters = model.parameters()["parameters"]
    values = _auto_values if "budget" in parameters else _booster_values
    shared = {name: parameters.get(name) for name in ("label_range", "seed")}
    return shared | {"loss": _loss_name(model)} | values(parameters) | _data_values(model.schema)


def _auto_values(parameters: Mapping[str, Any]) -> dict[str, Any]:
    past = {True: "on", False: "off", None: None}[parameters.get("past")]
    given = {name: parameters.get(name) for name in ("budget", "bits", "recent", "key")}
    return given | {"learner": AUTO, "past": past}


def _booster_values(parameters: Mapping[str, Any]) -> dict[str, Any]:
    names = ("n", "feedback", "replay", "memory", "replay_weight")
    given = {name: parameters.get(name) for name in names}
    given |= {"booster": "span" if "eta" in parameters else "hull", "step": parameters.get("eta")}
    learner = parameters.get("learner")
    if not isinstance(learner, dict):
        return given
    found = learner.get("fields", {})
    given |= {name: found.get(name) for name in ("rate", "bits", "x_norm")}
    return given | {"learner": _learner_name(learner.get("class"), found)}


def _learner_name(cls: Any, found: Mapping[str, Any]) -> str | None:
    """Return the name of a learner; the last one that fits has the most fields in common."""
    names = [
        name
        for name, (_, known, fixed) in LEARNERS.items()
        if known == cls and fixed.items() <= found.items()
    ]
    return names[-1] if names else None


def _loss_name(model: Model) -> str:
    """Return the loss as the command line writes it."""
    loss = model.loss_
    number = [f":{value}" for name in ("tau", "power") if (value := getattr(loss, name, None))]
    return type(loss).__name__.lower() + "".join(number)


def _data_values(schema: Schema) -> dict[str, Any]:
    target = schema.target
    return {
        "label": schema.label or ("label" if schema.form == "json" else None),
        "weight": schema.weight,
        "ignore": schema.ignore or None,
        "categorical": schema.categorical or None,
        "positive": target.positive if isinstance(target, BinaryTarget) else None,
        "classes": target.classes if isinstance(target, ClassTarget) else None,
    }


def _comparable(name: str, value: Any) -> Any:
    if name in _SETS:
        return set(value)
    if name == "loss":  # quantile:0.50 is quantile:0.5
        kind, _, number = value.partition(":")
        return kind, float(number or 0)
    return tuple(value) if isinstance(value, list) else value


def _text(value: Any) -> str:
    """Return a value as the user would type it."""
    if isinstance(value, list | tuple):
        return repr(",".join(map(str, value)))
    return repr({True: "on", False: "off"}[value] if isinstance(value, bool) else str(value))
