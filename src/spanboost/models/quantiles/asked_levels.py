"""The levels and coverages that users ask for: checks, ends of intervals, and interpolation."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from spanboost.checks import is_number
from spanboost.compiling.arrays import Array
from spanboost.errors import ParameterError

SIDES = ("lower", "upper")  # of one-sided intervals
KINDS = ("interval", *SIDES)
EVERY_LEVEL = (0.0, 1.0)  # where no levels are calibrated
TOLERANCE = 1e-12  # levels are differences, such as 1 - 0.995
_SETS, _INTERVALS = "PredictionSets(coverages=...)", "Intervals(levels=...)"


class End(NamedTuple):
    """An end of an interval: the name of its column, and its level."""

    name: str
    level: float


def interval_levels(
    coverage: float, calibrated: Sequence[float] = EVERY_LEVEL
) -> tuple[float, float]:
    """Return the levels of both ends of an interval.

    A ParameterError unless they are between the outermost `calibrated` ones.
    """
    check_coverage(coverage)
    _check_within("coverage", coverage, (0, 1 - 2 * max(calibrated[0], 1 - calibrated[-1])))
    outside = round((1 - coverage) / 2, 12)
    return outside, round(1 - outside, 12)


def bound_level(coverage: float, side: str, calibrated: Sequence[float] = EVERY_LEVEL) -> float:
    """Return the level of the end of a one-sided interval; it must be a calibrated one."""
    check_coverage(coverage)
    if side not in SIDES:
        raise ParameterError("side", f'must be "upper" or "lower" (got {side!r})')
    first, last = calibrated[0], calibrated[-1]
    known = (first, last) if side == "upper" else (1 - last, 1 - first)
    _check_within("coverage", coverage, known)
    return coverage if side == "upper" else round(1 - coverage, 12)


def ends_of(kind: str, coverage: float, calibrated: Sequence[float]) -> tuple[End, ...]:
    """Return both ends of an interval, or that of a one-sided one, whose kind is its side."""
    if kind != "interval":
        return (End(kind, bound_level(coverage, kind, calibrated)),)
    low, high = interval_levels(coverage, calibrated)
    return End("low", low), End("high", high)


def calibrated_levels(levels: Sequence[float] | float, calibrated: Sequence[float]) -> list[float]:
    """Return levels as a list; a ParameterError unless they are between calibrated ones."""
    each = parse_levels(levels, "levels")
    for level in each:
        _check_within("levels", level, calibrated)
    return each


def check_not_extreme(levels: Sequence[float], rows: int) -> None:
    """Raise a ParameterError if the last `rows` values have no finite quantile of a level."""
    least = 1 / (rows + 1)
    for level in levels:
        if min(level, 1 - level) < least - TOLERANCE:
            raise ParameterError(
                "levels",
                f"must be between 1/{rows + 1} and {rows}/{rows + 1} (got {level!r}): the last "
                f"{rows:,} residuals have no finite quantiles beyond these levels",
            )


def check_set_coverage(coverage: float, calibrated: Sequence[float]) -> None:
    """Raise a ParameterError unless a coverage of sets is at most the largest calibrated one."""
    check_coverage(coverage)
    _check_within("coverage", coverage, (0, calibrated[-1]), _SETS)


def levels_within(levels: Sequence[float], ranges: Sequence[Sequence[float]]) -> list[float]:
    """Return those of some levels that every model calibrates, given the levels of each."""
    first, last = max(one[0] for one in ranges), min(one[-1] for one in ranges)
    return [level for level in levels if first <= level <= last]


def _check_within(
    name: str, asked: float, known: Sequence[float], option: str = _INTERVALS
) -> None:
    """Raise a ParameterError unless a value is between the ends of a calibrated range."""
    least, most = known[0], known[-1]
    if least - TOLERANCE <= asked <= most + TOLERANCE:
        return
    if least > most or most <= 0:
        what = "cannot be calibrated with levels on one side of the median only"
    elif least == 0:
        what = f"must be at most {most:.6g}, the most that is calibrated"
    else:
        what = f"must be between {least:.6g} and {most:.6g}, which are calibrated"
    raise ParameterError(name, f"{what} (got {asked!r}); {option} in Python calibrates more")


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

    values: [rows, own], increasing in each row. Levels beyond `own`, which users cannot ask for,
    have the outermost values.
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
