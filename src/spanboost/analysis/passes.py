"""Learn a data set in several passes, and choose their number by the loss of held-out rows.

Intervals and sets of classes are calibrated with errors of rows that were not learned. If the
held-out rows are few, further models leave out other rows, as in cross-validation.
"""

import copy
import pickle
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from spanboost.checks import is_integer
from spanboost.compiling.arrays import Array
from spanboost.errors import (
    DataError,
    WeightWarning,
    capture_warnings,
    reissue_warnings,
    renumber_warnings,
)
from spanboost.models.model import Model
from spanboost.models.row_losses import losses_of
from spanboost.models.wrapper import HeldOutCalibrated
from spanboost.rows.block import Rows

AUTO = "auto"  # the number of passes that stands for a choice
MOST_PASSES = 10
MOST_ROWS = 100_000  # larger data sets get one pass
ENOUGH = 1000  # rows to calibrate with: coverages of 90 % then vary by about one point
GAIN = 0.01  # a further pass must lower the loss of held-out rows by this share
Learn = Callable[[Any, Any, Any], Array]
_SHARE, _FEWEST, _LARGEST_SHARE = 0.1, 100, 0.25  # of rows that are held out


class Examples(NamedTuple):
    """Rows with labels and weights, and the number of each row in the user's data."""

    X: Any
    y: Array
    weights: Array
    numbers: Array

    def take(self, places: Array) -> "Examples":
        """Return the examples at these places, in this order."""
        X = self.X.take(places) if isinstance(self.X, Rows) else self.X[places]
        return Examples(X, self.y[places], self.weights[places], self.numbers[places])


class Passes:
    """Passes over a data set.

    shuffle: returns numbers in the order in which the next pass learns their rows.
    report: receives a line for each pass; None for no report.
    in_order: whether rows after a row may not predict it, so that only the last rows calibrate.
    """

    def __init__(
        self,
        examples: Examples,
        shuffle: Callable[[Array], Array],
        report: Callable[[str], Any] | None = None,
        *,
        in_order: bool = False,
    ) -> None:
        self._all, self._shuffle, self._in_order = examples, shuffle, in_order
        self._report = report or (lambda line: None)

    def learn(self, model: Model, n: Any) -> tuple[Model, int]:
        """Learn the data in n passes, or "auto"; return the model and the number of passes."""
        if isinstance(n, str) and n == AUTO:
            return self.choose(model)
        if not (is_integer(n) and n >= 1):
            raise ValueError(f"n_epochs must be 'auto' or a positive integer (got {n!r})")
        return self.run(model, n), n

    def run(self, model: Model, n: int) -> Model:
        """Learn the data in n passes, and return the model."""
        held = _held_out(len(self._all.y))
        if n > 1 and held and model.needs_new_rows:
            return self._run_before(model, n, held)
        rows, calibration = len(self._all.y), self._calibration(model)
        places, forecasts = np.empty(0, np.int64), np.empty(0)
        for k in range(1, n + 1):
            start, order = perf_counter(), self._shuffle(np.arange(rows))
            end = rows - _held_out(rows) if k == 1 else rows
            places = order if k == 1 else places
            part, last = self._all.take(order[:end]), self._all.take(order[end:])
            answers = _learn(model, part, _learner(model, k))
            if k == 1 and len(last.y):
                answers = np.concatenate([answers, _learn(model, last, model.learn_held_out)])
            loss = _mean(losses_of(model, self._all.y[order], answers), self._all.weights[order])
            self._report(f"Pass {k} of {n}: loss {loss:.6g}, {perf_counter() - start:.1f} s")
            forecasts = answers[end:]  # the first pass has not learned these rows before
        calibration.complete(model, n, places, forecasts)
        return model

    def _run_before(self, model: Model, n: int, held: int) -> Model:
        """Learn the data in n passes, except for the last rows, which are learned after them."""
        places = self._shuffle(np.arange(len(self._all.y)))
        first, last = places[:-held], self._all.take(places[-held:])
        _check(model, self._all)
        for k in range(1, n + 1):
            start, part = perf_counter(), self._all.take(first if k == 1 else self._shuffle(first))
            answers = _learn(model, part, _learner(model, k))
            loss = _mean(losses_of(model, part.y, answers), part.weights)
            self._report(f"Pass {k} of {n}: loss {loss:.6g}, {perf_counter() - start:.1f} s")
        _learn(model, last, model.learn_held_out)
        return model

    def choose(self, model: Model) -> tuple[Model, int]:
        """Learn the data in as many passes as seem best; return the model and their number.

        The last rows of the first pass are held out: a tenth, but at least 100, and at most a
        quarter of the data. There are further passes over the other rows while each lowers the
        loss of the held-out rows by 1 %. The model after the last pass that did so is kept, and
        learns the held-out rows.
        """
        rows = len(self._all.y)
        held = _held_out(rows)
        if rows > MOST_ROWS or held < 1:
            return self.run(model, 1), 1
        places = self._shuffle(np.arange(rows))
        held_out, first = self._all.take(places[-held:]), places[:-held]
        _check(model, self._all)
        calibration = self._calibration(model)
        tried, best = _TriedPasses(held_out), model
        for k in range(1, MOST_PASSES + 1):
            start = perf_counter()
            order = first if k == 1 else self._shuffle(first)
            _learn(model, self._all.take(order), _learner(model, k))
            tried.add(model)
            line = f"Pass {k}: held-out loss {tried.loss(-1):.6g}"
            self._report(f"{line}, {perf_counter() - start:.1f} s")
            if tried.best() < k - 1:
                break
            snapshot = _copy(model)
            best = snapshot or model
            if snapshot is None:
                break
        forecasts, n = tried.fair_predictions(), tried.best() + 1
        _learn(best, held_out, partial(best.learn_held_out, forecasts=forecasts))
        calibration.complete(best, n, places, forecasts)
        return best, n

    def _calibration(self, model: Model) -> "_CrossCalibration":
        return _CrossCalibration(model, self._all, self._shuffle, self._report, self._in_order)


