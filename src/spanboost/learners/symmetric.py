"""A wrapper that makes any online linear learner compete with -f and 0 as well as f.

The construction is from a footnote of the paper. Hedge combines two copies of the learner. Copy 1
receives each loss l, copy 2 receives -l, and its output a2 is negated. So Hedge's two losses are
l(a1) and l(-a2), and the prediction is the mixture q1 a1 - q2 a2. It need not be randomised,
because the losses are linear. The losses lie in [-D, D], so

    R'(T) = R(T) + 2 D (2 sqrt(T/2 ln 2) + sqrt(ln 2 / 8)).

Only linear losses stay convex when they are negated: greedy feedback raises an error.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel
from spanboost.core.experts import hedge_rate, hedge_regret, is_round
from spanboost.core.feedback import LinearFeedback
from spanboost.core.projection import Output, output_of
from spanboost.learners.objects import as_learner
from spanboost.learners.protocol import BankSize, Provable, Task
from spanboost.learners.text import call_text


@dataclass(frozen=True, repr=False)
class Symmetrised:
    """Hedge over `learner` and its negation, for linear feedback only."""

    learner: Any

    __repr__ = call_text

    def __post_init__(self) -> None:
        object.__setattr__(self, "learner", as_learner(self.learner))

    @property
    def weighted(self) -> bool:
        """Whether rows may have weights other than 1."""
        return bool(getattr(self.learner, "weighted", True))

    @property
    def deterministic(self) -> bool:
        """Whether the same stream always gives the same predictions, whatever the seed."""
        return bool(getattr(self.learner, "deterministic", True))

    @property
    def dtype(self) -> Any:
        """The type of the wrapped learner's state."""
        return getattr(self.learner, "dtype", np.float64)

    @property
    def named(self) -> bool:
        """Whether rows may be dictionaries of features."""
        return getattr(self.learner, "named", False) is True

    @property
    def bits(self) -> Any:
        """The `bits` of the wrapped learner."""
        return self.learner.bits

    @property
    def scalable(self) -> bool:
        """Whether the label range may grow."""
        return getattr(self.learner, "scalable", False) is True

    @property
    def symmetric(self) -> bool:
        """Whether the class contains -f with every f."""
        return True

    def check(self, task: Task) -> None:
        """Raise a ValueError for greedy feedback, or a task the wrapped learner does not accept."""
        if not task.linear:
            raise ValueError(
                "Symmetrised needs feedback='linear': the negative of a greedy loss is not convex"
            )
        self.learner.check(_pair_copies(task))

    def encode(self, X: Any, D: float = math.inf) -> Any:
        """Encode rows for the wrapped learner."""
        return self.learner.encode(X, D)

    def bank_size(self, n: int, d: int, features: int) -> BankSize:
        """Return the numbers in 2 n copies of the wrapped learner."""
        size_of = getattr(self.learner, "bank_size", None)
        return BankSize(2 * n) if size_of is None else size_of(2 * n, d, features)

    def bank(self, task: Task) -> "SymmetrisedBank":
        """Return 2 N copies of the wrapped learner, in N pairs."""
        return SymmetrisedBank(
            bank=self.learner.bank(_pair_copies(task)),
            sums=np.zeros((2, task.n)),
            t=np.ones(1, dtype=np.int64),
            D=np.dtype(self.dtype).type(task.D),
            output=output_of(task.d),
            scratch=SymmetrisedScratch(*np.zeros((2, task.d, 2 * task.n), self.dtype)),
        )

    def regret(self, T: int, D: float) -> float:
        """Return R'(T) as in the module's docstring."""
        if not isinstance(self.learner, Provable):
            raise ValueError(f"{type(self.learner).__name__} has no regret bound")
        return self.learner.regret(T, D) + hedge_regret(2, T, 2 * D)


def _pair_copies(task: Task) -> Task:
    """Return the task with each copy replaced by a pair."""
    return task._replace(
        n=2 * task.n,
        lipschitz=np.repeat(task.lipschitz, 2),
        smoothness=np.repeat(task.smoothness, 2),
        copy=2 * np.repeat(task.copy, 2) + np.tile([0, 1], task.n),
    )


class SymmetrisedScratch(NamedTuple):
    """Scratch space, from `predict` to `update`."""

    h: Array  # [d, 2 N] predictions of the copies
    slope: Array  # [d, 2 N] slopes of their losses


@kernel
class SymmetrisedBank(NamedTuple):
    """N pairs of copies, each combined by Hedge."""

    bank: Any  # the bank of the 2 N copies
    sums: Array  # [2, N] Hedge's summed losses
    t: Array  # [1] number of the next round
    D: float
    output: Output
    scratch: SymmetrisedScratch

    @property
    def sound(self) -> bool:
        """Whether Hedge has a learning rate in this round and all that follow."""
        return is_round(self.t[0])

    def grown(self, features: int, width: int) -> "SymmetrisedBank":
        """Return the same pairs with room for more features and wider rows."""
        return self._replace(bank=self.bank.grown(features, width))

    def rescale(self, a: float, b: float) -> None:
        """Rescale the copies, and multiply Hedge's sums of losses by a b."""
        self.bank.rescale(a, b)
        self.sums[...] *= a * b

    def predict(self, x: Any, h: Array) -> None:
        """Predict q1 a1 - q2 a2."""
        n = h.shape[1]
        self.bank.predict(x, self.scratch.h)
        rate = hedge_rate(2, self.t[0], 2 * np.float64(self.D))
        self.output.project_columns(self.scratch.h, self.D)
        for i in range(n):
            lead = rate * (self.sums[1, i] - self.sums[0, i])
            e = math.exp(-abs(lead))  # cannot overflow
            q1 = h.dtype.type((1.0 if lead > 0 else e) / (1 + e))
            q2 = h.dtype.type(1) - q1
            for k in range(h.shape[0]):
                h[k, i] = q1 * self.scratch.h[k, 2 * i] - q2 * self.scratch.h[k, 2 * i + 1]

    def update(self, x: Any, h: Array, feedback: LinearFeedback) -> None:
        """Pass l to the first copy of each pair, -l to the second, l(a1) and l(-a2) to Hedge."""
        n, slope = h.shape[1], self.scratch.slope
        for k in range(h.shape[0]):
            for i in range(n):
                s = feedback.slope[k, i]
                slope[k, 2 * i], slope[k, 2 * i + 1] = s, -s
                self.sums[0, i] += s * self.scratch.h[k, 2 * i]
                self.sums[1, i] -= s * self.scratch.h[k, 2 * i + 1]
        self.bank.update(x, self.scratch.h, LinearFeedback(slope, feedback.weight))
        self.t[0] += 1
