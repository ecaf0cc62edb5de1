"""A finite class of functions, learned by Hedge.

For M functions, R(T) = 2 D (2 sqrt(T/2 ln M) + sqrt(ln M / 8)), because a 1-Lipschitz linear loss
of a prediction of norm at most D lies in an interval of width 2 D. The randomised learner predicts
with one function drawn from Hedge's weights. Against an adversary that does not see the draws, R(T)
then holds in expectation, and with probability 1 - delta after adding 2 D sqrt(T/2 ln(1/delta)).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel
from spanboost.compiling.random_numbers import are_streams, streams, uniform
from spanboost.core.experts import hedge_rate, hedge_regret, is_round
from spanboost.errors import ParameterError
from spanboost.learners.protocol import Feedback, Task
from spanboost.rows.validation import parse_rows, refuse_first

Function = Callable[[Any], Any]


@dataclass(frozen=True)
class FiniteClass:
    """Hedge over a finite class of functions.

    functions: each maps a row to a number, or to a vector in R^d, of norm at most D. Without
        functions, the row itself holds the values of the M functions, [M] or [M, d].
    randomised: whether to predict with one function drawn at random, not the mixture of all.
    """

    functions: Sequence[Function] | None = None
    randomised: bool = False

    @property
    def deterministic(self) -> bool:
        """Whether the same stream always gives the same predictions, whatever the seed."""
        return not self.randomised

    def check(self, task: Task) -> None:
        """Raise a ValueError if there are no functions, or other values than functions."""
        if not isinstance(self.randomised, bool):
            raise ParameterError("randomised", f"must be True or False (got {self.randomised!r})")
        if self.functions is None:
            return
        if len(tuple(self.functions)) == 0:
            raise ValueError("FiniteClass needs at least one function")
        if not all(map(callable, self.functions)):
            raise ParameterError("functions", "must be functions of a row")

    def encode(self, X: Any, D: float = math.inf) -> Array:
        """Return the values of all functions on each row, [rows, M, d]."""
        values = self._values(X)
        norms = _largest_norms(values)
        finite = np.isfinite(norms)
        refuse_first(~finite, lambda t: "a function of the class has no finite value for this row")
        refuse_first(
            norms > D * (1 + 1e-9),
            lambda t: f"the value of a function has norm {norms[t]:g}, above D={D:g}",
        )
        return values

    def _values(self, X: Any) -> Array:
        if self.functions is None:
            X = parse_rows(X, 3 if np.ndim(X) == 3 else 2)
        else:
            X = parse_rows(X).view()
            X.flags.writeable = False  # so that a function that writes to its row fails
            X = np.array([[f(x) for f in self.functions] for x in X], dtype=np.float64)
        values = np.ascontiguousarray(X, dtype=np.float64)
        return values[:, :, None] if values.ndim == 2 else values

    def bank(self, task: Task) -> "FiniteBank":
        """Return N copies of Hedge with equal weights."""
        _, M, d = task.rows.shape
        if d != task.d:
            raise ValueError(f"the functions have {d} outputs, but the loss has {task.d}")
        rng = streams(task.seed, task.n)
        return FiniteBank(
            sums=np.zeros((M, task.n)),
            best=np.zeros(task.n),
            t=np.ones(1, dtype=np.int64),
            spread=2 * task.D * task.lipschitz,
            randomised=self.randomised,
            rng=rng,
            scratch=FiniteScratch(np.zeros((task.d, task.n)), np.zeros(task.n), rng.copy()),
        )

    def regret(self, T: int, D: float) -> float:
        """Return R(T) as in the module's docstring; this needs `functions`, to count them."""
        if self.functions is None:
            raise ValueError("R(T) depends on the number of functions: call hedge_regret instead")
        return hedge_regret(len(self.functions), T, 2 * D)


def _largest_norms(values: Array) -> Array:
    """Return the largest norm of a function's value in each row."""
    if values.shape[2] == 1:  # without copying a block that may be large
        return np.asarray(np.maximum(values.max(axis=(1, 2)), -values.min(axis=(1, 2))))
    with np.errstate(over="ignore"):
        return np.asarray(np.sqrt((values * values).sum(axis=2)).max(axis=1))


