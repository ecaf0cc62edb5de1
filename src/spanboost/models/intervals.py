"""Intervals: a model with prediction intervals and quantiles, calibrated online.

Three parts work together. The model predicts each row. A second, smaller one predicts how large its
residual will be. The quantiles of the last residuals, in units of that scale, give the shape
(quantiles/forecaster.py), and calibrated levels keep the promised coverage on any stream
(quantiles/levels.py).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from spanboost.checks import is_integer
from spanboost.compiling.arrays import Array
from spanboost.compiling.interrupts import finishes
from spanboost.compiling.kernels import Caller
from spanboost.compiling.threads import cpu_count
from spanboost.errors import ModelFileError, ParameterError, RowWarning
from spanboost.learners.protocol import ReadsFeatures
from spanboost.learners.trees import MOST_BITS, Trees
from spanboost.losses import has_log_link, predicts_scores
from spanboost.models.auto import AutoBoost
from spanboost.models.booster import Booster, HullBoost, SpanBoost
from spanboost.models.committee import Committee
from spanboost.models.followed_steps import learn_followed
from spanboost.models.members import BOOSTERS
from spanboost.models.model import Model
from spanboost.models.quantiles.asked_levels import (
    bound_level,
    calibrated_levels,
    check_increasing,
    check_not_extreme,
    interpolate_levels,
    interval_levels,
    levels_to_read,
)
from spanboost.models.quantiles.curves import LEVELS
from spanboost.models.quantiles.distribution import distribution_function, draw_samples
from spanboost.models.quantiles.forecaster import (
    add_residuals,
    learn_quantiles,
    new_forecaster,
    predict_quantiles,
    restart_forecaster,
)
from spanboost.models.quantiles.sorted_window import WINDOW
from spanboost.models.state import leaves
from spanboost.models.wrapper import (
    HeldOutCalibrated,
    check_inner,
    fill_arrays,
    prefixed_tensors,
    split_tensors,
)
from spanboost.rows.encoder import RowEncoder, slice_rows
from spanboost.rows.user_types import RowLike, RowsLike

BASES: dict[str, type[Model]] = {
    **BOOSTERS,
    **{cls.__name__: cls for cls in (AutoBoost, Committee)},
}
# prefixes of arrays in a file: those of the forecaster, and of both models
_STATE, _PARTS = "quantiles", ("model", "scale")
_ADDED = {"rows": 1, "scales.runs": 2}  # counts of the forecaster, and how many there are


class IntervalBlock(NamedTuple):
    """A checked block."""

    checked: Any  # by the model
    X: Any
    labels: Array  # [rows] float64
    weights: Array  # [rows] float64


class Intervals(HeldOutCalibrated):
    """A model whose predictions have intervals and quantiles.

    model: the model that predicts (default: AutoBoost()). It must predict numbers, one per row.
    levels: the levels whose coverage is calibrated, in increasing order, from 0.001 to 0.999.
        Levels in between are interpolated; levels beyond them are refused.

    `learn_many`, `predict_many` and the rest work as those of the model itself.

    >>> import numpy as np
    >>> from spanboost import Intervals, LinearSGD, SpanBoost
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (4000, 2))
    >>> y = X[:, 0] + (1.1 + X[:, 1]) * rng.normal(size=4000)  # the noise depends on the row
    >>> model = Intervals(SpanBoost(LinearSGD(), n=4, label_range="auto"))
    >>> low, high = model.learn_intervals(X, y, coverage=0.9).T  # before each label is seen
    >>> print(f"{np.mean((low <= y) & (y <= high)):.2f}")
    0.90
    >>> quiet, loud = model.predict_interval([[0, -0.9], [0, 0.9]], coverage=0.9)
    >>> bool(loud[1] - loud[0] > 2 * (quiet[1] - quiet[0]))
    True
    """

    def __init__(self, model: Model | None = None, levels: Sequence[float] = LEVELS) -> None:
        super().__init__(AutoBoost() if model is None else model)
        check_inner(self.model)
        if not predicts_a_number(self.model):
            raise ParameterError(
                "model", f"must predict one number per row (its loss is {self.model.loss_!r})"
            )
        check_increasing(levels, "levels")
        check_not_extreme(levels, WINDOW)
        self._set_scale(new_scale_model(self.model))
        self.forecaster = new_forecaster(np.array(levels, np.float64))
        self._call = Caller()

    @property
    def levels(self) -> tuple[float, ...]:
        """The levels whose coverage is calibrated."""
        return tuple(self.forecaster.levels.level.tolist())

    @property
    def started(self) -> bool:
        """Whether the model has seen a row."""
        return self.model.started and self.scale.started

    def encoders(self) -> list[RowEncoder]:
        """Return the encoders of the model and of the scale, which read the same rows."""
        return self.model.encoders() + self.scale.encoders()

    def stored_boosters(self) -> list[Booster]:
        """Return all boosters that take memory: those of the model, and that of the scales."""
        return [*super().stored_boosters(), self.scale]

    def predict_quantiles(self, X: RowsLike, levels: Sequence[float] | float) -> Array:
        """Return the quantiles of these levels for a block of rows, [rows, level].

        They never cross. A quantile is infinite while there are too few labels for its level, fewer
        than 19 for a 90 % interval, and while labels have been beyond it too often. Quantiles stay
        within a fixed `label_range`, and those of counts and positive numbers are at least 0.
        """
        return self.predict_both(X, levels)[1]

    def predict_both(self, X: RowsLike, levels: Sequence[float] | float) -> tuple[Array, Array]:
        """Return the predictions and the quantiles for a block of rows; learn nothing."""
        levels = calibrated_levels(levels, self.levels)
        forecasts, roots = self.model.predict_many(X), self.scale.predict_many(X)
        read = levels_to_read(self.levels, levels)
        out = np.empty((len(forecasts), len(read)))
        self._call(predict_quantiles, self.forecaster, _plain(forecasts), _plain(roots), read, out)
        return forecasts, self._of_levels(out, read, levels)

    def predict_interval(self, X: RowsLike, coverage: float = 0.9) -> Array:
        """Return intervals that cover this share of the labels, for a block of rows, [rows, 2].

        Equal shares of the labels are below and above.
        """
        return self.predict_quantiles(X, interval_levels(coverage, self.levels))

    def predict_interval_one(self, x: RowLike, coverage: float = 0.9) -> tuple[float, float]:
        """Return both ends of the interval of one row."""
        ((low, high),) = self.predict_interval([x], coverage).tolist()
        return low, high

    def predict_bound(self, X: RowsLike, coverage: float = 0.9, side: str = "upper") -> Array:
        """Return one end of a one-sided interval for a block of rows, [rows].

        coverage: share of the labels at or below the bound (side="upper") or at or above it
            (side="lower").
        """
        return self.predict_quantiles(X, [bound_level(coverage, side, self.levels)])[:, 0]

    def predict_cdf(self, X: RowsLike, values: Sequence[float]) -> Array:
        """Return the probability that the label is at most each value, [rows, value].

        It is 0 below the quantile of the lowest calibrated level, and 1 above the highest one.
        """
        numbers = np.array(values, np.float64)
        if numbers.ndim != 1 or np.isnan(numbers).any():
            raise ParameterError("values", f"must be a list of numbers (got {values!r:.60})")
        return distribution_function(self.predict_quantiles(X, self.levels), self.levels, numbers)

    def sample(self, X: RowsLike, n: int = 100, seed: int | None = None) -> Array:
        """Return n random labels for each row, [rows, n], from its predicted distribution.

        They are within the quantiles of the outermost calibrated levels, as far as these are
        finite.
        """
        if not (is_integer(n) and n >= 1):
            raise ParameterError("n", f"must be a positive integer (got {n!r})")
        if self.forecaster.residuals.counts[0] == 0:
            raise ValueError("sample needs residuals to draw from: learn labels first")
        return draw_samples(self.predict_quantiles(X, self.levels), self.levels, n, seed)

    def learn_quantiles(
        self,
        X: RowsLike,
        y: ArrayLike,
        levels: Sequence[float] | float,
        weights: ArrayLike | None = None,
    ) -> Array:
        """Learn a block as `learn_many` does; return quantiles, each made before its label."""
        return self.learn_both(X, y, levels, weights)[1]

    def learn_both(
        self,
        X: RowsLike,
        y: ArrayLike,
        levels: Sequence[float] | float,
        weights: ArrayLike | None = None,
    ) -> tuple[Array, Array]:
        """Learn a block; return predictions and quantiles, each made before its label."""
        levels = calibrated_levels(levels, self.levels)
        read = levels_to_read(self.levels, levels)
        forecasts, quantiles = self._learn(self.check(X, y, weights), read)
        return forecasts, self._of_levels(quantiles, read, levels)

    def learn_intervals(
        self, X: RowsLike, y: ArrayLike, coverage: float = 0.9, weights: ArrayLike | None = None
    ) -> Array:
        """Learn a block as `learn_many` does; return intervals, each made before its label."""
        return self.learn_quantiles(X, y, interval_levels(coverage, self.levels), weights)

    def check(self, X: Any, y: Any, weights: Any = None) -> IntervalBlock:
        """Return the block as `learn_checked` takes it; a `DataError` names the first bad row."""
        checked = self.model.check(X, y, weights)
        labels = np.array(y, np.float64).reshape(-1)
        kept = np.ones(len(labels)) if weights is None else np.array(weights, np.float64)
        return IntervalBlock(checked, X, labels, kept)

    def learn_checked(self, block: IntervalBlock) -> Array:
        """Learn a block that was checked; nothing else may have been learned since."""
        return self._learn(block, np.empty(0, np.int64))[0]

    def held_out_errors(
        self, X: Any, y: Array, weights: Array, forecasts: Array | None = None, by: Any = None
    ) -> Array:
        """Return the residuals of rows of positive weight, the forecasts of their sizes, and sides.

        The side is that of `side_of`: whether the label is at an end of the label range.
        The average forecast of sizes differs between models. That of `by` becomes that of this one.
        """
        other = self if by is None else by
        forecasts = other.model.predict_many(X) if forecasts is None else forecasts
        own, roots = self.scale.predict_many(X), other.scale.predict_many(X)
        level = own.sum() / roots.sum() if own.sum() > 0 < roots.sum() else 1.0
        low, high = self._limits()
        sides = (y >= high) * 1.0 - (y <= low)
        return np.column_stack([y - forecasts, level * roots, sides])[weights > 0]

    def calibrate(self, errors: Array) -> None:
        """Start the quantiles again with these residuals; the scale, their unit, stays."""
        residuals, roots, sides = map(_plain, errors.T)
        restart_forecaster(self.forecaster, residuals, roots)
        self._call(add_residuals, self.forecaster, residuals, roots, sides)

    def parameters(self) -> dict[str, Any]:
        """Return the class ("booster"), the parameters of the model and the levels, as JSON."""
        inner = self.model.parameters()["parameters"] | {"levels": list(self.levels)}
        return {"booster": type(self).__name__, "parameters": inner}

    def own_facts(self) -> dict[str, str]:
        """Return the calibrated levels as text."""
        first, last = self.levels[0], self.levels[-1]
        return {"intervals": f"{len(self.levels)} calibrated levels, {first:.3g} to {last:.3g}"}

    def header(self) -> dict[str, Any]:
        """Return everything except the arrays, as JSON."""
        return self.parameters() | {"models": [self.model.header(), self.scale.header()]}

    def tensors(self) -> Iterator[tuple[str, Array]]:
        """Yield the arrays of a model that has started, by name."""
        yield from ((name, value) for name, value, _ in leaves(self.forecaster, _STATE))
        yield from prefixed_tensors(dict(zip(_PARTS, (self.model, self.scale), strict=True)))

    @classmethod
    def restore(cls, header: dict[str, Any], tensors: dict[str, Array]) -> Self:
        """Build the model from a header and arrays; a `ModelFileError` if they do not match."""
        first, second = header["models"]
        if first["booster"] not in BASES or second["booster"] not in BOOSTERS:
            raise ModelFileError("the file contains no model with intervals")
        parts = split_tensors(tensors, (*_PARTS, _STATE))
        inner = BASES[first["booster"]].restore(first, parts["model"])
        levels = header["parameters"]["levels"]
        check_increasing(levels, "levels")
        model = cls(inner)
        # earlier versions allowed levels that are more extreme
        model.forecaster = new_forecaster(np.array(levels, np.float64))
        scale = BOOSTERS[second["booster"]].restore(second, parts["scale"])
        # earlier versions learned scales by other boosters, which continue
        if not predicts_a_number(scale) or scale.started != inner.started:
            raise ModelFileError("the two models of the file do not fit each other")
        model._set_scale(scale)
        if inner.started:
            if not any(name.startswith("cells.") for name in parts[_STATE]):
                raise ModelFileError(
                    "the intervals of the file are those of an unreleased version, which kept no "
                    "residuals of similar rows; train the model again"
                )
            for name, size in _ADDED.items():  # earlier versions kept none
                parts[_STATE].setdefault(name, np.zeros(size, np.int64))
            fill_arrays(model.forecaster, parts[_STATE], _STATE)
            if not model.forecaster.sound:
                raise ModelFileError("the arrays of the quantiles are invalid")
            model.forecaster.fill_curves()
        return model

    def _set_scale(self, scale: Booster) -> None:
        self.scale = scale
        scale.core.sample = None  # the model keeps a sample of the rows

    @finishes
    def _learn(self, block: IntervalBlock, read: Array) -> tuple[Array, Array]:
        """Return the predictions and the quantiles of the levels `read`, made before the labels."""
        weights = block.weights.copy()
        if self.label_health.learned == 0 and weights.any():
            weights[(weights > 0).argmax()] = 0.0  # a prediction without a label has no residual
        out = np.empty((len(weights), len(read)))
        limits = np.array(self._limits())
        encoded = cache(lambda: self.scale.encoder.encode(block.X, learn=True))

        def follow(first: int, forecasts: Array) -> None:
            part = slice(first, first + len(forecasts))
            labels, kept = block.labels[part], weights[part]
            sizes = np.sqrt(np.abs(np.where(kept > 0, labels, forecasts) - forecasts))
            X = block.X if len(kept) == len(weights) else slice_rows(encoded(), first, part.stop)
            roots = self.scale.learn_checked(self.scale.check(X, sizes, kept))
            rows = _plain(forecasts), _plain(roots), labels, kept
            self._call(learn_quantiles, self.forecaster, *rows, limits, read, out[part])

        with warnings.catch_warnings():  # `check` of the model has warned about rows
            warnings.simplefilter("ignore", RowWarning)
            given = self.model, block.checked, len(weights), follow
            return learn_followed(*given, self.threads or cpu_count()), out

    def _of_levels(self, quantiles: Array, read: Array, levels: Sequence[float]) -> Array:
        """Return the quantiles of these levels, clipped to numbers that labels can be.

        All labels are within a fixed range, and those of a log link are not negative. An interval
        that is clipped to such limits covers every label that it covered before.
        """
        own = self.forecaster.levels.level[read].tolist()
        return np.clip(interpolate_levels(quantiles, own, levels), *self._limits())

    def _limits(self) -> tuple[float, float]:
        """Return the smallest and the largest possible label."""
        low, high = self.labels.limits
        return max(low, 0.0) if has_log_link(self.model.loss_) else low, high


def new_scale_model(model: Model) -> Booster:
    """Return the booster that learns the square roots of a model's residuals.

    It takes less time than the model: it consists of trees, as many as this time allows. Learners
    of your own may read rows that trees cannot, so they get one copy of themselves instead.
    """
    learner = getattr(model, "learner", None)
    if learner is None:
        trees = Trees(delay=8, bits=getattr(model, "bits", None))
        n, eta = (16, 0.3) if getattr(model, "budget", None) == "fast" else (32, 0.2)
        return SpanBoost(trees, n=n, eta=eta, label_range="auto")
    if isinstance(learner, Trees):
        copies: Any = getattr(model, "n", None)  # a model that chooses n has none
        n = max(1, copies // 4) if is_integer(copies) else 8
        return SpanBoost(learner, n=n, eta=min(1.0, 0.15 + 2 / n), label_range="auto")
    if isinstance(learner, ReadsFeatures):
        bits = getattr(learner, "bits", None)
        trees = Trees(bits=bits if bits is None else min(bits, MOST_BITS))
        return SpanBoost(trees, n=2, eta=0.8, label_range="auto")
    return HullBoost(learner, n=1, label_range="auto")


def predicts_a_number(model: Model) -> bool:
    """Return whether the predictions of a model are numbers, one per row."""
    return not predicts_scores(model.loss_) and getattr(model.loss_, "d", 1) == 1


def _plain(values: Array) -> Array:
    return np.ascontiguousarray(values, np.float64)
