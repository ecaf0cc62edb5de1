"""A map from the scores of a classifier to calibrated probabilities, learned online.

Three candidates predict each row: the probabilities of the model as they are; those of rescaled
scores, slope * score + bias of the class, which learns by Newton's method for each number; and
these again, with the probability of the most probable class replaced by the frequency with which
such classes were right. The mixture of the candidates weights each by its likelihood (Bayes' rule),
with a small share of equal weights, so that it can change. So its log-loss is at most a few nats
above that of the model, in total, on any sequence (theory/calibration.py). Past rows count less and
less in the last two candidates, so that they follow a stream that drifts.
"""

import math
from typing import NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel

CANDIDATES = 3
SHARE, FIRST = 0.1, 10.0  # row t mixes SHARE / (t + FIRST) of equal weights into those of the rows
FADE = 0.999  # of past rows, per row
SLOPE_PRIOR, BIAS_PRIOR = 1.0, 10.0  # curvature of the loss before the first row
FLATTEST, STEEPEST = 0.05, 50.0  # slopes
LARGEST = 10.0  # gradient of one row in the slope
BINS = 20  # of the probability of the most probable class, for each class
BIN_PRIOR = 20.0  # rows of each bin that are right as often as predicted
SUREST = 1 - 1e-9  # largest probability of the last candidate


class MapScratch(NamedTuple):
    """Scratch space, from `predict_map` to `learn_map`."""

    log: Array  # [CANDIDATES, K] log-probabilities
    weight: Array  # [CANDIDATES]


@kernel
class ProbabilityMap(NamedTuple):
    """The state of the map for K classes."""

    slope: Array  # [2] slope, and the curvature of the loss in it
    bias: Array  # [K] of each class
    curvature: Array  # [K] of the loss in each bias
    right: Array  # [K, BINS] past rows whose most probable class was right, by class and bin
    past: Array  # [K, BINS] all past rows
    log_weight: Array  # [CANDIDATES] log-likelihoods, up to a constant
    rows: Array  # [2] rows learned, their largest weight
    scratch: MapScratch

    def find_bin(self, top: int) -> int:
        """Return the bin of the most probable class of the rescaled scores."""
        return min(int(math.exp(self.scratch.log[1, top]) * BINS), BINS - 1)

    def predict_map(self, scores: Array, known: int, out: Array) -> int:
        """Set out[k] to the log-probability of each known class; return the most probable class.

        It is that of the rescaled scores. Classes that are not known yet keep their scores.
        """
        log = self.scratch.log
        for k in range(known):
            log[0, k] = scores[k]
            log[1, k] = self.slope[0] * scores[k] + self.bias[k]
        top = 0
        for k in range(1, known):
            top = k if log[1, k] > log[1, top] else top
        normalise_logs(log[0], known)
        normalise_logs(log[1], known)
        self.predict_bins(top, known)
        self.weigh_candidates()
        for k in range(scores.shape[0]):
            out[k] = self.mix_logs(k) if k < known else scores[k]
        return top

    def predict_bins(self, top: int, known: int) -> None:
        """Set the last candidate: the frequency of right predictions, and shares of the rest."""
        log, place = self.scratch.log, self.find_bin(top)
        chance = min(math.exp(log[1, top]), SUREST)
        right = self.right[top, place] + BIN_PRIOR * chance
        found = min(right / (self.past[top, place] + BIN_PRIOR), SUREST)
        rest = math.log(1 - found) - log_of_others(log[1], top, known)
        for k in range(known):
            log[2, k] = math.log(found) if k == top else log[1, k] + rest

    def weigh_candidates(self) -> None:
        """Set the weights of the candidates for the next row."""
        largest, total = -np.inf, 0.0
        for i in range(CANDIDATES):
            largest = max(largest, self.log_weight[i])
        for i in range(CANDIDATES):
            self.scratch.weight[i] = math.exp(self.log_weight[i] - largest)
            total += self.scratch.weight[i]
        share = SHARE / (self.rows[0] + FIRST)
        for i in range(CANDIDATES):
            own = self.scratch.weight[i] / total
            self.scratch.weight[i] = (1 - share) * own + share / CANDIDATES

    def mix_logs(self, k: int) -> float:
        """Return the log-probability of class k in the mixture."""
        largest, total = -np.inf, 0.0
        for i in range(CANDIDATES):
            largest = max(largest, self.scratch.log[i, k])
        for i in range(CANDIDATES):
            total += self.scratch.weight[i] * math.exp(self.scratch.log[i, k] - largest)
        return largest + math.log(total)

    def learn_map(self, scores: Array, known: int, label: int, weight: float, top: int) -> None:
        """Learn the label of the row that was predicted last.

        Weights are relative to the largest one so far: log-loss times more than 1 is not mixable.
        """
        self.rows[0] += 1
        self.rows[1] = max(self.rows[1], weight)
        part = weight / self.rows[1]
        for i in range(CANDIDATES):
            self.log_weight[i] = (
                math.log(self.scratch.weight[i]) + part * self.scratch.log[i, label]
            )
        place = self.find_bin(top)
        self.past[top, place] = FADE * self.past[top, place] + part
        self.right[top, place] = FADE * self.right[top, place] + part * (top == label)
        self.step_scale(scores, known, label, part)

    def step_scale(self, scores: Array, known: int, label: int, part: float) -> None:
        """Move the slope and the biases against the gradient of the log-loss."""
        mean = square = 0.0
        for k in range(known):
            chance = math.exp(self.scratch.log[1, k])
            mean += chance * scores[k]
            square += chance * scores[k] * scores[k]
            self.curvature[k] = FADE * self.curvature[k] + part * chance * (1 - chance)
            slope = part * (chance - (k == label))
            self.bias[k] -= slope / (self.curvature[k] + BIAS_PRIOR)
        self.slope[1] = FADE * self.slope[1] + part * max(square - mean * mean, 0.0)
        slope = max(min(mean - scores[label], LARGEST), -LARGEST)
        moved = self.slope[0] - part * slope / (self.slope[1] + SLOPE_PRIOR)
        self.slope[0] = max(min(moved, STEEPEST), FLATTEST)


