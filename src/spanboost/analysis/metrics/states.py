"""Operations on the states of metrics: NamedTuples of arrays, or of other such NamedTuples."""

import math
from typing import Any

import numpy as np

from spanboost.compiling.arrays import Array


def merge_states(first: Any, second: Any) -> Any:
    """Return the state of two parts of a stream together.

    Arrays are summed, except in a state with a method `merge` of its own.
    """
    if isinstance(first, np.ndarray):
        return first + second
    if hasattr(first, "merge"):
        return first.merge(second)
    return type(first)._make(map(merge_states, first, second))


def state_to_json(state: Any) -> Any:
    """Return a state as JSON values."""
    if isinstance(state, np.ndarray):
        return _array_to_json(state)
    return {name: state_to_json(getattr(state, name)) for name in state._fields}


def fill_state(state: Any, values: Any) -> None:
    """Set a new state to what `state_to_json` returned; a ValueError if it does not fit."""
    try:
        _fill(state, values)
    except (AttributeError, IndexError, KeyError, TypeError) as error:
        raise ValueError(f"invalid state of metrics: {error!r}") from None


def _fill(state: Any, values: Any) -> None:
    if not isinstance(state, np.ndarray):
        for name in state._fields:
            _fill(getattr(state, name), values[name])
        return
    places = np.array(values["at"], np.int64)
    if (places < 0).any():
        raise IndexError("negative index")
    state.reshape(-1)[places] = numbers_from_json(values["values"])


def _array_to_json(array: Array) -> dict[str, list[Any]]:
    """Return the numbers other than 0, since most bins of a histogram are empty."""
    flat = array.ravel()
    places = np.flatnonzero(flat)
    return {"at": places.tolist(), "values": numbers_to_json(flat[places])}


def numbers_to_json(numbers: Array) -> list[float | str]:
    """Return floats [numbers] as JSON values; those that JSON does not have are strings."""
    return [value if math.isfinite(value) else str(value) for value in numbers.tolist()]


def numbers_from_json(values: list[float | str]) -> list[float]:
    """Return the floats that `numbers_to_json` has written."""
    return [*map(float, values)]
