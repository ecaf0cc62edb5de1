"""The parameters of every model: their names, defaults and checks.

Boosters and AutoBoost inherit their specification, so its fields are their constructor. The command
line, the estimators for scikit-learn and River, the grid of `tune`, the service and the headers of
model files derive from it. A new booster parameter is a field here and the code that uses it.

The command line's parser reads this module and model_spec.py, so they import nothing heavy.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import KW_ONLY, InitVar, dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from spanboost.checks import (
    MOST_COPIES,
    is_integer,
    is_label_range,
    is_number,
    is_positive,
    is_step,
)
from spanboost.errors import ParameterError, did_you_mean

if TYPE_CHECKING:
    from spanboost.losses import Loss, VectorLoss
    from spanboost.rows.user_types import CopiesLike, LearnerLike, StepLike

BUDGETS = ("fast", "default", "thorough", "exhaustive")
BOOSTERS = ("span", "hull")
COPIES = 32
COPIES_OF_TREES = 100
CHOOSE = "auto"  # the value of n and eta that stands for a choice made online
_COPIES = {"trees": COPIES_OF_TREES, "ridge": 1}  # a sum of least-squares fits is such a fit
LARGEST_REPLAY = 1000


class Option(NamedTuple):
    """How the command line offers a parameter."""

    help: str
    flags: tuple[str, ...] = ()  # default: the name of the field
    metavar: str | None = None
    # how to parse it: "count", "number", "loss", "range", "key", "switch" or "text"
    kind: str = "text"
    least: int = 0  # smallest count
    most: int | None = None  # largest count
    choices: tuple[str, ...] | None = None
    auto: bool = False  # whether the text "auto" is a value, too
    implies_booster: bool = False  # the option selects a single booster instead of AutoBoost


def parameter(
    default: Any,
    allowed: str = "",
    test: Callable[[Any], bool] | None = None,
    option: Option | None = None,
    *,
    new: bool = False,
) -> Any:
    """Return a field with a check.

    allowed: the values that are allowed, in words; test: the check itself.
    new: whether version 0.1.0 lacks the parameter; files leave it out if it has its default, so
        that 0.1.0 can read them.
    """
    return field(
        default=default, metadata={"allowed": allowed, "test": test, "option": option, "new": new}
    )


def check_fields(spec: Any) -> None:
    """Raise a ParameterError for the first field whose value is not allowed."""
    for one in fields(spec):
        test, value = one.metadata.get("test"), getattr(spec, one.name)
        if test is not None and not test(value):
            allowed = one.metadata["allowed"]
            hint = did_you_mean(value, re.findall("'(.*?)'", allowed))
            raise ParameterError(one.name, f"must be {allowed} (got {value!r}){hint}")


def is_count(least: int, most: float = math.inf) -> Callable[[Any], bool]:
    """Return a check for integers in a range."""
    return lambda value: is_integer(value) and least <= value <= most


def is_one_of(*choices: Any) -> Callable[[Any], bool]:
    """Return a check for one of these values."""
    return lambda value: value in choices


def is_flag(value: Any) -> bool:
    """Return whether a value is None, True or False."""
    return value is None or isinstance(value, bool)


def is_column(value: Any) -> bool:
    """Return whether a value can be the name or the number of a column, or a tuple of those."""
    if isinstance(value, tuple):
        return len(value) > 0 and all(
            is_column(one) and not isinstance(one, tuple) for one in value
        )
    return isinstance(value, str) or (is_integer(value) and value >= 0)


def is_none_or(test: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Return a check that also accepts None."""
    return lambda value: value is None or test(value)


