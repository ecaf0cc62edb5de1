"""What a booster's parameters may be."""

import math
from typing import Any

import numpy as np

from spanboost.checks import is_integer, is_number
from spanboost.rows.labels import GROWING


def check(booster: Any) -> None:
    """Refuse, in one sentence, a parameter that is not allowed."""

    def require(good: bool, name: str, allowed: str) -> None:
        if not good:
            raise ValueError(f"{name}={getattr(booster, name)!r} is not allowed: {allowed}")

    n, seed, alpha = booster.n, booster.seed, booster.alpha
    require(is_integer(n) and n >= 1, "n", "a whole number of copies, at least 1")
    require(_positive(booster.D), "D", "a number above 0")
    require(_positive(booster.scale), "scale", "a number above 0")
    require(booster.feedback in ("linear", "greedy"), "feedback", "'linear' or 'greedy'")
    require(booster.offset in (None, "printed", "shrunk"), "offset", "None, 'printed' or 'shrunk'")
    require(
        alpha is None or _positive(alpha),
        "alpha",
        "None (the booster's own step) or a number above 0",
    )
    require(is_integer(seed) and seed >= 0, "seed", "a whole number, at least 0")
    require(
        _is_range(booster.label_range),
        "label_range",
        "two finite numbers, the lower first, or 'auto' or 'auto-zero'",
    )
    replay, memory = booster.replay, booster.memory
    require(
        is_integer(replay) and 0 <= replay <= 1000, "replay", "a whole number of rows, up to 1000"
    )
    require(is_integer(memory) and 1 <= memory < 2**31, "memory", "rows, from 1 to 2^31 - 1")
    for name in ("alpha", "offset"):
        require(
            booster.feedback == "greedy" or getattr(booster, name) is None,
            name,
            "only greedy feedback has it, and feedback='linear'",
        )


def check_fit(booster: Any, dtype: Any, curvature: float) -> None:
    """Refuse numbers that are none any more in the learner's precision."""
    limits = np.finfo(dtype)
    L = getattr(booster, "L_B_", None) or booster.L_D_
    values = {
        "D": booster.D,
        "scale": booster.scale,
        "alpha": booster.alpha or 1.0,
        "B" if hasattr(booster, "B_") else "scale * D": booster.reach_,
        "the loss's Lipschitz constant": L,
        "its product with B": L * booster.reach_,
        "the copies' curvature, (scale * alpha)^2 beta,": curvature or 1.0,
    }
    for name, value in values.items():
        if not float(limits.tiny) <= value <= float(limits.max):
            raise ValueError(
                f"{name} = {value:g} does not fit into a {limits.dtype}: use a learner with "
                "another dtype"
            )


def _positive(value: Any) -> bool:
    return is_number(value) and 0 < value < math.inf


def _is_range(limits: Any) -> bool:
    if isinstance(limits, str):
        return limits in GROWING
    return (
        isinstance(limits, tuple | list)
        and len(limits) == 2
        and all(is_number(v) for v in limits)
        and 0 < (limits[1] - limits[0]) / 2 < math.inf
    )
