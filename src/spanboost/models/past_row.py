"""One row in the last stage of AutoBoost (past_stage.py), in arrays that are used again.

`PastStage.predict` and `PastStage.learn` do the same for blocks, with the same result. For one row
they would spend most of their time on creating arrays.
"""

from math import isnan
from typing import TYPE_CHECKING, Any

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import Caller
from spanboost.core.loop import predict
from spanboost.models.mixture import Units
from spanboost.models.sleeping import add_corrections
from spanboost.rows.block import prepend_columns
from spanboost.rows.encoder import EncodedBlock, NumberedBlock
from spanboost.rows.past_labels import LAGS, LEVELS, learn_past, read_past

if TYPE_CHECKING:
    from spanboost.models.past_stage import PastStage

LARGEST = 1e38  # of float32, roughly
SLOW, MEAN = LEVELS - 1, LAGS + 3  # places of past values
SURE = 0.02  # the smallest probability that a past label stands for
_TREES = 2  # the place of the trees among the corrections


class PastRow:
    """The arrays of one row, and the calls that predict and learn it.

    rows: the row as the experts read it; later rows are written into the same arrays.
    """

    def __init__(self, stage: "PastStage", rows: EncodedBlock) -> None:
        self.stage, self._call = stage, Caller()
        columns = stage.state.columns
        self._past, self._key = np.zeros((1, columns)), np.zeros(1, np.int64)
        self._context = np.zeros(1 + columns)
        context = np.zeros((1, 1 + columns), np.float32)
        alone, together = prepend_columns(context), prepend_columns(context, rows.encoded)
        self._own, self._wide = rows.encoded.X, together.X[:, 1 + columns :]
        self._columns = alone.X[0], together.X[0, : 1 + columns]
        self._outs = np.zeros((3, 1, 1), np.float32)
        self._parts = []
        for core, block, out in zip(
            stage.cores, (alone, together, together), self._outs, strict=True
        ):
            read = core.encoder.read(NumberedBlock(block, 1, False, {}))
            core.prepare(read, 0)
            self._parts.append((core, read, out))
        self._accepted = False
        self._target, self._weight = np.zeros((1, 1), np.float32), np.ones(1, np.float32)
        self._corrections = np.zeros((3, 1))  # the target, and two predictions of it
        self._label = np.zeros((3, 1))  # the label, its error and its weight
        self._label[2], self._unknown = 1, np.zeros(1, bool)
        self._candidates, self._known = np.zeros((1, 1, stage.mixture.K)), np.zeros((1, 1))

    def predict(self, forecast: float, units: Units, key: int) -> float:
        """Return the prediction, given that of the experts; learn nothing."""
        self._key[0] = key
        self._call(read_past, self.stage.state, self._key, self._past)
        self._set_columns(forecast)
        for core, block, out in self._active_parts(forecast):
            core.call(predict, core.state, block.rows, out, 0, 1)
        self._set_candidates(forecast, units)
        return self.stage.mixture.combine_one(units, self._candidates)

    def learn(self, forecast: float, units: Units, key: int, y: float, known: float) -> float:
        """Learn the label of the row; return the prediction made before it was seen.

        y: in the units of the user; known: in those of the mixture.
        """
        stage, error, target, neutral = self.stage, y - forecast, known, 0.0
        if stage.direct:
            y, neutral = known, forecast
            error = (1 + known) / 2 - to_probability(np.array([forecast])).item()
        else:
            half = units.half if units.half > 0 else 1.0
            target -= (forecast - np.reshape(units.centre, -1).item(0)) / half
            target = min(max(target, -1.0), 1.0)
        self._key[0], self._label[0, 0], self._label[1, 0] = key, y, error
        self._call(learn_past, stage.state, self._key, *self._label, self._unknown, self._past)
        self._set_columns(forecast)
        self._target[0, 0] = target
        if not self._accepted:
            for core, block, _ in self._parts:
                core.accept(block)
            self._accepted = True
        for core, block, out in self._active_parts(forecast):
            core.learn_rows(block.rows, self._target, self._weight, out, 0, 1)
        self._set_candidates(forecast, units)
        outs = [self._outs.item(1) - neutral, self._outs.item(_TREES) - neutral]
        self._corrections[:, 0] = error if stage.direct else target, *outs
        self._call(add_corrections, stage.sleep, *self._corrections, self._label[2], 0, 1)
        self._known[0, 0] = known
        return stage.mixture.learn_one(units, self._candidates, self._known)

    def _set_columns(self, forecast: float) -> None:
        """Set the columns that the corrections read."""
        context, past, levels = self._context, self._past[0], self.stage.state.levels
        context[1:] = past
        context[0] = forecast
        if not self.stage.direct:
            context[0] -= past[SLOW]
            context[1 : 1 + levels] -= forecast
        np.minimum(np.maximum(context, -LARGEST, out=context), LARGEST, out=context)
        self._columns[0][:] = context
        self._columns[1][:] = context
        self._wide[...] = self._own

    def _active_parts(self, forecast: float) -> list[Any]:
        """Return the corrections that are not asleep, with their blocks and predictions."""
        if self.stage.sleep.awake:
            return self._parts
        self._outs[_TREES] = forecast if self.stage.direct else 0  # which corrects nothing
        return self._parts[:_TREES]

    def _set_candidates(self, forecast: float, units: Units) -> None:
        """Set the forecasts of all candidates, in the order of their names."""
        past, half = self._past[0].tolist(), float(units.half)
        last, season = past[0], past[LAGS]
        levels = [last, last if isnan(season) else season, past[MEAN], past[MEAN + 1]]
        if self.stage.key is not None:
            levels += past[LEVELS], past[LEVELS + LAGS]
        corrected = self._outs[:, 0, 0].tolist()
        if self.stage.direct:
            levels = to_log_odds(np.array(levels)).tolist()
        else:
            corrected = [forecast + half * out for out in corrected]
        levels = [forecast if isnan(level) else level for level in levels]
        self._candidates[0, 0] = [forecast, *levels, *corrected]


def to_probability(score: Array) -> Array:
    """Return the probabilities of log-odds."""
    chance: Array = 1 / (1 + np.exp(-np.clip(score, -500, 500)))
    return chance


def to_log_odds(labels: Array) -> Array:
    """Return the log-odds that past labels, or means of them, stand for."""
    chance = np.clip((1 + labels) / 2, SURE, 1 - SURE)
    odds: Array = np.log(chance / (1 - chance))
    return odds
