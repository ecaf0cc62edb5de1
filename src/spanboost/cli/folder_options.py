"""Compare the options of `serve` with those that a state folder was created with."""

import json
from typing import Any

from spanboost.cli.from_args import option_name
from spanboost.models.model_spec import ModelSpec

WRAPPERS = ("intervals", "calibrate")  # options that add something to the predictions


def describe_differences(stored: dict[str, Any], given: dict[str, Any]) -> str:
    """Return which of the given options differ from those of a folder, with both values.

    stored: the identity of the model of the folder.
    given: the options of the command line; those that were omitted are not compared. "initial" is
        the checksum of the file given with -m.
    """
    if "initial" in stored:
        known = {"initial": stored["initial"], "past": "on" if "past" in stored else "off"}
        if given.keys() - known:
            return "its model is from a file (-m), not from options"
        if given.get("initial", known["initial"]) != known["initial"]:
            return "the file given with -m has changed"
    elif "initial" in given:
        return "its model is from options, not from a file (-m)"
    else:
        known = _values(stored)
    return ", ".join(
        f"{option_name(name)} is {_format(known.get(name))} (got {_format(value)})"
        for name, value in given.items()
        if known.get(name) != value
    )


def _values(identity: dict[str, Any]) -> dict[str, Any]:
    """Return the values of all options by name."""
    parameters = ModelSpec.identity_parameters(identity["recipe"])
    values: dict[str, Any] = json.loads(json.dumps(parameters)) | identity.get("reading", {})
    return values | {name: identity.get(name, False) for name in WRAPPERS}


def _format(value: Any) -> str:
    if value is None:
        return "the default"
    if isinstance(value, bool):
        return "on" if value else "off"
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
