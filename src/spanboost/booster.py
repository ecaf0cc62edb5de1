"""SpanBoost and HullBoost: Algorithm 1 and Algorithm 2 over any weak learner."""

import math
from typing import Any

import numpy as np

from spanboost import losses
from spanboost.algorithms import Hull, Span
from spanboost.errors import DataError
from spanboost.feedback import GreedyMode, LinearMode
from spanboost.learners.objects import ObjectLearner
from spanboost.learners.protocol import Learner, Task
from spanboost.loop import Model, learn, predict
from spanboost.losses import Array, constant, radius


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
        label_range: tuple[float, float],
        seed: int,
    ) -> None:
        self.learner, self.n, self.loss, self.feedback = learner, n, loss, feedback
        self.alpha, self.offset, self.scale, self.D = alpha, offset, scale, D
        self.label_range, self.seed = label_range, seed
        self._check()
        self._learner = learner if isinstance(learner, Learner) else ObjectLearner(learner)
        self.loss_ = losses.resolve(loss)
        self._d = int(getattr(self.loss_, "d", 1))
        self.offset_ = offset or self._default_offset
        self.smooth_ = not math.isinf(constant(self.loss_, "beta", scale * D))
        self._check_determinism()
        self._model: Model | None = None
        self._features: int | None = None

    def predict_one(self, x: Any) -> Any:
        """The prediction for one row: a number, or a vector of R^d."""
        return self.predict_many(_one(x))[0]

    def learn_one(self, x: Any, y: Any, weight: float = 1.0) -> Any:
        """Learn one row; returns the prediction made before the label was seen."""
        return self.learn_many(_one(x), [y], [weight])[0]

    def predict_many(self, X: Any) -> Array:
        """Predictions for a block of rows; learns nothing."""
        rows = self._rows(X)
        out = np.empty((len(X), self._d))
        predict(self._start(X, rows), rows, out)
        return self._to_user(out)

    def learn_many(self, X: Any, y: Any, weights: Any = None) -> Array:
        """Learn a block of rows, in order; returns the predictions, each made before its label.

        The whole block is checked first: either every row is learned or, with a `DataError` that
        names the first bad one, none. A row of weight 0 is predicted, not learned.
        """
        return self._to_user(self.learn_scaled(X, y, weights)[0])

    def learn_scaled(self, X: Any, y: Any, weights: Any = None) -> tuple[Array, Array, Array]:
        """As `learn_many`, in the model's own units: predictions and labels [rows, d], weights.

        These are the units of the theorems: labels in [-1, 1].
        """
        rows = self._rows(X)
        labels = self._labels(y, len(X))
        weights = self._weights(weights, len(X))
        out = np.empty((len(X), self._d))
        learn(self._start(X, rows), rows, labels, weights, out)
        return out, labels, weights

    # -- the border: parameters

    def _check(self) -> None:
        def require(good: bool, name: str, allowed: str) -> None:
            if not good:
                raise ValueError(f"{name}={getattr(self, name)!r} is not allowed: {allowed}")

        require(_whole(self.n) and self.n >= 1, "n", "a whole number of copies, at least 1")
        require(_number(self.D) and 0 < self.D < math.inf, "D", "a number above 0")
        require(_number(self.scale) and 0 < self.scale < math.inf, "scale", "a number above 0")
        require(self.feedback in ("linear", "greedy"), "feedback", "'linear' or 'greedy'")
        require(self.offset in (None, "printed", "shrunk"), "offset", "None, 'printed' or 'shrunk'")
        require(
            self.alpha is None or (_number(self.alpha) and 0 < self.alpha < math.inf),
            "alpha",
            "None (the booster's own step) or a number above 0",
        )
        require(_whole(self.seed) and self.seed >= 0, "seed", "a whole number, at least 0")
        limits = self.label_range
        require(
            isinstance(limits, tuple | list)
            and len(limits) == 2
            and all(_number(v) and math.isfinite(v) for v in limits)
            and limits[0] < limits[1],
            "label_range",
            "two finite numbers, the lower first",
        )
        for name in ("alpha", "offset"):
            require(
                self.feedback == "greedy" or getattr(self, name) is None,
                name,
                "only greedy feedback has it, and feedback='linear'",
            )

    def _check_determinism(self) -> None:
        deterministic = getattr(self._learner, "deterministic", True)
        if not self.smooth_ and self.feedback == "linear" and not deterministic:
            raise ValueError(
                "a loss with a kink under linear feedback (corollary 1) needs a deterministic "
                "learner: use feedback='greedy' or a learner that does not draw at random"
            )

    # -- the border: rows, labels, weights, predictions

    def _rows(self, X: Any) -> Any:
        if isinstance(self._learner, ObjectLearner) and not isinstance(X, np.ndarray):
            return X
        if len(X) == 0:
            raise ValueError("the block has no rows")
        try:
            block = np.asarray(X, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"rows must be numbers, all of one width: {error}") from None
        if block.ndim < 2:
            raise ValueError(f"a block is rows x features; this one has shape {block.shape}")
        if self._features not in (None, block.shape[1]):
            raise DataError(0, f"the row has {block.shape[1]} features, the model {self._features}")
        bad = np.isinf(block).reshape(len(block), -1).any(axis=1)
        if bad.any():
            raise DataError(int(bad.argmax()), "a feature is infinite")
        return self._learner.encode(block)

    def _labels(self, y: Any, rows: int) -> Array:
        if len(y) != rows:
            raise ValueError(f"{rows} rows but {len(y)} labels")
        if isinstance(self.loss_, losses.Softmax):
            return self._classes(y)
        try:
            given = np.asarray(y, dtype=np.float64).reshape(rows, self._d)
        except (TypeError, ValueError):
            raise ValueError(f"labels must be numbers, {self._d} to a row") from None
        _first(~np.isfinite(given).all(axis=1), lambda t: f"the label is {_show(given[t])}")
        low, high = self.label_range
        labels: Array = (given - (low + high) / 2) / ((high - low) / 2)
        _first(
            np.sqrt((labels * labels).sum(axis=1)) > 1 + 1e-12,
            lambda t: f"the label {_show(given[t])} is outside label_range=({low:g}, {high:g})",
        )
        if getattr(self.loss_, "binary", False):
            _first(
                (np.abs(labels) != 1).any(axis=1),
                lambda t: (
                    f"the label {_show(given[t])} is neither {low:g} nor {high:g}, the two "
                    f"labels of {type(self.loss_).__name__}"
                ),
            )
        return labels

    def _classes(self, y: Any) -> Array:
        given = np.asarray(y)
        classes = np.arange(self._d)
        _first(
            ~np.isin(given, classes),
            lambda t: f"the label {given[t]!r} is not a class 0 to {self._d - 1}",
        )
        return np.eye(self._d)[given.astype(np.int64)]

    def _weights(self, weights: Any, rows: int) -> Array:
        if weights is None:
            return np.ones(rows)
        if len(weights) != rows:
            raise ValueError(f"{rows} rows but {len(weights)} weights")
        given = np.array(weights, dtype=np.float64)
        _first(
            ~((given >= 0) & (given < np.inf)),
            lambda t: f"the weight is {given[t]:g}; it must be finite and not negative",
        )
        if not getattr(self._learner, "weighted", True):
            _first(
                (given != 0) & (given != 1),
                lambda t: f"the weight is {given[t]:g}, and the learner takes no weights",
            )
        return given

    def _to_user(self, out: Array) -> Array:
        if not losses.predicts_scores(self.loss_):
            low, high = self.label_range
            out = (low + high) / 2 + (high - low) / 2 * out
        return out[:, 0] if self._d == 1 else out

    # -- the model

    def _start(self, X: Any, rows: Any) -> Model:
        """The model, made when the first rows show how wide they are."""
        if self._model is None:
            algorithm = self._algorithm()
            mode, lipschitz, smoothness = self._mode()
            bank = self._learner.bank(
                Task(
                    self.n,
                    self._d,
                    rows,
                    float(self.D),
                    self.feedback == "linear",
                    lipschitz,
                    smoothness,
                    self.seed,
                )
            )
            loss = losses.on_vectors(self.loss_)
            self._model = Model(algorithm, mode, loss, bank, np.float64(self.D))
            if isinstance(rows, np.ndarray):
                self._features = len(X[0])
        return self._model

    def _mode(self) -> tuple[LinearMode | GreedyMode, Array, Array]:
        """How copies get their losses, and what bounds those losses' slope and curvature."""
        if self.feedback == "linear":
            return LinearMode(), np.ones(self.n), np.zeros(self.n)
        step = self.steps_ if self.alpha is None else np.full(self.n, float(self.alpha))
        alpha = self.scale * step  # the copy's h is scaled by lambda before it is added
        reach = self.reach_ + alpha * self.D  # the supplement's B' = B + alpha D
        lipschitz = alpha * [constant(self.loss_, "L", b) for b in reach]
        smoothness = alpha**2 * constant(self.loss_, "beta", self.reach_)
        return GreedyMode(alpha, self.offset_ == "shrunk"), lipschitz, smoothness

    def _algorithm(self) -> Span | Hull:
        raise NotImplementedError


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
    alpha: step of greedy fitting; None is eta.
    offset: of greedy fitting; "printed" is y^{i-1}, "shrunk" what the copy is really added to.
    scale: lambda, which multiplies the copies' predictions.
    D: bound on the copies' predictions (cut to it) and on the class.
    B: radius of the partial sums; None is the paper's formula.
    label_range: (low, high) is mapped onto [-1, 1]; predictions are mapped back, unless they are
        scores of a margin loss.
    seed: for learners that draw at random.

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
        label_range: tuple[float, float] = (-1, 1),
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
            seed=seed,
        )
        self.eta_ = max(1 / n, math.log(n) / n) if eta is None else float(eta)
        if not (self.eta_ * n >= 1 - 1e-12 and self.eta_ <= 1):
            raise ValueError(f"eta={eta!r} is not allowed: a step in [1/n, 1] = [{1 / n:g}, 1]")
        self.steps_ = np.full(n, self.eta_)
        self.B_ = self.reach_ = self._radius()
        self.L_B_ = constant(self.loss_, "L", self.B_)

    def _radius(self) -> float:
        reach = self.scale * self.D
        if self.B is not None:
            if not (_number(self.B) and reach <= self.B < math.inf):
                raise ValueError(
                    f"B={self.B!r} is not allowed: a number not below scale * D = {reach:g}"
                )
            return float(self.B)
        if not self.smooth_ and self.feedback == "linear":
            return self.eta_ * self.n * reach  # corollary 1
        return radius(self.loss_, self.eta_, self.n, reach)

    @property
    def sigma_(self) -> Array:
        """The shrinkage of every copy, as it stands now."""
        if self._model is None:
            return np.zeros(self.n)
        sigma: Array = self._model.algorithm.sigma.copy()
        return sigma

    def _algorithm(self) -> Span:
        return Span(
            eta=self.steps_,
            sigma=np.zeros(self.n),
            t=np.zeros(1, dtype=np.int64),
            B=np.float64(self.B_),
            L_B=np.float64(self.L_B_),
            scale=np.float64(self.scale),
            at_final=not self.smooth_ and self.feedback == "linear",
        )


