"""Convert the parameters of a model to JSON and back, for the header of its file."""

from dataclasses import Field, fields, is_dataclass
from importlib import import_module
from typing import Any

import numpy as np

from spanboost.checks import float_type
from spanboost.errors import ModelFileError
from spanboost.learners.text import learner_text
from spanboost.models.spec import SharedParameters

_PARTS = {  # the classes that a file may name, and their modules
    "LinearSGD": "learners.linear",
    "Stumps": "learners.stumps",
    "Network": "learners.network",
    "Trees": "learners.trees",
    "Ridge": "learners.ridge",
    "LinearBall": "learners.ball",
    "BatchLearner": "learners.batch",
    "LibraryEstimator": "models.refitting.libraries",
    "Symmetrised": "learners.symmetric",
    "FiniteClass": "learners.finite",
    "Linear": "losses",
    "Squared": "losses",
    "ModifiedLeastSquares": "losses",
    "Logistic": "losses",
    "Absolute": "losses",
    "Hinge": "losses",
    "PNorm": "losses",
    "Quantile": "losses",
    "Huber": "losses",
    "Poisson": "losses",
    "Gamma": "losses",
    "Tweedie": "losses",
    "Softmax": "losses",
    "SquaredEuclidean": "losses",
}


def parameters_to_json(model: Any) -> dict[str, Any]:
    """Return the class of a model and the fields of its specification, as JSON."""
    shared = {one.name for one in fields(SharedParameters)}
    ordered = sorted(fields(model), key=lambda one: one.name in shared)
    given = {
        one.name: to_json(getattr(model, one.name))
        for one in ordered
        if not _is_omitted(model, one)
    }
    return {"booster": type(model).__name__, "parameters": given}


def parameters_from_json(header: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of the specification in a header."""
    return {name: from_json(value) for name, value in header["parameters"].items()}


def to_json(value: Any) -> Any:
    """Return a parameter as JSON; raise a ValueError if it is code, not data."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value)
    if isinstance(value, type | np.dtype):
        return np.dtype(value).name
    name = type(value).__name__
    if name in _PARTS and _part(name) is type(value):
        return {"class": name, "fields": {k: to_json(v) for k, v in _fields_of(value).items()}}
    if isinstance(value, list | tuple | np.ndarray) and not hasattr(value, "_fields"):
        return [to_json(item) for item in value]
    raise not_data_error(value)


def from_json(value: Any) -> Any:
    """Return the parameter that JSON describes."""
    if isinstance(value, list):
        return tuple(map(from_json, value))
    if not isinstance(value, dict):
        return value
    if value["class"] not in _PARTS:
        raise ModelFileError(f"this version does not know {value['class']!r}")
    parts = {name: from_json(part) for name, part in value["fields"].items()}
    if "dtype" in parts:
        parts["dtype"] = float_type(parts["dtype"])
    return _part(value["class"])(**parts)


def not_data_error(value: Any) -> ValueError:
    """Return the error for a part of a model that cannot be saved."""
    return ValueError(
        f"{learner_text(value)} is code, not data, so a model with it cannot be saved; use pickle"
    )


def _part(name: str) -> Any:
    return getattr(import_module(f"spanboost.{_PARTS[name]}"), name)


def _fields_of(part: Any) -> dict[str, Any]:
    if is_dataclass(part):
        return {
            one.name: getattr(part, one.name) for one in fields(part) if not _is_omitted(part, one)
        }
    return dict(part._asdict())


def _is_omitted(part: Any, one: Field[Any]) -> bool:
    """Return whether a header omits a field: a new one with its default, for earlier versions."""
    return bool(one.metadata.get("new")) and getattr(part, one.name) == one.default
