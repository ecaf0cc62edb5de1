"""SpanBoost and HullBoost: Algorithm 1 and Algorithm 2 over any weak learner."""

import math
from typing import Any, NamedTuple

import numpy as np

from spanboost import losses
from spanboost.checks import float_type, is_number
from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import Caller
from spanboost.core.algorithms import Hull, Span, new_trace
from spanboost.core.feedback import GreedyMode, LinearMode
from spanboost.core.loop import BoosterState, learn, predict
from spanboost.learners.objects import as_learner
from spanboost.learners.protocol import Task
from spanboost.losses import constant, degree, radius
from spanboost.models.parameters import check, check_fit
from spanboost.rows.block import as_rows
from spanboost.rows.encoder import EncodedBlock, RowEncoder
from spanboost.rows.labels import (
    GROWING,
    FixedLabels,
    GrowingLabels,
    Labels,
    Widening,
    check_weights,
)
from spanboost.rows.replay import ReplayMemory


class CheckedBlock(NamedTuple):
    """A block that a model can learn."""

    reading: EncodedBlock
    labels: Array  # [rows, d] in the model's units
    weights: Array  # [rows]
    widenings: list[Widening]


class Booster:
    """What both algorithms share: parameters, rows and labels at the border, the block calls."""

    _default_offset: str
    steps_: Array  # [N] eta for Algorithm 1, 2 / (i + 1) for Algorithm 2
    reach_: float  # radius of the ball the partial sums live in: B, or lambda D

    def __init__(
        self,
        learner: Any,
        n: int,
        *,
        loss: Any,
        feedback: str,
        alpha: float | None,
        offset: str | None,
        scale: float,
        D: float,
        label_range: tuple[float, float] | str,
        replay: int,
        memory: int,
        seed: int,
    ) -> None:
        self.learner, self.n, self.loss, self.feedback = learner, n, loss, feedback
        self.alpha, self.offset, self.scale, self.D = alpha, offset, scale, D
        self.label_range, self.replay, self.memory, self.seed = label_range, replay, memory, seed
        check(self)
        self.n = n = int(n)
        self._learner = as_learner(learner)
        self.loss_ = losses.resolve(loss)
        self._vector_loss = losses.on_vectors(self.loss_)
        self.offset_ = offset or self._default_offset
        self._d = int(self._vector_loss.d)
        self._labels = self._new_labels()
        self.smooth_ = not math.isinf(constant(self.loss_, "beta", scale * D))
        if not (
            self.smooth_ or feedback == "greedy" or getattr(self._learner, "deterministic", True)
        ):
            raise ValueError(
                "a loss with a kink under linear feedback (corollary 1) needs a deterministic "
                "learner: use feedback='greedy' or a learner that does not draw at random"
            )
        self.schema: Any = None  # how files were read for it (data/schema.py), if they were
        self._model: BoosterState | None = None
        self._features, self._width = 0, 0  # in all, and in one row: the bank has room for those
        self._dtype = float_type(getattr(self._learner, "dtype", np.float64))
        self._reader = RowEncoder(self._learner, D)
        self._memory = ReplayMemory(int(replay), int(memory), int(seed)) if replay else None
        self._call = Caller()
        self._label, self._out = np.zeros((2, 1, self._d), self._dtype)
        self._one = np.ones(1, self._dtype)

    def predict_one(self, x: Any) -> Any:
        """The prediction for one row: a number, or a vector of R^d."""
        reading = self._reader.single(x)
        if reading is None:
            return single_answer(self.predict_many([x]))
        self._call(predict, self._start(reading, 0), reading.rows, self._out, 0, 1)
        return self._labels.answer(self._out)

    def learn_one(self, x: Any, y: Any, weight: float = 1.0) -> Any:
        """Learn one row; returns the prediction made before the label was seen."""
        label = self._labels.single(y) if weight == 1 else None
        reading = None if label is None else self._reader.single(x)
        if reading is None:
            return single_answer(self.learn_many([x], [y], [weight]))
        self._label[0, 0] = label
        self._accept(reading, 1)
        self._learn(reading, self._label, self._one, self._out, 0, 1)
        return self._labels.answer(self._out)

    def predict_many(self, X: Any) -> Array:
        """Predictions for a block of rows; learns nothing."""
        reading = self._reader.read(X)
        out = np.empty((reading.number, self._d), self._dtype)
        self._call(predict, self._start(reading, 0), reading.rows, out, 0, len(out))
        return self._labels.to_user(out)

    def learn_many(self, X: Any, y: Any, weights: Any = None) -> Array:
        """Learn a block of rows, in order; returns the predictions, each made before its label.

        The whole block is checked first: either every row is learned or, with a `DataError` that
        names the first bad one, none. (If a learner of your own raises, the rows before, and part
        of that row, have been learned.) A row of weight 0 is predicted, not learned.
        """
        return self.learn_checked(self.checked(X, y, weights))

    def checked(self, X: Any, y: Any, weights: Any = None) -> CheckedBlock:
        """A block in the model's terms, checked: a `DataError` names the first bad row."""
        reading = self._reader.read(X)
        allowed = getattr(self._learner, "weighted", True)
        weights = check_weights(weights, reading.number, allowed, self._dtype)
        labels, widenings = self._labels.plan(y, weights)
        return CheckedBlock(reading, np.ascontiguousarray(labels, self._dtype), weights, widenings)

    def learn_checked(self, block: CheckedBlock) -> Array:
        """Learn a block that was checked; nothing else may have been learned since."""
        reading, labels, weights, widenings = block
        self._accept(reading, int(np.count_nonzero(weights)))
        out, answers, first, answered = np.empty_like(labels), [], 0, 0
        for new in widenings:
            # a row that widens the range is answered before, as if it had no weight; learned, and
            # answered again, after
            self._learn(reading, labels, weights, out, first, new.row)
            self._learn(reading, labels, 0 * weights, out, new.row, new.row + 1)
            answers.append(self._labels.to_user(out[answered : new.row + 1]))
            self._widen(new)
            first, answered = new.row, new.row + 1
        self._learn(reading, labels, weights, out, first, len(out))
        answers.append(self._labels.to_user(out[answered:]))
        return np.concatenate(answers)

    def learn_scaled(self, X: Any, y: Any, weights: Any = None) -> tuple[Array, Array, Array]:
        """As `learn_many`, in the model's own units: predictions and labels [rows, d], weights.

        These are the units of the theorems: labels in [-1, 1], a range that does not grow.
        """
        if self.label_range in GROWING:
            raise ValueError(
                f"label_range={self.label_range!r} changes the model's units as it learns, and "
                "learn_scaled, hence an audit, needs fixed ones: give label_range=(low, high)"
            )
        reading, labels, weights, _ = self.checked(X, y, weights)
        self._accept(reading, int(np.count_nonzero(weights)))
        out = np.empty_like(labels)
        self._learn(reading, labels, weights, out, 0, len(out))
        return out, labels, weights

    @property
    def started(self) -> bool:
        """Whether it has seen a row."""
        return self._model is not None

    def __repr__(self) -> str:
        state = "started" if self.started else "fresh"
        return f"<{type(self).__name__}: {self.n} copies of {self.learner!r}, {state}>"

    def _new_labels(self) -> Labels:
        if not isinstance(self.label_range, str):
            return FixedLabels(self.loss_, self._d, self.label_range)
        if getattr(self._learner, "scalable", False) is not True:
            raise ValueError(
                f"label_range={self.label_range!r} scales what was learned when a label exceeds "
                f"the range, and {type(self.learner).__name__} cannot be scaled: give "
                "label_range=(low, high)"
            )
        return GrowingLabels(self.loss_, self._d, self.label_range)

    def _start(self, reading: EncodedBlock, features: int) -> BoosterState:
        """The model, made when the first rows show how wide they are, with room for this block.

        To predict takes no features: unknown ones are absent, but scratch must be wide enough.
        """
        model = self._model
        if model is None:
            bank = self._learner.bank(self._task._replace(rows=reading.encoded))
            model = BoosterState(
                self._algorithm(),
                self._mode,
                self._vector_loss,
                bank,
                self._dtype(self.D),
                self._trace(),
            )
        if features > self._features or reading.width > self._width:
            room = max(features, self._features), max(reading.width, self._width)
            model = model._replace(bank=model.bank.grown(*room))
            self._features, self._width = room  # only now: compiled code relies on it
        if self._memory is not None and reading.encoded is not None:
            self._memory.reserve(reading.encoded, self._d, self._dtype)
        self._model, self._reader.kind = model, reading.kind
        return model

    def _accept(self, reading: EncodedBlock, learned: int) -> None:
        """These rows are about to be given to the model, which learns so many of them."""
        self._start(reading, reading.features)
        self._reader.accept(reading)
        self._labels.count(reading.number, learned)

    def _learn(
        self,
        reading: EncodedBlock,
        labels: Array,
        weights: Array,
        out: Array,
        first: int,
        last: int,
    ) -> None:
        """Rows `first` to before `last` of a block through the loop; `out` is what it answered."""
        if self._memory is None:
            self._call(learn, self._model, reading.rows, labels, weights, out, first, last)
            return
        for piece in self._memory.pieces(reading.encoded, labels, weights, first, last):
            answers = np.empty_like(piece.labels)
            rows, rounds = as_rows(piece.rows), len(answers)
            self._call(learn, self._model, rows, piece.labels, piece.weights, answers, 0, rounds)
            out[piece.first : piece.last] = answers[piece.place]

    def _widen(self, new: Widening) -> None:
        """Wider units for the model, in which its functions are, to the user, what they were."""
        a = self._labels.widen(new)
        if self._memory is not None:
            self._memory.rescale(a)
        if self._model is not None:  # slopes are one degree below the loss
            self._model.bank.rescale(a, a ** (degree(self.loss_) - 1))

    def _prepare(self, own: float | None = None) -> None:
        """Once steps and reach are known: how copies get their losses; what the learner is told.

        own: the learner's own choice of alpha.
        """
        linear = self.feedback == "linear"
        lipschitz, smoothness = np.ones(self.n), np.zeros(self.n)
        self._mode: LinearMode | GreedyMode = LinearMode()
        if not linear:
            fixed = own if self.alpha is None else self.alpha
            step = self.steps_ if fixed is None else np.full(self.n, float(fixed))
            alpha = self.scale * step  # the copy's h is scaled by lambda before it is added
            farthest = self.reach_ + alpha * self.D  # the supplement's B' = B + alpha D
            lipschitz = alpha * [constant(self.loss_, "L", b) for b in farthest]
            smoothness = alpha**2 * constant(self.loss_, "beta", self.reach_)
            self._mode = GreedyMode(alpha.astype(self._dtype), self.offset_ == "shrunk")
        self._task = Task(
            n=self.n,
            d=self._d,
            rows=None,
            D=float(self.D),
            linear=linear,
            lipschitz=lipschitz,
            smoothness=smoothness,
            seed=int(self.seed),
            copy=np.arange(self.n),
            rounds=1 + int(self.replay),
        )
        self._learner.check(self._task)
        check_fit(
            self, self._dtype, float(np.max(smoothness, initial=0, where=smoothness < np.inf))
        )

    def _algorithm(self) -> Any:
        raise NotImplementedError

    def _trace(self) -> Any:
        return new_trace(self._d, self.n, self._dtype)


