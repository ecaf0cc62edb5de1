"""Splits on trial: what the leaves of growing trees count, and how they choose.

A growing leaf has a few groups of candidates, each group on one cell of the row. Its first rows set
the thresholds, one a group and row, so that these lie where the leaf's rows do; the rows after them
are counted: their weight, and the sum of their targets, on the left of every candidate. Now and
then the leaf looks for the candidate whose two sides differ most.
"""

from typing import Any, NamedTuple

import numpy as np

from spanboost._jit import kernel
from spanboost.arrays import Array
from spanboost.rng import streams, uniform

GROUP = 4  # candidates on one cell
THRESHOLD, WEIGHT, SUMS = 0, 1, 2  # rows of a leaf's table: those of candidates, from SUMS on d


@kernel
class Candidates(NamedTuple):
    """The candidates of all growing leaves of N trees. A leaf's lie side by side."""

    place: Array  # [N, leaf, group] where in the values of a row a group looks
    table: Array  # [N, leaf, 2 + d, C] thresholds; weight, and sums of targets, on the left
    total: Array  # [N, leaf, 1 + d] the same of all rows counted
    seen: Array  # [N, leaf] rows that came
    state: Array  # [N, 6] of the random numbers
    grace: int  # rows between two looks
    least: float  # weight on either side
    scratch: Array  # [C] of the row, what counts on the left of each candidate

    def open(self, i: int, s: int, feature: Array) -> None:
        """Choose the cells: from as many even parts of the row as there are groups, one each."""
        place, table, total = self.place[i, s], self.table[i, s], self.total[i, s]
        groups, cells = place.shape[0], feature.shape[0]
        for g in range(groups):
            at = (g + uniform(self.state[i])) * cells / groups
            a = int(at)
            # and the side of missing values, by the half of the cell it fell into
            place[g] = 2 * feature[a] + int(2 * (at - a))
        for p in range(WEIGHT, table.shape[0]):
            table[p].fill(0)
        total.fill(0)

    def count(self, i: int, s: int, values: Array, target: Array, weight: float) -> bool:
        """One more row in leaf s of tree i; whether it is time for a look."""
        n = self.seen[i, s]
        self.seen[i, s] = n + 1
        if n < GROUP:
            self.set_thresholds(i, s, n, values)
            return False
        self.part(i, s, values, weight)
        share, table, total = self.scratch, self.table[i, s], self.total[i, s]
        left = table[WEIGHT]
        total[0] += weight
        for c in range(share.shape[0]):
            left[c] += share[c]
        for k in range(target.shape[0]):
            r, sums = target[k], table[SUMS + k]
            total[1 + k] += weight * r
            for c in range(share.shape[0]):
                sums[c] += share[c] * r
        return (n + 1 - GROUP) % self.grace == 0

    def set_thresholds(self, i: int, s: int, n: int, values: Array) -> None:
        """The n-th of each group, next to the row's own value."""
        place, threshold = self.place[i, s], self.table[i, s, THRESHOLD]
        for g in range(place.shape[0]):
            threshold[GROUP * g + n] = boundary(values, place[g])

    def part(self, i: int, s: int, values: Array, weight: float) -> None:
        """share = weight where the row is on the left of a candidate, else 0."""
        place, threshold, share = self.place[i, s], self.table[i, s, THRESHOLD], self.scratch
        zero = share.dtype.type(0)
        for g in range(place.shape[0]):
            p = place[g]
            v, c = values[p], GROUP * g
            if is_code(p):
                for k in range(GROUP):
                    share[c + k] = weight if v == threshold[c + k] else zero
            else:
                for k in range(GROUP):
                    share[c + k] = weight if v <= threshold[c + k] else zero

    def best(self, i: int, s: int) -> tuple[int, float]:
        """The candidate that gains most, and its gain in summed squares; -1 if there is none."""
        table, total = self.table[i, s], self.total[i, s]
        n, left = total[0], table[WEIGHT]
        found, most = -1, total.dtype.type(0)
        for c in range(left.shape[0]):
            m = left[c]
            if m < self.least or n - m < self.least:
                continue
            gain = total.dtype.type(0)
            for k in range(total.shape[0] - 1):
                apart = table[SUMS + k, c] / m - (total[1 + k] - table[SUMS + k, c]) / (n - m)
                gain += apart * apart
            gain *= m * (n - m) / n
            if gain > most:
                found, most = c, gain
        return found, most


def new_candidates(
    copies: Array, leaves: int, number: int, d: int, grace: int, least: float, seed: int, dtype: Any
) -> Candidates:
    """Of leaves that have seen nothing."""
    n = len(copies)
    return Candidates(
        place=np.zeros((n, leaves, number // GROUP), np.int32),
        table=np.zeros((n, leaves, 2 + d, number), dtype),
        total=np.zeros((n, leaves, 1 + d), dtype),
        seen=np.zeros((n, leaves), np.int32),
        state=streams(seed, int(copies.max()) + 1)[copies],
        grace=np.int64(grace),
        least=np.dtype(dtype).type(least),
        scratch=np.zeros(number, dtype),
    )


@kernel
def is_code(place: int) -> bool:
    """Whether a category's code lies there, to be compared for equality."""
    return place & 2 != 0


@kernel
def boundary(values: Array, place: int) -> Any:
    """A threshold next to a row's value: the value on one side, 0 on the other unless it is 0."""
    v, zero = values[place], values.dtype.type(0)
    return v if is_code(place) or v <= zero else np.nextafter(v, zero)
