"""The rows that were learned last, and the nearest of them to a new row.

A row is a point with a coordinate for each of its first columns: numbers, in standard deviations of
the last rows, and category codes, which are at distance 1 unless they are equal. A missing number
counts as the mean of its column. Columns that a sparse row leaves out are 0.

The nearest rows vote with their labels. The weight of a row falls linearly with its distance, to 0
at that of the first row that does not vote. The forecast that they correct counts as half a row.
"""

import math
from typing import NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel
from spanboost.rows.block import Row

WINDOW = 1000  # rows that are remembered
NEAREST = 10  # rows that vote
MOST = 64  # coordinates of a row
_PRIOR = 0.5  # the weight of the forecast itself
_FAR = np.float32(np.inf)


class RecentScratch(NamedTuple):
    """Values of one row."""

    x: Array  # [coordinates] the row
    distance: Array  # [WINDOW] of each row that is remembered, squared
    near: Array  # [NEAREST + 1] the smallest of them, in order
    label: Array  # [NEAREST + 1] the labels of these rows


@kernel
class RecentRows(NamedTuple):
    """The last rows as points, and their labels."""

    place: Array  # [2 MOST] 1 + the coordinate of a feature, numbered as by `Cells`; 0: it has none
    used: Array  # [1] coordinates in use
    coded: Array  # [coordinates] 1 if it is a category
    values: Array  # [coordinates, WINDOW]
    labels: Array  # [WINDOW] numbers, or numbers of classes
    mean: Array  # [coordinates] decayed mean
    variance: Array  # [coordinates] decayed mean of squared distances from it
    seen: Array  # [1] rows learned
    scratch: RecentScratch

    def load_row(self, x: Row) -> None:
        """Read the coordinates of a row."""
        point = self.scratch.x
        for j in range(self.used[0]):
            point[j] = 0
        for a in range(x.feature.shape[0]):
            f = x.feature[a]
            if f < self.place.shape[0] and self.place[f] > 0:
                j, value = self.place[f] - 1, x.x[a]
                point[j] = value if not np.isnan(value) else self.mean[j]

    def meet_features(self, x: Row) -> None:
        """Give coordinates to new features, while there is room."""
        for a in range(x.feature.shape[0]):
            f, j = x.feature[a], self.used[0]
            if f < self.place.shape[0] and self.place[f] == 0 and j < self.mean.shape[0]:
                self.place[f], self.coded[j] = j + 1, f % 2
                self.used[0] = j + 1

    def learn_row(self, x: Row, label: float) -> None:
        """Remember a row and its label instead of the oldest one."""
        self.meet_features(x)
        self.load_row(x)
        place, part = self.seen[0] % WINDOW, max(1 / (self.seen[0] + 1), 1 / WINDOW)
        for j in range(self.used[0]):
            value = np.float64(self.scratch.x[j])
            self.values[j, place] = self.scratch.x[j]
            before = value - self.mean[j]
            self.mean[j] += part * before
            self.variance[j] += part * (before * (value - self.mean[j]) - self.variance[j])
        self.labels[place] = label
        self.seen[0] += 1

    def find_nearest(self) -> int:
        """Find the rows nearest to the one that is loaded; return how many vote."""
        near, rows = self.scratch.near, min(self.seen[0], WINDOW)
        self.measure_distances(rows)
        found = 0
        for i in range(near.shape[0]):
            near[i] = _FAR
        for i in range(rows):
            distance = self.scratch.distance[i]
            if distance < near[NEAREST]:
                self.insert_row(i, distance)
                found += 1
        return min(found, NEAREST)

    def measure_distances(self, rows: int) -> None:
        """Set the squared distances of the first rows; the loops over rows vectorise."""
        distance, one = self.scratch.distance, np.float32(1)
        for i in range(rows):
            distance[i] = 0
        for j in range(self.used[0]):
            value, x = self.values[j], self.scratch.x[j]
            if self.coded[j] == 1:
                for i in range(rows):
                    distance[i] += np.float32(0) if value[i] == x else one
            elif self.variance[j] > 0:
                scale = np.float32(1 / math.sqrt(self.variance[j]))
                for i in range(rows):
                    away = (value[i] - x) * scale
                    distance[i] += away * away

    def insert_row(self, i: int, distance: float) -> None:
        """Insert row i, which is one of the nearest so far, in order."""
        near, label, q = self.scratch.near, self.scratch.label, NEAREST
        while q > 0 and near[q - 1] > distance:
            near[q], label[q] = near[q - 1], label[q - 1]
            q -= 1
        near[q], label[q] = distance, self.labels[i]

    def vote(self, own: Array, out: Array) -> None:
        """Correct a forecast `own` by the nearest rows.

        A forecast of several values holds the probabilities of classes.
        """
        number, total = self.find_nearest(), _PRIOR
        for q in range(number):
            total += self.vote_weight(q)
        for c in range(own.shape[0]):
            out[c] = _PRIOR / total * own[c]
        for q in range(number):
            part, label = self.vote_weight(q) / total, self.scratch.label[q]
            if own.shape[0] > 1:
                out[int(label)] += part
            else:
                out[0] += part * label

    def vote_weight(self, q: int) -> float:
        """Return the weight of the row that is the q-th nearest."""
        near, reach = self.scratch.near, np.float64(self.scratch.near[NEAREST])
        return 1 - math.sqrt(near[q] / reach) if reach > 0 else 1.0

    def widened(self, coordinates: int) -> "RecentRows":
        """Return the same rows with room for more coordinates."""
        more = coordinates - len(self.mean)
        names = ("coded", "values", "mean", "variance")
        wide = {name: _padded(getattr(self, name), more) for name in names}
        scratch = self.scratch._replace(x=_padded(self.scratch.x, more))
        return self._replace(**wide, scratch=scratch)

    @property
    def sound(self) -> bool:
        """Whether all indices are in range."""
        used = int(self.used[0])
        given = self.place[self.place > 0]
        return bool(
            0 <= used <= len(self.mean)
            and 0 <= self.seen[0] < 2**62
            and (self.place >= 0).all()
            and sorted(given.tolist()) == list(range(1, used + 1))
        )


def new_recent_rows(coordinates: int) -> RecentRows:
    """Return the state before the first row."""
    return RecentRows(
        place=np.zeros(2 * MOST, np.int64),
        used=np.zeros(1, np.int64),
        coded=np.zeros(coordinates, np.int64),
        values=np.zeros((coordinates, WINDOW), np.float32),
        labels=np.zeros(WINDOW),
        mean=np.zeros(coordinates),
        variance=np.zeros(coordinates),
        seen=np.zeros(1, np.int64),
        scratch=RecentScratch(
            x=np.zeros(coordinates, np.float32),
            distance=np.zeros(WINDOW, np.float32),
            near=np.zeros(NEAREST + 1, np.float32),
            label=np.zeros(NEAREST + 1),
        ),
    )


def _padded(array: Array, more: int) -> Array:
    """Return an array with more entries on its first axis, which are 0."""
    return np.concatenate([array, np.zeros((more, *array.shape[1:]), array.dtype)])