class _TriedPasses:
    """The predictions of held-out rows after each pass, and their losses."""

    def __init__(self, held_out: Examples) -> None:
        self._held_out = held_out
        self._predictions: list[Array] = []
        self._losses: list[Array] = []  # each [rows]

    def add(self, model: Model) -> None:
        """Add what the model predicts after one more pass."""
        answers = model.predict_many(self._held_out.X)
        self._predictions.append(answers)
        self._losses.append(losses_of(model, self._held_out.y, answers))

    def loss(self, k: int, rows: Any = slice(None)) -> float:
        """Return the average loss of some rows after pass k, counted from 0."""
        return _mean(self._losses[k][rows], self._held_out.weights[rows])

    def best(self, rows: Any = slice(None)) -> int:
        """Return the last pass, counted from 0, before one that does not help these rows."""
        for k in range(1, len(self._losses)):
            if not self.loss(k, rows) < (1 - GAIN) * self.loss(k - 1, rows):
                return k - 1
        return len(self._losses) - 1

    def fair_predictions(self) -> Array:
        """Return predictions [rows] for calibration.

        The loss of a row has part in the choice of the best pass, so its residual after that pass
        is a little too small. So each half of the rows is predicted after the pass that is best
        for the other half.
        """
        fair = self._predictions[self.best()].copy()
        halves = slice(0, None, 2), slice(1, None, 2)
        for own, other in (halves, halves[::-1]):
            fair[own] = self._predictions[self.best(other)][own]
        return fair


