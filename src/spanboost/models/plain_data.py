"""Convert the state of an estimator to JSON and back: plain values, arrays, learners and losses.

JSON has no tuples, sets, times, numbers that are not finite, or keys that are not strings. These
are objects with one key, which names the kind. Nothing else can be in a file, so loading runs no
code of the file.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from spanboost.errors import ModelFileError
from spanboost.models.header import from_json, to_json
from spanboost.rows.times import as_moment, is_time

_KINDS = "biufUO"  # of arrays


def encode(value: Any) -> Any:
    """Return a value as JSON; raise a ValueError if it is code, not data."""
    if isinstance(value, np.generic) and not is_time(value):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, list):
        return [encode(part) for part in value]
    return _encode_tagged(value)


def _encode_tagged(value: Any) -> dict[str, Any]:
    """Return an object with the kind of a value as its key."""
    if is_time(value):
        return {"time": int(as_moment(value).astype(np.int64))}
    if isinstance(value, dict):
        return {"dict": [[encode(key), encode(part)] for key, part in value.items()]}
    if isinstance(value, np.ndarray) and value.dtype.kind in _KINDS:
        return {"array": [value.dtype.str, list(value.shape), encode(value.ravel().tolist())]}
    if type(value) in (tuple, set):
        return {type(value).__name__: encode(list(value))}
    return {"part": to_json(value)}


def decode(value: Any) -> Any:
    """Return the value that JSON describes."""
    if isinstance(value, list):
        return [decode(part) for part in value]
    if not isinstance(value, dict):
        return value
    (kind, content), *others = value.items()
    if others or kind not in _DECODERS:
        raise ModelFileError(f"this version does not know {kind!r:.40} in a file")
    return _DECODERS[kind](content)


def _decode_array(content: Any) -> Any:
    name, shape, values = content
    dtype = np.dtype(name)
    if dtype.kind not in _KINDS:
        raise ModelFileError(f"an array of the type {name!r:.40} is not data")
    array = np.empty(len(values), dtype)
    array[:] = decode(values)
    return array.reshape(shape)


_DECODERS: dict[str, Callable[[Any], Any]] = {
    "float": float,
    "time": lambda content: np.datetime64(content, "us"),
    "dict": lambda content: {decode(key): decode(part) for key, part in content},
    "array": _decode_array,
    "tuple": lambda content: tuple(decode(content)),
    "set": lambda content: set(decode(content)),
    "part": from_json,
}
