"""Python objects as weak learners: N deep copies of an object, run as plain Python."""

import copy
import inspect
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.learners.external import adapt_external
from spanboost.learners.protocol import Feedback, Learner, Task
from spanboost.rows.block import ObjectRows, Rows
from spanboost.rows.frame_rows import frame_to_dicts, is_frame
from spanboost.rows.validation import check_rows

_SINGLE = (
    "; if the learner predicts one number, give it the attribute single_output = True, and every "
    "output gets a copy of its own"
)


class CopyLoss:
    """The loss function that one copy receives in one round, with its value and slope anywhere.

    h: the prediction of the copy.
    weight: the weight of the row; value and slope already contain it.
    lipschitz: bound on the slope of every loss that this copy receives, at weight 1.
    smoothness: the curvature alpha^2 beta_B of these losses, at weight 1.
    D: bound on the predictions.
    linear: whether the slope is the same everywhere.

    All of them are in the units of the copy (see `Units`).
    """

    def __init__(self, feedback: Feedback, i: int, h: Array, task: Task, units: "Units") -> None:
        self._feedback, self._d, self._units = feedback.only(i), task.d, units
        self.h = self._out(h[:, i] / units.value)
        self.weight = float(feedback.weight)
        self.lipschitz = float(task.lipschitz[i]) / units.slope
        self.smoothness = float(task.smoothness[i]) * units.value / units.slope
        self.D, self.linear = task.D / units.value, task.linear

    def value(self, h: Any) -> float:
        """Return the loss of predicting h."""
        out = np.zeros(1)
        self._feedback.losses(self._column(h), out)
        return float(out[0]) / (self._units.value * self._units.slope)

    def slope(self, h: Any) -> Any:
        """Return the slope at h: a number if there is one output, else a vector."""
        out = np.empty((self._d, 1))
        self._feedback.slopes(self._column(h), out)
        return self._out(out[:, 0] / self._units.slope)

    def _column(self, h: Any) -> Array:
        return self._units.value * np.asarray(h, dtype=np.float64).reshape(self._d, 1)

    def _out(self, vector: Array) -> Any:
        return float(vector[0]) if self._d == 1 else vector.copy()


class Units(NamedTuple):
    """Factors that convert a copy's predictions and slopes to the units of the model.

    The state of an object cannot be rescaled. When the label range grows, the object keeps its
    first units, and its predictions and losses are converted.
    """

    value: float = 1.0
    slope: float = 1.0


class UpdatesByLoss(Protocol):
    """The methods of an object that learns from losses."""

    def predict(self, x: Any) -> Any:
        """Return a number, or a vector if there are several outputs."""

    def update(self, x: Any, loss: CopyLoss) -> None:
        """Learn from the loss function of the round."""


class ObjectLearner:
    """N independent deep copies of an object with `predict(x)` and `update(x, loss)`.

    An object that learns from targets, with `predict_one(x)` and `learn_one(x, y)`, is wrapped in
    `FromTargets`; a learner of another library is first wrapped by an adapter (external/). Rows are
    passed to the copies unchanged: arrays, dictionaries or anything else. The copies start equal,
    so an object that draws random numbers draws the same ones in all of them.

    A learner of targets that predicts one number has an attribute `single_output = True`. If a task
    has several outputs, each of them gets a copy of its own.
    """

    def __init__(self, prototype: Any) -> None:
        if isinstance(prototype, str):
            raise TypeError(
                f"learner must be an object, such as Trees() or LinearSGD() (got {prototype!r})"
            )
        if not _updates_by_loss(prototype):
            prototype = adapt_external(prototype)
        if not _updates_by_loss(prototype):
            if not (hasattr(prototype, "predict_one") and hasattr(prototype, "learn_one")):
                raise TypeError(_why_not(prototype))
            prototype = FromTargets(prototype)
        self.prototype = _copy(prototype)  # the original may change later

    @property
    def scalable(self) -> bool:
        """Whether the label range may grow; predictions and losses are then converted."""
        return True

    @property
    def weighted(self) -> bool:
        """Whether rows may have weights other than 1."""
        return bool(getattr(self.prototype, "weighted", True))

    @property
    def deterministic(self) -> bool:
        """Whether the object draws no random numbers; assumed unless it has `deterministic`."""
        return bool(getattr(self.prototype, "deterministic", True))

    def check(self, task: Task) -> None:
        """Raise a ValueError if the object cannot learn from the losses of this task."""
        if isinstance(self.prototype, FromTargets):
            self.prototype.check(task)

    def encode(self, X: Any, D: float) -> ObjectRows:
        """Return the rows, those of a frame as dictionaries, after checking for infinity."""
        if isinstance(X, Rows):
            raise ValueError(
                "Rows is not a sequence of rows: for a learner that is an object, pass an array, a "
                "data frame or a list of rows"
            )
        if is_frame(X):
            X = frame_to_dicts(X)
        return ObjectRows(check_rows(X))

    def bank(self, task: Task) -> "ObjectBank":
        """Return N deep copies."""
        prototype = self.prototype
        if task.d > 1 and getattr(prototype, "single_output", False) is True:
            prototype = EachOutput([prototype] * task.d)
        return ObjectBank([_copy(prototype) for _ in range(task.n)], task)


