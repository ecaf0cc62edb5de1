"""Splits on trial: what the growing leaves of trees count, and which split they would make.

A growing leaf has groups of candidates, each group on one cell of the row. Its first rows set the
thresholds, so that these lie where the leaf's rows do; the rows after them are counted: their
weight, and the sum of what they are given as targets, on the left of every candidate.

A row's values are laid out in pairs, in the places 2 f and 2 f + 1 for feature f (block.py,
`Cells`): the same number twice, but where it is missing -inf and inf. A split reads one of the two,
and so says on which side missing values go.
"""

from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel
from spanboost.compiling.random_numbers import streams, uniform

GROUP = 2  # candidates on one cell
LEAST = 5.0  # rows on either side of a split, of mean weight
THRESHOLD, WEIGHT, SUMS = 0, 1, 2  # rows of a leaf's table; there are d rows of sums


@kernel
class Candidates(NamedTuple):
    """The candidates of all growing leaves of N trees; those of a leaf lie side by side."""

    place: Array  # [N, leaf, group] where in the values of a row a group looks
    table: Array  # [N, leaf, 2 + d, C] thresholds; weight, and sums of targets, on the left
    total: Array  # [N, leaf, 1 + d] weight, and sums of targets, of all rows counted
    seen: Array  # [N, leaf] rows that came
    phases: Array  # [N, leaf] rows it takes to set one threshold in every group; 0 while not open
    state: Array  # [N, 6] of the random numbers
    scratch: Array  # [C] what of the row's weight is on the left

    @property
    def tables(self) -> tuple[str, ...]:
        """Fields of leaves; all are 0 of those that are not open, and phases only of them."""
        return ("phases", "place", "table", "total", "seen")

    def tally(
        self, i: int, s: int, feature: Array, values: Array, target: Array, weight: float
    ) -> int:
        """One more row in leaf s of tree i; returns how many have been counted."""
        n = self.seen[i, s]
        if n == 0:
            self.phases[i, s] = 1 + (self.place.shape[2] - 1) // max(feature.shape[0], 1)
        first = GROUP * self.phases[i, s]
        if n < self.phases[i, s] and feature.shape[0] == 0:
            return 0  # nothing to draw from
        self.seen[i, s] = n + 1
        if n < first:
            self.set_thresholds(i, s, n, feature, values)
            return 0
        self.share_out(i, s, values, weight)
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
        return n + 1 - first

    def clear(self, i: int, s: int) -> None:
        """Leaf s of tree i as it was made."""
        self.place[i, s].fill(0)
        self.table[i, s].fill(0)
        self.total[i, s].fill(0)
        self.seen[i, s], self.phases[i, s] = 0, 0

    def set_thresholds(self, i: int, s: int, n: int, feature: Array, values: Array) -> None:
        """Row n sets one in every group whose turn it is; with the first a group takes its cell.

        The row is cut into as many parts as there are groups, and each draws from its own: a cell,
        and, by the half of the cell it hits, the side of missing values.
        """
        place, threshold, phases = self.place[i, s], self.table[i, s, THRESHOLD], self.phases[i, s]
        groups = place.shape[0]
        for g in range(n % phases, groups, phases):
            if n < phases:
                at = (g + uniform(self.state[i])) * feature.shape[0] / groups
                a = int(at)
                place[g] = 2 * feature[a] + int(2 * (at - a))
            threshold[GROUP * g + n // phases] = boundary(values, place[g])

    def share_out(self, i: int, s: int, values: Array, weight: float) -> None:
        """scratch = the weight, where the row is on the left of a candidate, else 0."""
        place, threshold, share = self.place[i, s], self.table[i, s, THRESHOLD], self.scratch
        zero = share.dtype.type(0)
        for g in range(place.shape[0]):
            v, c = values[place[g]], GROUP * g
            if is_code(place[g]):
                for k in range(c, c + GROUP):
                    share[k] = weight if v == threshold[k] else zero
            else:
                for k in range(c, c + GROUP):
                    share[k] = weight if v <= threshold[k] else zero

    def best(self, i: int, s: int, unit: float) -> tuple[int, float]:
        """The candidate with the largest gain, and that gain; -1 where none has enough rows.

        The gain is what the sum of squared distances from the mean falls by, with a mean for each
        side. `unit` is the mean weight of a row.
        """
        table, total = self.table[i, s], self.total[i, s]
        n, left, least = total[0], table[WEIGHT], total.dtype.type(LEAST) * unit
        found, most = -1, total.dtype.type(0)
        for c in range(left.shape[0]):
            m = left[c]
            if m < least or n - m < least:
                continue
            gain = total.dtype.type(0)
            for k in range(total.shape[0] - 1):
                sums = table[SUMS + k]
                apart = sums[c] / m - (total[1 + k] - sums[c]) / (n - m)
                gain += apart * apart
            gain *= m * ((n - m) / n)
            if gain > most:
                found, most = c, gain
        return found, most


def new_candidates(
    copy: Array, leaves: int, number: int, d: int, *, seed: int, dtype: Any
) -> Candidates:
    """For trees of these copies; `number` of them in each of so many leaves, which are not open."""
    n = len(copy)
    return Candidates(
        place=np.zeros((n, leaves, number // GROUP), np.int32),
        table=np.zeros((n, leaves, SUMS + d, number), dtype),
        total=np.zeros((n, leaves, 1 + d), dtype),
        seen=np.zeros((n, leaves), np.int64),
        phases=np.zeros((n, leaves), np.int64),
        state=streams(seed, 1 + int(copy.max()))[copy],
        scratch=np.zeros(number, dtype),
    )


@kernel
def is_code(place: int) -> bool:
    """Whether a category's code lies there: splits ask whether it is the same one."""
    return place & 2 != 0


@kernel
def boundary(values: Array, place: int) -> float:
    """A threshold next to a row's value, which parts it from 0 unless it is 0 itself."""
    v, zero = values[place], values.dtype.type(0)
    return v if is_code(place) or v <= zero else np.nextafter(v, zero)
