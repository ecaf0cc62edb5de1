"""The area under the ROC curve, from a histogram of scores.

The area is the probability that a random positive row has a higher score than a random negative
one; equal scores count half. The histogram takes scores in the same bin as equal. Only pairs of
rows in the same bin can be counted wrongly, each by a half, so the error is at most half the share
of these pairs, which `error` returns.

The bins are those of a floating-point number with 8 bits: a bin reaches from x to at most
(1 + 1/256) x, and near 0 it has the width 2^-16. Scores beyond 32 or below -32 share the outermost
bins; as log-odds, these are probabilities within 1e-13 of 0 or 1.
"""

from typing import NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array

PARTS = 256  # bins of an octave, from x to 2 x
LOWEST, HIGHEST = -8, 5  # octaves from 2^-8 to 2^5
SIDE = PARTS * (1 + HIGHEST - LOWEST)  # bins on each side of 0; the first ones are around 0
BINS = 2 * SIDE


class ScoreHistogram(NamedTuple):
    """Summed weights by class and score."""

    counts: Array  # [2, BINS] of negative and positive rows

    def add(self, weights: Array, positive: Array, scores: Array) -> None:
        """Add rows: whether their label is the positive one, and their scores."""
        np.add.at(self.counts, (positive.astype(np.int64), score_bins(scores)), weights)

    def auc(self) -> float | None:
        """Return the area under the ROC curve; None unless rows of both classes have weight."""
        negative, positive = self._shares()
        if negative is None or positive is None:
            return None
        below = np.cumsum(negative) - negative / 2
        return float(positive @ below)

    def error(self) -> float | None:
        """Return how far the area can be from that of the exact scores; None without an area."""
        negative, positive = self._shares()
        return None if negative is None or positive is None else float(positive @ negative) / 2

    def _shares(self) -> tuple[Array | None, Array | None]:
        """Return the distribution of the scores of each class; None for a class without rows."""
        totals = self.counts.sum(axis=1)
        negative, positive = (
            counts / total if total > 0 else None
            for counts, total in zip(self.counts, totals, strict=True)
        )
        return negative, positive


def new_score_histogram() -> ScoreHistogram:
    """Return the histogram of no rows."""
    return ScoreHistogram(np.zeros((2, BINS)))


def score_bins(scores: Array) -> Array:
    """Return the bin of each score, from 0 to BINS - 1; higher scores have higher bins."""
    sizes = np.abs(np.nan_to_num(scores))
    fraction, exponent = np.frexp(sizes)  # fraction in [1/2, 1)
    octave = exponent - 1 - LOWEST  # 0 from 2^LOWEST on
    in_octave = PARTS * (1 + octave) + np.floor((2 * fraction - 1) * PARTS).astype(np.int64)
    near_zero = np.floor(np.minimum(sizes * 2.0**-LOWEST, 1) * PARTS).astype(np.int64)
    bins = np.minimum(np.where(sizes < 2.0**LOWEST, near_zero, in_octave), SIDE - 1)
    return np.where(scores < 0, SIDE - 1 - bins, SIDE + bins)