def _copy(learner: Any) -> Any:
    """Return a deep copy of a learner; raise a TypeError that names it if this fails."""
    try:
        return copy.deepcopy(learner)
    except Exception as error:
        raise TypeError(
            f"{_name(learner)} cannot be copied: {error}. Boosting "
            "learns copies of it: leave out the attribute, or define __deepcopy__(self, memo)"
        ) from error


def _why_not(given: Any) -> str:
    """Return why an object is not a weak learner."""
    name = type(given).__name__
    if hasattr(given, "fit") and hasattr(given, "predict"):
        return (
            f"{name} is not a weak learner: it learns from all rows at once; use "
            f"Refitted({name}(...)), which fits it again as rows come in, or a learner with "
            "partial_fit(X, y)"
        )
    return (
        f"{name} is not a weak learner: it needs predict(x) and update(x, loss), or predict_one(x) "
        "and learn_one(x, y), or predict(X) and partial_fit(X, y)"
    )


def as_learner(learner: Any) -> Learner:
    """Return a learner unchanged, and any other object as an `ObjectLearner`."""
    if isinstance(learner, type):
        raise TypeError(f"{learner.__name__} is a class: pass an instance, {learner.__name__}(...)")
    return learner if isinstance(learner, Learner) else ObjectLearner(learner)


def is_foreign(learner: Any) -> bool:
    """Return whether a learner is an object that `as_learner` wraps."""
    return not isinstance(learner, Learner)


def _updates_by_loss(item: Any) -> bool:
    return hasattr(item, "predict") and hasattr(item, "update")


class ObjectBank:
    """N objects."""

    def __init__(self, copies: list[UpdatesByLoss], task: Task) -> None:
        self.copies, self.task, self.units = copies, task, Units()

    def rescale(self, a: float, b: float) -> None:
        """Change the units. With a = 0 the range had no width, and only 0 was learned."""
        if a > 0:
            self.units = Units(self.units.value * a, self.units.slope * b)

    def predict(self, x: Any, h: Array) -> None:
        """Let each copy predict."""
        for i, learner in enumerate(self.copies):
            try:
                prediction = learner.predict(x)
            except Exception as error:
                _add_row(error, learner, x)
                raise
            values = _finite_values(prediction)
            if len(values) != len(h):
                hint = _SINGLE if len(values) == 1 else ""
                if missing := _missing(x):
                    row = f"the row {x!r:.200} has missing values ({missing})"
                    hint += f"; {row}: fill them in first"
                one = len(h) == 1
                needed = "one finite number is" if one else f"{len(h)} finite numbers are"
                raise ValueError(
                    f"weak learner {i}, {_name(learner)}, predicted {prediction!r:.200}; "
                    f"{needed} needed{hint}"
                )
            h[:, i] = self.units.value * values

    def update(self, x: Any, h: Array, feedback: Feedback) -> None:
        """Pass each copy its loss."""
        for i, learner in enumerate(self.copies):
            try:
                learner.update(x, CopyLoss(feedback, i, h, self.task, self.units))
            except Exception as error:
                _add_row(error, learner, x)
                raise


def _finite_values(prediction: Any) -> Array:
    """Return a prediction as a vector; an empty one if it is not made of finite numbers."""
    try:
        values = np.asarray(prediction, dtype=np.float64).reshape(-1)
    except (TypeError, ValueError):
        return np.zeros(0)
    return values if np.isfinite(values).all() else values[:0]


def _add_row(error: Exception, learner: Any, x: Any) -> None:
    """Add a note to an error of a learner: the row, and what to do about text in it."""
    note = f"{_name(learner)} raised this error for the row {x!r:.200}"
    texts = isinstance(x, dict) and any(isinstance(value, str) for value in x.values())
    if texts and isinstance(error, TypeError | ValueError):
        note += "; if it accepts only numbers, encode texts first, for example as 0 and 1"
    if missing := _missing(x):
        note += f"; the row has missing values ({missing}): fill them in first"
    error.add_note(note)


