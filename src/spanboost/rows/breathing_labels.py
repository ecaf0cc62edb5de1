"""Label ranges that follow the labels: `label_range="auto"` and `"auto-zero"`."""

import math
from typing import Any

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import Caller
from spanboost.errors import LabelWarning, warn_caller
from spanboost.rows.label_ends import LabelEnds, ends_of
from spanboost.rows.label_history import (
    CHUNK,
    CHUNKS,
    CLIPPED,
    COMPLETE,
    FILLED,
    GATE,
    LARGEST,
    LEARNED,
    MOST,
    NARROWEST,
    RENEWED,
    SHRUNK,
    UNITS,
    VARIED,
    WIDENED,
    LabelHistory,
    follow_labels,
)
from spanboost.rows.label_values import show_label
from spanboost.rows.labels import LabelHealth, LabelPlan, Labels, RangeChange, UnboundedLabels
from spanboost.rows.odd_labels import oddness
from spanboost.rows.range_changes import new_changes

NUMBER = (int, float)
_call = Caller()  # one for all: the types of the arguments are always the same


class BreathingLabels(UnboundedLabels):
    """Labels of any size: the range widens, shrinks and moves with them (label_history.py).

    A single label has little influence on the range. A label far outside the recent labels is
    learned as if it were at their end. The range of "auto-zero" stays around 0. For vectors, the
    rule is applied to their distances from the first label, or from 0.
    """

    def __init__(self, loss: Any, d: int, label_range: str) -> None:
        super().__init__(loss, d, label_range)
        moves = self.around_first and d == 1
        self._history = new_history(moves, vectors=d > 1, ratios=self.log_link)
        self._fast = _FastPath()
        self.warned_of_units = False  # whether a change of units was reported since it was loaded
        self._after_chunk = self._history  # after the chunk that the next single label ends

    @property
    def history(self) -> LabelHistory:
        """The history of the labels so far."""
        self._fast.add_to(self._history)
        return self._history

    @history.setter
    def history(self, history: LabelHistory) -> None:
        self._history = history
        self._fast = _FastPath() if self.d > 1 else _FastPath(history)

    @property
    def followed(self) -> float:
        """The half-width of the range that the history follows."""
        return self.half

    def plan(self, y: Any, weights: Array) -> LabelPlan:
        """Return the labels to learn, and where the range changes."""
        given, rounds = self._bounded(y, len(weights)), weights > 0
        changes = self._centre_on_first(given, rounds)
        centre = changes[-1].centre if changes else self.centre
        offsets = given - centre
        values = given[:, 0].copy() if self.d == 1 else np.hypot.reduce(np.abs(offsets), axis=1)
        history, distances = copy_history(self.history), values.copy()
        changes += self._follow(history, values, rounds, centre)
        learned, clipped = given, np.flatnonzero(values != distances)
        if len(clipped):
            learned = given.copy()
            learned[clipped, 0] = values[clipped]
            if self.d > 1:
                parts = values[clipped] / distances[clipped]
                learned[clipped] = centre + offsets[clipped] * parts[:, None]
            self._warn_clipped(given, learned, clipped, changes)
        self._warn_units(changes, given, rounds)
        labels, ends = self._to_model(learned, rounds, changes), ends_of(given, rounds)
        return LabelPlan(labels, learned, changes, history, ends)

    def single(self, y: Any) -> float | None:
        """Return one number in the model's units; None if it needs the checks of `plan`."""
        if not isinstance(y, NUMBER) or not self._fast.accepts(y):
            return None
        offset = float(y) - self.centre.item()
        if abs(offset) > self.half or not (self._fast.room or self._ends_chunk(float(y))):
            return None
        return offset / self.half

    def count_single(self, y: float) -> None:
        """Count a row that is learned with the label that `single` returned for y."""
        super().count_single(y)
        if self._fast.room:
            self._fast.add(float(y))
        else:
            self.history = self._after_chunk

    def count_as(self, others: Labels) -> None:
        """Count the row that other labels, which were equal to these, have just counted."""
        super().count_as(others)
        if isinstance(others, BreathingLabels):
            # shared until the next block: the history is the same, and is kept once
            self._history, self._fast = others._history, others._fast

    def count(self, weights: Array, after: Any, ends: LabelEnds | None) -> None:
        """Count rows, and set the history to the one after these rows."""
        super().count(weights, after, ends)
        if after is not None:
            self.history = copy_history(after)

    @property
    def changes_of_units(self) -> int:
        """How often the labels had new units."""
        return int(self._history.counts[RENEWED])

    @property
    def health(self) -> LabelHealth:
        """Facts about the labels so far."""
        counts = self._history.counts  # other threads may read them
        return LabelHealth(
            learned=self.seen,
            clipped=counts.item(CLIPPED),
            widened=counts.item(WIDENED) or None,
            shrunk=counts.item(SHRUNK) or None,
            new_units=counts.item(UNITS) or None,
            unchecked=0 if counts.item(COMPLETE) else self.seen,
        )

    def _ends_chunk(self, y: float) -> bool:
        """Return whether this label ends a chunk without any change; then keep the history."""
        history, values = copy_history(self.history), np.array([y])
        if self._follow(history, values, np.ones(1, bool), self.centre) or values[0] != y:
            return False
        self._after_chunk = history
        return True

    def _follow(
        self, history: LabelHistory, values: Array, rounds: Array, centre: Array
    ) -> list[RangeChange]:
        """Apply the rule to a block of numbers; wild ones become what is learned."""
        start = centre.item() if self.d == 1 else 0.0
        frame, found = np.array([start, self.followed]), list[RangeChange]()
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

    def _warn_clipped(
        self, given: Array, learned: Array, clipped: Array, changes: list[RangeChange]
    ) -> None:
        """Warn about the first label that is not learned as it is.

        A row that changes the units may be clipped to them, but `_warn_units` warns of that.
        Nothing has been learned yet, so turning the warning into an error loses only this block.
        """
        moved = {new.row for new in changes if not new.exact}
        row = next((row for row in clipped.tolist() if row not in moved), None)
        if self.warned or row is None:
            return
        self.warned = True
        what = (
            f"the label {show_label(given[row])} is far outside the range "
            f"of recent labels, so it is learned as if it were {show_label(learned[row])}. If such "
            "labels are correct, use label_range='growing' or label_range=(low, high)"
        )
        warn_caller(LabelWarning(self.rows + row, what))

    def _farthest(self, given: Array, rounds: Array, new: RangeChange) -> str:
        """Return a phrase with the farthest of the first labels; the last one changes the range.

        The history of vectors has only distances, so the phrase is empty.
        """
        if self.d > 1:
            return ""
        last = new.row + 1
        known = self.history.chunk[: self.history.counts[FILLED]]
        labels = np.append(known, given[:last][rounds[:last], 0])
        place = np.abs(labels - new.centre).argmax()
        return f" (label {place + 1} is {show_label(labels[place : place + 1])})"

    def _warn_units(self, changes: list[RangeChange], given: Array, rounds: Array) -> None:
        """Warn about the first change of the labels' units, and about absurd first labels."""
        for new in changes:
            known = self.seen + np.count_nonzero(rounds[: new.row + 1])
            if new.exact or new.half == NARROWEST or (known > CHUNK and self.warned_of_units):
                continue
            low, high = show_label(new.centre - new.half), show_label(new.centre + new.half)
            if known > CHUNK:
                self.warned_of_units = True
                what = (
                    f"the labels seem to have new units, so the label range is now from {low} to "
                    f"{high}, and predictions are converted to the new units. If the units are "
                    "the same, use "
                )
            else:
                what = (
                    f"a few of the first {CHUNK} labels are far outside the range of the others"
                    f"{self._farthest(given, rounds, new)}, so the label range is now from {low} "
                    f"to {high}. If all labels are correct, use "
                )
            what += "label_range='growing' or label_range=(low, high)"
            warn_caller(LabelWarning(self.rows + new.row, what))


