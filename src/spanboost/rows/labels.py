"""Check labels and weights, and convert labels and predictions between users' and model units."""

import math
from typing import Any, NamedTuple

import numpy as np

from spanboost.checks import MOST_CLASSES, is_integer
from spanboost.compiling.arrays import Array
from spanboost.errors import LabelWarning, ModelFileError, warn_caller
from spanboost.losses import Softmax, has_log_link, is_binary, predicts_scores
from spanboost.rows.label_ends import LabelEnds, are_ends, ends_of, merge_ends
from spanboost.rows.label_history import LARGEST, NARROWEST, LabelHistory
from spanboost.rows.label_values import class_numbers, missing_label, show_label, to_matrix
from spanboost.rows.validation import refuse_first
from spanboost.rows.weights import WeightScale


class RangeChange(NamedTuple):
    """A new label range, from this row on.

    The row is predicted in the old range and learned in the new one. If the change is `exact`, what
    was learned keeps its value in the units of the labels, so it has to be rescaled. If not, the
    labels have new units, and what was learned keeps its value in the units of the model. With a
    log link, only the labels of rows for replay are rescaled.
    """

    row: int
    centre: Array
    half: float
    exact: bool = True


class LabelPlan(NamedTuple):
    """How a block of labels is learned."""

    labels: Array  # [rows, d] in the model's units; as the loss expects them
    learned: Array  # [rows, d] in the units of the user
    changes: list[RangeChange]
    after: Any = None  # what is known about the labels after the block
    ends: LabelEnds | None = None  # of the labels in the block


class LabelHealth(NamedTuple):
    """Facts about the labels so far.

    `widened`, `shrunk` and `new_units` are numbers of learned rows up to and including the change;
    None if there was no such change, or if the kind of label range does not record it.
    """

    learned: int  # rows learned
    clipped: int = 0  # labels that were learned as if they were closer to the others
    widened: int | None = None
    shrunk: int | None = None
    new_units: int | None = None
    unchecked: int = 0  # labels learned while there were too few others to tell wild ones

    @property
    def clipped_share(self) -> float:
        """The share of labels that were clipped."""
        return self.clipped / max(self.learned, 1)


class Labels:
    """Convert labels and predictions between label units and the model's units.

    Labels lie in the ball of radius `half` around `centre`, which is mapped onto the unit ball. If
    labels are numbers, the ball is an interval, mapped onto [-1, 1].
    """

    history: LabelHistory | None = None  # of the labels so far, if the range depends on it
    # ends of a fixed range of numbers, which the predictions of several boosters do not leave
    limits: tuple[float, float] = (-math.inf, math.inf)
    # None before the first label, for vectors and classes, and in files of earlier versions
    ends: LabelEnds | None = None

    def __init__(self, loss: Any, d: int, centre: float, half: float) -> None:
        self.loss, self.d = loss, d
        self.scores, self.log_link = predicts_scores(loss), has_log_link(loss)
        self.centre, self.half = np.full(d, centre), half
        self.rows, self.seen = 0, 0  # number of rows given, and of rows learned
        self.warned = False  # whether a label far outside the range was reported
        self.weight_scale = WeightScale()

    def plan(self, y: Any, weights: Array) -> LabelPlan:
        """Check a block of labels; return how they are learned. Nothing changes yet."""
        raise NotImplementedError

    def single(self, y: Any) -> float | None:
        """Return one number in the model's units; None if it needs the checks of `plan`."""
        raise NotImplementedError

    def change(self, new: RangeChange) -> float:
        """Set another range; return the old half-width relative to the new one."""
        part = self.half / new.half if self.half > 0 else 0.0
        self.centre, self.half = new.centre, new.half
        return part

    def count(self, weights: Array, after: Any, ends: LabelEnds | None) -> None:
        """Count rows that were given, and those that were learned, of weights above 0.

        after, ends: of the plan for these rows.
        """
        if ends is not None:
            self._extend_ends(ends)
        self.weight_scale.add(weights)
        self.rows += len(weights)
        self.seen += int(np.count_nonzero(weights))

    def count_single(self, y: float) -> None:
        """Count a row that is learned with the label that `single` returned for y."""
        if self.ends is None or not self.ends.low <= y <= self.ends.high:
            self._extend_ends(LabelEnds(float(y), float(y)))
        self.rows += 1
        self.seen += 1

    def count_as(self, others: "Labels") -> None:
        """Count the row that other labels, which were equal to these, have just counted."""
        self.rows, self.seen, self.ends = others.rows, others.seen, others.ends

    def _extend_ends(self, new: LabelEnds) -> None:
        """Extend the ends to new labels; if those of earlier labels are unknown, they stay so."""
        if self.ends is not None:
            self.ends = merge_ends([self.ends, new])
        elif self.seen == 0:
            self.ends = new

    @property
    def changes_of_units(self) -> int:
        """How often the labels had new units."""
        return 0

    @property
    def health(self) -> LabelHealth:
        """Facts about the labels so far."""
        return LabelHealth(self.seen)

    def answer(self, out: Array) -> Any:
        """Return a single prediction [1, d] in label units: a float, or a vector."""
        if self.d > 1:
            return self.to_user(out)[0]
        y = out.item()
        if self.log_link:
            return self.to_units(np.array([y])).item()
        return y if self.scores else self.centre.item() + self.half * y

    def to_user(self, out: Array) -> Array:
        """Return predictions in label units (scores are not converted); [rows] if d = 1."""
        out = self.to_units(out.astype(np.float64))
        return out[:, 0] if self.d == 1 else out

    def to_units(self, values: Array) -> Array:
        """Return float64 values [rows, d] in label units; scores are not converted."""
        return values if self.scores else np.asarray(self.centre + self.half * values)

    def to_json(self) -> dict[str, Any]:
        """Return the range and the counts, as a model file holds them."""
        state = {
            "centre": self.centre.tolist(),
            "half": self.half,
            "rows": self.rows,
            "seen": self.seen,
            "warned": self.warned,
        }
        if self.ends is not None:
            state["ends"] = [*self.ends]
        return state | self.weight_scale.to_json()

    def restore(self, state: dict[str, Any]) -> None:
        """Set the range and the counts to those that `to_json` returned."""
        centre = np.array(state["centre"], dtype=np.float64)
        half, rows, seen = float(state["half"]), state["rows"], state["seen"]
        ends = state.get("ends")
        if (
            centre.shape != self.centre.shape
            or not self._allows(centre, half)
            or not (is_integer(rows) and is_integer(seen) and 0 <= seen <= rows < 2**50)
            or not (ends is None or are_ends(ends))
        ):
            raise ModelFileError("the label range is invalid")
        self.centre, self.half = centre, half
        self.rows, self.seen = rows, seen
        self.warned = bool(state["warned"])
        self.ends = None if ends is None else LabelEnds(*map(float, ends))
        self.weight_scale = WeightScale.restore(state)

    def _allows(self, centre: Array, half: float) -> bool:
        """Return whether the range can be that of a file."""
        raise NotImplementedError

    def _finite(self, y: Any, rows: int) -> Array:
        given = to_matrix(y, rows, self.d, "labels")
        refuse_first(np.isnan(given).any(axis=1), lambda t: missing_label())
        refuse_first(
            ~np.isfinite(given).all(axis=1),
            lambda t: f"the label must be finite (got {show_label(given[t])})",
        )
        return given


