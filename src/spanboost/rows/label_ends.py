"""The smallest and the largest label that was learned, as the user gave them."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from spanboost.checks import is_number
from spanboost.compiling.arrays import Array


class LabelEnds(NamedTuple):
    """The ends of some labels, which are numbers."""

    low: float
    high: float


def ends_of(labels: Array, learned: Array) -> LabelEnds | None:
    """Return the ends of the labels [rows, d] that are learned; None for vectors and no labels."""
    if labels.shape[1] > 1 or not learned.any():
        return None
    numbers = labels[learned, 0]
    return LabelEnds(float(numbers.min()), float(numbers.max()))


def merge_ends(each: Sequence[LabelEnds | None]) -> LabelEnds | None:
    """Return the ends of all labels together; None if some are unknown."""
    known = [one for one in each if one is not None]
    if len(known) < len(each) or not known:
        return None
    return LabelEnds(min(one.low for one in known), max(one.high for one in known))


def are_ends(ends: Any) -> bool:
    """Return whether a value from a file can be the ends of labels."""
    return (
        isinstance(ends, list)
        and len(ends) == 2
        and all(is_number(end) and math.isfinite(end) for end in ends)
        and ends[0] <= ends[1]
    )
