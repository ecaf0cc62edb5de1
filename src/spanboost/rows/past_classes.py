"""What past labels say about the class of the next row: how often each class follows another.

A source is a past label: the last one, the one of a season ago, and the last one of the same key
(past_labels.py). The evidence of a source for class c is the logarithm of P(c | source) / P(c),
from decayed counts. It is added to the logarithms of a forecast, with weights:

    score(c) = w_0 log P_forecast(c) + sum over sources s of w_s evidence_s(c).

The weights start at 1 for the forecast and 0 for the sources. They take Newton steps for the
logarithmic loss, each with the curvature in its own direction. If the order of the rows means
nothing, all evidence is near 0. A class that has not been seen keeps the score of the forecast.
"""

import math
from typing import NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel

FADE = 0.999  # of the counts after a class, each time it occurs; and of the counts of all classes
_FADE_CURVATURE = 0.998
_FIRM = 10.0  # the curvature before the first label
_FARTHEST = 30.0  # no row may say more than this about a weight
_MOST = 2.0  # the largest weight
_PSEUDO = 0.5  # rows that a class seems to have more than it has
LAST, COMBINED = 0, 1  # candidates: what follows the last label, and the score


class ClassEvidence(NamedTuple):
    """Values of one row."""

    terms: Array  # [classes, 1 + sources] the forecast, and the evidence of each source
    shares: Array  # [classes] of the labels so far; 0 for a class that has not been seen
    chances: Array  # [classes] the probabilities that the scores stand for


@kernel
class PastClasses(NamedTuple):
    """Decayed counts of classes, and the weights of the forecast and of the sources."""

    counts: Array  # [sources, classes, classes] how often a class came after each class
    totals: Array  # [classes] how often it came at all
    weights: Array  # [1 + sources]
    curvature: Array  # [1 + sources] of the loss as a function of each weight
    scratch: ClassEvidence

    def correct_row(self, own: Array, sources: Array, out: Array) -> None:
        """Write the candidates for a row to out[classes, 2], as logarithms of probabilities.

        own: [classes] those of the forecast; sources: [sources] classes, or NaN.
        """
        self.find_shares()
        self.find_terms(own, sources)
        terms, shares, top = self.scratch.terms, self.scratch.shares, -math.inf
        known = not np.isnan(sources[0])
        for c in range(own.shape[0]):
            out[c, LAST] = out[c, COMBINED] = own[c]
            if shares[c] > 0:
                out[c, COMBINED] = 0.0
                for s in range(self.weights.shape[0]):
                    out[c, COMBINED] += self.weights[s] * terms[c, s]
                if known:
                    out[c, LAST] = math.log(shares[c]) + terms[c, 1]
            top = max(top, out[c, COMBINED])
        total = 0.0
        for c in range(own.shape[0]):
            total += math.exp(out[c, COMBINED] - top)
        top += math.log(total)
        for c in range(own.shape[0]):
            out[c, COMBINED] -= top
            self.scratch.chances[c] = math.exp(out[c, COMBINED])

    def find_terms(self, own: Array, sources: Array) -> None:
        """Set the forecast and the evidence of each source, for every class."""
        terms, shares = self.scratch.terms, self.scratch.shares
        for c in range(own.shape[0]):
            terms[c, 0] = own[c]
        for s in range(sources.shape[0]):
            for c in range(own.shape[0]):
                terms[c, 1 + s] = 0.0
            if np.isnan(sources[s]) or int(sources[s]) >= own.shape[0]:
                continue
            counts, number = self.counts[s, int(sources[s])], 1.0
            for c in range(own.shape[0]):
                number += counts[c]
            for c in range(own.shape[0]):
                if shares[c] > 0:
                    terms[c, 1 + s] = math.log((counts[c] + shares[c]) / (number * shares[c]))

    def find_shares(self) -> None:
        """Set the share of each class among the labels so far."""
        shares, total = self.scratch.shares, 0.0
        for c in range(shares.shape[0]):
            shares[c] = self.totals[c] + _PSEUDO if self.totals[c] > 0 else 0.0
            total += shares[c]
        for c in range(shares.shape[0]):
            shares[c] /= max(total, 1.0)

    def learn_class(self, sources: Array, c: int) -> None:
        """Learn the class of the row that was corrected last."""
        if self.totals[c] > 0:
            self.learn_weights(c)
        for s in range(sources.shape[0]):
            if not np.isnan(sources[s]) and int(sources[s]) < self.totals.shape[0]:
                add_class(self.counts[s, int(sources[s])], c)
        add_class(self.totals, c)

    def learn_weights(self, c: int) -> None:
        """Move the weights so that class c becomes more probable."""
        terms, chances = self.scratch.terms, self.scratch.chances
        for s in range(self.weights.shape[0]):
            slope, square = 0.0, 0.0
            for k in range(chances.shape[0]):
                away = min(max(terms[k, s] - terms[c, s], -_FARTHEST), _FARTHEST)
                slope += chances[k] * away
                square += chances[k] * away * away
            curvature = _FADE_CURVATURE * self.curvature[s] + max(square - slope * slope, 0.0)
            self.curvature[s] = curvature
            if curvature > 0:
                moved = self.weights[s] - slope / (curvature * self.weights.shape[0])
                self.weights[s] = min(max(moved, 0.0), _MOST)

    @property
    def sound(self) -> bool:
        """Whether all numbers are in their ranges."""
        arrays = self.counts, self.totals, self.curvature
        inside = all((one >= 0).all() and np.isfinite(one).all() for one in arrays)
        return bool(inside and ((self.weights >= 0) & (self.weights <= _MOST)).all())


@kernel
def add_class(counts: Array, c: int) -> None:
    """Add a class to decayed counts."""
    for k in range(counts.shape[0]):
        counts[k] *= FADE
    counts[c] += 1


def new_past_classes(sources: int, classes: int) -> PastClasses:
    """Return the state before the first label."""
    return PastClasses(
        counts=np.zeros((sources, classes, classes)),
        totals=np.zeros(classes),
        weights=np.array([1.0] + [0.0] * sources),
        curvature=np.full(1 + sources, _FIRM),
        scratch=ClassEvidence(
            np.zeros((classes, 1 + sources)), np.zeros(classes), np.zeros(classes)
        ),
    )


def widen_past_classes(narrow: PastClasses, classes: int) -> PastClasses:
    """Return the same counts with room for more classes."""
    wide = new_past_classes(len(narrow.counts), classes)
    for new, old in zip(wide[:-1], narrow[:-1], strict=True):
        new[tuple(map(slice, old.shape))] = old
    return wide


def correct_classes(state: PastClasses, own: Array, sources: Array, out: Array) -> None:
    """Write the candidates for every row t to out[t]; learn nothing."""
    for t in range(own.shape[0]):
        state.correct_row(own[t], sources[t], out[t])


def correct_and_learn_classes(
    state: PastClasses, own: Array, sources: Array, labels: Array, weights: Array, out: Array
) -> None:
    """Like `correct_classes`, but learn each row that has a weight after its candidates."""
    for t in range(own.shape[0]):
        state.correct_row(own[t], sources[t], out[t])
        if weights[t] > 0:
            state.learn_class(sources[t], labels[t])
