"""What models are made of, in terms of JSON: the part of a file that people can read."""

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from spanboost import losses
from spanboost.checks import float_type
from spanboost.errors import ModelFileError
from spanboost.learners.ball import LinearBall
from spanboost.learners.finite import FiniteClass
from spanboost.learners.linear import LinearSGD
from spanboost.learners.network import Network
from spanboost.learners.stumps import Stumps
from spanboost.learners.symmetric import Symmetrised
from spanboost.learners.trees import Trees
from spanboost.models.auto import AnyModel, AutoBoost
from spanboost.models.committee import Committee

PARTS: dict[str, Any] = {
    cls.__name__: cls
    for cls in (
        *(LinearSGD, Stumps, Network, Trees, LinearBall, Symmetrised, FiniteClass),
        *(losses.PNorm, losses.Quantile, losses.Huber, losses.Softmax, losses.SquaredEuclidean),
        *map(type, losses.NAMES.values()),
    )
}
PARAMETERS = (
    *("learner", "n", "eta", "loss", "feedback", "alpha", "offset", "scale", "D", "B"),
    *("label_range", "replay", "memory", "seed"),
)
OF_AUTO = ("loss", "budget", "label_range", "seed", "bits")


def parameters_of(model: AnyModel) -> dict[str, Any]:
    """What the model was made of, in terms of JSON."""
    if isinstance(model, Committee):
        return parameters_of(model.members[0]) | {"booster": Committee.__name__}
    names = OF_AUTO if isinstance(model, AutoBoost) else PARAMETERS
    given = {name: getattr(model, name) for name in names if hasattr(model, name)}
    return {
        "booster": type(model).__name__,
        "parameters": {name: to_json(value) for name, value in given.items()},
    }


def to_json(value: Any) -> Any:
    """A parameter in terms of JSON."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value)
    if isinstance(value, type | np.dtype):
        return np.dtype(value).name
    name = type(value).__name__
    if PARTS.get(name) is type(value):
        return {"class": name, "fields": {k: to_json(v) for k, v in _fields_of(value).items()}}
    if isinstance(value, list | tuple | np.ndarray) and not hasattr(value, "_fields"):
        return [to_json(item) for item in value]
    raise not_data_error(value)


def not_data_error(value: Any) -> ValueError:
    """What is said of a part that is not data."""
    return ValueError(f"{value!r:.60} is code, not data: a model with it cannot be saved")


def _fields_of(part: Any) -> dict[str, Any]:
    if is_dataclass(part):
        return {field.name: getattr(part, field.name) for field in fields(part)}
    return dict(part._asdict())


def from_json(value: Any) -> Any:
    """A parameter from its terms in JSON."""
    if isinstance(value, list):
        return tuple(map(from_json, value))
    if not isinstance(value, dict):
        return value
    if value["class"] not in PARTS:
        raise ModelFileError(f"{value['class']!r} is nothing this version knows")
    parts = {name: from_json(field) for name, field in value["fields"].items()}
    if "dtype" in parts:
        parts["dtype"] = float_type(parts["dtype"])
    return PARTS[value["class"]](**parts)
