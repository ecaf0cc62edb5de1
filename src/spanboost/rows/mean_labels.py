"""Labels of losses with a log link: counts and positive numbers, whose mean is predicted.

Labels are divided by a *unit*, so that 1 is a typical label, and a prediction is the unit times the
exponential of the model's score. The unit of a fixed range is its middle. Otherwise it is the mean
of the labels so far after 1, 2, 4, ... and 64 labels, and then stays, unless the labels get new
units (label_history.py). After 64 labels, 4 at each end count as the next one.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from spanboost.checks import BREATHING, is_number
from spanboost.compiling.arrays import Array
from spanboost.errors import ModelFileError, ParameterError
from spanboost.rows.breathing_labels import NUMBER, BreathingLabels, copy_history
from spanboost.rows.label_ends import LabelEnds, ends_of
from spanboost.rows.label_history import LARGEST, NARROWEST, TRIM, LabelHistory
from spanboost.rows.label_values import show_label
from spanboost.rows.labels import FixedLabels, LabelPlan, RangeChange
from spanboost.rows.replay import MOST_UNITS
from spanboost.rows.validation import refuse_first

FIRST = 64  # labels that set the unit


class FollowedMeans(NamedTuple):
    """What is known about the labels after a block."""

    history: LabelHistory
    reach: float  # half-width of the range that `history` follows
    first: tuple[float, ...]  # the first labels, at most FIRST


class FixedMeans(FixedLabels):
    """Labels between `low` and `high`, of which neither is negative."""

    def __init__(self, loss: Any, d: int, label_range: tuple[float, float]) -> None:
        if min(label_range) < 0:
            raise ParameterError(
                "label_range",
                f"must not contain negative numbers for {type(loss).__name__} (got {label_range})",
            )
        super().__init__(loss, d, label_range)
        self.half, self.centre = self.centre.item(), np.zeros(d)

    def single(self, y: Any) -> float | None:
        """Return one number in the model's units; None if it needs the checks of `plan`."""
        if not isinstance(y, NUMBER) or not self.low <= y <= self.high or y == 0:
            return None
        return float(y) / self.half

    def to_units(self, values: Array) -> Array:
        """Return scores as means."""
        return to_means(values, self.half)

    def _to_model(self, given: Array) -> Array:
        _check_domain(self.loss, given)
        outside = ((given < self.low) | (given > self.high)).any(axis=1)
        refuse_first(outside, lambda t: self._outside(given[t]))
        return np.asarray(given / self.half)


