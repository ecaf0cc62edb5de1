"""Candidate splits of tree leaves: their statistics, and the choice of the best one.

A growing leaf has groups of candidates. All candidates of a group split on the same cell of the
row, each with its own threshold. The first rows of the leaf set the thresholds, so the thresholds
lie among the values that occur in the leaf. For the rows after them, the leaf sums their weights
and their targets on the left side of every candidate.

The values of a row are stored in pairs: feature f (numbered as by `Cells` in rows/block.py) has the
places 2 f and 2 f + 1. Both hold the same number, unless it is missing: then they hold -inf and
inf. A split reads one of the two places, which determines the side that missing values go to.
"""

from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel
from spanboost.compiling.random_numbers import streams, uniform

GROUP = 2  # candidates per group
LEAST = 5.0  # the fewest rows of mean weight on each side of a split
THRESHOLD, WEIGHT, SUMS = 0, 1, 2  # rows of a leaf's table; the sums take d rows


@kernel
class Candidates(NamedTuple):
    """The candidates of all growing leaves of N trees; those of one leaf are contiguous."""

    place: Array  # [N, leaf, group] the place in the values of a row that the group reads
    table: Array  # [N, leaf, 2 + d, C] threshold; weight and sums of targets on the left
    total: Array  # [N, leaf, 1 + d] weight and sums of targets of all rows counted
    seen: Array  # [N, leaf] rows that reached the leaf
    phases: Array  # [N, leaf] rows needed to set one threshold per group; 0 if unused
    state: Array  # [N, 6] state of the random number generator
    scratch: Array  # [C] the row's weight where it is on the left, else 0

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the fields with an entry per leaf.

        All are 0 for an unused leaf; `phases` is 0 only for unused leaves.
        """
        return ("phases", "place", "table", "total", "seen")

    def count_row(
        self, i: int, s: int, feature: Array, values: Array, target: Array, weight: float
    ) -> int:
        """Add a row to leaf s of tree i, and return the number of rows counted there."""
        n = self.seen[i, s]
        if n == 0:
            self.phases[i, s] = 1 + (self.place.shape[2] - 1) // max(feature.shape[0], 1)
        first = GROUP * self.phases[i, s]
        if n < self.phases[i, s] and feature.shape[0] == 0:
            return 0  # an empty row has no cell to split on
        self.seen[i, s] = n + 1
        if n < first:
            self.set_thresholds(i, s, n, feature, values)
            return 0
        self.weigh_left(i, s, values, weight)
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
        """Reset leaf s of tree i."""
        self.place[i, s].fill(0)
        self.table[i, s].fill(0)
        self.total[i, s].fill(0)
        self.seen[i, s], self.phases[i, s] = 0, 0

    def set_thresholds(self, i: int, s: int, n: int, feature: Array, values: Array) -> None:
        """Set one threshold in every group whose turn it is, from row n of the leaf.

        With its first threshold, a group also draws the cell that it splits on. The row is divided
        into as many intervals as there are groups, and each group draws a point in its own
        interval. The point lies in some cell; the half of the cell determines the side of missing
        values.
        """
        place, threshold, phases = self.place[i, s], self.table[i, s, THRESHOLD], self.phases[i, s]
        groups = place.shape[0]
        for g in range(n % phases, groups, phases):
            if n < phases:
                at = (g + uniform(self.state[i])) * feature.shape[0] / groups
                a = int(at)
                place[g] = 2 * feature[a] + int(2 * (at - a))
            threshold[GROUP * g + n // phases] = threshold_near(values, place[g])

    def weigh_left(self, i: int, s: int, values: Array, weight: float) -> None:
        """Set scratch[c] to the weight if the row is on the left of candidate c, else to 0."""
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

    def find_best(self, i: int, s: int, unit: float) -> tuple[int, float]:
        """Return the candidate with the largest gain, and the gain; -1 if none has enough rows.

        The gain is the decrease of the sum of squared distances from the mean when each side has a
        mean of its own. `unit` is the mean weight of a row.
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
    """Return `number` candidates for each of `leaves` unused leaves, in one tree per copy."""
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
    """Return whether the place holds a category code; splits test codes for equality."""
    return place & 2 != 0


@kernel
def threshold_near(values: Array, place: int) -> float:
    """Return a threshold at a row's value that separates it from 0, unless the value is 0."""
    v, zero = values[place], values.dtype.type(0)
    return v if is_code(place) or v <= zero else np.nextafter(v, zero)
