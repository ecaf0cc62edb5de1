"""One row in the stage of recent rows (recent_stage.py), in arrays that are used again.

`RecentStage.predict` and `RecentStage.learn` do the same for blocks, with the same result. For one
row they would spend most of their time on creating arrays.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from spanboost.models.mixture import Units
from spanboost.models.mixture_row import MixtureRow
from spanboost.models.past_row import single_probability
from spanboost.models.recent_stage import (
    RecentStage,
    RecentState,
    correct_and_learn_rows,
    correct_rows,
    own_cells,
)
from spanboost.rows.encoder import EncodedBlock


class RecentRow:
    """The arrays of one row whose predictions are numbers.

    rows: the row as the experts read it; later rows are written into the same arrays.
    """

    def __init__(self, stage: RecentStage, rows: EncodedBlock) -> None:
        self.stage, self._block = stage, rows.encoded
        self._cells = own_cells(rows.encoded)
        self._own = stage.values(np.zeros(1))
        self._out = np.zeros((*self._own.shape, stage.K))
        self._mixed = MixtureRow(stage.mixture)
        self._label, self._weight, self._unit = np.zeros(1), np.ones(1), np.ones(1)
        self._given = self._state = stage.prepare(self._block, self._own)
        # the states for which there are calls: a state has other arrays once it has more room
        self._predicted: Any = None
        self._learned: Any = None
        self._predict: Callable[[], None]
        self._learn: Callable[[], None]

    def predict(self, forecast: float, units: Units) -> float:
        """Return the prediction, given that of the experts; learn nothing."""
        state = self._prepare(forecast)
        if state is not self._predicted:
            given: tuple[Any, ...] = state, self._cells, self._own, self._out
            self._predict = partial(self.stage.call.find(correct_rows, *given), *given)
            self._predicted = state
        self._predict()
        self._set_candidates(forecast)
        return self._mixed.combine(units)

    def learn(self, forecast: float, units: Units, y: float, known: float) -> float:
        """Learn the label of the row; return the prediction made before it was seen.

        y: in the units of the user; known: in those of the mixture.
        """
        self.stage.state = state = self._prepare(forecast)
        self._label[0] = (1 + known) / 2 if self.stage.binary else y
        self._unit[0] = 1.0 if self.stage.binary else units.half or 1.0
        if state is not self._learned:
            learned = self._own, self._label, self._weight, self._unit, self._out
            given: tuple[Any, ...] = state, self._cells, *learned
            self._learn = partial(self.stage.call.find(correct_and_learn_rows, *given), *given)
            self._learned = state
        self._learn()
        self._set_candidates(forecast)
        return self._mixed.learn(units, known)

    def _prepare(self, forecast: float) -> RecentState:
        """Set the forecast, and return the state with room for the row."""
        if self.stage.binary:
            chance = single_probability(forecast)
            self._own[0] = 1 - chance, chance
        else:
            self._own[0, 0] = forecast
        if self.stage.state is not self._given:
            self._given, self._state = self.stage.state, self.stage.prepare(self._block, self._own)
        return self._state

    def _set_candidates(self, forecast: float) -> None:
        """Set the forecasts of all candidates."""
        candidates = self._mixed.forecasts
        candidates[0] = forecast
        if self.stage.binary:
            candidates[1:] = self.stage.forecasts_of(self._out)[0]
        else:
            candidates[1] = self._out.item()