class FixedLabels(Labels):
    """Labels between `low` and `high`; in R^d, in the ball around the middle of the two."""

    def __init__(self, loss: Any, d: int, label_range: tuple[float, float]) -> None:
        self.low, self.high = map(float, label_range)
        super().__init__(loss, d, (self.low + self.high) / 2, (self.high - self.low) / 2)
        if d == 1 and not self.scores:
            self.limits = self.low, self.high

    def plan(self, y: Any, weights: Array) -> LabelPlan:
        """Check a block of labels; return how they are learned. The range never changes."""
        if isinstance(self.loss, Softmax):
            labels = self._classes(y, len(weights))
            return LabelPlan(labels, labels, [])
        given = self._finite(y, len(weights))
        return LabelPlan(self._to_model(given), given, [], ends=ends_of(given, weights > 0))

    def single(self, y: Any) -> float | None:
        """Return one number in the model's units; None if it needs the checks of `plan`."""
        if self.d > 1 or not isinstance(y, int | float):
            return None
        if is_binary(self.loss):
            return self._single_class(y)
        if self.scores:
            return None
        label = (float(y) - self.centre.item()) / self.half if abs(y) < LARGEST else math.inf
        return label if -1 <= label <= 1 else None

    def _single_class(self, y: float) -> float | None:
        """Return one label of two as `_to_model` does; None if it is neither."""
        if y == self.high:
            return 1.0
        return -1.0 if y == self.low or (y == 0 and self.low == -1) else None

    def _allows(self, centre: Array, half: float) -> bool:
        return half == self.half and bool((centre == self.centre).all())

    def _to_model(self, given: Array) -> Array:
        """Return checked labels [rows, d] as the loss expects them."""
        if is_binary(self.loss):
            low = (given == self.low) | ((given == 0) & (self.low == -1))  # 0 and False are low
            ends = np.where(given == self.high, 1.0, np.where(low, -1.0, 0.0))
            refuse_first(
                (ends == 0).any(axis=1),
                lambda t: (
                    f"the label {show_label(given[t])} is neither {self.low:g} nor {self.high:g}, "
                    f"the two labels of {type(self.loss).__name__}"
                ),
            )
            return ends
        labels = (given - self.centre) / self.half
        with np.errstate(over="ignore"):
            norms = np.sqrt((labels * labels).sum(axis=1))
        refuse_first(norms > 1 + 1e-12, lambda t: self._outside(given[t]))
        return np.asarray(labels)

    def _outside(self, label: Array) -> str:
        limits = f"label_range=({self.low:g}, {self.high:g})"
        if self.d == 1:
            return f'the label {show_label(label)} is outside {limits}; "auto" finds the range'
        return (
            f"the label {show_label(label)} is more than {self.half:g} from the centre of {limits}"
        )

    def _classes(self, y: Any, rows: int) -> Array:
        classes = class_numbers(y, rows, self.d)
        return np.eye(self.d)[classes]


