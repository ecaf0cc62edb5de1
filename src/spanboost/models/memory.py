"""How much memory a model needs for more features and for wider rows."""

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from spanboost.models.booster import Booster
    from spanboost.models.model import Model

CELL_BYTES = 12  # an entry of a row that is kept for replay: its column and its value
_NAME_BYTES = 100  # a name in a dictionary, without its characters
_PROBE = 1 << 16  # number of features; beyond it, the memory of all learners grows linearly


def feature_bytes(model: "Model") -> int:
    """Return an upper bound on the bytes that one more feature takes, without its name.

    Tables are doubled when they are full, so on average they are three quarters full.
    """
    tables = sum(_table_bytes(booster) for booster in model.stored_boosters())
    return int(1.5 * tables) + _NAME_BYTES * (1 + len(model.stored_boosters()))


def fixed_bytes(model: "Model") -> int:
    """Return the bytes that the model takes apart from features and rows for replay."""
    return sum(_array_bytes(booster.core.fresh_bank()) for booster in model.stored_boosters())


def class_bytes(model: "Model") -> tuple[int, int]:
    """Return the bytes that one more class takes: apart from features, and for each feature."""
    fixed, table = 0, 0.0
    for booster in model.stored_boosters():
        core = booster.core
        d = core.d
        fixed += _array_bytes(_bank(booster, d + 1)) - _array_bytes(_bank(booster, d))
        table += _table_bytes(booster, d + 1) - _table_bytes(booster, d)
    return fixed, int(1.5 * table) + 1


def replay_slots(model: "Model") -> int:
    """Return how many rows the memories for replay have room for."""
    return sum(booster.core.kept_slots for booster in model.stored_boosters())


def replay_cells(model: "Model") -> int:
    """Return the number of entries of sparse rows that the model keeps for replay."""
    return sum(booster.core.kept_cells for booster in model.stored_boosters())


def _bank(booster: "Booster", d: int) -> Any:
    """Return a bank that has learned nothing, with d outputs."""
    core = booster.core
    return core.fresh_bank() if d == core.d else core.learner.bank(core.task._replace(d=d))


def _table_bytes(booster: "Booster", d: int | None = None) -> float:
    """Return the bytes of a booster's tables for each feature, with d outputs."""
    bank = _bank(booster, d or booster.core.d)
    sizes = [_array_bytes(bank.grown(features, 1)) for features in (_PROBE, 2 * _PROBE)]
    return (sizes[1] - sizes[0]) / _PROBE


def _array_bytes(value: Any) -> int:
    """Return the size of all arrays in a tree of tuples."""
    if isinstance(value, np.ndarray):
        return int(value.nbytes)
    return sum(map(_array_bytes, value)) if isinstance(value, tuple) else 0