def _missing(x: Any) -> str:
    """Return the keys or columns of the values of a row that are missing, as text."""
    items = x.items() if isinstance(x, dict) else enumerate(x) if np.ndim(x) == 1 else ()
    names = [
        repr(name)
        for name, one in items
        if one is None or (isinstance(one, float | np.floating) and np.isnan(one))
    ]
    return f"{', '.join(names):.200}"


def _name(learner: Any) -> str:
    """Return the class of a copy as the user knows it."""
    return type(_unwrap(getattr(learner, "learner", learner))).__name__


def _unwrap(learner: Any) -> Any:
    """Return the learner of another library that an adapter holds; others unchanged."""
    return getattr(learner, "model", getattr(learner, "regressor", learner))


class FromTargets:
    """A learner that learns from pairs (x, y): each loss is converted to a target.

    Under greedy feedback, the target minimises the quadratic upper bound of the loss at the
    prediction h:

        target = h - slope(h) / (alpha^2 beta_B).

    For squared loss that is exactly (y - offset) / alpha. Under linear feedback the target is
    -D sign(slope), and the weight of the row is the size of the slope.
    """

    def __init__(self, learner: Any) -> None:
        self.learner = learner
        names = inspect.signature(learner.learn_one).parameters
        self._weight = next(
            (name for name in ("w", "weight", "sample_weight") if name in names), ""
        )

    @property
    def weighted(self) -> bool:
        """Whether `learn_one` accepts a weight."""
        return bool(self._weight) and bool(getattr(self.learner, "weighted", True))

    @property
    def deterministic(self) -> bool:
        """Whether the learner draws no random numbers; assumed unless it has `deterministic`."""
        return bool(getattr(self.learner, "deterministic", True))

    @property
    def single_output(self) -> bool:
        """Whether the learner predicts one number; it predicts one for each output otherwise."""
        return bool(getattr(self.learner, "single_output", False))

    def check(self, task: Task) -> None:
        """Raise a ValueError if the losses cannot be converted to targets."""
        name = type(_unwrap(self.learner)).__name__
        if not self.weighted and not task.smoothness.all():
            raise ValueError(
                f"{name}.learn_one takes no weight, but the rows of linear losses are weighted by "
                "the slope: use greedy feedback and a loss that is smooth and not linear"
            )
        if not np.isfinite(task.smoothness).all():
            raise ValueError(
                f"a loss with a kink has no target, and {name} learns from targets only: "
                "use Huber(0.1) or another smooth loss; feedback='linear' takes any loss, if "
                "learn_one takes a weight, but often has a higher error"
            )

    def predict(self, x: Any) -> Any:
        """Return the learner's prediction."""
        return self.learner.predict_one(x)

    def update(self, x: Any, loss: CopyLoss) -> None:
        """Convert the loss to a target and learn from it."""
        self.learn(x, *target_of(loss))

    def learn(self, x: Any, target: Any, weight: float) -> None:
        """Learn from a target, unless its weight is 0."""
        if weight == 0:
            return
        if self.weighted:
            self.learner.learn_one(x, target, **{self._weight: weight})
        else:
            self.learner.learn_one(x, target)


class EachOutput:
    """Learners of targets that predict one number each, one for each output."""

    def __init__(self, outputs: Sequence[FromTargets]) -> None:
        self.outputs = [copy.deepcopy(one) for one in outputs]

    @property
    def learner(self) -> Any:
        """The learner of the first output."""
        return self.outputs[0].learner

    def predict(self, x: Any) -> list[Any]:
        """Return the predictions of all outputs."""
        return [one.predict(x) for one in self.outputs]

    def update(self, x: Any, loss: CopyLoss) -> None:
        """Convert the loss to a target for each output, and learn from them."""
        target, weight = target_of(loss)
        for one, number in zip(self.outputs, target.tolist(), strict=True):
            one.learn(x, number, weight)


def target_of(loss: CopyLoss) -> tuple[Any, float]:
    """Return the target and the weight for a loss function (see `FromTargets`)."""
    slope = loss.slope(loss.h)
    if loss.smoothness > 0:
        return loss.h - slope / (loss.weight * loss.smoothness), loss.weight
    size = float(np.linalg.norm(slope))
    return (-loss.D * slope / size if size else slope), size