class _FastPath:
    """Accepts labels that change nothing but the recent range, without array operations.

    The labels are added to the history later. Without a history, it accepts nothing. `room` is the
    number of labels that can be added before the last one of a chunk.
    """

    def __init__(self, history: LabelHistory | None = None) -> None:
        self.low = self.high = 0.0  # the recent range
        self.lowest, self.highest = math.inf, -math.inf  # labels beyond are wild
        self.room, self.labels = 0, list[float]()
        if history is not None and history.counts[COMPLETE] > 0:
            self.room = CHUNK - 1 - history.counts.item(FILLED)  # the last one ends the chunk
            self.low, self.high = history.recent.tolist()
            self._set_limits()

    def accepts(self, y: float) -> bool:
        """Return whether a label is not wild."""
        return self.lowest <= y <= self.highest

    def add(self, y: float) -> None:
        """Add a label that was accepted."""
        self.labels.append(y)
        self.room -= 1
        if not self.low <= y <= self.high:
            self.low, self.high = min(self.low, y), max(self.high, y)
            self._set_limits()

    def add_to(self, history: LabelHistory) -> None:
        """Add the labels to the history."""
        if self.labels:
            number, filled = len(self.labels), history.counts.item(FILLED)
            known = history.counts.item(LEARNED) - history.counts.item(UNITS)
            for i, y in enumerate(self.labels):
                odd = oddness(y, history.chunk, filled + i, known + i + 1)
                history.counts[VARIED] += odd
                history.chunk[filled + i] = y
            history.recent[:] = self.low, self.high
            history.counts[FILLED] += number
            history.counts[LEARNED] += number
            self.labels = []

    def _set_limits(self) -> None:
        reach = GATE * (self.high - self.low)
        if reach > 0:
            self.lowest = max(self.low - reach, -LARGEST)
            self.highest = min(self.high + reach, LARGEST)


def new_history(moves: bool, vectors: bool, ratios: bool = False) -> LabelHistory:
    """Return the history of a stream before its first label.

    moves: whether the centre may move.
    vectors: whether labels are distances from the centre.
    ratios: whether labels are positive, and compared by their ratios.
    """
    history = LabelHistory(
        chunk=np.zeros(CHUNK),
        chunks=np.zeros((CHUNKS + 1, 7)),
        wild=np.zeros((MOST, 2)),
        recent=np.array([np.inf, -np.inf]),
        counts=np.zeros(9, np.int64),
        moves=moves,
        floor=0.0 if vectors else np.inf,
        ratios=ratios,
        scratch=np.zeros(CHUNK),
    )
    history.forget_wild()
    return history


def copy_history(history: LabelHistory) -> LabelHistory:
    """Return a copy that shares no arrays."""
    return LabelHistory._make(x.copy() if isinstance(x, np.ndarray) else x for x in history)
