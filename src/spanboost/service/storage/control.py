"""Control records: records of the journal that change the model in another way than by rows.

A payload is a line of JSON, {"control": NAME, ...}, and optional bytes, such as a model file. The
payload of rows starts with a list, so the first byte distinguishes them. The model depends only on
the journal: what a control needs is in its record, not in other files that may be deleted.
"""

from typing import Any, NamedTuple

import orjson

from spanboost.errors import UserError
from spanboost.models.files import to_bytes
from spanboost.models.model import Model

ROLLBACK = "rollback"  # replaces the model by the one of an earlier version, which is in `data`
CHALLENGE = "challenge"  # lets another model, which is in `data`, learn in the shadow of the first
PROMOTE = "promote"  # replaces the model by the challenger
WITHDRAW = "withdraw"  # ends a challenge
MAX_DATA_BYTES = 1 << 31  # the length of a record has 32 bits


class ControlError(UserError):
    """A control that cannot be obeyed now; nothing was changed."""


class Control(NamedTuple):
    """The content of a control record."""

    name: str
    values: dict[str, Any]  # JSON values
    data: bytes = b""

    def encode(self) -> bytes:
        """Return the payload."""
        return orjson.dumps({"control": self.name} | self.values) + b"\n" + self.data


def control_with_model(name: str, values: dict[str, Any], model: Model) -> Control:
    """Return a control that contains a model; UserError if the model is too large for a record."""
    data = to_bytes(model)
    if len(data) > MAX_DATA_BYTES:
        raise UserError(f"the model is too large for the journal ({len(data):,} bytes)")
    return Control(name, values, data)


def is_control(payload: memoryview) -> bool:
    """Return whether a payload is a control record, not rows."""
    return bytes(payload[:1]) == b"{"


def decode_control(payload: memoryview) -> Control:
    """Return the content of a control record."""
    line, _, data = bytes(payload).partition(b"\n")
    values = orjson.loads(line)
    return Control(values.pop("control"), values, data)
