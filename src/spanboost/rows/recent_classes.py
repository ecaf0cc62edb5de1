"""Naive Bayes over the last rows: the numbers of each class as independent normal distributions.

Sums are decayed, so that about the last 500 rows count. If the stream changes suddenly, little of
them is kept. A class starts with one row at the mean of the last rows, with their variance.
Category codes are not used.

Columns are not independent, and numbers such as 0 and 1 are not normal, so the densities are too
sure of a class. They are raised to a power, the trust, which is learned online: Newton steps for
the logarithmic loss, with curvatures that are decayed as the sums.
"""

import math
from typing import NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel
from spanboost.rows.recent_rows import RecentRows

FADE = 1 - 1 / 500
KEPT = 0.02  # the part of the sums that remains after a sudden change
LEAST = 1e-4  # added to every probability: rows are less independent than assumed
_LEAST_TRUST, _MOST_TRUST = 0.05, 1.0
_FARTHEST = 30.0  # no row may say more than this about the trust
_FIRM = 10.0  # the curvature before the first label
_PSEUDO = 0.5  # rows that a class seems to have more than it has
ABSENT = 1e-300  # the probability of a class before its first label


class ClassScratch(NamedTuple):
    """Values of one row."""

    density: Array  # [classes] the logarithm of its density, up to a constant


@kernel
class RecentClasses(NamedTuple):
    """Decayed sums for each class. A model of numbers has no classes."""

    weight: Array  # [classes] decayed number of rows
    mean: Array  # [classes, coordinates]
    square: Array  # [classes, coordinates] sums of squared distances from the mean
    trust: Array  # [1] the power of the densities
    curvature: Array  # [1] of the loss as a function of the trust
    scratch: ClassScratch

    @property
    def sound(self) -> bool:
        """Whether all numbers are in their ranges."""
        trust, curvature = self.trust[0], self.curvature[0]
        return bool(
            (self.weight >= 0).all() and _LEAST_TRUST <= trust <= _MOST_TRUST and curvature >= 0
        )

    def find_probabilities(self, rows: RecentRows, own: Array, out: Array) -> None:
        """Set the probabilities of the classes of the row that is loaded.

        `own` is the result before the first label.
        """
        top, total, known = -math.inf, 0.0, 0
        for c in range(out.shape[0]):
            if self.weight[c] > 0:
                density = self.find_density(rows, c)
                self.scratch.density[c] = density
                out[c] = math.log(self.weight[c] + _PSEUDO) + self.trust[0] * density
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

    def find_density(self, rows: RecentRows, c: int) -> float:
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
        return -(logarithm + distance) / 2

    def learn_trust(self, out: Array, c: int) -> None:
        """Learn the trust from class c of the row whose probabilities are `out`."""
        if not self.weight[c] > 0:
            return
        density, slope, square = self.scratch.density, 0.0, 0.0
        for k in range(out.shape[0]):
            if self.weight[k] > 0:
                away = min(max(density[k] - density[c], -_FARTHEST), _FARTHEST)
                slope += out[k] * away
                square += out[k] * away * away
        self.curvature[0] = FADE * self.curvature[0] + max(square - slope * slope, 0.0)
        if self.curvature[0] > 0:
            trust = self.trust[0] - slope / self.curvature[0]
            self.trust[0] = min(max(trust, _LEAST_TRUST), _MOST_TRUST)

    def forget(self) -> None:
        """Keep little of the sums, because the stream has changed."""
        for c in range(self.weight.shape[0]):
            self.weight[c] *= KEPT
            for j in range(self.square.shape[1]):
                self.square[c, j] *= KEPT

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
    return RecentClasses(
        weight=np.zeros(classes),
        mean=np.zeros(shape),
        square=np.zeros(shape),
        trust=np.array([_MOST_TRUST]),
        curvature=np.array([_FIRM]),
        scratch=ClassScratch(np.zeros(classes)),
    )


def widen_classes(narrow: RecentClasses, classes: int, coordinates: int) -> RecentClasses:
    """Return the same sums with room for more classes and coordinates."""
    wide = new_recent_classes(classes, coordinates)
    for new, old in zip(wide[:-1], narrow[:-1], strict=True):
        new[tuple(map(slice, old.shape))] = old
    return wide
