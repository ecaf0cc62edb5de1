"""What the labels learned so far say about the next one: lags, a season, means, and those of a key.

The state is a fixed number of arrays, whatever the length of the stream. A row of past values has
two parts. The first are *levels*, in the units of labels: the last three labels, the label one
season ago with its neighbours, and decayed means. The others are the last errors of a forecast, in
the same units but around 0, and for a key the number of rows since its last one. A value that is
not known yet is NaN.

The season is the lag, from 4 to 400 labels, with the smallest mean squared distance between labels
that far apart, among lags that are better than their neighbours. A mean of m squares is increased
by three standard deviations, each a share of sqrt(2 / m), and a longer lag must be better by 2 %.
The season follows the last thousand labels.
"""

from typing import NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel
from spanboost.rows.past_keys import KeyTable, new_key_table

REACH = 400  # labels that are remembered
FIRST_SEASON = 4
LAGS = 3
RATES = (0.3, 0.05, 0.01)  # of the decayed means of labels; those of errors have the first two
ERROR_RATES = 2
LEVELS = LAGS + 3 + len(RATES)
ERRORS = LAGS + ERROR_RATES + 1
KEY_LEVELS, KEY_OTHERS = LAGS + 2, 3
_FADE = 0.999  # how fast distances between labels are forgotten
_FARTHEST = 1e150  # whose square is finite
_CLEARLY = 0.98  # a longer season must be better by this factor
_FEW = 20  # a lag with fewer labels is not a season


@kernel
class PastLabels(NamedTuple):
    """The labels and errors that were learned last, and means of all of them."""

    labels: Array  # [2 REACH] the last labels, twice in a row, so that lags are contiguous
    errors: Array  # [2 REACH] label minus forecast
    seen: Array  # [1] labels learned
    season: Array  # [1] length of the season in labels; 0 if no season was found
    means: Array  # [5, 2] decayed sums and weights: of labels, then of errors
    distances: Array  # [REACH] decayed sums of squared distances between labels, by lag
    masses: Array  # [REACH] weights of these sums
    keys: KeyTable

    def read_row(self, key: int, out: Array) -> None:
        """Write what is known about the next label to out[columns]."""
        season, levels = self.season[0], LEVELS
        for i in range(LAGS):
            out[i] = self.lag(self.labels, i + 1)
        out[LAGS] = self.lag(self.labels, season)
        out[LAGS + 1] = self.lag(self.labels, season - 1)
        out[LAGS + 2] = self.lag(self.labels, 2 * season)
        for r in range(len(RATES)):
            out[LAGS + 3 + r] = self.past_mean(r)
        if self.keys.ident.shape[0] > 0:
            self.keys.read_key(key, self.seen[0], out, LEVELS, LEVELS + KEY_LEVELS + ERRORS)
            levels += KEY_LEVELS
        for i in range(LAGS):
            out[levels + i] = self.lag(self.errors, i + 1)
        for r in range(ERROR_RATES):
            out[levels + LAGS + r] = self.past_mean(len(RATES) + r)
        out[levels + LAGS + ERROR_RATES] = self.lag(self.errors, season)

    def lag(self, ring: Array, lag: int) -> float:
        """Return the value that was learned `lag` labels ago; NaN if there is none."""
        count = self.seen[0]
        if lag < 1 or lag > min(count, REACH):
            return np.nan
        return ring[count % REACH + REACH - lag]

    def past_mean(self, r: int) -> float:
        """Return a decayed mean; NaN before the first label."""
        return self.means[r, 0] / self.means[r, 1] if self.means[r, 1] > 0 else np.nan

    def learn_past_label(self, label: float, error: float, key: int) -> None:
        """Add the label of a row, and the error of its forecast."""
        count = self.seen[0]
        place = count % REACH
        self.compare_lags(label, place + REACH, min(count, REACH - 1))
        for r in range(len(RATES)):
            self.add_to_mean(r, RATES[r], label)
        for r in range(ERROR_RATES):
            self.add_to_mean(len(RATES) + r, RATES[r], error)
        self.labels[place] = self.labels[place + REACH] = label
        self.errors[place] = self.errors[place + REACH] = error
        self.seen[0] += 1
        if self.keys.ident.shape[0] > 0:
            self.keys.learn_key(key, self.seen[0], label, error)
        if self.seen[0] < REACH or self.seen[0] % 16 == 0:
            self.find_season()

    def add_to_mean(self, r: int, rate: float, value: float) -> None:
        """Add a value to a decayed mean."""
        self.means[r, 0] = (1 - rate) * self.means[r, 0] + rate * value
        self.means[r, 1] = (1 - rate) * self.means[r, 1] + rate

    def compare_lags(self, label: float, end: int, known: int) -> None:
        """Add the distances between a label and the labels before it."""
        for lag in range(1, known + 1):
            distance = min(abs(label - self.labels[end - lag]), _FARTHEST)
            self.distances[lag] = _FADE * self.distances[lag] + distance * distance
            self.masses[lag] = _FADE * self.masses[lag] + 1

    def find_season(self) -> None:
        """Set the season."""
        best, season = np.inf, 0
        for lag in range(FIRST_SEASON, REACH - 1):
            if self.masses[lag + 1] < _FEW:
                break
            here = self.distances[lag] / self.masses[lag]
            before = self.distances[lag - 1] / self.masses[lag - 1]
            after = self.distances[lag + 1] / self.masses[lag + 1]
            doubtful = here * (1 + 3 * np.sqrt(2 / self.masses[lag]))
            if doubtful < _CLEARLY * best and here <= before and here <= after:
                best, season = doubtful, lag
        self.season[0] = season

    @property
    def levels(self) -> int:
        """The number of past values that are levels."""
        return LEVELS + (KEY_LEVELS if len(self.keys.ident) else 0)

    @property
    def columns(self) -> int:
        """The number of past values."""
        return self.levels + ERRORS + (KEY_OTHERS if len(self.keys.ident) else 0)

    @property
    def sound(self) -> bool:
        """Whether counts and indices are valid."""
        return bool(self.seen[0] >= 0 and 0 <= self.season[0] < REACH) and self.keys.sound


def new_past_labels(keyed: bool = False) -> PastLabels:
    """Return a state without labels; `keyed`: whether rows have keys."""
    return PastLabels(
        labels=np.zeros(2 * REACH),
        errors=np.zeros(2 * REACH),
        seen=np.zeros(1, np.int64),
        season=np.zeros(1, np.int64),
        means=np.zeros((len(RATES) + ERROR_RATES, 2)),
        distances=np.zeros(REACH),
        masses=np.zeros(REACH),
        keys=new_key_table(keyed),
    )


def read_past(state: PastLabels, keys: Array, out: Array) -> None:
    """Write what is known now about the label of each row t to out[t]."""
    for t in range(out.shape[0]):
        state.read_row(keys[t], out[t])


def learn_past(
    state: PastLabels,
    keys: Array,
    labels: Array,
    errors: Array,
    weights: Array,
    given: Array,
    out: Array,
) -> None:
    """Like `read_past`, but learn each label after its row is written.

    given: [rows] whether out[t] already has what was known when the row was predicted.
    """
    for t in range(out.shape[0]):
        if not given[t]:
            state.read_row(keys[t], out[t])
        if weights[t] > 0:
            state.learn_past_label(labels[t], errors[t], keys[t])