class SpanBoost(Booster):
    """Algorithm 1: N copies of a weak learner, competing with the span of its functions.

    learner: a built-in learner, or any object with predict(x) and update(x, loss), or with
        predict_one(x) and learn_one(x, y).
    n: number of copies N.
    eta: step in [1/n, 1]; None is max(1/n, ln n / n).
    loss: a name or a loss object (spanboost.losses).
    feedback: "linear" passes the printed linear losses, "greedy" the actual losses (supplement).
        With a loss that is not smooth, linear feedback is corollary 1; greedy is allowed, but no
        theorem covers it.
    alpha: step of greedy fitting; None is what the learner asks for, or the booster's own step.
    offset: of greedy fitting; "printed" is y^{i-1}, "shrunk" what the copy is really added to.
    scale: lambda, which multiplies the copies' predictions.
    D: bound on the copies' predictions (cut to it) and on the class.
    B: radius of the partial sums; None is the paper's formula.
    label_range: (low, high) is mapped onto [-1, 1]; predictions are mapped back, unless they are
        scores of a margin loss. "auto" is a range around the first label that grows with the
        labels, "auto-zero" one around 0: what was learned is scaled, so that predictions stay as
        they are. Before the first label they are 0. A label that makes it more than 10 times
        as wide, after 30 others, is a `LabelWarning`, once. Not for learners that cannot be scaled
        (finite classes), nor for losses whose predictions are scores.
    replay: so many rows of the past, drawn at random, are learned again after each new row
        (replay.py): less error, more time. The theorems are for 0.
    memory: how many of the last rows replay draws from. They are kept, and saved with the model.
    seed: for learners that draw at random, and of replay.

    >>> from spanboost import LinearBall, SpanBoost
    >>> model = SpanBoost(LinearBall(), n=8)
    >>> for _ in range(200):
    ...     for x, y in (([1.0, 0.0], 0.8), ([0.0, 1.0], -0.4)):
    ...         prediction = model.learn_one(x, y)
    >>> round(float(model.predict_one([1.0, 0.0])), 1)
    0.8
    """

    _default_offset = "printed"

    def __init__(
        self,
        learner: Any,
        n: int = 32,
        eta: float | None = None,
        *,
        loss: Any = "squared",
        feedback: str = "greedy",
        alpha: float | None = None,
        offset: str | None = None,
        scale: float = 1.0,
        D: float = 1.0,
        B: float | None = None,
        label_range: tuple[float, float] | str = (-1, 1),
        replay: int = 0,
        memory: int = 50_000,
        seed: int = 0,
    ) -> None:
        self.eta, self.B = eta, B
        super().__init__(
            learner,
            n,
            loss=loss,
            feedback=feedback,
            alpha=alpha,
            offset=offset,
            scale=scale,
            D=D,
            label_range=label_range,
            replay=replay,
            memory=memory,
            seed=seed,
        )
        if eta is None:
            eta = max(1 / n, math.log(n) / n)
        elif not (is_number(eta) and eta * n >= 1 - 1e-12 and eta <= 1):
            raise ValueError(f"eta={eta!r} is not allowed: a step in [1/n, 1] = [{1 / n:g}, 1]")
        self.eta_ = float(eta)
        self.steps_ = np.full(self.n, self.eta_)
        self.B_ = self.reach_ = self._radius()
        if not math.isfinite(self.B_):
            raise ValueError(f"B = {self.B_:g}: n, D and scale are too large")
        self.L_B_ = constant(self.loss_, "L", self.B_)
        self._prepare(getattr(self._learner, "greedy_step", None))

    def paper_radius(self) -> float:
        """B as the paper sets it, for these parameters."""
        reach = self.scale * self.D
        if not self.smooth_ and self.feedback == "linear":
            return self.eta_ * self.n * reach  # corollary 1
        return radius(self.loss_, self.eta_, self.n, reach)

    def _radius(self) -> float:
        if self.B is None:
            return self.paper_radius()
        least = self.scale * self.D
        if not (is_number(self.B) and least <= self.B < math.inf):
            raise ValueError(
                f"B={self.B!r} is not allowed: a number not below scale * D = {least:g}"
            )
        return float(self.B)

    @property
    def sigma_(self) -> Array:
        """The shrinkage of every copy, as it stands now."""
        if self._model is None:
            return np.zeros(self.n)
        sigma: Array = self._model.algorithm.sigma.copy()
        return sigma

    def _algorithm(self) -> Span:
        return Span(
            eta=self.steps_.astype(self._dtype),
            sigma=np.zeros(self.n, self._dtype),
            t=np.zeros(1, dtype=np.int64),
            B=self._dtype(self.B_),
            L_B=self._dtype(self.L_B_),
            scale=self._dtype(self.scale),
            at_final=not self.smooth_ and self.feedback == "linear",
        )


