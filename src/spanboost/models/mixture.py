"""Mixture: combines the forecasts of candidates, and learns their weights from the labels.

AutoBoost mixes its experts, and a booster that chooses n or eta online mixes its partial sums. The
weights are those of an aggregator (aggregation.py). This module converts forecasts to its units,
and follows changes of the label range.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import Caller
from spanboost.errors import ModelFileError
from spanboost.losses import degree
from spanboost.models.aggregation import mix_and_learn_rows, mix_rows, new_aggregator
from spanboost.models.old_aggregation import new_old_aggregator
from spanboost.models.state import leaves
from spanboost.rows.labels import Labels, RangeChange

REGRESSION = "regression over all"  # the candidates that are combinations of the others
AGGREGATOR = "combination."  # prefix of the aggregator's arrays in a file
SHIFT = f"{AGGREGATOR}shift."  # prefix of arrays that only models with quantile loss have
LEAP = 1e9  # a level that changes by more than this factor takes the forecasts with it


class Units(NamedTuple):
    """An aggregator gets (value - centre) / half. If half is 0, there is nothing to learn."""

    centre: Array | float
    half: float
    log_link: bool = False  # then it gets ln(value / half)
    limits: tuple[float, float] = (-np.inf, np.inf)  # of the combined forecasts


class Mixture:
    """The weights of K candidates, and the method that learns them.

    aggregator: the state, a NamedTuple of arrays.
    """

    def __init__(self, loss: Any, K: int) -> None:
        self.loss, self.K = loss, K
        self.aggregator = new_aggregator(loss, K)
        self.call = Caller()

    def units(self, labels: Labels) -> Units:
        """Return the units in which the aggregator gets the next row."""
        if labels.scores or not self.aggregator.relative:
            return Units(0.0, 1.0)
        centre = labels.centre if labels.d > 1 else labels.centre.item()
        return Units(centre, labels.half, labels.log_link, labels.limits)

    def combine(self, units: Units, forecasts: Array) -> Array:
        """Combine forecasts [rows, d, K] in the units of the labels; learn nothing."""
        out = np.empty(forecasts.shape[:2])
        self.call(mix_rows, self.aggregator, _to_units(units, forecasts), out)
        return _flat(_from_units(units, out))

    def learn(
        self,
        units: Units,
        forecasts: Array,
        labels: Array,
        weights: Array,
        changes: Sequence[RangeChange],
    ) -> Array:
        """Combine forecasts as `combine` does, and learn the weights from the labels.

        As in `BoosterCore.learn`, a row that changes the range is predicted in the old units and
        learned in the new ones.

        units: before the first row; labels: [rows, d] as the aggregator scores them.
        changes: of the label range in these rows.
        """
        out, first, answered = np.empty(forecasts.shape[:2]), 0, 0
        for change in changes if self.aggregator.relative else ():
            row, old = change.row, out[first:answered].copy()
            span = slice(first, row)
            self.learn_span(units, forecasts[span], labels[span], weights[span], out[span])
            one = slice(row, row + 1)
            self.learn_span(units, forecasts[one], labels[one], 0 * weights[one], out[one])
            out[first:answered] = old
            if change.exact and not units.log_link:
                self._rescale(units.half, change.half)
            if _leaps(units, change):  # else the gradients would overflow
                forecasts = forecasts.copy()
                forecasts[one] = change.half * (forecasts[one] / units.half)
            units = units._replace(centre=change.centre, half=change.half)
            first, answered = row, row + 1
        old, rest = out[first:answered].copy(), slice(first, None)
        self.learn_span(units, forecasts[rest], labels[rest], weights[rest], out[rest])
        out[first:answered] = old
        return _flat(out)

    def learn_span(
        self, units: Units, forecasts: Array, labels: Array, weights: Array, out: Array
    ) -> None:
        """Predict and learn rows in the same units; set `out` to the predictions."""
        scaled = _to_units(units, forecasts)
        weights = weights if units.half > 0 else 0 * weights
        self.call(mix_and_learn_rows, self.aggregator, scaled, labels, weights, out)
        out[...] = _from_units(units, out)

    def restart_shift(self) -> None:
        """Learn the shift of quantiles anew from the next labels: the candidates have changed."""
        if self.aggregator.relative:
            self.aggregator.shift.begin_again()

    def named_weights(self, names: Iterable[str]) -> dict[str, float]:
        """Return the weight of each candidate by name, and of the regressions over all of them."""
        weights = self.aggregator.candidate_weights().tolist()
        rest = weights[self.K :]
        named = dict(zip(names, weights, strict=False))
        return named | ({REGRESSION: sum(rest)} if rest else {})

    def tensors(self) -> Iterator[tuple[str, Array]]:
        """Yield the arrays of the aggregator, by name."""
        for name, value, _ in leaves(self.aggregator, AGGREGATOR.removesuffix(".")):
            if value.size or not name.startswith(SHIFT):
                yield name, value

    def restore(self, arrays: dict[str, Array]) -> None:
        """Take the arrays of the aggregator out of those of a file, and check them."""
        weights = {name: arrays.pop(name) for name in list(arrays) if name.startswith(AGGREGATOR)}
        if f"{AGGREGATOR}share.weights" in weights and self.aggregator.relative:
            self.aggregator = new_old_aggregator(self.loss, self.K)  # a file of version 0.1
        shifted = any(name.startswith(SHIFT) for name in weights)
        for name, target in self.tensors():
            if name.startswith(SHIFT) and not shifted:
                continue  # a file of an earlier version: the shift starts at 0
            value = weights.pop(name)
            if value.shape != target.shape or value.dtype != target.dtype or np.isnan(value).any():
                raise ModelFileError(
                    f"{name} must be {target.dtype} of shape {target.shape} without NaN "
                    f"(got {value.dtype} of shape {value.shape})"
                )
            target[...] = value
        if weights:
            raise ModelFileError("the file has unexpected arrays")
        if self.aggregator.relative and not self.aggregator.regressions.sound:
            raise ModelFileError("a factor of the regressions over the experts is not positive")
        if self.aggregator.relative and not self.aggregator.shift.sound:
            raise ModelFileError("the shift of the combined forecasts is invalid")
        with np.errstate(all="ignore"):
            if not np.isfinite(self.aggregator.candidate_weights()).all():
                raise ModelFileError("the weights of the experts are not finite")

    def restore_last(self, arrays: dict[str, Array]) -> None:
        """Do as `restore`, where no other arrays of the file may be left."""
        self.restore(arrays)
        if arrays:
            raise ModelFileError("the file has unexpected arrays")

    def _rescale(self, old: float, new: float) -> None:
        """Tell the aggregator that the half-width of the label range has changed."""
        if old > 0:
            a = old / new
            self.aggregator.rescale(a, a ** (degree(self.loss) - 1))
        else:
            self.aggregator.record(0.0)  # all labels so far are at the centre


def stack(answers: Sequence[Array]) -> Array:
    """Return the forecasts of the candidates, each [rows] or [rows, d], as [rows, d, K]."""
    rows = len(answers[0])
    return np.stack([answer.reshape(rows, -1) for answer in answers], axis=2)


def _to_units(units: Units, forecasts: Array) -> Array:
    if units.log_link:
        return np.log(np.ascontiguousarray(forecasts) / units.half)
    centre = np.reshape(units.centre, (-1, 1))
    return np.ascontiguousarray((forecasts - centre) / (units.half or 1.0))


def _leaps(units: Units, change: RangeChange) -> bool:
    """Return whether a change of the level, under a log link, is that of a wild label."""
    if not units.log_link:
        return False
    return max(change.half, units.half) / LEAP > min(change.half, units.half)


def _from_units(units: Units, out: Array) -> Array:
    if units.log_link:
        return np.clip(units.half * np.exp(np.ascontiguousarray(out)), *units.limits)
    return np.clip(units.centre + (units.half or 1.0) * out, *units.limits)


def _flat(out: Array) -> Array:
    return out[:, 0] if out.shape[1] == 1 else out