class HullBoost(Booster):
    """Algorithm 2: N copies of a weak learner, competing with the convex hull of its functions.

    Parameters as for `SpanBoost`; the steps are the paper's 2 / (i + 1), and "shrunk" is the
    default offset of greedy fitting.
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
        label_range: tuple[float, float] = (-1, 1),
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
            seed=seed,
        )
        self.steps_ = 2 / (np.arange(1, n + 1) + 1.0)
        self.reach_ = self.scale * self.D
        self.L_D_ = constant(self.loss_, "L", self.reach_)

    def _algorithm(self) -> Hull:
        return Hull(
            eta=self.steps_,
            L_D=np.float64(self.L_D_),
            scale=np.float64(self.scale),
            at_final=not self.smooth_ and self.feedback == "linear",
        )


def _one(x: Any) -> Any:
    """A block of one row."""
    return np.asarray(x)[None] if isinstance(x, np.ndarray | list | tuple) else [x]


def _first(bad: Any, what: Any) -> None:
    if bad.any():
        t = int(bad.argmax())
        raise DataError(t, what(t))


def _show(label: Array) -> str:
    return f"{label[0]:g}" if len(label) == 1 else f"{label}"


def _number(value: Any) -> bool:
    return isinstance(value, int | float | np.floating | np.integer) and not isinstance(value, bool)


def _whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)
