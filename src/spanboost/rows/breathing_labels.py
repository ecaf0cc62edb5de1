"""Label ranges that follow the labels: `label_range="auto"` and `"auto-zero"`."""

from typing import Any

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import Caller
from spanboost.errors import LabelWarning, warn_caller
from spanboost.rows.label_history import (
    CHUNK,
    CLIPPED,
    COMPLETE,
    FILLED,
    GATE,
    LARGEST,
    LEARNED,
    RENEWED,
    SHRUNK,
    UNITS,
    WIDENED,
    LabelHistory,
    follow_labels,
    new_changes,
    new_history,
)
from spanboost.rows.labels import LabelHealth, LabelPlan, RangeChange, UnboundedLabels, show_label

_call = Caller()  # one for all: the types of the arguments are always the same


class BreathingLabels(UnboundedLabels):
    """Labels of any size: the range widens, shrinks and moves with them (label_history.py).

    A single label has little influence on the range. A label far outside the recent labels is
    learned as if it were at their end. The range of "auto-zero" stays around 0. For vectors, the
    rule is applied to their distances from the first label, or from 0.
    """

    history: LabelHistory

    def __init__(self, loss: Any, d: int, label_range: str) -> None:
        super().__init__(loss, d, label_range)
        self.history = new_history(moves=self.around_first and d == 1, vectors=d > 1)

    def plan(self, y: Any, weights: Array) -> LabelPlan:
        """Return the labels to learn, and where the range changes."""
        given, rounds = self._bounded(y, len(weights)), weights > 0
        changes = self._centre_on_first(given, rounds)
        centre = changes[-1].centre if changes else self.centre
        offsets = given - centre
        values = given[:, 0].copy() if self.d == 1 else np.hypot.reduce(np.abs(offsets), axis=1)
        distances = values.copy()
        history = _copy(self.history)
        changes += self._follow(history, values, rounds, centre)
        learned, clipped = given, np.flatnonzero(values != distances)
        if len(clipped):
            learned = given.copy()
            learned[clipped, 0] = values[clipped]
            if self.d > 1:
                parts = values[clipped] / distances[clipped]
                learned[clipped] = centre + offsets[clipped] * parts[:, None]
            self._warn_clipped(given, learned, clipped[0])
        self._warn_units(changes, history)
        return LabelPlan(self._to_model(learned, rounds, changes), learned, changes, history)

    def single(self, y: Any) -> float | None:
        """Return one number in the model's units; None if it needs the checks of `plan`."""
        counts = self.history.counts
        if self.d > 1 or counts.item(COMPLETE) == 0 or counts.item(FILLED) == CHUNK - 1:
            return None
        if not isinstance(y, int | float) or not abs(y) < LARGEST:
            return None
        label, (low, high) = float(y), self.history.recent.tolist()
        reach, offset = GATE * (high - low), label - self.centre.item()
        accepted = reach > 0 and low - reach <= label <= high + reach
        return offset / self.half if accepted and abs(offset) <= self.half else None

    def count_single(self, y: float) -> None:
        """Count a row that is learned with the label that `single` returned for y."""
        super().count_single(y)
        history = self.history
        filled = history.counts.item(FILLED)
        history.chunk[filled] = y
        history.counts[FILLED] = filled + 1
        history.counts[LEARNED] += 1
        if y < history.recent.item(0):
            history.recent[0] = y
        elif y > history.recent.item(1):
            history.recent[1] = y

    def count(self, rows: int, learned: int, after: LabelHistory | None) -> None:
        """Add to the counts of rows, and set the history to the one after these rows."""
        super().count(rows, learned, after)
        if after is not None:
            self.history = _copy(after)

    @property
    def changes_of_units(self) -> int:
        """How often the labels had new units."""
        return int(self.history.counts[RENEWED])

    @property
    def health(self) -> LabelHealth:
        """Facts about the labels so far."""
        counts = self.history.counts
        return LabelHealth(
            learned=self.seen,
            clipped=counts.item(CLIPPED),
            widened=counts.item(WIDENED) or None,
            shrunk=counts.item(SHRUNK) or None,
            new_units=counts.item(UNITS) or None,
        )

    def _follow(
        self, history: LabelHistory, values: Array, rounds: Array, centre: Array
    ) -> list[RangeChange]:
        """Apply the rule to a block of numbers; wild ones become what is learned."""
        start = centre.item() if self.d == 1 else 0.0
        frame, found = np.array([start, self.half]), list[RangeChange]()
        changes = new_changes()
        while changes.done[0] < len(values):
            changes.done[1] = 0
            _call(follow_labels, history, frame, values, rounds, changes)
            for k in range(changes.done[1]):
                new_centre, half = changes.frame[k].tolist()
                at = np.array([new_centre]) if self.d == 1 else centre
                row, exact = int(changes.row[k]), bool(changes.exact[k])
                found.append(RangeChange(row, at, half, exact))
        return found

    def _to_model(self, learned: Array, rounds: Array, changes: list[RangeChange]) -> Array:
        """Return labels in the model's units; 0 for rows that are not learned."""
        labels, first = np.zeros_like(learned), 0
        frame = RangeChange(0, self.centre, self.half, True)
        for new in [*changes, frame._replace(row=len(learned))]:
            part = slice(first, new.row)
            # a range of width 0 contains only its centre
            labels[part] = (learned[part] - frame.centre) / (frame.half or 1.0)
            first, frame = new.row, new
        labels[~rounds] = 0.0
        return labels

    def _warn_clipped(self, given: Array, learned: Array, row: int) -> None:
        """Warn about the first label that is not learned as it is.

        Nothing has been learned yet, so turning the warning into an error loses nothing.
        """
        if self.warned:
            return
        warn_caller(
            f"row {self.rows + row}: the label {show_label(given[row])} is far outside the range "
            f"of recent labels, so it is learned as if it were {show_label(learned[row])}. If such "
            "labels are correct, use label_range='growing' or label_range=(low, high)",
            LabelWarning,
        )
        self.warned = True

    def _warn_units(self, changes: list[RangeChange], after: LabelHistory) -> None:
        """Warn about the first change of the labels' units."""
        if self.changes_of_units or not after.counts[RENEWED]:
            return
        new = next(change for change in changes if not change.exact)
        low, high = show_label(new.centre - new.half), show_label(new.centre + new.half)
        warn_caller(
            f"row {self.rows + new.row}: the labels seem to have new units, so the label range is "
            f"now from {low} to {high}, and predictions are converted to the new units. If the "
            "units are the same, use label_range='growing' or label_range=(low, high)",
            LabelWarning,
        )


def _copy(history: LabelHistory) -> LabelHistory:
    return LabelHistory._make(x.copy() if isinstance(x, np.ndarray) else x for x in history)