class MeanLabels(BreathingLabels):
    """Labels of any size. With "auto", a label far outside the recent ones counts as their end."""

    def __init__(self, loss: Any, d: int, label_range: str) -> None:
        super().__init__(loss, d, "auto-zero")
        self.clips = label_range in BREATHING
        self.half, self.reach = 1.0, 0.0
        self.first: tuple[float, ...] = ()

    @property
    def followed(self) -> float:
        """The half-width of the range that the history follows."""
        return self.reach

    def to_units(self, values: Array) -> Array:
        """Return scores as means."""
        return to_means(values, self.half)

    def plan(self, y: Any, weights: Array) -> LabelPlan:
        """Return the labels to learn, and where their unit changes."""
        given, rounds = self._bounded(y, len(weights)), weights > 0
        _check_domain(self.loss, given)
        history, values = copy_history(self.history), given[:, 0].copy()
        ranges = self._follow(history, values, rounds, self.centre) if self.clips else []
        first = self._first_labels(values, rounds)
        changes = list(self._unit_changes(first, rounds, ranges))
        labels, learned = self._in_units(values, rounds, changes)
        clipped = np.flatnonzero(values != given[:, 0])
        if len(clipped):
            self._warn_clipped(given, learned, clipped, ranges)
        self._warn_units([_from_zero(one) for one in ranges], given, rounds)
        reach = ranges[-1].half if ranges else self.reach
        after = FollowedMeans(history, reach, (*self.first, *first.values()))
        return LabelPlan(labels, learned, changes, after, ends_of(given, rounds))

    def single(self, y: Any) -> float | None:
        """Return one number in the model's units; None if it needs the checks of `plan`."""
        if not self.clips or len(self.first) < FIRST or not isinstance(y, NUMBER) or not y > 0:
            return None
        fits = self._fast.accepts(y) and y <= self.reach and y <= MOST_UNITS * self.half
        if not (fits and (self._fast.room or self._ends_chunk(float(y)))):
            return None
        return float(y) / self.half

    def count(self, weights: Array, after: FollowedMeans | Any, ends: LabelEnds | None) -> None:
        """Count rows, and set what is known about the labels."""
        super().count(weights, after.history, ends)
        self.reach, self.first = after.reach, after.first

    def to_json(self) -> dict[str, Any]:
        """Return the unit, the first labels and the counts, as a model file holds them."""
        return super().to_json() | {"reach": self.reach, "first": [*self.first]}

    def restore(self, state: dict[str, Any]) -> None:
        """Set the unit and the counts to those that `to_json` returned."""
        super().restore(state)
        reach, first = state["reach"], state["first"]
        numbers = [reach, *first]
        if len(first) > FIRST or not all(is_number(x) and 0 <= x <= 8 * LARGEST for x in numbers):
            raise ModelFileError("the first labels are invalid")
        self.reach, self.first = float(reach), tuple(map(float, first))

    def _allows(self, centre: Array, half: float) -> bool:
        return NARROWEST <= half <= LARGEST and not centre.any()

    def _first_labels(self, values: Array, rounds: Array) -> dict[int, float]:
        """Return the labels of this block, by row, that help to set the unit."""
        found, room = dict[int, float](), FIRST - len(self.first)
        positive = any(self.first)
        for row in np.flatnonzero(rounds) if room else ():
            y = float(values[row])
            positive = positive or y > 0
            if len(found) == room - 1 and not positive:
                continue  # the last of them is positive: 0 does not tell the unit
            found[int(row)] = y
            if len(found) == room:
                break
        return found

    def _unit_changes(
        self, first: dict[int, float], rounds: Array, ranges: Sequence[RangeChange]
    ) -> Iterator[RangeChange]:
        """Yield the changes of the unit."""
        unit, known, row = self.half, list(self.first), -1
        for row, y in first.items():
            known.append(y)
            new = _unit_of(known) if len(known).bit_count() == 1 else 0.0
            if new > 0 and new != unit:
                unit = new
                yield RangeChange(row, self.centre, unit, exact=True)
        reach = self.reach
        for one in ranges:
            if not one.exact and len(known) == FIRST and one.row > row and reach > 0:
                unit = min(max(unit * (one.half / reach), NARROWEST), LARGEST)
                yield RangeChange(one.row, self.centre, unit, exact=False)
            reach = one.half

    def _in_units(
        self, values: Array, rounds: Array, changes: Sequence[RangeChange]
    ) -> tuple[Array, Array]:
        """Return labels in units, 0 for rows that are not learned, and as they are learned."""
        units = np.full(len(values), self.half)
        for one in changes:
            units[one.row :] = one.half
        most = MOST_UNITS * np.minimum(units, LARGEST / MOST_UNITS)
        learned = np.minimum(values, most)
        return np.where(rounds, learned / units, 0.0)[:, None], learned[:, None]


def _unit_of(labels: Sequence[float]) -> float:
    """Return the mean of the first labels; a few wild ones do not count once there are enough."""
    mean = max(sum(labels) / len(labels), NARROWEST) if any(labels) else 0.0
    if len(labels) < FIRST:
        return mean
    ordered = np.sort(labels)
    return float(np.clip(ordered, ordered[TRIM], ordered[-1 - TRIM]).mean()) or mean


def _check_domain(loss: Any, given: Array) -> None:
    """Raise a DataError for the first label that the loss does not take."""
    name, zero = type(loss).__name__, loss.takes_zero
    refuse_first(
        ((given < 0) | ((given == 0) & (not zero))).any(axis=1),
        lambda t: (
            f"{name} loss needs labels {'of at least' if zero else 'above'} 0 "
            f"(got {show_label(given[t])})"
        ),
    )


def to_means(scores: Array, unit: float) -> Array:
    """Return the means of scores, the same bits for one row and for many."""
    return np.asarray(unit * np.exp(np.ascontiguousarray(scores)))


def _from_zero(one: RangeChange) -> RangeChange:
    """Return a range around 0 without its negative half, for messages."""
    return one._replace(centre=np.array([one.half / 2]), half=one.half / 2)
