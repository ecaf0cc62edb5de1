"""What a weak learner is to a booster: a bank of N copies.

A *learner* is what the user writes down: parameters, no state. Asked for a bank, it answers with
the state of all N copies: a NamedTuple of arrays with `predict` and `update`, compiled into the
booster's loop, or any object with these two methods, run as plain Python.
"""

from typing import Any, NamedTuple, Protocol, runtime_checkable

from spanboost.compiling.arrays import Array
from spanboost.core.feedback import GreedyFeedback, LinearFeedback

Feedback = LinearFeedback | GreedyFeedback


class Task(NamedTuple):
    """What a learner is told before its first round."""

    n: int  # copies
    d: int  # outputs
    rows: Any  # the first rows, as `encode` returned them
    D: float  # predictions have norm at most D
    linear: bool  # whether the feedback is linear, or greedy
    lipschitz: Array  # [n] of the losses each copy will receive
    smoothness: Array  # [n] likewise
    seed: int
    copy: Array  # [n] their numbers, which learners that start at random start from
    rounds: int = 1  # how often a row comes, with replay


class Bank(Protocol):
    """The state of N copies. Arrays are [output, copy].

    What matters only within a round, from `predict` to `update`, lies in a field `scratch`. Banks
    of this package allocate nothing in a round, which the compiled loop relies on.

    A bank that reads a `Block` also has `grown(features, width)`: itself with room for more
    features, and for rows with so many of them. That of a `scalable` learner has `rescale(a, b)`,
    for when the label range has grown: it multiplies function values by a <= 1, slopes by b and
    losses by a b, in place. Where D and the projection of Algorithm 1 cut nothing, predictions in
    the user's units do not change. One that looks up places it keeps in arrays says in `sound`
    whether these exist, which files are asked.
    """

    def predict(self, x: Any, h: Array) -> None:
        """h[:, i] = what copy i predicts for the row x. Learns nothing."""

    def update(self, x: Any, h: Array, feedback: Feedback) -> None:
        """Give every copy its loss; h is what was predicted, cut to norm D. Follows `predict`."""


@runtime_checkable
class Learner(Protocol):
    """Parameters of a weak learner.

    It may say `deterministic = False`, that it draws at random, `weighted = False`, that rows can
    only have the weights 0 and 1, `scalable = True`, that its bank has `rescale`, `named = True`,
    that it reads sparse rows too, so that rows may be dictionaries of features, and `greedy_step`,
    the step alpha of greedy fitting that suits it better than Algorithm 1's own.
    """

    def check(self, task: Task) -> None:
        """Refuse parameters, or a task, it cannot work with; `rows` are not known yet."""

    def encode(self, X: Any, D: float) -> Any:
        """A block of rows as the bank wants them, checked; a DataError names the first bad one."""

    def bank(self, task: Task) -> Bank:
        """N copies, fresh."""


class ReadsFeatures:
    """What learners of features have in common."""

    @property
    def named(self) -> bool:
        """Rows may be dictionaries of features."""
        return True

    @property
    def scalable(self) -> bool:
        """The label range may grow."""
        return True


@runtime_checkable
class Provable(Protocol):
    """A learner with a regret bound."""

    def regret(self, T: int, D: float) -> float:
        """R(T): after T linear losses with Lipschitz constant 1, against functions of norm <= D.

        For losses with Lipschitz constant L it is L R(T).
        """
