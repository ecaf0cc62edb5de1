"""SpanBoost and HullBoost: Algorithm 1 and Algorithm 2 over any weak learner."""

import math
from collections.abc import Iterator
from typing import Any, ClassVar, Self, cast

import numpy as np

from spanboost import losses
from spanboost.checks import float_type
from spanboost.compiling.arrays import Array
from spanboost.compiling.interrupts import finishes
from spanboost.core.algorithms import Hull, Span
from spanboost.core.coefficients import coefficients
from spanboost.core.loop import BoosterState, predict
from spanboost.core.trace import new_trace
from spanboost.errors import ParameterError
from spanboost.learners.constructors import own_constructor
from spanboost.learners.contributions import shrinkage
from spanboost.learners.objects import as_learner
from spanboost.learners.protocol import Learner
from spanboost.models.booster_core import BoosterCore, CheckedBlock
from spanboost.models.default_choice import chooses_by_default
from spanboost.models.header import parameters_from_json, parameters_to_json
from spanboost.models.label_ranges import new_labels
from spanboost.models.model import Model
from spanboost.models.spec import CHOOSE, BoosterSpec, SpanSpec, default_step
from spanboost.models.state import core_header, core_tensors, restore_core
from spanboost.models.task import check_constants, task_and_mode
from spanboost.models.widening import ABSENT, class_spans, widen_core
from spanboost.rows.encoder import EncodedBlock, RowEncoder
from spanboost.rows.labels import Labels
from spanboost.rows.replay import ReplayMemory
from spanboost.rows.row_sample import RowSample
from spanboost.rows.user_types import LabelLike, RowLike, RowsLike


