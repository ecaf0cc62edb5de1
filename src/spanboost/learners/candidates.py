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

from spanboost.compiling.arrays import Array, unsigned
from spanboost.compiling.kernels import kernel
from spanboost.compiling.memory_hints import prefetch
from spanboost.compiling.random_numbers import fill_uniform, streams
from spanboost.learners.tree_rows import RowQueue, TreeValues
from spanboost.rows.room import new_room

GROUP = 2  # candidates per group
LEAST = 5.0  # the fewest rows of mean weight on each side of a split
THRESHOLD, WEIGHT, SUMS = 0, 1, 2  # rows of a leaf's table; there may be several sums


@kernel
class Candidates(NamedTuple):
    """The candidates of the growing leaves of N trees; a leaf has one record in each table."""

    place: Array  # [record, group] the place in the values of a row that the group reads
    table: Array  # [record, 2 + sums, C] threshold; weight and sums of targets on the left
    total: Array  # [record, 1 + sums] weight and sums of targets of all rows counted
    seen: Array  # [record] rows that reached the leaf
    phases: Array  # [record] rows needed to set one threshold per group; 0 if unused
    owner: Array  # [record] the node whose record it is
    used: Array  # [1] number of records in use, which are the first ones
    state: Array  # [N, 6] state of the random number generator

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the fields with an entry per record.

        All are 0 for an unused record; `phases` is 0 only for unused records.
        """
        return ("phases", "place", "table", "total", "seen", "owner")

    def open(self, v: int) -> int:
        """Return a new record for leaf v; -1 if there is none left."""
        s = self.used[0]
        if s == self.owner.shape[0]:
            return -1
        self.used[0] = s + 1
        self.owner[s] = v
        return s

    def fetch(self, s: int) -> None:
        """Start to read record s, which will be counted soon."""
        prefetch(self.place, s)
        prefetch(self.table, s)
        prefetch(self.total, s)

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

    def admit_row(self, i: int, s: int, cells: Array, values: Array, drawn: Array) -> int:
        """Return the number of rows that record s has counted, with a row that is to be counted.

        The first rows of a leaf of tree i set its thresholds. They are not counted: 0.

        cells: the places of the cells in the values of the row.
        drawn: scratch space for a number per group.
        """
        n, s = self.seen[unsigned(s)], unsigned(s)
        if n == 0:
            self.phases[s] = 1 + (self.place.shape[1] - 1) // max(cells.shape[0], 1)
        first = GROUP * self.phases[s]
        if n < self.phases[s] and cells.shape[0] == 0:
            return 0  # an empty row has no cell to split on
        self.seen[s] = n + 1
        if n < first:
            self.set_thresholds(i, s, n, cells, values, drawn)
            return 0
        return n + 1 - first

    def set_thresholds(
        self, i: int, s: int, n: int, cells: Array, values: Array, drawn: Array
    ) -> None:
        """Set one threshold in every group whose turn it is, from row n of the leaf.

        With its first threshold, a group also draws the cell that it splits on. The row is divided
        into as many intervals as there are groups, and each group draws a point in its own
        interval. The point lies in some cell; the half of the cell determines the side of missing
        values.
        """
        place, threshold, phases = self.place[s], self.table[s, THRESHOLD], self.phases[s]
        groups, first = place.shape[0], n % phases
        if n < phases:
            fill_uniform(self.state[i], drawn, (groups - first + phases - 1) // phases)
            for j, g in enumerate(range(first, groups, phases)):
                at = (g + drawn[j]) * cells.shape[0] / groups
                a = int(at)
                place[g] = cells[a] + int(2 * (at - a))
        for g in range(first, groups, phases):
            threshold[GROUP * g + n // phases] = threshold_near(values, place[g])

    def count_rows(self, queue: RowQueue, rows: TreeValues) -> None:
        """Add the rows in the queue to their records, and empty it.

        A row is on the left of a candidate if its value <= the threshold. All values are gathered
        first, so that the loops over candidates have no branches and vectorise.
        """
        for e in range(queue.length[0]):
            self.gather_values(queue, e, rows)
        for e in range(queue.length[0]):
            s, weight, value = unsigned(queue.record[e]), queue.weight[e], queue.value[e]
            table, total, zero = self.table[s], self.total[s], weight - weight
            threshold, left, sums = table[THRESHOLD], table[WEIGHT], table[SUMS]
            r = queue.distance[e, 0]
            total[0] += weight
            total[1] += weight * r
            for c in range(left.shape[0]):
                counted = weight if value[c] <= threshold[c] else zero
                left[c] += counted
                sums[c] += counted * r
            for k in range(1, total.shape[0] - 1):
                r, sums = queue.distance[e, k], table[SUMS + k]
                total[1 + k] += weight * r
                for c in range(sums.shape[0]):
                    sums[c] += (weight if value[c] <= threshold[c] else zero) * r
        queue.length[0] = 0

    def gather_values(self, queue: RowQueue, e: int, rows: TreeValues) -> None:
        """Set the values that the candidates of entry e compare with their thresholds.

        A row whose code is not equal to the threshold is on the right: its value is infinite.
        """
        t, s = unsigned(queue.row[e]), unsigned(queue.record[e])
        place, pairs, pair = self.place[s], rows.pairs[t], queue.pair[e]
        for g in range(place.shape[0]):
            pair[g] = pairs[unsigned(place[g])]
        if rows.coded[0] == 0:
            return
        threshold, value = self.table[s, THRESHOLD], queue.value[e]
        for c in range(value.shape[0]):
            if is_code(place[c // GROUP]) and value[c] != threshold[c]:
                value[c] = np.inf

    def find_best(self, s: int, unit: float, gain: Array) -> tuple[int, float]:
        """Return the candidate with the largest gain, and the gain; -1 if none has enough rows.

        The gain is the decrease of the sum of squared distances from the mean when each side has a
        mean of its own. The loops that find the gains [C] have no branches and vectorise.

        unit: the mean weight of a row.
        gain: scratch space.
        """
        table, total = self.table[s], self.total[s]
        n, left, least = total[0], table[WEIGHT], total.dtype.type(LEAST) * unit
        found, most, zero = -1, total.dtype.type(0), total.dtype.type(0)
        half = n * total.dtype.type(0.5)
        for c in range(gain.shape[0]):
            gain[c] = zero
        for k in range(total.shape[0] - 1):
            sums, whole = table[SUMS + k], total[1 + k]
            for c in range(gain.shape[0]):
                m = left[c] if has_enough(left[c], n, least) else half
                apart = sums[c] / m - (whole - sums[c]) / (n - m)
                gain[c] += apart * apart
        for c in range(gain.shape[0]):
            m = left[c]
            gain[c] = gain[c] * (m * ((n - m) / n)) if has_enough(m, n, least) else zero
        for c in range(gain.shape[0]):
            if gain[c] > most:
                found, most = c, gain[c]
        return found, most


def new_candidates(
    copy: Array, leaves: int, number: int, sums: int, *, seed: int, dtype: Any
) -> Candidates:
    """Return room for `number` candidates in each of `leaves` leaves, in one tree per copy.

    sums: how many sums a candidate has (split_sums.py).
    """
    records = len(copy) * leaves
    return Candidates(
        place=new_room((records, number // GROUP), np.int32),
        table=new_room((records, SUMS + sums, number), dtype),
        total=new_room((records, 1 + sums), dtype),
        seen=new_room(records, np.int64),
        phases=new_room(records, np.int64),
        owner=new_room(records, np.int32),
        used=np.zeros(1, np.int64),
        state=streams(seed, 1 + int(copy.max()))[copy],
    )


@kernel
def has_enough(m: float, n: float, least: float) -> Any:
    """Return whether m of n, and the rest, are at least `least`; branch-free."""
    return (m >= least) & (n - m >= least)


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
def goes_right(x: float, threshold: float, place: int) -> Any:
    """Return 1 if a value is on the right of a split that reads this place, else 0; branch-free."""
    code = (place >> 1) & 1
    return np.int64(x > threshold) | (np.int64(x < threshold) & code)


@kernel
def threshold_near(values: Array, place: int) -> float:
    """Return a threshold at a row's value that separates it from 0, unless the value is 0."""
    v, zero = values[place, 0], values.dtype.type(0)
    return v if is_code(place) or v <= zero else np.nextafter(v, zero)
