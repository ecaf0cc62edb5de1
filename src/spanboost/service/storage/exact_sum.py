"""A sum without rounding errors, so that the difference of two sums has none either."""

import math
from collections.abc import Iterable

HUGE = 1e300  # values from here on are only counted: sums of them could overflow


class ExactSum:
    """The exact sum of numbers, as floats that do not overlap; it does not depend on their order.

    >>> before = ExactSum([1e30, 0.25])
    >>> after = ExactSum(before.parts)
    >>> after.add([3.0])
    >>> after - before
    3.0
    """

    def __init__(self, values: Iterable[float] = (), huge: int = 0) -> None:
        self.parts: list[float] = []  # the largest first
        self.huge = huge  # number of huge values, which make the sum infinite
        self.add(values)

    def add(self, values: Iterable[float]) -> None:
        """Add numbers."""
        given = list(values)
        known = [value for value in given if abs(value) < HUGE]
        self.huge += len(given) - len(known)
        rest, self.parts = [*self.parts, *known], []
        while part := math.fsum(rest):
            self.parts.append(part)
            rest.append(-part)

    def __sub__(self, other: "ExactSum") -> float:
        if self.huge != other.huge:
            return math.inf
        return math.fsum([*self.parts, *(-part for part in other.parts)])
