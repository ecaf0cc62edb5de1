"""The levels that users ask for: checks, and interpolation between those that are calibrated."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from spanboost.checks import is_number
from spanboost.compiling.arrays import Array
from spanboost.errors import ParameterError


def parse_levels(levels: Sequence[float] | float, name: str) -> list[float]:
    """Return levels as a list, also a single one; a ParameterError unless all are within (0, 1)."""
    given: Any = levels
    each = [given] if np.ndim(given) == 0 else [*given]
    if not all(is_number(level) and 0 < level < 1 for level in each):
        raise ParameterError(name, f"must be numbers between 0 and 1 (got {levels!r})")
    return each


def check_increasing(levels: Sequence[float], name: str) -> None:
    """Raise a ParameterError unless there are levels between 0 and 1, in increasing order."""
    parse_levels(levels, name)
    if np.ndim(levels) != 1 or len(levels) == 0 or any(b <= a for a, b in pairwise(levels)):
        raise ParameterError(name, "must be increasing and not empty")


def check_coverage(coverage: float) -> None:
    """Raise a ParameterError unless a coverage is between 0 and 1."""
    if not (is_number(coverage) and 0 < coverage < 1):
        raise ParameterError("coverage", f"must be between 0 and 1 (got {coverage!r})")


def levels_to_read(own: Sequence[float], asked: Sequence[float]) -> Array:
    """Return the positions of those of the levels `own` that `interpolate_levels` needs."""
    right = np.searchsorted(own, asked)
    exact = np.isin(asked, own)
    both = np.concatenate([np.where(exact, right, right - 1), right])
    return np.unique(np.clip(both, 0, len(own) - 1))


def interpolate_levels(values: Array, own: Sequence[float], asked: Sequence[float]) -> Array:
    """Return the values of other levels, [rows, asked], linear in the log-odds of the level.

    values: [rows, own], increasing in each row. Beyond the levels `own`, the outermost values are
    returned.
    """
    known, wanted = log_odds(own), log_odds(asked)
    right = np.clip(np.searchsorted(known, wanted), 1, max(len(known) - 1, 1))
    left, right = right - 1, np.minimum(right, len(known) - 1)
    gap = known[right] - known[left]
    gap[gap == 0] = 1.0  # one level, or two whose log-odds are the same number
    share = np.clip((wanted - known[left]) / gap, 0, 1)
    a, b = values[:, left], values[:, right]
    with np.errstate(invalid="ignore"):
        between = np.where(np.isinf(a), a, a + share * (b - a))
    return np.where(share == 0, a, np.where(share == 1, b, between))


def log_odds(levels: Sequence[float]) -> Array:
    """Return the log-odds of levels."""
    values = np.array(levels, np.float64)
    return np.log(values / (1 - values))
