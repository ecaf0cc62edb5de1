"""One row in the last stage of AutoBoost (past_stage.py), in arrays that are used again.

`PastStage.predict` and `PastStage.learn` do the same for blocks, with the same result. For one row
they would spend most of their time on creating arrays.
"""

from functools import partial
from typing import TYPE_CHECKING, cast

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel
from spanboost.models.core_row import CoreRow
from spanboost.models.mixture import Units
from spanboost.models.mixture_row import MixtureRow
from spanboost.models.sleeping import add_corrections
from spanboost.rows.block import Block, prepend_columns
from spanboost.rows.encoder import EncodedBlock, NumberedBlock
from spanboost.rows.past_labels import LAGS, LEVELS, PastLabels

if TYPE_CHECKING:
    from spanboost.models.past_stage import PastStage

LARGEST = 1e38  # of float32, roughly
SLOW, MEAN = LEVELS - 1, LAGS + 3  # places of past values
SETTLED = 8  # labels before corrections learn: forecasts before them start at 0, far from labels
SURE = 0.02  # the smallest probability that a past label stands for
_TREES = 2  # the place of the trees among the corrections


class PastRow:
    """The arrays of one row, and the calls that predict and learn it.

    rows: the row as the experts read it; later rows are written into the same arrays.
    """

    def __init__(self, stage: "PastStage", rows: EncodedBlock) -> None:
        self.stage = stage
        context = np.zeros((1, 1 + stage.state.columns), np.float32)
        alone, together = prepend_columns(context), prepend_columns(context, rows.encoded)
        self._outs = np.zeros((3, 1, 1), np.float32)
        self._target, weight = np.zeros((1, 1), np.float32), np.ones(1, np.float32)
        self._parts = []
        for core, block, out in zip(
            stage.cores, (alone, together, together), self._outs, strict=True
        ):
            read = core.encoder.read(NumberedBlock(block, 1, False, {}))
            self._parts.append(CoreRow(core, read, self._target, weight, out))
        self._accepted = False
        self._mixed = MixtureRow(stage.mixture)
        self._corrections = np.zeros((3, 1))  # the target, and two predictions of it
        self._bind(rows.encoded, alone, together)

    def _bind(self, own: Block, alone: Block, together: Block) -> None:
        """Create the calls of compiled functions with the arrays of the row."""
        stage, find = self.stage, self.stage.call.find
        past = np.zeros(stage.state.columns)
        arrays = past, own.X[0], alone.X[0], together.X[0], own.indices, together.indices
        columns = stage.state, *arrays, stage.state.levels, stage.direct
        self._read = partial(find(read_columns, *columns, 0, 0.0, False, 0.0, 0.0), *columns)
        candidates = past, self._outs, self._mixed.forecasts, stage.key is not None, stage.direct
        self._write = partial(find(write_candidates, *candidates, 0.0, 0.0), *candidates)
        judged = stage.sleep, *self._corrections, np.ones(1), 0, 1
        self._judge = partial(find(add_corrections, *judged), *judged)

    def predict(self, forecast: float, units: Units, key: int) -> float:
        """Return the prediction, given that of the experts; learn nothing."""
        self._read(key, forecast, False, 0.0, 0.0)
        for part in self._active_parts(forecast):
            part.predict()
        self._set_candidates(forecast, units)
        return self._mixed.combine(units)

    def learn(self, forecast: float, units: Units, key: int, y: float, known: float) -> float:
        """Learn the label of the row; return the prediction made before it was seen.

        y: in the units of the user; known: in those of the mixture.
        """
        stage, error, target, neutral = self.stage, y - forecast, known, 0.0
        if stage.direct:
            y, neutral = known, forecast
            error = (1 + known) / 2 - single_probability(forecast)
        else:
            half = units.half if units.half > 0 else 1.0
            target -= (forecast - cast("float", units.centre)) / half
            target = min(max(target, -1.0), 1.0)
        self._read(key, forecast, True, y, error)
        self._target[0, 0] = target
        if not self._accepted:
            for part in self._parts:
                part.accept()
            self._accepted = True
        learns = stage.state.seen.item() > SETTLED  # it counts this label, too
        for part in self._active_parts(forecast):
            (part.learn if learns else part.predict)()
        self._set_candidates(forecast, units)
        outs = [self._outs.item(1) - neutral, self._outs.item(_TREES) - neutral]
        self._corrections[:, 0] = error if stage.direct else target, *outs
        self._judge()
        return self._mixed.learn(units, known)

    def _active_parts(self, forecast: float) -> list[CoreRow]:
        """Return the corrections that are not asleep."""
        if self.stage.sleep.awake:
            return self._parts
        self._outs[_TREES] = forecast if self.stage.direct else 0  # which corrects nothing
        return self._parts[:_TREES]

    def _set_candidates(self, forecast: float, units: Units) -> None:
        """Set the forecasts of all candidates, in the order of their names."""
        self._write(forecast, float(units.half))
        if self.stage.direct:
            levels = self._mixed.forecasts[1:-3]
            levels[:] = to_log_odds(levels)
            levels[np.isnan(levels)] = forecast