def is_auto_or(test: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Return a check that also accepts "auto"."""
    return lambda value: value == CHOOSE if isinstance(value, str) else test(value)


# Parameters of more than one specification. Each call makes a field: dataclasses do not share them.


def feedback_parameter(option: Option | None = None) -> Any:
    """Return the parameter `feedback`."""
    return parameter("greedy", "'linear' or 'greedy'", is_one_of("linear", "greedy"), option)


def label_range_parameter(default: tuple[float, float] | str, option: Option | None = None) -> Any:
    """Return the parameter `label_range`."""
    allowed = "(low, high) with finite low < high, 'auto', 'auto-zero', 'growing' or 'growing-zero'"
    return parameter(default, allowed, is_label_range, option)


def seed_parameter(option: Option | None = None) -> Any:
    """Return the parameter `seed`."""
    return parameter(0, "an integer of at least 0", is_count(0), option)


def budget_parameter(option: Option | None = None) -> Any:
    """Return the parameter `budget`."""
    allowed = "'fast', 'default', 'thorough' or 'exhaustive'"
    return parameter("default", allowed, is_one_of(*BUDGETS), option)


def key_parameter(option: Option | None = None) -> Any:
    """Return the parameter `key`."""
    allowed = "None, the name or the number of a column, or a tuple of those"
    return parameter(None, allowed, is_none_or(is_column), option, new=True)


def recent_parameter(default: bool | None, option: Option | None = None) -> Any:
    """Return the parameter `recent`."""
    return parameter(default, "None, True or False", is_flag, option, new=True)


@dataclass(frozen=True, kw_only=True)
class SharedParameters:
    """Parameters with one name everywhere: boosters, command line, scikit-learn and River."""

    replay: int = parameter(
        0,
        f"an integer from 0 to {LARGEST_REPLAY}",
        is_count(0, LARGEST_REPLAY),
        Option(
            "After each new row, learn from R recent rows again, drawn at random: lower error, "
            "more time (default: 0)",
            metavar="R",
            kind="count",
            most=LARGEST_REPLAY,
            implies_booster=True,
        ),
    )
    memory: int = parameter(
        50_000,
        "an integer from 1 to 2^31 - 1",
        is_count(1, 2**31 - 1),
        Option(
            "Number of recent rows that --replay draws from (default: 50,000)",
            metavar="K",
            kind="count",
            least=1,
        ),
    )
    replay_weight: float = parameter(
        1.0,
        "a number from 0.001 to 1",
        lambda value: is_number(value) and 0.001 <= value <= 1,
        Option(
            "Factor on the importance weight of replayed rows, from 0.001 to 1 (default: 1)",
            metavar="W",
            kind="number",
        ),
        new=True,
    )


def shared_defaults() -> dict[str, Any]:
    """Return the shared parameters and their defaults."""
    return {one.name: one.default for one in fields(SharedParameters)}


@dataclass(frozen=True)
class BoosterSpec(SharedParameters):
    """Parameters of both algorithms. `SpanBoost` documents them."""

    default_n: ClassVar[Any] = COPIES  # if n is None

    learner: "LearnerLike"
    n: "CopiesLike" = parameter(
        None, "a positive integer or 'auto'", is_none_or(is_auto_or(is_count(1)))
    )
    _: KW_ONLY
    loss: "str | Loss | VectorLoss" = "squared"
    feedback: str = feedback_parameter()
    alpha: float | None = parameter(None, "None or a positive number", is_none_or(is_positive))
    offset: str | None = parameter(
        None, "None, 'printed' or 'shrunk'", is_one_of(None, "printed", "shrunk")
    )
    scale: float = parameter(1.0, "a positive number", is_positive)
    D: float = parameter(1.0, "a positive number", is_positive)
    label_range: tuple[float, float] | str = label_range_parameter((-1, 1))
    seed: int = seed_parameter()

    def __post_init__(self) -> None:
        check_fields(self)
        if self.n is None:
            object.__setattr__(self, "n", self.default_n)
            if self.n == CHOOSE and getattr(self, "eta", CHOOSE) is None:
                object.__setattr__(self, "eta", CHOOSE)
        if self.n != CHOOSE:
            if self.n > MOST_COPIES:
                raise ParameterError("n", f"must be at most {MOST_COPIES:,} (got {self.n:,})")
            object.__setattr__(self, "n", int(self.n))  # NumPy's integers are not JSON
        for name in ("alpha", "offset"):
            if self.feedback == "linear" and getattr(self, name) is not None:
                raise ParameterError(name, "needs feedback='greedy' (got feedback='linear')")


@dataclass(frozen=True)
class SpanSpec(BoosterSpec):
    """Parameters of Algorithm 1."""

    eta: "StepLike" = None
    _: KW_ONLY
    B: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_step()
        least = self.scale * self.D
        if self.B is not None and not (is_number(self.B) and least <= self.B < math.inf):
            raise ParameterError(
                "B", f"must be a number of at least scale * D = {least:g} (got {self.B!r})"
            )

    def _check_step(self) -> None:
        if self.eta is None or (isinstance(self.eta, str) and self.eta == CHOOSE):
            return
        if self.n == CHOOSE:
            if not (is_positive(self.eta) and self.eta <= 1):
                raise ParameterError("eta", f"must be above 0 and at most 1 (got {self.eta!r})")
        elif not is_step(self.eta, self.n):
            raise ParameterError(
                "eta", f"must be between 1/n = {1 / self.n:g} and 1 (got {self.eta!r})"
            )


@dataclass(frozen=True)
class AutoSpec:
    """Parameters of `AutoBoost`, which documents them."""

    loss: "str | Loss | VectorLoss" = "squared"
    budget: str = budget_parameter()
    label_range: tuple[float, float] | str = label_range_parameter("auto")
    seed: int = seed_parameter()
    bits: int | None = None
    recent: bool | None = recent_parameter(None)
    past: bool | None = parameter(
        None, "None, True or False", is_one_of(None, True, False), new=True
    )
    key: str | int | tuple[str | int, ...] | None = key_parameter()
    refit: bool | None = parameter(
        None, "None, True or False", is_one_of(None, True, False), new=True
    )
    experts: InitVar[Iterable[Any]] = ()

    def __post_init__(self, experts: Iterable[Any]) -> None:
        refuse_learner(self.loss)
        check_fields(self)
        if self.past is False and self.key is not None:
            raise ParameterError("key", "needs past labels (got past=False)")


def refuse_learner(loss: Any) -> None:
    """Raise a TypeError if the first argument of AutoBoost is a learner."""
    if any(hasattr(loss, name) for name in ("bank", "update", "learn_one", "partial_fit", "fit")):
        name = type(loss).__name__
        batch = hasattr(loss, "fit") and not hasattr(loss, "partial_fit")
        use = f"AutoBoost(experts=[Refitted({name}(...))])" if batch else f"SpanBoost({name}(...))"
        raise TypeError(f"AutoBoost takes no learner; use {use} (got {name})")


def default_step(n: int) -> float:
    """Return the default step eta of Algorithm 1 for n copies."""
    return max(1 / n, math.log(n) / n)


def default_copies(learner: Any) -> int:
    """Return the default number of copies of a learner, given as an object or by its name."""
    name = learner if isinstance(learner, str) else type(learner).__name__
    return _COPIES.get(name.lower(), COPIES)


def score_bounds(loss: Any, use: str) -> dict[str, Any]:
    """Return bounds wide enough for the scores of classes; an empty dictionary for other losses.

    The paper's D and B are for labels in [-1, 1] and would keep probabilities far from 0 and 1.

    use: "booster" for a booster on its own; in AutoBoost, "boosted" or "single" experts.
    """
    bounds: dict[str, dict[str, dict[str, Any]]] = {
        "Logistic": {
            "booster": {"D": 6.0},  # probabilities from 0.0025 to 0.9975
            "boosted": {"D": 3.0, "B": 6.0},
            "single": {"D": 6.0},
        },
        "Softmax": {
            "booster": {"D": 6.0},
            "boosted": {"D": 10.0, "B": 20.0, "alpha": 0.1},
            "single": {"D": 10.0},
        },
    }
    # logarithms of means: from 1/400 to 400 times the level of the first labels
    bounds |= dict.fromkeys(("Poisson", "Gamma", "Tweedie"), bounds["Logistic"])
    return bounds.get(type(loss).__name__, {}).get(use, {})


@contextmanager
def parameter_names(names: Mapping[str, str]) -> Iterator[None]:
    """Raise parameter errors under the names that the user of a front end knows."""
    try:
        yield
    except ParameterError as error:
        raise ValueError(f"{names.get(error.name, error.name)} {error.problem}") from None
