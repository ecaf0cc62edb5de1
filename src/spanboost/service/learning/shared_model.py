"""A model that one thread teaches while another one predicts with it."""

import time
from collections.abc import Sequence
from typing import Any

from spanboost.compiling.arrays import Array
from spanboost.models.quantiles.asked_levels import End
from spanboost.service.learning.fair_lock import FairLock
from spanboost.service.learning.row_predictions import predict_rows, prediction_columns
from spanboost.service.request_rows import Row
from spanboost.service.storage.entry import Entry
from spanboost.service.storage.model_state import ModelState

BUSY_SECONDS, IDLE_SECONDS = 0.003, 0.05  # time to learn a block: with and without predictions
PATIENCE = 3  # predictions of large groups take long, and may wait this many times as long
MIN_BLOCK_ROWS = 64  # most models take much longer for smaller blocks


class SharedModel:
    """The lock of the model; every prediction uses the state between two blocks of rows."""

    def __init__(self, state: ModelState) -> None:
        self._state, self._lock = state, FairLock()
        self._row_seconds = 1e-4  # moving average of the time to learn a row
        self._prediction_seconds = 0.0  # moving average of the time to predict a group

    def note_prediction(self) -> None:
        """Record that a prediction was requested, so that learning uses small blocks."""
        self._lock.note_prediction()

    def predict(
        self, rows: Sequence[Row], ends: tuple[End, ...] = ()
    ) -> tuple[dict[str, list[Any]], Array | None]:
        """Return the columns of the predictions, and the past of the rows, as in `Forecasts`.

        DataError names the first row at fault.

        ends: of intervals, which are returned too; NoIntervalsError if the model has none.
        """
        model = self._state.model
        with self._lock:
            began = time.perf_counter()
            predictions, past = predict_rows(model, rows, ends)
            columns = prediction_columns(model, predictions, ends)
            seconds = time.perf_counter() - began
            self._prediction_seconds += 0.2 * (seconds - self._prediction_seconds)
        return columns, past

    def learn(self, entry: Entry) -> None:
        """Learn an entry in blocks that are small while predictions are requested."""
        first, rows = 0, len(entry.rows)
        if not rows:  # it has only positions, or a repair has emptied it
            self._state.learn(entry, 0, 0)
        while first < rows:
            busy = min(max(BUSY_SECONDS, PATIENCE * self._prediction_seconds), IDLE_SECONDS)
            seconds = IDLE_SECONDS if self._lock.idle else busy
            last = first + max(int(seconds / self._row_seconds), MIN_BLOCK_ROWS)
            last = rows if rows - last < MIN_BLOCK_ROWS else last  # leave no small block
            began = time.perf_counter()
            with self._lock:
                losses = self._state.learn(entry, first, last)
            self._state.learn_challenger(entry, first, last, losses)  # predictions need not wait
            row_seconds = (time.perf_counter() - began) / (last - first)
            self._row_seconds += 0.2 * (row_seconds - self._row_seconds)
            first = last