@kernel
def normalise_logs(log: Array, known: int) -> None:
    """Subtract the logarithm of the sum of exponentials from the first numbers."""
    largest, total = -np.inf, 0.0
    for k in range(known):
        largest = max(largest, log[k])
    for k in range(known):
        total += math.exp(log[k] - largest)
    largest += math.log(total)
    for k in range(known):
        log[k] -= largest


@kernel
def log_of_others(log: Array, top: int, known: int) -> float:
    """Return the logarithm of the sum of all probabilities but the largest one.

    1 minus the largest one has few digits if it is almost 1.
    """
    largest, total = -np.inf, 0.0
    for k in range(known):
        largest = max(largest, log[k]) if k != top else largest
    if largest == -np.inf:
        return 0.0  # there are no others
    for k in range(known):
        if k != top:
            total += math.exp(log[k] - largest)
    return largest + math.log(total)


def new_map(classes: int) -> ProbabilityMap:
    """Return a map that has seen no row: the probabilities are those of the model."""
    return ProbabilityMap(
        slope=np.array([1.0, 0.0]),
        bias=np.zeros(classes),
        curvature=np.zeros(classes),
        right=np.zeros((classes, BINS)),
        past=np.zeros((classes, BINS)),
        log_weight=np.zeros(CANDIDATES),
        rows=np.zeros(2),
        scratch=MapScratch(np.zeros((CANDIDATES, classes)), np.zeros(CANDIDATES)),
    )


def grown_map(state: ProbabilityMap, classes: int) -> ProbabilityMap:
    """Return the map with room for more classes."""
    grown = new_map(classes)
    for name in ("slope", "bias", "curvature", "right", "past", "log_weight", "rows"):
        old = getattr(state, name)
        getattr(grown, name)[: len(old)] = old
    return grown


def predict_mapped(state: ProbabilityMap, scores: Array, out: Array) -> None:
    """Set out[t] to the log-probabilities of row t."""
    for t in range(scores.shape[0]):
        state.predict_map(scores[t], scores.shape[1], out[t])


def learn_mapped(
    state: ProbabilityMap,
    scores: Array,
    known: Array,
    classes: Array,
    weights: Array,
    out: Array,
) -> None:
    """Predict as `predict_mapped` does, and learn each row after its prediction.

    known: [rows] number of classes that the model knew. Rows of weight 0 are not learned.
    """
    for t in range(scores.shape[0]):
        top = state.predict_map(scores[t], known[t], out[t])
        if weights[t] > 0:
            state.learn_map(scores[t], known[t], classes[t], weights[t], top)
