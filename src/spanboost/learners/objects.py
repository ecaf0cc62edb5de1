"""Any object as a weak learner: N deep copies of it, run as plain Python."""

import copy
import inspect
from typing import Any, NamedTuple, Protocol

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.learners.external import adapt_external
from spanboost.learners.protocol import Feedback, Learner, Task
from spanboost.rows.block import ObjectRows, Rows
from spanboost.rows.validation import any_rows


class CopyLoss:
    """The loss function one copy receives in one round: value and slope at any prediction.

    `h` is what the copy predicted, `weight` the row's importance (already in value and slope).
    At weight 1 `lipschitz` bounds the slope of every loss this copy will get, and `smoothness` is
    their curvature alpha^2 beta_B as the booster reckons it; `D` bounds the predictions, `linear`
    says that the slope is the same everywhere. All of it is in the copy's own units (`Units`).
    """

    def __init__(self, feedback: Feedback, i: int, h: Array, task: Task, units: "Units") -> None:
        self._feedback, self._d, self._units = feedback.only(i), task.d, units
        self.h = self._out(h[:, i] / units.value)
        self.weight = float(feedback.weight)
        self.lipschitz = float(task.lipschitz[i]) / units.slope
        self.smoothness = float(task.smoothness[i]) * units.value / units.slope
        self.D, self.linear = task.D / units.value, task.linear

    def value(self, h: Any) -> float:
        """The loss of predicting h."""
        out = np.zeros(1)
        self._feedback.losses(self._column(h), out)
        return float(out[0]) / (self._units.value * self._units.slope)

    def slope(self, h: Any) -> Any:
        """Its slope at h: a number for one output, else a vector."""
        out = np.empty((self._d, 1))
        self._feedback.slopes(self._column(h), out)
        return self._out(out[:, 0] / self._units.slope)

    def _column(self, h: Any) -> Array:
        return self._units.value * np.asarray(h, dtype=np.float64).reshape(self._d, 1)

    def _out(self, vector: Array) -> Any:
        return float(vector[0]) if self._d == 1 else vector.copy()


class Units(NamedTuple):
    """What a copy's predictions, and the slopes of its losses, are worth in the model's units.

    Nobody can scale what an object has learned. Where the label range grows, the object stays in
    the units in which it began, and what it says and hears is converted.
    """

    value: float = 1.0
    slope: float = 1.0


class UpdatesByLoss(Protocol):
    """What an object must offer to be boosted as it is."""

    def predict(self, x: Any) -> Any:
        """A number, or a vector for several outputs."""

    def update(self, x: Any, loss: CopyLoss) -> None:
        """Learn from the loss function of this round."""


class ObjectLearner:
    """N independent deep copies of an object with `predict(x)` and `update(x, loss)`.

    An object that only learns from targets, with `predict_one(x)` and `learn_one(x, y)`, is wrapped
    in `FromTargets`; those of other libraries in what makes them such objects (external/). Rows go
    to the copies as they are: arrays, dictionaries, anything. The copies start equal: an object
    that draws at random draws the same in all of them.
    """

    def __init__(self, prototype: Any) -> None:
        if not _updates_by_loss(prototype):
            prototype = adapt_external(prototype)
        if not _updates_by_loss(prototype):
            if not (hasattr(prototype, "predict_one") and hasattr(prototype, "learn_one")):
                raise TypeError(
                    f"{type(prototype).__name__} is no weak learner: it needs predict(x) and "
                    "update(x, loss), or predict_one(x) and learn_one(x, y), or predict(X) and "
                    "partial_fit(X, y)"
                )
            prototype = FromTargets(prototype)
        self.prototype = copy.deepcopy(prototype)  # the user's own may go on changing

    @property
    def scalable(self) -> bool:
        """The label range may grow: what objects say is converted."""
        return True

    @property
    def weighted(self) -> bool:
        """Whether rows may have weights other than 1."""
        return bool(getattr(self.prototype, "weighted", True))

    @property
    def deterministic(self) -> bool:
        """Whether the object says that it does not draw at random, or nothing."""
        return bool(getattr(self.prototype, "deterministic", True))

    def check(self, task: Task) -> None:
        """Targets cannot stand for every loss."""
        if isinstance(self.prototype, FromTargets):
            self.prototype.check(task)

    def encode(self, X: Any, D: float) -> ObjectRows:
        """Rows as they are."""
        if isinstance(X, Rows) or hasattr(X, "columns"):
            raise ValueError(
                f"objects learn row by row, and {type(X).__name__} is no sequence of rows: give an "
                "array, or a list of rows, such as frame.to_dict('records')"
            )
        return ObjectRows(any_rows(X))

    def bank(self, task: Task) -> "ObjectBank":
        """N deep copies."""
        return ObjectBank([copy.deepcopy(self.prototype) for _ in range(task.n)], task)