class Booster(BoosterSpec, Model):
    """Base class of both algorithms. The fields of the specification are its arguments."""

    default_offset: ClassVar[str]
    steps_: Array  # [N] eta for Algorithm 1, 2 / (i + 1) for Algorithm 2
    reach_: float  # radius of the ball that holds the partial sums: B, or lambda D
    core: BoosterCore

    __repr__ = Model.__repr__
    __eq__ = object.__eq__  # models with equal parameters are still different models
    __hash__ = object.__hash__

    def __new__(cls, learner: Any = None, n: Any = None, eta: Any = None, **given: Any) -> Any:
        """Return a booster; one that chooses n or eta online is a `Choosing`."""
        chooses = CHOOSE in [value for value in (n, eta) if isinstance(value, str)]
        if chooses or (n is None and chooses_by_default(learner, **given)):
            from spanboost.models.choice import CLASSES

            return object.__new__(CLASSES.get(cls, cls))
        return object.__new__(cls)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._build()

    def _build(self) -> None:
        """Set the constants of the loss and the state before the first row."""
        self._begin(losses.resolve(self.loss))

    def _begin(self, loss: Any) -> None:
        """Set everything that depends on the loss, with a core that has learned nothing."""
        learner = as_learner(self.learner)
        self.loss_ = loss
        self.offset_ = self.offset or self.default_offset
        self.smooth_ = not math.isinf(losses.constant(self.loss_, "beta", self.scale * self.D))
        labels = new_labels(self, learner)
        greedy = self.feedback == "greedy"
        if not (self.smooth_ or greedy or getattr(learner, "deterministic", True)):
            raise ValueError(
                "a loss with a kink under linear feedback (Corollary 1) needs a deterministic "
                "learner: use greedy feedback or a learner that does not draw at random"
            )
        self._set_steps()
        dtype = float_type(getattr(learner, "dtype", np.float64))
        task, mode = task_and_mode(self, learner, dtype)
        learner.check(task)
        check_constants(self, dtype, task.smoothness)
        state = BoosterState(
            algorithm=self.new_algorithm(dtype),
            mode=mode,
            loss=losses.on_vectors(self.loss_),
            bank=None,
            D=dtype(self.D),
            trace=new_trace(task.d, self.n, dtype),
        )
        self.core = BoosterCore(learner, task, state, labels, self._new_memory(learner))
        self._label, self._out = np.zeros((2, 1, task.d), dtype)  # buffers for single rows
        self._weight = np.ones(1, dtype)

    @property
    def labels(self) -> Labels:
        """The label range so far, and how many rows were seen."""
        return self.core.labels

    @property
    def encoder(self) -> RowEncoder:
        """The encoder of rows, with their kind and the names of features."""
        return self.core.encoder

    @property
    def started(self) -> bool:
        """Whether the booster has seen a row."""
        return self.core.started

    def predict_one(self, x: RowLike) -> float | Array:
        """Return the prediction for one row: a number, or a vector of R^d."""
        rows = self.encoder.single(x)
        if rows is None:
            return super().predict_one(x)
        core = self.core
        core.call(predict, core.prepare(rows, 0), rows.rows, self._out, 0, 1)
        return core.labels.answer(self._out)

    def learn_one(self, x: RowLike, y: LabelLike, weight: float = 1.0) -> float | Array:
        """Learn one row; return the prediction made before the label was seen."""
        core = self.core
        label = core.labels.single(y) if weight == 1 and core.records is None else None
        rows = None if label is None else core.encoder.single(x)
        if label is None or rows is None:
            return super().learn_one(x, y, weight)
        self._label[0, 0] = label
        core.accept(rows)
        core.learn_span(rows, self._label, self._weight, self._out, self._run, 0, 1)
        core.count_single(rows, cast("float", y), label)
        return core.labels.answer(self._out)

    def predict_many(self, X: RowsLike) -> Array:
        """Return predictions for a block of rows; learn nothing."""
        rows = self.core.encoder.read(X)
        return self.predict_encoded(rows, 0, rows.number)

    def predict_encoded(self, rows: EncodedBlock, first: int, last: int) -> Array:
        """Return predictions for the rows first <= t < last of an encoded block."""
        core = self.core
        out = np.empty((last, core.d), core.dtype)
        core.call(predict, core.prepare(rows, 0), rows.rows, out, first, last)
        return core.labels.to_user(out[first:])

    def check(self, X: Any, y: Any, weights: Any = None) -> CheckedBlock:
        """Return a block that the model can learn; a `DataError` names the first bad row."""
        return self.core.check(X, y, weights)

    @finishes
    def learn_checked(self, block: CheckedBlock) -> Array:
        """Learn a block that was checked; nothing else may have been learned since."""
        if block.labels.shape[1] > self.core.d:
            return self._learn_with_new_classes(block)
        return np.concatenate(self.core.learn_parts(block, self._run, self.labels.to_user))

    def _learn_with_new_classes(self, block: CheckedBlock) -> Array:
        """Learn a block; classes are added before the row of their first label is predicted.

        The scores of a class in rows before that are ABSENT.
        """
        scores = np.full(block.labels.shape, ABSENT)
        self.core.accept(block.rows)
        self.core.count(block)
        for first, last, d in class_spans(block.labels, self.core.d):
            self.add_classes(d)
            labels = np.ascontiguousarray(block.labels[:, :d])
            out = np.empty_like(labels)
            self.core.learn_span(block.rows, labels, block.weights, out, self._run, first, last)
            scores[first:last, :d] = out[first:last]
        return scores

    def add_classes(self, d: int) -> None:
        """Make room for d classes in total; what was learned stays."""
        if d == self.core.d:
            return
        narrow = self.core
        self._begin(losses.Softmax(d))
        widen_core(self.core, narrow)

    def learn_scaled(self, X: Any, y: Any, weights: Any = None) -> tuple[Array, Array, Array]:
        """Learn a block; return predictions and labels [rows, d] in the model's units, and weights.

        These are the units of the theorems: labels in [-1, 1], a range that does not grow.
        """
        self.check_fixed("learn_scaled")
        if isinstance(self.label_range, str):
            raise ValueError(
                f"learn_scaled and audits need a fixed label range: label_range="
                f"{self.label_range!r} changes the model's units as it learns, so give "
                "label_range=(low, high)"
            )
        block = self.check(X, y, weights)
        (out,) = self.core.learn_parts(block, self._run, np.copy)
        return out, block.labels, block.weights

    def as_booster(self) -> "Booster":
        """Return the model itself."""
        return self

    def check_fixed(self, use: str) -> None:
        """Raise a UserError if n or eta is chosen online, which this use does not allow."""

    def row_weights(self) -> tuple[Array, float]:
        """Return the weight of each copy in the row that was predicted last, and a constant."""
        trace = self.core.state.trace
        sums = trace.kept + self.steps_ * self.scale * trace.h
        weights = coefficients(self.steps_, self.sigma_, shrinkage(sums, self.reach_))
        return self.scale * weights, 0.0

    @property
    def row_sample(self) -> RowSample | None:
        """Some of the rows that the booster has learned; None if it is part of AutoBoost."""
        return self.core.sample

    def parameters(self) -> dict[str, Any]:
        """Return the class ("booster") and the parameters of the model, as JSON."""
        return parameters_to_json(self)

    def details(self) -> dict[str, Any]:
        """Return what `inspect` shows besides parameters, as JSON."""
        return {}

    def header(self) -> dict[str, Any]:
        """Return everything except the arrays, as JSON."""
        return self.parameters() | core_header(self.core) | self.encoder.header()

    def tensors(self) -> Iterator[tuple[str, Array]]:
        """Yield the arrays of a booster that has started, by name."""
        return core_tensors(self.core)

    @classmethod
    def restore(cls, header: dict[str, Any], tensors: dict[str, Array]) -> Self:
        """Build the booster from a header and arrays; a `ModelFileError` if they do not match."""
        model = cls(**parameters_from_json(header))
        if losses.adds_classes(model.loss):
            model.add_classes(len(header["labels"]["centre"]))
        model.restore_state(header, tensors)
        return model

    def restore_state(self, header: dict[str, Any], tensors: dict[str, Array]) -> None:
        """Set the state to that of a header and arrays; a `ModelFileError` if they do not match."""
        restore_core(self.core, header, tensors)
        self.encoder.restore_keys(header)

    def new_algorithm(self, dtype: Any) -> Any:
        """Return the algorithm before its first round."""
        raise NotImplementedError

    def _set_steps(self) -> None:
        """Set `steps_`, `reach_` and the constants of the loss."""
        raise NotImplementedError

    def lipschitz(self) -> float:
        """Return the Lipschitz constant of the loss over the ball of the partial sums."""
        raise NotImplementedError

    def greedy_step(self, learner: Learner) -> float | None:
        """Return the alpha that the learner asks for, if the algorithm uses it."""
        return None

    def _run(
        self, rows: Any, labels: Array, weights: Array, out: Array, first: int, last: int
    ) -> None:
        self.core.learn_rows(rows, labels, weights, out, first, last)

    def _new_memory(self, learner: Learner) -> ReplayMemory | None:
        if not self.replay:
            return None
        if self.replay_weight != 1 and not getattr(learner, "weighted", True):
            raise ParameterError("replay_weight", "must be 1: the learner does not support weights")
        counts = int(self.replay), int(self.memory), int(self.seed)
        classes = isinstance(self.loss_, losses.Softmax)
        return ReplayMemory(*counts, weight=float(self.replay_weight), classes=classes)


