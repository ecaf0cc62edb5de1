"""Candidate splits of tree leaves: their statistics, and the choice of the best one.

A growing leaf has groups of candidates. All candidates of a group split on the same cell of the
row, each with its own threshold. The first rows of the leaf set the thresholds, so the thresholds
lie among the values that occur in the leaf. For the rows after them, the leaf sums their weights
and their targets on the left side of every candidate.

The values of a row are stored in pairs: feature f (numbered as by `Cells` in rows/block.py) has the
places 2 f and 2 f + 1. Both hold the same number, unless it is missing: then they hold -inf and
inf. A split reads one of the two places, which determines the side that missing values go to.

All trees share one pool of records. A leaf opens a record when it counts its first row and closes
it when it splits. The open records are always the first ones of the pool, so the memory in use
follows the leaves that exist: the rest of the pool is never touched.
"""

from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel
from spanboost.compiling.random_numbers import streams, uniform
from spanboost.learners.pools import reduce_pool

GROUP = 2  # candidates per group
LEAST = 5.0  # the fewest rows of mean weight on each side of a split
THRESHOLD, WEIGHT, SUMS = 0, 1, 2  # rows of a leaf's table; the sums take d rows
VALUE, MOST, SHARE = 0, 1, 2  # rows of the scratch space


@kernel
class Candidates(NamedTuple):
    """The candidates of the growing leaves of N trees; a leaf has one record in each table."""

    place: Array  # [record, group] the place in the values of a row that the group reads
    table: Array  # [record, 2 + d, C] threshold; weight and sums of targets on the left
    total: Array  # [record, 1 + d] weight and sums of targets of all rows counted
    seen: Array  # [record] rows that reached the leaf
    phases: Array  # [record] rows needed to set one threshold per group; 0 if unused
    owner: Array  # [record] the node whose record it is
    used: Array  # [1] number of records in use, which are the first ones
    state: Array  # [N, 6] state of the random number generator
    scratch: Array  # [3, C] the current row: see `count_left`

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the fields with an entry per record.

        All are 0 for an unused record; `phases` is 0 only for unused records.
        """
        return ("phases", "place", "table", "total", "seen", "owner")

    def __reduce__(self) -> Any:
        """Copy and pickle the records in use only."""
        return reduce_pool(self, int(self.used[0]))

    def open(self, v: int) -> int:
        """Return a new record for leaf v; -1 if there is none left."""
        s = self.used[0]
        if s == self.owner.shape[0]:
            return -1
        self.used[0] = s + 1
        self.owner[s] = v
        return s

    def close(self, s: int) -> int:
        """Close record s and move the last one there; return its owner, or -1 if s was the last."""
        last = self.used[0] - 1
        self.used[0] = last
        move(self.place, s, last)
        move(self.total, s, last)
        for k in range(self.table.shape[1]):
            move(self.table[:, k], s, last)
        self.seen[s], self.phases[s] = self.seen[last], self.phases[last]
        self.owner[s] = self.owner[last]
        self.seen[last], self.phases[last], self.owner[last] = 0, 0, 0
        return self.owner[s] if s < last else -1

    def count_row(
        self, i: int, s: int, feature: Array, values: Array, target: Array, weight: float
    ) -> int:
        """Add a row to record s of tree i, and return the number of rows counted there."""
        n = self.seen[s]
        if n == 0:
            self.phases[s] = 1 + (self.place.shape[1] - 1) // max(feature.shape[0], 1)
        first = GROUP * self.phases[s]
        if n < self.phases[s] and feature.shape[0] == 0:
            return 0  # an empty row has no cell to split on
        self.seen[s] = n + 1
        if n < first:
            self.set_thresholds(i, s, n, feature, values)
            return 0
        self.count_left(s, values, weight)
        share, table, total = self.scratch[SHARE], self.table[s], self.total[s]
        total[0] += weight
        for k in range(target.shape[0]):
            r, sums = target[k], table[SUMS + k]
            total[1 + k] += weight * r
            for c in range(share.shape[0]):
                sums[c] += share[c] * r
        return n + 1 - first

    def set_thresholds(self, i: int, s: int, n: int, feature: Array, values: Array) -> None:
        """Set one threshold in every group whose turn it is, from row n of the leaf.

        With its first threshold, a group also draws the cell that it splits on. The row is divided
        into as many intervals as there are groups, and each group draws a point in its own
        interval. The point lies in some cell; the half of the cell determines the side of missing
        values.
        """
        place, threshold, phases = self.place[s], self.table[s, THRESHOLD], self.phases[s]
        groups = place.shape[0]
        for g in range(n % phases, groups, phases):
            if n < phases:
                at = (g + uniform(self.state[i])) * feature.shape[0] / groups
                a = int(at)
                place[g] = 2 * feature[a] + int(2 * (at - a))
            threshold[GROUP * g + n // phases] = threshold_near(values, place[g])

    def count_left(self, s: int, values: Array, weight: float) -> None:
        """Set the share of candidate c to the weight if the row is on its left, else to 0; add it.

        A row is on the left if its value <= the threshold, which for a code must be equal to it.
        The values are gathered first, so that the second loop has no branches and vectorises.
        """
        place, table = self.place[s], self.table[s]
        threshold, left = table[THRESHOLD], table[WEIGHT]
        value, most, share = self.scratch[VALUE], self.scratch[MOST], self.scratch[SHARE]
        zero, infinity = share.dtype.type(0), share.dtype.type(np.inf)
        for g in range(place.shape[0]):
            v = values[place[g]]
            for c in range(GROUP * g, GROUP * g + GROUP):
                value[c], most[c] = v, v if is_code(place[g]) else infinity
        for c in range(share.shape[0]):
            inside = (value[c] <= threshold[c]) & (threshold[c] <= most[c])
            share[c] = weight if inside else zero
            left[c] += share[c]

    def find_best(self, s: int, unit: float) -> tuple[int, float]:
        """Return the candidate with the largest gain, and the gain; -1 if none has enough rows.

        The gain is the decrease of the sum of squared distances from the mean when each side has a
        mean of its own. `unit` is the mean weight of a row.
        """
        table, total = self.table[s], self.total[s]
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
    """Return room for `number` candidates in each of `leaves` leaves, in one tree per copy."""
    records = len(copy) * leaves
    return Candidates(
        place=np.zeros((records, number // GROUP), np.int32),
        table=np.zeros((records, SUMS + d, number), dtype),
        total=np.zeros((records, 1 + d), dtype),
        seen=np.zeros(records, np.int64),
        phases=np.zeros(records, np.int64),
        owner=np.zeros(records, np.int32),
        used=np.zeros(1, np.int64),
        state=streams(seed, 1 + int(copy.max()))[copy],
        scratch=np.zeros((3, number), dtype),
    )


@kernel
def move(table: Array, s: int, last: int) -> None:
    """Move row `last` of a table to row s, and leave zeros; if they are the same row, zeros."""
    for j in range(table.shape[1]):
        table[s, j], table[last, j] = table[last, j], 0


@kernel
def is_code(place: int) -> bool:
    """Return whether the place holds a category code; splits test codes for equality."""
    return place & 2 != 0


@kernel
def threshold_near(values: Array, place: int) -> float:
    """Return a threshold at a row's value that separates it from 0, unless the value is 0."""
    v, zero = values[place], values.dtype.type(0)
    return v if is_code(place) or v <= zero else np.nextafter(v, zero)