class GrowingClasses(FixedLabels):
    """Class numbers. The labels of a block have a column for each class, new classes included."""

    def _classes(self, y: Any, rows: int) -> Array:
        classes = class_numbers(y, rows, MOST_CLASSES)
        return np.eye(max(self.d, 1 + int(classes.max(initial=0))))[classes]


class UnboundedLabels(Labels):
    """Base class of label ranges that depend on the labels, around the first label or 0."""

    def __init__(self, loss: Any, d: int, label_range: str) -> None:
        if predicts_scores(loss):
            raise ValueError(
                f"label_range={label_range!r} needs predictions in the units of the labels, but "
                f"{type(loss).__name__} predicts scores: give label_range=(low, high)"
            )
        super().__init__(loss, d, 0.0, 0.0)
        self.around_first = not label_range.endswith("-zero")

    def _allows(self, centre: Array, half: float) -> bool:
        width = half == 0 or NARROWEST <= half <= 8 * LARGEST  # it doubles, up to twice a distance
        return width and bool((np.abs(centre) <= LARGEST).all())

    def _bounded(self, y: Any, rows: int) -> Array:
        given = self._finite(y, rows)
        refuse_first(
            (np.abs(given) > LARGEST).any(axis=1),
            lambda t: f"the label {show_label(given[t])} is too large; the limit is {LARGEST:g}",
        )
        return given

    def _centre_on_first(self, given: Array, rounds: Array) -> list[RangeChange]:
        """Return the change that sets the centre to the first label, if this block has it."""
        if not (self.around_first and self.seen == 0 and rounds.any()):
            return []
        row = int(rounds.argmax())
        return [RangeChange(row, given[row].copy(), self.half)]


class GrowingLabels(UnboundedLabels):
    """Labels of any size: the range grows with them, around the first label or ("growing-zero") 0.

    The centre never moves again. The half-width starts at 0. A label farther from the centre
    changes it to max(2 half, distance of the label), so widening is rare and only rescales. The
    label of a row of weight 0 does not widen the range.
    """

    def plan(self, y: Any, weights: Array) -> LabelPlan:
        """Check a block of labels; return how they are learned, and where the range widens."""
        given, rounds = self._bounded(y, len(weights)), weights > 0
        widenings = self._centre_on_first(given, rounds)
        centre = widenings[-1].centre if widenings else self.centre
        offsets = np.where(rounds[:, None], given - centre, 0.0)
        distances = np.hypot.reduce(np.abs(offsets), axis=1)
        # half-width of the range in which each row is learned
        halves = np.full(len(given), self.half)
        while (beyond := distances > halves).any():
            row = int(beyond.argmax())
            distance, half = float(distances[row]), float(halves[row])
            widenings.append(RangeChange(row, centre, max(2 * half, distance, NARROWEST)))
            known = self.seen + np.count_nonzero(rounds[:row])
            if not self.warned and known >= 30 and 0 < 10 * half < distance:
                self._warn(given[row], distance / half, widenings[-1])
            halves[row:] = widenings[-1].half
        # a range of width 0 contains only its centre
        labels = offsets / np.where(halves > 0, halves, 1.0)[:, None]
        return LabelPlan(labels, given, widenings, ends=ends_of(given, rounds))

    def single(self, y: Any) -> float | None:
        """Return one number in the model's units; None if it needs the checks of `plan`."""
        if self.d > 1 or self.seen == 0 or not isinstance(y, int | float):
            return None
        offset = float(y) - self.centre.item() if abs(y) < LARGEST else math.inf
        return offset / self.half if self.half > 0 and abs(offset) <= self.half else None

    def _warn(self, label: Array, times: float, new: RangeChange) -> None:
        """Warn about a label far outside the range.

        Nothing has been learned yet, so turning the warning into an error loses nothing.
        """
        low, high = show_label(new.centre - new.half), show_label(new.centre + new.half)
        what = (
            f"the label {show_label(label)} is {times:.4g} half-widths "
            f"from the centre, so the label range is now from {low} to {high}; earlier labels "
            "hardly differ in this range and are learned slowly. If the label is a mistake, start "
            "again without it, or with label_range=(low, high)"
        )
        warn_caller(LabelWarning(self.rows + new.row, what))
        self.warned = True
