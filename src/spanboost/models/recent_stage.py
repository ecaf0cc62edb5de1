"""A stage of AutoBoost that follows drift: corrects its forecast by the rows learned last.

The experts remember everything, so they follow a stream that drifts with a delay. This stage has
candidates that know the last 1,000 rows only: their nearest neighbours (rows/recent_rows.py) and,
for classes, naive Bayes (rows/recent_classes.py). A second `Mixture` combines them with the
forecast of the experts. A candidate that does not help is asked rarely (asking.py); for the other
rows it repeats the forecast.

The stage holds training rows, so exports and compact models do not have it.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from spanboost import checks
from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import Caller, kernel
from spanboost.errors import ModelFileError, ParameterError
from spanboost.losses import Logistic, Softmax, resolve
from spanboost.models.asking import Asking, new_asking
from spanboost.models.mixture import Mixture
from spanboost.models.past_row import to_probability
from spanboost.models.past_stage import (
    StageLabels,
    StageRows,
    can_correct,
    label_frames,
    take_prefixed,
)
from spanboost.models.spec import AutoSpec
from spanboost.models.state import leaves
from spanboost.models.wrapper import fill_arrays
from spanboost.rows.block import Block, Cells
from spanboost.rows.recent_classes import RecentClasses, new_recent_classes, widen_classes
from spanboost.rows.recent_rows import MOST, RecentRows, new_recent_rows

NAMES = ("experts", "neighbours", "naive Bayes")
_STATE = "state"
_LEAST = 1e-300  # the smallest probability


@kernel
class RecentState(NamedTuple):
    """The last rows, the sums of classes, and which candidates are asked."""

    rows: RecentRows
    classes: RecentClasses
    asking: Asking

    def correct_row(self, x: Any, own: Array, out: Array) -> None:
        """Write the candidates for a row to out[values, K]; `own` is the forecast [values]."""
        neighbours, bayes = self.asking.asks(0), out.shape[1] > 1 and self.asking.asks(1)
        if neighbours or bayes:
            self.rows.load_row(x)
        if neighbours:
            self.rows.vote(own, out[:, 0])
        else:
            copy_values(own, out[:, 0])
        if bayes:
            self.classes.find_probabilities(self.rows, own, out[:, 1])
        elif out.shape[1] > 1:
            copy_values(own, out[:, 1])

    def learn_corrected(self, x: Any, own: Array, out: Array, label: float, unit: float) -> None:
        """Learn the row that was corrected last; errors are measured in this unit."""
        errors = 0.0
        for c in range(own.shape[0]):
            error = error_of(own, c, label) / unit
            errors += error * error
        for k in range(out.shape[1]):
            if self.asking.asks(k):
                if k == 1:
                    self.classes.learn_trust(out[:, k], int(label))
                self.judge_correction(k, own, out[:, k], label, unit)
        if self.asking.count_label(errors) and out.shape[1] > 1:
            self.classes.forget()
        self.rows.learn_row(x, label)
        if out.shape[1] > 1:
            self.classes.learn_class(self.rows, int(label))

    def judge_correction(self, k: int, own: Array, out: Array, label: float, unit: float) -> None:
        """Compare correction k with the error of the forecast."""
        errors, products, squares = 0.0, 0.0, 0.0
        for c in range(own.shape[0]):
            error, correction = error_of(own, c, label) / unit, (out[c] - own[c]) / unit
            errors += error * error
            products += error * correction
            squares += correction * correction
        self.asking.add_products(k, errors, products, squares)


@kernel
def error_of(own: Array, c: int, label: float) -> float:
    """Return the error of value c of a forecast: of a number, or of the probability of class c."""
    if own.shape[0] == 1:
        return label - own[c]
    return (1.0 if c == label else 0.0) - own[c]


@kernel
def copy_values(source: Array, target: Array) -> None:
    """Set the values of an array."""
    for c in range(source.shape[0]):
        target[c] = source[c]


def correct_rows(state: RecentState, X: Any, own: Array, out: Array) -> None:
    """Write the candidates for every row t to out[t]; learn nothing."""
    for t in range(own.shape[0]):
        state.correct_row(X.row(t), own[t], out[t])


def correct_and_learn_rows(
    state: RecentState, X: Any, own: Array, labels: Array, weights: Array, units: Array, out: Array
) -> None:
    """Like `correct_rows`, but learn each row that has a weight after its candidates are known."""
    for t in range(own.shape[0]):
        state.correct_row(X.row(t), own[t], out[t])
        if weights[t] > 0:
            state.learn_corrected(X.row(t), own[t], out[t], labels[t], units[t])


class RecentStage:
    """The last rows, and the weights of the candidates that know them."""

    def __init__(self, loss: Any) -> None:
        self.loss = resolve(loss)
        self.binary, self.scores = isinstance(self.loss, Logistic), isinstance(self.loss, Softmax)
        self.K = 2 if self.binary or self.scores else 1
        self.mixture = Mixture(self.loss, 1 + self.K)
        self.state = self._new_state(0, 0)
        self.call = Caller()

    @property
    def weights(self) -> dict[str, float]:
        """The weight of each candidate."""
        return self.mixture.named_weights(NAMES[: 1 + self.K])

    @property
    def awake(self) -> dict[str, bool]:
        """Whether each candidate is asked for every row."""
        awake = self.state.asking.awake.tolist()
        return {name: bool(one) for name, one in zip(NAMES[1:], awake, strict=False)}

    def predict(self, rows: StageRows) -> Array:
        """Return predictions; learn nothing."""
        own = self.values(rows.forecasts)
        out, state = np.empty((*own.shape, self.K)), self.prepare(rows.encoded, own)
        self.call(correct_rows, state, own_cells(rows.encoded), own, out)
        return self.mixture.combine(rows.units, self._candidates(rows, out))

    def learn(self, rows: StageRows, given: StageLabels) -> Array:
        """Learn rows, in order; return the predictions, each made before its label was seen."""
        own, labels = self.values(rows.forecasts), given.learned[:, 0].astype(np.float64)
        out, units = np.empty((*own.shape, self.K)), np.ones(len(own))
        if self.scores:
            labels = given.labels.argmax(axis=1).astype(np.float64)
        elif self.binary:
            labels = (1 + given.labels[:, 0]) / 2
        else:
            units = label_frames(rows.units, given.changes, len(own)).learned_half
        self.state = self.prepare(rows.encoded, own)
        arrays = own, labels, given.weights, units, out
        self.call(correct_and_learn_rows, self.state, own_cells(rows.encoded), *arrays)
        mixed = given.labels, given.weights, given.changes
        return self.mixture.learn(rows.units, self._candidates(rows, out), *mixed)

    def values(self, forecasts: Array) -> Array:
        """Return forecasts as numbers, or as probabilities of classes, [rows, values]."""
        if self.binary:
            chance = to_probability(forecasts)
            return np.stack([1 - chance, chance], axis=1)
        if self.scores:
            chances = np.exp(forecasts - forecasts.max(axis=1, keepdims=True))
            return np.ascontiguousarray(chances / chances.sum(axis=1, keepdims=True))
        return np.ascontiguousarray(forecasts[:, None], np.float64)

    def _candidates(self, rows: StageRows, out: Array) -> Array:
        """Return the forecasts of all candidates, [rows, d, K]."""
        own = rows.forecasts
        if self.scores:
            return np.dstack([own, np.log(np.maximum(out, _LEAST))])
        return np.dstack([own[:, None], self.forecasts_of(out)[:, None, :]])

    def forecasts_of(self, out: Array) -> Array:
        """Return the forecasts, [rows, K], of candidates whose predictions are numbers."""
        return _log_odds(out) if self.binary else out[:, 0]

    def prepare(self, block: Block, own: Array) -> RecentState:
        """Return the state with room for the rows of a block."""
        state = self.state
        number = block.columns + block.codes.shape[1]
        coordinates = max(len(state.rows.mean), min(number, MOST))
        classes = own.shape[1] if self.K > 1 else 0
        if coordinates > len(state.rows.mean):
            state = state._replace(rows=state.rows.widened(coordinates))
        if (classes, coordinates) != state.classes.mean.shape:
            state = state._replace(classes=widen_classes(state.classes, classes, coordinates))
        return state

    def _new_state(self, coordinates: int, classes: int) -> RecentState:
        sums = new_recent_classes(classes, coordinates)
        return RecentState(new_recent_rows(coordinates), sums, new_asking(self.K))

    def header(self) -> dict[str, Any]:
        """Return everything except the arrays, as JSON."""
        classes, coordinates = self.state.classes.mean.shape
        return {"coordinates": coordinates, "classes": classes}

    def tensors(self) -> Iterator[tuple[str, Array]]:
        """Yield the arrays of the stage, by name."""
        yield from self.mixture.tensors()
        for path, value, _ in leaves(self.state, _STATE):
            yield path, value

    def restore(self, header: dict[str, Any], tensors: dict[str, Array]) -> None:
        """Set the state to that of a header and arrays; a `ModelFileError` if they do not match."""
        coordinates, classes = header["coordinates"], header["classes"]
        if not (
            checks.is_integer(coordinates)
            and checks.is_integer(classes)
            and 0 <= coordinates <= MOST
            and 0 <= classes <= (checks.MOST_CLASSES if self.K > 1 else 0)
        ):
            raise ModelFileError("the number of coordinates or classes of recent rows is invalid")
        if not tensors:
            return
        self.state = self._new_state(coordinates, classes)
        arrays, trusted = take_prefixed(tensors, f"{_STATE}."), self.state.classes
        for name in ("trust", "curvature"):  # files of earlier versions lack them
            arrays.setdefault(f"classes.{name}", getattr(trusted, name))
        fill_arrays(self.state, arrays, _STATE)
        labels = self.state.rows.labels
        known = self.K == 1 or bool(((labels >= 0) & (labels < max(classes, 1))).all())
        if not (known and all(part.sound for part in self.state)):
            raise ModelFileError("the recent rows in the file are invalid")
        self.mixture.restore_last(tensors)


def own_cells(block: Block) -> Cells:
    """Return the rows of a block, to be read as cells, with scratch space of their own."""
    return Cells(*block[:6], *map(np.zeros_like, block[6:]))


def _log_odds(out: Array) -> Array:
    """Return the log-odds of the second of two classes."""
    odds: Array = np.log(np.maximum(out[:, 1], _LEAST)) - np.log(np.maximum(out[:, 0], _LEAST))
    return odds


def new_recent_stage(spec: AutoSpec) -> RecentStage | None:
    """Return the stage of a new AutoBoost; None if it has none."""
    possible = can_correct(spec.loss) or isinstance(resolve(spec.loss), Softmax)
    wanted = spec.budget != "fast" if spec.recent is None else spec.recent
    if spec.recent and not possible:
        raise ParameterError(
            "recent", "needs squared, absolute, Huber, quantile, logistic or softmax loss"
        )
    return RecentStage(spec.loss) if possible and wanted else None
