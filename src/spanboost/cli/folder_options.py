"""Compare the options of `serve` with those that a state folder was created with."""

import json
from typing import Any

from spanboost.cli.from_args import option_name
from spanboost.models.model_spec import ModelSpec

WRAPPERS = ("intervals", "calibrate")  # options that add something to the predictions


def describe_differences(stored: dict[str, Any], given: dict[str, Any]) -> str:
    """Return in which options two identities of a model differ, with both values.

    stored: of the folder. given: of the command line.
    """
    if "initial" in stored and "initial" in given:
        if stored["initial"] != given["initial"]:
            return "the file given with -m has changed"
        return "--past is on (got off)" if "past" in stored else "--past is off (got on)"
    if "initial" in stored:
        return "its model is from a file (-m), not from options"
    if "initial" in given:
        return "its model is from options, not from a file (-m)"
    old, new = _values(stored), _values(given)
    return ", ".join(
        f"{option_name(name)} is {_format(old.get(name))} (got {_format(new[name])})"
        for name in new
        if old.get(name) != new[name]
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
