"""Learn a data set in several passes, and choose their number by the loss of held-out rows."""

import copy
import pickle
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from spanboost.analysis.progressive import losses_of
from spanboost.checks import is_integer
from spanboost.compiling.arrays import Array
from spanboost.errors import DataError, capture_warnings, reissue_warnings, renumber_warnings
from spanboost.models.model import Model
from spanboost.rows.block import Rows

AUTO = "auto"  # the number of passes that stands for a choice
MOST_PASSES = 10
MOST_ROWS = 100_000  # larger data sets get one pass
GAIN = 0.01  # a further pass must lower the loss of held-out rows by this share
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
    """

    def __init__(
        self,
        examples: Examples,
        shuffle: Callable[[Array], Array],
        report: Callable[[str], Any] | None = None,
    ) -> None:
        self._all, self._shuffle = examples, shuffle
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
        places = np.arange(len(self._all.y))
        for k in range(n):
            start, part = perf_counter(), self._all.take(self._shuffle(places))
            answers = _learn(model, part, again=k > 0)
            loss = _mean_loss(model, part, answers)
            self._report(f"Pass {k + 1} of {n}: loss {loss:.6g}, {perf_counter() - start:.1f} s")
        return model

    def choose(self, model: Model) -> tuple[Model, int]:
        """Learn the data in as many passes as seem best; return the model and their number.

        The last rows of the first pass are held out: a tenth, but at least 100, and at most a
        quarter of the data. There are further passes over the other rows while each lowers the
        loss of the held-out rows by 1 %. The model after the last pass that did so is kept, and
        learns the held-out rows.
        """
        rows = len(self._all.y)
        held = int(min(max(_SHARE * rows, _FEWEST), _LARGEST_SHARE * rows))
        if rows > MOST_ROWS or held < 1:
            return self.run(model, 1), 1
        places = self._shuffle(np.arange(rows))
        held_out, first = self._all.take(places[-held:]), places[:-held]
        _check(model, self._all)
        best, passes, lowest = model, 1, np.inf
        for k in range(1, MOST_PASSES + 1):
            start = perf_counter()
            order = first if k == 1 else self._shuffle(first)
            _learn(model, self._all.take(order), again=k > 1)
            loss = _mean_loss(model, held_out, model.predict_many(held_out.X))
            self._report(f"Pass {k}: held-out loss {loss:.6g}, {perf_counter() - start:.1f} s")
            if k > 1 and not loss < (1 - GAIN) * lowest:
                break
            snapshot = _copy(model)
            best, passes, lowest = snapshot or model, k, loss
            if snapshot is None:
                break
        _learn(best, held_out)
        return best, passes


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


def _learn(model: Model, part: Examples, *, again: bool = False) -> Array:
    """Learn examples; errors and warnings name rows by their numbers in the user's data."""
    learn, learned = model.learn_again if again else model.learn_many, model.labels.rows
    try:
        answers, caught = capture_warnings(partial(learn, part.X, part.y, part.weights))
    except DataError as error:
        raise DataError(int(part.numbers[error.row]), error.what) from None
    reissue_warnings(renumber_warnings(caught, part.numbers, learned))
    return np.asarray(answers)


def _mean_loss(model: Model, part: Examples, answers: Array) -> float:
    """Return the weighted average of the losses; 0 if all weights are 0."""
    total = float(part.weights.sum())
    return float(part.weights @ losses_of(model, part.y, answers)) / total if total > 0 else 0.0
