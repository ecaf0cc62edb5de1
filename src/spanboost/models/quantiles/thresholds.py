"""Thresholds of scores: the quantiles of the last scores, at calibrated levels."""

from typing import NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel
from spanboost.models.quantiles.levels import CalibratedLevels, new_levels
from spanboost.models.quantiles.sorted_window import (
    SortedWindow,
    count_below,
    count_up_to,
    is_sound,
    new_window,
    read_share,
)


@kernel
class ScoreThresholds(NamedTuple):
    """The state of the thresholds."""

    levels: CalibratedLevels
    scores: SortedWindow  # of the labels of the last rows

    @property
    def sound(self) -> bool:
        """Whether all indices are in range; compiled code does not check."""
        return is_sound(self.scores)

    def read_thresholds(self, out: Array) -> None:
        """Set out[k] to the threshold of level k; infinite if no finite one is safe."""
        for k in range(out.shape[0]):
            size = self.scores.counts[0]
            share = self.scores.safe_share(self.levels.level[k], self.levels.share_at(k))
            if size == 0 or share >= 1:
                out[k] = np.inf
            elif share <= 0:
                out[k] = -np.inf
            else:
                out[k] = read_share(self.scores.ordered, size, share)


def new_thresholds(levels: Array) -> ScoreThresholds:
    """Return thresholds of these levels that have seen no score."""
    return ScoreThresholds(new_levels(levels), new_window())


def predict_thresholds(state: ScoreThresholds, out: Array) -> None:
    """Set out[0] to the thresholds of the next row."""
    state.read_thresholds(out[0])


def calibrate_thresholds(state: ScoreThresholds, scores: Array) -> None:
    """Start again with the scores of these labels, which the model has not learned.

    This is split conformal prediction: every level is read as it is.
    """
    state.levels.restart_levels()
    state.scores.clear_window()
    for t in range(scores.shape[0]):
        state.scores.add_value(scores[t])


def learn_thresholds(state: ScoreThresholds, scores: Array, weights: Array, out: Array) -> None:
    """Set out[t] to the thresholds of row t, and learn the score of its label afterwards.

    Rows of weight 0 are not learned.
    """
    for t in range(out.shape[0]):
        state.read_thresholds(out[t])
        if weights[t] > 0:
            below = count_below(out[t], out.shape[1], scores[t])
            up_to = count_up_to(out[t], out.shape[1], scores[t])
            state.levels.move_levels(below, up_to)
            state.scores.add_value(scores[t])