@own_constructor({"step": "eta"})
class SpanBoost(Booster, SpanSpec):
    """Algorithm 1: N copies of a weak learner, competing with the span of its functions.

    learner: a built-in learner, or any object with predict(x) and update(x, loss), or with
        predict_one(x) and learn_one(x, y).
    n: number of copies N. "auto" chooses it online, up to 100 trees, 8 copies of an object that
        runs as plain Python, or 32 copies of another learner (docs/online-choice.md). None is
        "auto" for such objects, with eta="auto", and 32 for other learners.
    eta: step in [1/n, 1]; None is max(1/n, ln n / n). "auto" chooses it online.
    loss: a name or a loss object (spanboost.losses).
    feedback: "linear" gives the copies the linear losses of the listing, "greedy" the losses
        themselves (supplement). With a loss that is not smooth, linear feedback is Corollary 1;
        greedy feedback is allowed, but no theorem covers it.
    alpha: step of greedy fitting; None is the learner's choice, or else the booster's own step.
    offset: point that greedy fitting starts from; "printed" is y^{i-1}, "shrunk" is the partial
        sum after shrinking, to which the copy is added.
    scale: lambda, which multiplies the copies' predictions.
    D: bound on the norm of the copies' predictions (larger ones are clipped) and of the class.
    B: radius of the partial sums; None is the paper's formula.
    label_range: (low, high) is mapped onto [-1, 1]; predictions are mapped back, unless they are
        scores of a margin loss. "auto" is a range around the first label that follows the labels
        (rows/label_history.py): it widens and shrinks, and what was learned is rescaled. A label
        far outside the recent ones is learned as if it were at their end. If the labels get new
        units, so do predictions. "growing" widens to include every label. "auto-zero" and
        "growing-zero" do the same around 0. A `LabelWarning` reports the first label far outside
        the others and the first change of units. These ranges need a learner that can be rescaled
        (not a finite class) and a loss that does not predict scores.
    replay: number of earlier rows, drawn at random, to learn again after each new row
        (rows/replay.py): lower error, more time. The theorems hold for 0.
    memory: number of recent rows that replay draws from. They are kept, and saved with the model.
    replay_weight: factor on the importance weight of replayed rows; below 1 they count less than
        new rows.
    seed: random seed of the learner and of replay.

    >>> from spanboost import LinearBall, SpanBoost
    >>> model = SpanBoost(LinearBall(), n=8)
    >>> for _ in range(200):
    ...     for x, y in (([1.0, 0.0], 0.8), ([0.0, 1.0], -0.4)):
    ...         prediction = model.learn_one(x, y)
    >>> round(float(model.predict_one([1.0, 0.0])), 1)
    0.8
    """

    default_offset = "printed"

    def paper_radius(self) -> float:
        """Return B as the paper sets it for these parameters."""
        reach = self.scale * self.D
        if not self.smooth_ and self.feedback == "linear":
            return self.eta_ * self.n * reach  # Corollary 1
        return losses.radius(self.loss_, self.eta_, self.n, reach)

    @property
    def sigma_(self) -> Array:
        """The current shrinkage of every copy."""
        if not self.started:
            return np.zeros(self.n)
        sigma: Array = self.core.state.algorithm.sigma.copy()
        return sigma

    def details(self) -> dict[str, Any]:
        """Return what `inspect` shows besides parameters, as JSON."""
        return {"sigma": self.sigma_.astype(float).tolist()}

    def new_algorithm(self, dtype: Any) -> Span:
        """Return Algorithm 1 before its first round."""
        return Span(
            eta=self.steps_.astype(dtype),
            sigma=np.zeros(self.n, dtype),
            t=np.zeros(1, dtype=np.int64),
            B=dtype(self.B_),
            L_B=dtype(self.L_B_),
            scale=dtype(self.scale),
            at_final=not self.smooth_ and self.feedback == "linear",
        )

    def _set_steps(self) -> None:
        self.eta_ = default_step(self.n) if self.eta is None else float(self.eta)
        self.steps_ = np.full(self.n, self.eta_)
        self.B_ = self.reach_ = self.paper_radius() if self.B is None else float(self.B)
        if not math.isfinite(self.B_):
            raise ValueError(f"n, D and scale are too large: B = {self.B_:g} is not finite")
        self.L_B_ = losses.constant(self.loss_, "L", self.B_)

    def lipschitz(self) -> float:
        """Return the Lipschitz constant of the loss over the ball of the partial sums."""
        return self.L_B_

    def greedy_step(self, learner: Learner) -> float | None:
        """Return the alpha that the learner asks for."""
        return getattr(learner, "greedy_step", None)


@own_constructor({"step": "eta"})
class HullBoost(Booster):
    """Algorithm 2: N copies of a weak learner, competing with the convex hull of its functions.

    The parameters are those of `SpanBoost` without eta and B. The steps are the paper's
    2 / (i + 1). If alpha is not given, greedy fitting uses these steps and ignores the alpha that
    the learner asks for: later copies cannot add what an average lacks. The default offset is
    "shrunk".
    """

    default_offset = "shrunk"

    def new_algorithm(self, dtype: Any) -> Hull:
        """Return Algorithm 2 before its first round."""
        return Hull(
            eta=self.steps_.astype(dtype),
            L_D=dtype(self.L_D_),
            scale=dtype(self.scale),
            at_final=not self.smooth_ and self.feedback == "linear",
            linear=self.feedback == "linear",
        )

    def _set_steps(self) -> None:
        self.steps_ = 2 / (np.arange(1, self.n + 1) + 1.0)
        self.reach_ = self.scale * self.D
        self.L_D_ = losses.constant(self.loss_, "L", self.reach_)

    def lipschitz(self) -> float:
        """Return the Lipschitz constant of the loss over the ball of the partial sums."""
        return self.L_D_