def as_learner(learner: Any) -> Learner:
    """A learner as it is, any other object as one."""
    if isinstance(learner, type):
        raise TypeError(f"{learner.__name__} is a class: give an object, {learner.__name__}(...)")
    return learner if isinstance(learner, Learner) else ObjectLearner(learner)


def _updates_by_loss(item: Any) -> bool:
    return hasattr(item, "predict") and hasattr(item, "update")


class ObjectBank:
    """The copies themselves."""

    def __init__(self, copies: list[UpdatesByLoss], task: Task) -> None:
        self.copies, self.task, self.units = copies, task, Units()

    def rescale(self, a: float, b: float) -> None:
        """In wider units; of a range without width nothing but 0 was learned, in any units."""
        if a > 0:
            self.units = Units(self.units.value * a, self.units.slope * b)

    def predict(self, x: Any, h: Array) -> None:
        """Ask each copy in turn."""
        for i, learner in enumerate(self.copies):
            prediction = learner.predict(x)
            values = np.asarray(prediction, dtype=np.float64)
            if values.size != len(h) or not np.isfinite(values).all():
                raise ValueError(
                    f"weak learner {i} predicted {prediction!r}; {len(h)} finite values are needed"
                )
            h[:, i] = self.units.value * values.reshape(-1)

    def update(self, x: Any, h: Array, feedback: Feedback) -> None:
        """Give each copy its loss."""
        for i, learner in enumerate(self.copies):
            learner.update(x, CopyLoss(feedback, i, h, self.task, self.units))


class FromTargets:
    """A learner that only accepts (x, y), given the target its loss function asks for.

    Greedy feedback: the minimiser of the loss's quadratic upper bound at the prediction h,

        target = h - slope(h) / (alpha^2 beta_B),

    which for squared loss is exactly (y - offset) / alpha. Linear feedback: -D sign(slope), with
    the size of the slope as the weight of the row.
    """

    def __init__(self, learner: Any) -> None:
        self.learner = learner
        names = inspect.signature(learner.learn_one).parameters
        self._weight = next(
            (name for name in ("w", "weight", "sample_weight") if name in names), ""
        )

    @property
    def weighted(self) -> bool:
        """Whether the learner takes a weight with a row."""
        return bool(self._weight) and bool(getattr(self.learner, "weighted", True))

    @property
    def deterministic(self) -> bool:
        """Whether the learner says that it does not draw at random, or nothing."""
        return bool(getattr(self.learner, "deterministic", True))

    def check(self, task: Task) -> None:
        """Refuse losses that no target stands for."""
        name = type(self.learner).__name__
        if not self.weighted and not task.smoothness.all():
            raise ValueError(
                f"{name}.learn_one takes no weight, and a linear loss says by the weight how much "
                "a row matters: use feedback='greedy' and a loss that is smooth and not linear"
            )
        if not np.isfinite(task.smoothness).all():
            raise ValueError(
                f"no target stands for a loss with a kink, and {name} learns from targets only: "
                "use another loss, or feedback='linear' if learn_one takes a weight"
            )

    def predict(self, x: Any) -> Any:
        """As the learner predicts."""
        return self.learner.predict_one(x)

    def update(self, x: Any, loss: CopyLoss) -> None:
        """Learn from the target."""
        target, weight = target_of(loss)
        if weight == 0:
            return
        if self.weighted:
            self.learner.learn_one(x, target, **{self._weight: weight})
        else:
            self.learner.learn_one(x, target)


def target_of(loss: CopyLoss) -> tuple[Any, float]:
    """The target and the weight that stand for a loss function (see `FromTargets`)."""
    slope = loss.slope(loss.h)
    if loss.smoothness > 0:
        return loss.h - slope / (loss.weight * loss.smoothness), loss.weight
    size = float(np.linalg.norm(slope))
    return (-loss.D * slope / size if size else slope), size
