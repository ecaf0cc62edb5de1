"""The protocol between a booster and its weak learners.

A *learner* holds parameters and no state. Its method `bank` creates a *bank*: the state of all N
copies, with `predict` and `update`. A bank that is a NamedTuple of arrays is compiled into the
booster's loop; any other object runs as plain Python.
"""

from typing import Any, NamedTuple, Protocol, runtime_checkable

from spanboost.compiling.arrays import Array
from spanboost.core.feedback import GreedyFeedback, LinearFeedback
from spanboost.learners.text import call_text

Feedback = LinearFeedback | GreedyFeedback


class Task(NamedTuple):
    """The setting of a learner, fixed before its first round."""

    n: int  # number of copies
    d: int  # number of outputs
    rows: Any  # the first rows, as `encode` returned them
    D: float  # predictions have norm at most D
    linear: bool  # whether the feedback is linear; else it is greedy
    lipschitz: Array  # [n] Lipschitz constant of the losses that each copy receives
    smoothness: Array  # [n] smoothness of these losses
    seed: int  # for learners with random numbers
    copy: Array  # [n] number of each copy, from which its random numbers are derived
    rounds: int = 1  # how often each row is learned, with replay


class BankSize(NamedTuple):
    """How many numbers a bank needs, as far as model files are limited (models/claims.py)."""

    stored: int  # at least this many are in every file of a model that has learned
    filled: int = 0  # in tables that do not start as zeros, so that they take memory at once


class Bank(Protocol):
    """The state of N copies. Arrays are [output, copy].

    Values that are needed only within a round, from `predict` to `update`, are in a field
    `scratch`. Banks of this package allocate no memory in a round; the compiled loop relies on it.

    Optional members:

    - `grown(features, width)`, for a bank that reads a `Block`: returns the bank with room for
      `features` features, and for rows with `width` of them.
    - `rescale(a, b)`, for the bank of a `scalable` learner: called when the label range has grown
      (a <= 1) or shrunk (a > 1). It multiplies function values by a, slopes by b and losses by a b,
      in place. Predictions in the user's units do not change, unless D or the projection of
      Algorithm 1 applies.
    - `sound`, for a bank with indices in its arrays: whether they are all in range. It is checked
      when a model file is loaded.
    """

    def predict(self, x: Any, h: Array) -> None:
        """Set h[:, i] to the prediction of copy i for the row x. This learns nothing."""

    def update(self, x: Any, h: Array, feedback: Feedback) -> None:
        """Pass every copy its loss. Follows `predict`; h is its result, projected to norm D."""


@runtime_checkable
class Learner(Protocol):
    """Parameters of a weak learner.

    Optional attributes:

    - `deterministic = False`: it draws random numbers.
    - `weighted = False`: rows may only have the weights 0 and 1.
    - `scalable = True`: its bank has `rescale`.
    - `widens = True`: the class axis of every array of its bank can be extended at its end, so that
      outputs can be added (models/widening.py).
    - `named = True`: it reads sparse rows, so rows may be dictionaries of features.
    - `greedy_step`: the step alpha of greedy feedback, instead of that of Algorithm 1.
    - `bank_size(n, d, features)`: the `BankSize` of n copies; without it, n numbers are stored.
      It is called before `check`.
    """

    def check(self, task: Task) -> None:
        """Raise a ValueError for invalid parameters or an unsuitable task (without `rows`)."""

    def encode(self, X: Any, D: float) -> Any:
        """Check and encode a block of rows for the bank; a DataError names the first bad row."""

    def bank(self, task: Task) -> Bank:
        """Return a new bank of N copies."""


class ReadsFeatures:
    """Attributes common to all learners that read features."""

    __repr__ = call_text

    @property
    def named(self) -> bool:
        """Whether rows may be dictionaries of features."""
        return True

    @property
    def scalable(self) -> bool:
        """Whether the label range may grow."""
        return True

    @property
    def widens(self) -> bool:
        """Whether outputs can be added, for classes that appear in the stream."""
        return True


@runtime_checkable
class Provable(Protocol):
    """A learner with a regret bound."""

    def regret(self, T: int, D: float) -> float:
        """Return R(T), the regret after T linear losses with Lipschitz constant 1.

        It is against functions of norm at most D. For the Lipschitz constant L it is L R(T).
        """
