"""The columns of a regression: which feature is in which column, and the range of each column.

Features get columns in the order in which they appear. When all columns are taken, further features
share the second half of the columns: each is normalised and has a pseudo-random sign. (This is the
count sketch of M. Charikar, K. Chen, M. Farach-Colton, *Finding Frequent Items in Data Streams*,
ICALP 2002.)
"""

from typing import NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel
from spanboost.learners.feature_scales import (
    DOUBTS,
    YOUNG,
    is_in_doubt,
    is_stray,
    lower_scale,
    revise_scale,
)
from spanboost.learners.feature_weights import grow_table

WAITING = -(2**62)
LARGEST = 1e60  # larger numbers are clipped, so that squares do not overflow
SMALLEST = 1e-60  # smaller numbers count as 0, so that squares do not underflow
NARROW = 1e-10  # the least range of a column, relative to its largest number


@kernel
class Columns(NamedTuple):
    """The columns in use, and the features in them."""

    place: Array  # [feature] 1 + its column, negative if others share it; WAITING while all its
    # values were missing; 0 until it is seen
    S: Array  # [feature] scale (feature_scales.py)
    doubts: Array  # [feature, DOUBTS] doubts about the scale
    used: Array  # [1] number of columns in use
    rows: Array  # [1] number of rows learned
    total: Array  # [K] sum of each column
    low: Array  # [K] smallest number in each column
    high: Array  # [K] largest number in each column
    prior: Array  # [K] the range that the prior of each column is for
    limit: int  # most columns

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the fields with a row per feature; `place` is 0 until it is seen."""
        return ("place", "S", "doubts")

    @property
    def sound(self) -> bool:
        """Whether all indices are in range; compiled code does not check."""
        used, place = int(self.used[0]), self.place[self.place != WAITING]
        own = np.sort(place[place > 0])  # one column each; `add_column` takes the next one
        return (
            used == len(own) <= len(self.prior)
            and bool((own == np.arange(1, used + 1)).all())
            and int(place.min(initial=0)) >= -used
        )

    def grown(self, features: int, width: int) -> "Columns":
        """Return the same columns with room for more features.

        The number of columns depends on the number of features alone, not on how it grew.
        """
        K = max(len(self.prior), min(self.limit, 1 << (max(features, 1) - 1).bit_length()))
        more = (0, K - len(self.prior))
        return self._replace(
            place=grow_table(self.place, features),
            S=grow_table(self.S, features),
            doubts=grow_table(self.doubts, features),
            total=np.pad(self.total, more),
            low=np.pad(self.low, more),
            high=np.pad(self.high, more),
            prior=np.pad(self.prior, more),
        )

    def find_column(self, f: int) -> int:
        """Return the column of feature f; -1 if it has none."""
        if f >= self.place.shape[0] or self.place[f] in (0, WAITING):
            return -1
        return abs(self.place[f]) - 1

    def number_of(self, f: int, x: float) -> float:
        """Return what feature f, which has a column, adds to it.

        For strays and missing values it is the mean of the column. The mean of a shared column is
        about 0, because of the signs.
        """
        own, v = self.place[f] > 0, max(min(x, LARGEST), -LARGEST)
        if np.isnan(x) or is_stray(self.S, f, abs(v)):
            return self.mean_of(self.place[f] - 1) if own else 0.0
        if abs(v) < SMALLEST:
            return 0.0
        return v if own else random_sign(f) * (v / self.S[f])

    def mean_of(self, j: int) -> float:
        """Return the mean of column j."""
        if self.low[j] == self.high[j]:
            return self.low[j]  # without rounding
        return self.total[j] / max(self.rows[0], 1)

    def meet_number(self, f: int, x: float) -> bool:
        """Update the scale of feature f, which gets a column if it is new.

        Return whether its column restarts, because the scale falls: the values before were wild.
        """
        if np.isnan(x):
            self.place[f] = WAITING if self.place[f] == 0 else self.place[f]
            return False
        if abs(x) < SMALLEST:
            return False
        if self.place[f] in (0, WAITING):
            first = self.rows[0] == 0 or self.place[f] == WAITING
            self.add_column(f)
            self.start_range(f, max(min(x, LARGEST), -LARGEST), first)
        size = min(abs(x), LARGEST)
        if is_in_doubt(self.S, self.doubts, f, size):
            young = self.rows[0] < YOUNG
            self.S[f] = revise_scale(self.S, self.doubts, f, size, young)
            return lower_scale(self.S, self.doubts, f) < 1 and self.place[f] > 0
        return False

    def add_column(self, f: int) -> None:
        """Give feature f a column of its own; if all are taken, a shared one."""
        j = self.used[0]
        if j < self.limit:
            self.place[f], self.used[0] = 1 + j, j + 1
        else:
            half = self.limit // 2
            self.place[f] = -(1 + half + (scramble(f) >> 1) % (self.limit - half))

    def start_range(self, f: int, x: float, first: bool) -> None:
        """Extend the range of the new column of feature f to its first number.

        Features that share the column may cancel that number in the row. Without a range, the
        column would have no prior.

        first: whether there are no values before, or only missing ones, which count as this number.
            Otherwise all values before were 0.
        """
        j = self.place[f] - 1
        if j >= 0 and first:
            self.restart_range(j, x)
        elif j >= 0:
            self.low[j], self.high[j] = min(self.low[j], x), max(self.high[j], x)

    def restart_range(self, j: int, x: float) -> None:
        """Forget the range and the mean of column j, as if all numbers had been x."""
        self.total[j] = x * self.rows[0]
        self.low[j], self.high[j], self.prior[j] = x, x, 0

    def update_ranges(self, row: Array) -> None:
        """Extend the range of every column to the number in the row."""
        for j in range(row.shape[0]):
            self.low[j] = min(self.low[j], row[j])
            self.high[j] = max(self.high[j], row[j])

    def next_prior(self, j: int) -> float:
        """Return the range that the prior of column j has to be for; it at least doubles."""
        largest = max(abs(self.low[j]), abs(self.high[j]))
        due = max(self.high[j] - self.low[j], NARROW * largest)
        return due if due > 2 * self.prior[j] else self.prior[j]

    def finish_row(self, row: Array) -> None:
        """Count the row, after every fit has raised its priors."""
        for j in range(row.shape[0]):
            self.total[j] += row[j]
            self.prior[j] = self.next_prior(j)
        self.rows[0] += 1


def new_columns(limit: int) -> Columns:
    """Return columns without features."""
    empty = np.zeros(0)
    return Columns(
        place=np.zeros(0, np.int64),
        S=empty,
        doubts=np.zeros((0, DOUBTS)),
        used=np.zeros(1, np.int64),
        rows=np.zeros(1, np.int64),
        total=empty,
        low=empty,
        high=empty,
        prior=empty,
        limit=limit,
    )


@kernel
def scramble(f: int) -> int:
    """Return a pseudo-random number below 2^31; all products stay below 2^53."""
    return (f % 2147483647 + 1) * 48271 % 2147483647


@kernel
def random_sign(f: int) -> float:
    """Return 1 or -1, at random for each feature."""
    return 1.0 if scramble(f) % 2 == 0 else -1.0
