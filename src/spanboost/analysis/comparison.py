"""Comparison of two models on the same rows, with an interval that is valid at every row."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spanboost.analysis.confidence_sequence import add_values, new_sequence, restore_sequence
from spanboost.analysis.progressive import running_totals
from spanboost.analysis.row_bar import with_bar
from spanboost.compiling.arrays import Array
from spanboost.data.batch import as_batch
from spanboost.losses import adds_classes
from spanboost.models.html import rounded, section, table
from spanboost.models.model import Model, require_model
from spanboost.models.row_losses import losses_of
from spanboost.rows.user_types import RowsLike

LEVEL = 0.05


class Comparison:
    """The difference of two models' average losses, with a confidence interval after every row.

    level: the probability that any interval, after any row, misses its mean. The default, 0.05,
        gives 95% intervals. You can look at all of them and stop at any row.
    state: what `state` returned, to continue.

    The mean of an interval is the average, over the rows so far, of the expected difference given
    everything before the row. Rows may depend on each other, and the difference may change. Losses
    need no bound: a row counts up to a limit, about twice the largest difference before it. The
    module `analysis.confidence_sequence` has the formulas. Memory does not grow with the rows.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> noise = rng.normal(0, 1, 5000)
    >>> champion, challenger = (noise + 0.5) ** 2, (noise + 0.1 * rng.normal(0, 1, 5000)) ** 2
    >>> comparison = Comparison()
    >>> after_each_row = comparison.add(champion, challenger)
    >>> low, high = comparison.interval
    >>> 0.1 < low < 0.24 < high < 0.4
    True
    >>> comparison.better, 0 < comparison.since < 1000
    ('second', True)
    """

    def __init__(self, level: float = LEVEL, state: dict[str, Any] | None = None) -> None:
        if not 0 < level < 1:
            raise ValueError(f"level must be between 0 and 1 (got {level})")
        self.level = level
        self._sequence = new_sequence()
        self._totals = np.zeros(4)  # weights, losses of the first and second model, differences
        self._side, self._since = 0, 0  # 1 if the second model is better, -1 if the first is
        self.interval = (-math.inf, math.inf)  # of first loss - second loss, after the last row
        if state is not None:
            self._restore(state)

    def add(self, first: ArrayLike, second: ArrayLike, weights: ArrayLike | None = None) -> Array:
        """Add the losses of both models on the next rows, and the weights of the rows.

        Return [rows, 3]: the difference of the average losses, first - second, and both ends of its
        interval, after each row. The result does not depend on how rows are grouped in blocks.
        """
        losses = [np.asarray(one, np.float64) for one in (first, second)]
        rows = len(losses[0])
        weights = np.ones(rows) if weights is None else np.asarray(weights, np.float64)
        if not losses[0].shape == losses[1].shape == weights.shape == (rows,):
            raise ValueError(
                f"losses and weights must have one number for each row (got shapes "
                f"{losses[0].shape}, {losses[1].shape} and {weights.shape})"
            )
        if rows == 0:
            return np.empty((0, 3))
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            each = [weights * one for one in losses]
            gained = each[0] - each[1]
            # the difference of two totals would lose its digits to one huge loss of both models
            gains = np.stack([weights, *each, np.where(np.isnan(gained), 0.0, gained)], axis=1)
            totals = running_totals(self._totals, gains)
            sums, widths = add_values(self._sequence, gained, self.level).T
            weight = totals[:, 0]
            low = np.where(weight > 0, (sums - widths) / weight, -np.inf)
            high = np.where(weight > 0, (sums + widths) / weight, np.inf)
            self._find_since((sums > widths).astype(np.int64) - (-sums > widths))
            self._totals, self.interval = totals[-1], (float(low[-1]), float(high[-1]))
            return np.stack([totals[:, 3] / weight, low, high], axis=1)

    @property
    def rows(self) -> int:
        """The number of rows so far."""
        return int(self._sequence.counts[0])

    @property
    def limited(self) -> int:
        """The number of rows whose difference exceeded the limit and counts in part."""
        return int(self._sequence.counts[1])

    @property
    def losses(self) -> tuple[float, float]:
        """The average losses of the first and the second model; NaN before the first row."""
        weight, first, second, _ = self._totals.tolist()
        return (first / weight, second / weight) if weight > 0 else (math.nan, math.nan)

    @property
    def difference(self) -> float:
        """The average difference, first loss - second loss; NaN before the first row.

        A row for which both losses are infinite counts as 0.
        """
        weight, _, _, gained = self._totals.tolist()
        return gained / weight if weight > 0 else math.nan

    @property
    def better(self) -> str | None:
        """The model with the lower loss, "first" or "second"; None while 0 is in the interval."""
        return {1: "second", -1: "first", 0: None}[self._side]

    @property
    def since(self) -> int | None:
        """The row after which `better` was first certain, without a break until now; or None."""
        return self._since if self._side else None

    def __repr__(self) -> str:
        if not self.rows:
            return "<Comparison: no rows yet>"
        low, high = self.interval
        return (
            f"<Comparison: {self.rows:,} rows, {self.verdict}; difference {self.difference:z.4g}, "
            f"{100 * (1 - self.level):g}% interval from {low:z.4g} to {high:z.4g}>"
        )

    def _repr_html_(self) -> str:
        first, second = self.losses
        low, high = self.interval
        rows = [
            ("average loss of the first model", rounded(first)),
            ("average loss of the second model", rounded(second)),
            ("difference, first - second", rounded(self.difference)),
            (f"{100 * (1 - self.level):g}% interval", f"from {rounded(low)} to {rounded(high)}"),
            ("rows", f"{self.rows:,}"),
        ]
        return section(self.verdict, table(rows))

    @property
    def verdict(self) -> str:
        """Which model is better and since when, as text."""
        if self.better is None:
            return "neither model is certainly better"
        return f"the {self.better} model is better, certain since row {self.since:,}"

    def state(self) -> dict[str, Any]:
        """Return everything as JSON values; floats are hexadecimal, since JSON has no infinity."""
        return {
            "level": self.level,
            "sequence": self._sequence.state(),
            "totals": [value.hex() for value in self._totals.tolist()],
            "side": self._side,
            "since": self._since,
            "interval": [value.hex() for value in self.interval],
        }

    def _restore(self, state: dict[str, Any]) -> None:
        try:
            self.level = float(state["level"])
            self._sequence = restore_sequence(state["sequence"])
            totals = [*map(float.fromhex, state["totals"])]
            if len(totals) == 3:  # of versions before 0.2.0
                totals.append(totals[1] - totals[2])
            self._totals = np.array(totals)
            self._side, self._since = int(state["side"]), int(state["since"])
            low, high = map(float.fromhex, state["interval"])
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"invalid comparison: {error}") from None
        if self._totals.shape != (4,) or self._side not in (-1, 0, 1) or not 0 < self.level < 1:
            raise ValueError("invalid comparison: wrong sizes or numbers")
        self.interval = low, high

    def _find_since(self, sides: Array) -> None:
        """Set the better model and since when, from the side of 0 of each new interval."""
        last = int(sides[-1])
        others = np.flatnonzero(sides != last)
        if len(others) or self._side != last:
            start = int(others[-1]) + 1 if len(others) else 0
            self._since = self.rows - len(sides) + start + 1 if last else 0
        self._side = last


def same_loss(first: Model, second: Model) -> bool:
    """Return whether two models have the same loss; losses without parameters are equal tuples.

    Models that add classes have the same loss, whatever the number of their classes.
    """
    if all(adds_classes(getattr(model, "loss", None)) for model in (first, second)):
        return True
    return type(first.loss_) is type(second.loss_) and bool(first.loss_ == second.loss_)


def compare(
    first: Model,
    second: Model,
    X: RowsLike,
    y: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    learn: bool = True,
    comparison: Comparison | None = None,
    progress: bool = False,
) -> Comparison:
    """Predict each row with two models, let both learn from it, and compare their losses.

    learn: False compares the models as they are.
    comparison: the result of the rows before, to continue it.
    progress: show a bar with the rows so far and their speed, in notebooks and terminals.

    >>> import numpy as np
    >>> from spanboost import LinearSGD, SpanBoost, Stumps
    >>> X = np.random.default_rng(0).uniform(-1, 1, (3000, 2))
    >>> models = SpanBoost(LinearSGD(), n=4), SpanBoost(Stumps(), n=4)
    >>> found = compare(*models, X, np.sign(X[:, 0]))
    >>> found.better, found.rows
    ('second', 3000)
    """
    for model in (first, second):
        require_model(model, "compare")
    if first is second:
        raise ValueError("first and second must be two models, not the same one")
    if not same_loss(first, second):
        raise ValueError(f"the models have different losses: {first.loss_} and {second.loss_}")
    comparison, models = comparison or Comparison(), (first, second)
    if not progress:
        comparison.add(*_losses(models, X, y, weights, learn), weights)
        return comparison
    if learn:
        for model in models:
            model.check(X, y, weights)  # an invalid row must not be found after others were learned
    with with_bar(as_batch(X, y, weights)) as parts:
        for part in parts:
            comparison.add(*_losses(models, part.X, part.y, part.weights, learn), part.weights)
    return comparison


def _losses(
    models: tuple[Model, Model], X: Any, y: Any, weights: Any, learn: bool
) -> tuple[Array, Array]:
    """Return the losses of each model on some rows, which both learn if `learn`."""
    if learn:
        blocks = [model.check(X, y, weights) for model in models]  # before any learns
        answers = [model.learn_checked(block) for model, block in zip(models, blocks, strict=True)]
    else:
        answers = [model.predict_many(X) for model in models]
    return losses_of(models[0], y, answers[0]), losses_of(models[1], y, answers[1])