def read_columns(
    state: PastLabels,
    past: Array,
    own: Array,
    alone: Array,
    together: Array,
    entries: Array,
    moved: Array,
    levels: int,
    direct: bool,
    key: int,
    forecast: float,
    learns: bool,
    label: float,
    error: float,
) -> None:
    """Set `past`, and the columns that the corrections read, as `PastStage` does for blocks.

    own: the row; alone: the columns of the past; together: the same and those of the row.
    entries: the columns of the entries of a sparse row; moved: where they are in `together`.
    learns: whether to learn the label of the row, and the error of its forecast.
    """
    state.read_row(key, past)
    if learns:
        state.learn_past_label(label, error, key)
    columns = past.shape[0]
    alone[0] = bounded(forecast - (0.0 if direct else past[SLOW]))
    for i in range(columns):
        relative = i < levels and not direct
        alone[1 + i] = bounded(past[i] - (forecast if relative else 0.0))
    for i in range(1 + columns):
        together[i] = alone[i]
    for j in range(own.shape[0]):
        together[1 + columns + j] = own[j]
    for e in range(entries.shape[0]):
        moved[e] = 1 + columns + entries[e]


@kernel
def bounded(value: float) -> float:
    """Return the nearest number that is finite in float32; NaN stays NaN."""
    if value > LARGEST:
        return LARGEST
    return -LARGEST if value < -LARGEST else value


def write_candidates(
    past: Array,
    outs: Array,
    candidates: Array,
    keyed: bool,
    direct: bool,
    forecast: float,
    half: float,
) -> None:
    """Set the candidates of a row: its forecast, past labels, and the corrected forecasts.

    direct: past labels stay as they are, and corrections predict the label themselves.
    """
    candidates[0] = forecast
    candidates[1] = past[0]
    candidates[2] = past[0] if np.isnan(past[LAGS]) else past[LAGS]
    candidates[3], candidates[4] = past[MEAN], past[MEAN + 1]
    number = 5
    if keyed:
        candidates[5], candidates[6] = past[LEVELS], past[LEVELS + LAGS]
        number = 7
    for i in range(1, number):
        if np.isnan(candidates[i]) and not direct:
            candidates[i] = forecast
    for j in range(outs.shape[0]):
        out = np.float64(outs[j, 0, 0])
        candidates[number + j] = out if direct else forecast + half * out


def to_probability(score: Array) -> Array:
    """Return the probabilities of log-odds."""
    chance: Array = 1 / (1 + np.exp(-np.clip(score, -500, 500)))
    return chance


def single_probability(score: float) -> float:
    """Return what `to_probability` returns for one score, in less time."""
    return 1 / (1 + float(np.exp(-min(max(score, -500.0), 500.0))))


def to_log_odds(labels: Array) -> Array:
    """Return the log-odds that past labels, or means of them, stand for."""
    chance = np.minimum(np.maximum((1 + labels) / 2, SURE), 1 - SURE)  # sooner than np.clip
    odds: Array = np.log(chance / (1 - chance))
    return odds