def symmetric(functions: Sequence[Function]) -> list[Function]:
    """Return the functions, their negations and the zero function, as the paper assumes."""
    return [*functions, *(Times(-1.0, f) for f in functions), Times(0.0, functions[0])]


@dataclass(frozen=True)
class Times:
    """A function multiplied by a factor."""

    factor: float
    function: Function

    def __call__(self, x: Any) -> Any:
        return self.factor * np.asarray(self.function(x))


class FiniteScratch(NamedTuple):
    """Scratch space for one round."""

    point: Array  # [d, N] the value of one function, repeated for all copies
    loss: Array  # [N] the loss of predicting it
    rng: Array  # [N, 6] states of the random streams after this round


@kernel
class FiniteBank(NamedTuple):
    """N copies of Hedge over M functions. A row holds their values, x[function, output]."""

    sums: Array  # [M, N] summed losses of every function, in each copy
    best: Array  # [N] the smallest of these sums
    t: Array  # [1] number of the next round
    spread: Array  # [N] width of the interval that contains the losses
    randomised: bool
    rng: Array  # [N, 6] state of each copy's random stream
    scratch: FiniteScratch

    @property
    def sound(self) -> bool:
        """Whether `_draw` ends: some function has the smallest sum, and the streams are random."""
        best = bool((self.best == self.sums.min(axis=0, initial=np.inf)).all())
        rates = bool((self.spread > 0).all()) and is_round(self.t[0])
        return best and rates and are_streams(self.rng)

    def predict(self, x: Array, h: Array) -> None:
        """Predict Hedge's weighted mean of the functions, or one function drawn by the weights."""
        if self.randomised:
            _draw(self, x, h)
        else:
            _mix(self, x, h)

    def update(self, x: Array, h: Array, feedback: Feedback) -> None:
        """Add the loss of every function to its sum, in all copies at once."""
        best = self.best
        best.fill(np.inf)
        for j in range(x.shape[0]):
            for k in range(x.shape[1]):
                self.scratch.point[k].fill(x[j, k])
            feedback.losses(self.scratch.point, self.scratch.loss)
            row = self.sums[j]
            for i in range(best.shape[0]):
                row[i] += self.scratch.loss[i]
                if row[i] < best[i]:  # noqa: PLR1730  (min handles NaN, so it does not vectorise)
                    best[i] = row[i]
        self.t[0] += 1
        for i in range(self.rng.shape[0]):
            for s in range(self.rng.shape[1]):
                self.rng[i, s] = self.scratch.rng[i, s]


@kernel
def _mix(bank: FiniteBank, x: Array, h: Array) -> None:
    """Set h to the weighted mean of the functions' values."""
    M, n = bank.sums.shape
    h.fill(0)
    for i in range(n):
        rate = hedge_rate(M, bank.t[0], bank.spread[i])
        total = 0.0
        for j in range(M):
            weight = math.exp(-rate * (bank.sums[j, i] - bank.best[i]))
            total += weight
            for k in range(x.shape[1]):
                h[k, i] += weight * x[j, k]
        for k in range(x.shape[1]):
            h[k, i] /= total


@kernel
def _draw(bank: FiniteBank, x: Array, h: Array) -> None:
    """Set h to the value of one function, drawn by rejection sampling.

    Propose a function uniformly; accept it with probability weight / largest weight. This computes
    few of the weights.
    """
    M, n = bank.sums.shape
    for i in range(n):
        rate = hedge_rate(M, bank.t[0], bank.spread[i])
        state = bank.scratch.rng[i]
        for s in range(state.shape[0]):
            state[s] = bank.rng[i, s]
        j = int(uniform(state) * M)
        while uniform(state) > math.exp(-rate * (bank.sums[j, i] - bank.best[i])):
            j = int(uniform(state) * M)
        for k in range(x.shape[1]):
            h[k, i] = x[j, k]
