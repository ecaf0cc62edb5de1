"""Naive Bayes over the last rows: the numbers of each class as independent normal distributions.

Sums are decayed, so that about the last 500 rows count. A class starts with one row at the mean of
the last rows, with their variance. Category codes are not used.
"""

import math
from typing import NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel
from spanboost.rows.recent_rows import RecentRows

FADE = 1 - 1 / 500
LEAST = 1e-4  # added to every probability: rows are less independent than assumed
_PSEUDO = 0.5  # rows that a class seems to have more than it has
ABSENT = 1e-300  # the probability of a class before its first label


@kernel
class RecentClasses(NamedTuple):
    """Decayed sums for each class. A model of numbers has no classes."""

    weight: Array  # [classes] decayed number of rows
    mean: Array  # [classes, coordinates]
    square: Array  # [classes, coordinates] sums of squared distances from the mean

    def find_probabilities(self, rows: RecentRows, own: Array, out: Array) -> None:
        """Set the probabilities of the classes of the row that is loaded.

        `own` is the result before the first label.
        """
        top, total, known = -math.inf, 0.0, 0
        for c in range(out.shape[0]):
            if self.weight[c] > 0:
                out[c] = self.score(rows, c)
                top = max(top, out[c])
                known += 1
        for c in range(out.shape[0]):
            if self.weight[c] > 0:
                out[c] = math.exp(out[c] - top)
                total += out[c]
        for c in range(out.shape[0]):
            if known == 0:
                out[c] = own[c]
            elif self.weight[c] > 0:
                out[c] = (out[c] / total + LEAST) / (1 + known * LEAST)
            else:
                out[c] = ABSENT

    def score(self, rows: RecentRows, c: int) -> float:
        """Return the logarithm of the density of class c, up to a constant."""
        weight, logarithm, ratio = self.weight[c], 0.0, 1.0
        distance = 0.0
        for j in range(rows.used[0]):
            spread = rows.variance[j]
            if rows.coded[j] == 1 or not spread > 0:
                continue
            variance = (self.square[c, j] + spread) / (weight + 1)
            away = rows.scratch.x[j] - (weight * self.mean[c, j] + rows.mean[j]) / (weight + 1)
            distance += away * away / variance
            ratio *= variance / spread
            if not 1e-100 < ratio < 1e100:  # one logarithm for many columns
                logarithm += math.log(ratio)
                ratio = 1.0
        logarithm += math.log(ratio)
        return math.log(weight + _PSEUDO) - (logarithm + distance) / 2

    def learn_class(self, rows: RecentRows, c: int) -> None:
        """Add the row that is loaded to class c."""
        for k in range(self.weight.shape[0]):
            self.weight[k] *= FADE
            for j in range(rows.used[0]):
                self.square[k, j] *= FADE
        self.weight[c] += 1
        for j in range(rows.used[0]):
            before = rows.scratch.x[j] - self.mean[c, j]
            self.mean[c, j] += before / self.weight[c]
            self.square[c, j] += before * (rows.scratch.x[j] - self.mean[c, j])


def new_recent_classes(classes: int, coordinates: int) -> RecentClasses:
    """Return the state before the first row."""
    shape = classes, coordinates
    return RecentClasses(np.zeros(classes), np.zeros(shape), np.zeros(shape))


def widen_classes(narrow: RecentClasses, classes: int, coordinates: int) -> RecentClasses:
    """Return the same sums with room for more classes and coordinates."""
    wide = new_recent_classes(classes, coordinates)
    for new, old in zip(wide, narrow, strict=True):
        new[tuple(map(slice, old.shape))] = old
    return wide