class _CrossCalibration:
    """Errors of rows that were not learned, for intervals and sets, from models of their own.

    model: the model before it learns; the other arguments are those of `Passes`.
    """

    def __init__(
        self,
        model: Model,
        examples: Examples,
        shuffle: Callable[[Array], Array],
        report: Callable[[str], Any],
        in_order: bool,
    ) -> None:
        self._untrained = _copy(model) if isinstance(model, HeldOutCalibrated) else None
        self._all, self._shuffle, self._report = examples, shuffle, report
        self._in_order = in_order

    def complete(self, model: Model, n: int, places: Array, forecasts: Array) -> None:
        """Calibrate a model that has learned all rows, n times, unless it is calibrated enough.

        places: the numbers of all rows. forecasts: predictions of the last of them, made before
            they were learned. They have calibrated the model.
        """
        start, end = perf_counter(), len(places) - len(forecasts)
        parts = self._parts(places[:end], places[end:], n)
        if not parts or not isinstance(model, HeldOutCalibrated):
            return
        errors = [self._errors_of(model, part, (places[:end], places[end:]), n) for part in parts]
        if n == 1 and len(forecasts):
            errors.append(model.held_out_errors(*self._all.take(places[end:])[:3], forecasts))
        model.calibrate(np.concatenate(errors))
        models = f"{len(parts)} more model{'s' if len(parts) > 1 else ''}"
        self._report(f"Calibration: {models}, {perf_counter() - start:.1f} s")

    def _parts(self, first: Array, last: Array, n: int) -> list[Array]:
        """Return which rows each further model leaves out: a tenth, the last ones first.

        After several passes, rows that are new to the model change how sure it is. The forecasts of
        the held-out rows are older than that, so the further models predict these rows, too.
        """
        rows, held = len(first) + len(last), len(last)
        size = max(1, round(_SHARE * rows))
        if self._untrained is None or rows < 2 or (self._in_order and held) or held >= ENOUGH:
            return []
        left_out = last[:0] if n == 1 else last
        lacking = ENOUGH - (held - len(left_out))
        number = min(-(-(len(first) + len(left_out)) // size), len(first))  # none is empty
        pairs = zip(np.array_split(first, number), np.array_split(left_out, number), strict=True)
        parts = [np.concatenate(pair) for pair in pairs][::-1]
        return parts[: 1 if self._in_order else -(-lacking // size)]

    def _errors_of(
        self, model: HeldOutCalibrated, part: Array, places: tuple[Array, Array], n: int
    ) -> Array:
        """Return the errors for some rows of a twin of the model, which learns only the others.

        As the model did, it learns the first ones of them n times, and then the last ones once.
        """
        twin: Any = copy.deepcopy(self._untrained)
        first, last = (some[~np.isin(some, part)] for some in places)
        orders = [first if k == 1 else self._shuffle(first) for k in range(1, n + 1)]
        learners = [_learner(twin, k) for k in range(1, n + 1)]
        for order, learn in zip([*orders, last], [*learners, twin.learn_many], strict=True):
            if len(order):
                learned = self._all.take(order)
                capture_warnings(partial(learn, learned.X, learned.y, learned.weights))  # it warned
        return model.held_out_errors(*self._all.take(part)[:3], by=twin)


def _held_out(rows: int) -> int:
    """Return the number of rows to hold out."""
    return int(min(max(_SHARE * rows, _FEWEST), _LARGEST_SHARE * rows))


def _check(model: Model, examples: Examples) -> None:
    """Raise a DataError if a row is invalid, before any row is learned.

    A copy of the model checks them: a model warns about a label once, when it is about to learn it.
    """
    X, y, weights, _ = examples
    capture_warnings(partial(copy.deepcopy(model).check, X, y, weights))


def _copy(model: Model) -> Model | None:
    """Return a copy; None if a learner of the user cannot be copied, so that no pass is undone."""
    try:
        return copy.deepcopy(model)
    except (TypeError, NotImplementedError, pickle.PickleError):
        return None


def _learner(model: Any, k: int) -> Learn:
    """Return the method that learns the rows of pass k."""
    return model.learn_many if k == 1 else model.learn_again


def _learn(model: Model, part: Examples, learn: Learn) -> Array:
    """Learn examples; errors and warnings name rows by their numbers in the user's data."""
    learned = model.labels.rows
    try:
        answers, caught = capture_warnings(partial(learn, part.X, part.y, part.weights))
    except DataError as error:
        raise DataError(int(part.numbers[error.row]), error.what, error.field) from None
    # the weights of a data set are relative, so a large mean of the first ones means nothing
    caught = [one for one in caught if not isinstance(one, WeightWarning)]
    reissue_warnings(renumber_warnings(caught, part.numbers, learned))
    return np.asarray(answers)


def _mean(losses: Array, weights: Array) -> float:
    """Return the weighted average of losses; 0 if all weights are 0."""
    total = float(weights.sum())
    return float(weights @ losses) / total if total > 0 else 0.0