class HullBoost(Booster):
    """Algorithm 2: N copies of a weak learner, competing with the convex hull of its functions.

    Parameters as for `SpanBoost`, but the steps are the paper's 2 / (i + 1), which greedy fitting
    takes as its alpha unless one is given (whatever the learner asks for: what an average lacks
    later copies cannot add), and its default offset is "shrunk".
    """

    _default_offset = "shrunk"

    def __init__(
        self,
        learner: Any,
        n: int = 32,
        *,
        loss: Any = "squared",
        feedback: str = "greedy",
        alpha: float | None = None,
        offset: str | None = None,
        scale: float = 1.0,
        D: float = 1.0,
        label_range: tuple[float, float] | str = (-1, 1),
        replay: int = 0,
        memory: int = 50_000,
        seed: int = 0,
    ) -> None:
        super().__init__(
            learner,
            n,
            loss=loss,
            feedback=feedback,
            alpha=alpha,
            offset=offset,
            scale=scale,
            D=D,
            label_range=label_range,
            replay=replay,
            memory=memory,
            seed=seed,
        )
        self.steps_ = 2 / (np.arange(1, self.n + 1) + 1.0)
        self.reach_ = self.scale * self.D
        self.L_D_ = constant(self.loss_, "L", self.reach_)
        self._prepare()

    def _algorithm(self) -> Hull:
        return Hull(
            eta=self.steps_.astype(self._dtype),
            L_D=self._dtype(self.L_D_),
            scale=self._dtype(self.scale),
            at_final=not self.smooth_ and self.feedback == "linear",
            linear=self.feedback == "linear",
        )


def single_answer(answers: Array) -> Any:
    """The answer to a single row: a float, or a vector."""
    return answers[0] if answers.ndim > 1 else answers.item()
