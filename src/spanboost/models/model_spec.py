"""ModelSpec: the parameters of a model as the command line, service and estimators name them."""

from dataclasses import KW_ONLY, dataclass, fields, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from spanboost.errors import ParameterError, did_you_mean
from spanboost.models.spec import (
    BOOSTERS,
    BUDGETS,
    COPIES,
    COPIES_OF_TREES,
    Option,
    SharedParameters,
    budget_parameter,
    check_fields,
    default_copies,
    feedback_parameter,
    is_auto_or,
    is_count,
    is_none_or,
    is_one_of,
    key_parameter,
    label_range_parameter,
    parameter,
    recent_parameter,
    score_bounds,
    seed_parameter,
    shared_defaults,
)

_FIRST_PARAMETERS = (
    *("learner", "booster", "n", "step", "loss", "feedback", "rate", "label_range", "bits"),
    *("seed", "classes", "x_norm", "budget", "replay", "memory"),
)
COMMON_PARAMETERS = ("loss", "label_range", "bits", "seed", "classes")  # of AutoBoost too
AUTO = "auto"  # the learner that stands for AutoBoost
if TYPE_CHECKING:
    from spanboost.losses import Loss, VectorLoss
    from spanboost.rows.user_types import LearnerLike

LEARNERS = {  # names of learners: their module, class and fixed parameters
    "linear": ("linear", "LinearSGD", {}),
    "stumps": ("stumps", "Stumps", {}),
    "stumps-intercept": ("stumps", "Stumps", {"intercept": True}),
    "network": ("network", "Network", {}),
    "trees": ("trees", "Trees", {}),
    "ridge": ("ridge", "Ridge", {}),
    "ball": ("ball", "LinearBall", {}),
}
_NO_RATE = ("trees", "ridge")
AUTO_PARAMETERS = ("budget", "recent", "past", "key", "refit")  # only AutoBoost has them


def model_options() -> dict[str, Option]:
    """Return the parameters that the command line offers, by name."""
    shared = {one.name for one in fields(SharedParameters)}
    ordered = sorted(fields(ModelSpec), key=lambda one: one.name in shared)  # the learner first
    return {one.name: one.metadata["option"] for one in ordered if one.metadata}


def single_booster_parameters() -> dict[str, Any]:
    """Return the parameters that AutoBoost does not have, with their defaults."""
    others = (*AUTO_PARAMETERS, "learner", *COMMON_PARAMETERS)
    return {one.name: one.default for one in fields(ModelSpec) if one.name not in others}


@dataclass(frozen=True)
class ModelSpec(SharedParameters):
    """Parameters of any model, under the names that front ends use. `build` returns the model.

    learner: "auto", another name of `LEARNERS`, or a learner.
    booster: "span" for Algorithm 1, "hull" for Algorithm 2.
    n: number of copies; None is 100 trees, one `Ridge`, or 32 copies of another learner of this
        library. For other objects, None chooses the number online.
        "auto" chooses it from the stream, as in `SpanBoost`.
    step: the step eta of Algorithm 1; None is `default_step(n)`, "auto" chooses it.
    loss: a name ("quantile:0.9", "tweedie:1.5" and "softmax" included) or a loss.
    rate: learning rate of the learner, for labels scaled to [-1, 1]; None is the learner's default.
    bits: hash features into 2^bits slots; None gives each feature its own.
    classes: number of classes for loss="softmax"; None adds classes as they appear.
    x_norm: largest norm of a row, for learner="ball".
    budget: how much work AutoBoost does.
    recent: whether AutoBoost corrects its predictions by the last rows, as in `AutoBoost`.
    past: whether AutoBoost uses past labels, "on" or "off".
    key: the columns whose values have past labels of their own.
    refit: whether AutoBoost has refitted experts, "auto", "on" or "off".
    """

    _: KW_ONLY
    learner: "LearnerLike" = parameter(
        AUTO,
        option=Option(
            "Learner to boost (default: auto, which runs several boosters at once and needs no "
            "tuning; with an option of a single booster, such as -n: trees)",
            choices=(AUTO, *LEARNERS),
        ),
    )
    budget: str = budget_parameter(
        Option(
            "Size of --learner auto; a larger one has lower error and takes more time (default: "
            "default)",
            choices=BUDGETS,
        ),
    )
    x_norm: float | None = parameter(
        None,
        option=Option(
            "Largest norm of a row; required by --learner ball (linear functions with a proved "
            "regret bound)",
            metavar="R",
            kind="number",
        ),
    )
    booster: str = parameter(
        "span",
        "'span' or 'hull'",
        is_one_of(*BOOSTERS),
        Option(
            "Boosting algorithm: span is Algorithm 1 (default), hull is Algorithm 2",
            choices=BOOSTERS,
            implies_booster=True,
        ),
    )
    n: int | str | None = parameter(
        None,
        "a positive integer or 'auto'",
        is_none_or(is_auto_or(is_count(1))),
        Option(
            f"Number of copies of the learner (default: {COPIES}; {COPIES_OF_TREES} for trees; "
            "1 for ridge); auto chooses it from the stream, up to the default",
            flags=("-n", "--n-estimators"),
            metavar="N",
            kind="count",
            least=1,
            auto=True,
            implies_booster=True,
        ),
    )
    step: float | str | None = parameter(
        None,
        option=Option(
            "Step size of Algorithm 1, between 1/N and 1 (default: the larger of 1/N and "
            "ln(N)/N); auto chooses it from the stream",
            flags=("--step", "--learning-rate"),
            metavar="ETA",
            kind="number",
            auto=True,
            implies_booster=True,
        ),
    )
    feedback: str = feedback_parameter(
        Option(
            "Losses that the copies learn from: the losses themselves (greedy, default), or linear "
            "ones as in the paper's listings",
            choices=("greedy", "linear"),
            implies_booster=True,
        ),
    )
    rate: float | None = parameter(
        None,
        option=Option(
            "Learning rate of the learner, for labels scaled to [-1, 1] (default: 0.5)",
            flags=("-l", "--rate"),
            metavar="R",
            kind="number",
            implies_booster=True,
        ),
    )
    loss: "str | Loss | VectorLoss" = parameter(
        "squared",
        option=Option(
            "Loss function: squared (default), absolute or quantile:TAU for numbers; poisson for "
            "counts, gamma for positive numbers, tweedie:POWER for numbers that are often 0; "
            "logistic, hinge or softmax for classes",
            metavar="LOSS",
            kind="loss",
        ),
    )
    label_range: tuple[float, float] | str = label_range_parameter(
        "auto",
        Option(
            "Range of the labels (default: auto, which starts at the first label and follows the "
            "labels, while single labels far outside have little influence; growing grows to "
            "include every label; auto-zero and growing-zero do the same around 0)",
            metavar="LO,HI",
            kind="range",
        ),
    )
    bits: int | None = parameter(
        None,
        option=Option(
            "Hash features into 2^B slots (default: 18 for VW text, no hashing otherwise)",
            flags=("-b", "--bits"),
            metavar="B",
            kind="count",
            least=1,
            most=30,
        ),
    )
    seed: int = seed_parameter(
        Option("Random seed (default: 0)", metavar="N", kind="count"),
    )
    classes: int | None = None
    recent: bool | None = recent_parameter(
        False,
        Option(
            "Whether --learner auto corrects its predictions by the last 1,000 rows, to follow "
            "drift (default: off)",
            metavar="{on,off}",
            kind="switch",
        ),
    )
    past: str = parameter(
        "off",
        "'on' or 'off'",
        is_one_of("on", "off"),
        Option(
            "Whether --learner auto corrects its predictions by past labels, for rows in order of "
            "time (default: off; --key turns it on)",
            choices=("on", "off"),
        ),
    )
    key: str | int | tuple[str | int, ...] | None = key_parameter(
        Option(
            "Column such as a store or a customer; --learner auto remembers the past labels of "
            "each of its values. Several columns are separated by commas",
            metavar="COLUMN",
            kind="key",
        ),
    )

    refit: str = parameter(
        "auto",
        "'auto', 'on' or 'off'",
        is_one_of("auto", "on", "off"),
        Option(
            "Whether --learner auto has experts of LightGBM that are refitted as the rows grow. "
            "Such a model keeps rows and cannot be exported (default: auto, which is on with "
            "--budget thorough or exhaustive if LightGBM is installed)",
            choices=("auto", "on", "off"),
        ),
    )

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def name(self) -> str:
        """A short name for tables and plots."""
        if self.learner == AUTO:
            return AUTO
        return f"{self.learner} alone" if self == self.alone else f"{self.learner}:{self.booster}"

    @property
    def copies(self) -> Any:
        """The number of copies or "auto"; the default of the learner if `n` is None."""
        return self.n or default_copies(self.learner)

    @property
    def alone(self) -> "ModelSpec":
        """The same learner without boosting: one copy that receives the loss itself.

        For "auto", it is the linear learner.
        """
        learner = "linear" if self.learner == AUTO else self.learner
        single: dict[str, Any] = {"booster": "hull", "n": 1, "step": None}
        plain = {"recent": False, "past": "off", "key": None, "refit": "auto"}
        return self.replace(learner=learner, **single, **plain, **shared_defaults())

    @property
    def predicts_scores(self) -> bool:
        """Whether predictions are scores of classes, not numbers in the units of the labels."""
        from spanboost.losses import predicts_scores, resolve

        return predicts_scores(resolve(self.booster_loss()))

    @property
    def label_domain(self) -> str | None:
        """The labels that the loss takes: "non-negative" or "positive"; None if all numbers."""
        from spanboost.losses import has_log_link, resolve

        loss = resolve(self.booster_loss())
        if not has_log_link(loss):
            return None
        return "non-negative" if loss.takes_zero else "positive"

    def replace(self, **changes: Any) -> "ModelSpec":
        """Return a copy with some fields changed."""
        return replace(self, **changes)

    def identity(self) -> list[Any]:
        """Return the values that identify the model in checkpoints and service folders, as JSON.

        Version 0.1 wrote a list of fifteen values. Parameters added later follow as a dictionary,
        without those that have their defaults.
        """
        later = {
            one.name: getattr(self, one.name)
            for one in fields(self)
            if one.name not in _FIRST_PARAMETERS and getattr(self, one.name) != one.default
        }
        return [getattr(self, name) for name in _FIRST_PARAMETERS] + ([later] if later else [])

    @staticmethod
    def identity_parameters(identity: list[Any]) -> dict[str, Any]:
        """Return all parameters by name, given what `identity` returned."""
        first, later = identity[: len(_FIRST_PARAMETERS)], identity[len(_FIRST_PARAMETERS) :]
        defaults = {one.name: one.default for one in fields(ModelSpec)}
        named = dict(zip(_FIRST_PARAMETERS, first, strict=True))
        return defaults | named | (later[0] if later else {})

    def booster_loss(self) -> Any:
        """Return the loss as boosters take it: a loss, or a name without parameters."""
        from spanboost.losses import Softmax, resolve

        if not isinstance(self.loss, str):
            return self.loss
        if self.loss == "softmax" and self.classes is not None:
            return Softmax(self.classes)
        return resolve(self.loss) if ":" in self.loss else self.loss

    def build(self) -> Any:
        """Return a new model; raise a ParameterError if the parameters do not fit together."""
        from spanboost.learners.objects import is_foreign
        from spanboost.losses import resolve
        from spanboost.models.auto import AutoBoost
        from spanboost.models.booster import HullBoost, SpanBoost

        loss = self.booster_loss()
        common: dict[str, Any] = {
            "loss": loss,
            "label_range": (-1, 1) if self.predicts_scores else self.label_range,
            "seed": self.seed,
        }
        if isinstance(self.learner, str) and self.learner == AUTO:
            self._refuse_for_auto()
            on = self.past == "on" or self.key is not None
            past = on or (None if self.budget == "fast" else False)  # fast does not use it anyway
            common |= {"budget": self.budget, "bits": self.bits, "past": past, "key": self.key}
            return AutoBoost(**common, recent=self.recent, refit=self._refits)
        given = {"past": self.past == "on", "refit": self.refit == "on", "recent": self.recent}
        given["key"] = self.key is not None
        for name in [name for name, is_given in given.items() if is_given]:
            raise ParameterError(name, "needs learner 'auto'")
        shared = {one.name: getattr(self, one.name) for one in fields(SharedParameters)}
        common |= shared | {"feedback": self.feedback}
        common |= score_bounds(resolve(loss), "booster")
        learner = self._build_learner() if isinstance(self.learner, str) else self.learner
        common["n"] = self.n if is_foreign(learner) else self.copies
        if self.booster == "span":
            return SpanBoost(learner, eta=self.step, **common)
        if self.step is not None:
            raise ParameterError("step", "is for Algorithm 1 only: Algorithm 2 sets its own steps")
        return HullBoost(learner, **common)

    @property
    def _refits(self) -> bool | None:
        return {"on": True, "off": False}.get(self.refit)

    def _refuse_for_auto(self) -> None:
        for name, default in single_booster_parameters().items():
            if getattr(self, name) != default:
                raise ParameterError(
                    name,
                    "does not apply to learner 'auto', which runs many learners with their own "
                    "parameters: name a learner, such as 'trees'",
                )

    def _build_learner(self) -> Any:
        if self.learner not in LEARNERS:
            known = ", ".join(map(repr, (AUTO, *LEARNERS)))
            hint = did_you_mean(self.learner, (AUTO, *LEARNERS))
            raise ParameterError(
                "learner", f"must be {known} or an object (got {self.learner!r}){hint}"
            )
        module, name, fixed = LEARNERS[self.learner]
        cls = getattr(import_module(f"spanboost.learners.{module}"), name)
        return cls(**fixed, **self._learner_parameters())

    def _learner_parameters(self) -> dict[str, Any]:
        if self.learner == "ball":
            if self.x_norm is None:
                raise ParameterError("x_norm", "is required by the learner 'ball'")
            if isinstance(self.label_range, str) and not self.predicts_scores:
                raise ParameterError("label_range", "must be (low, high) for the learner 'ball'")
            for name in ("rate", "bits"):
                if getattr(self, name) is not None:
                    raise ParameterError(name, "is not a parameter of the learner 'ball'")
            return {"x_norm": self.x_norm}
        if self.x_norm is not None:
            raise ParameterError("x_norm", "is only for the learner 'ball'")
        if self.learner in _NO_RATE and self.rate is not None:
            raise ParameterError(
                "rate", f"does not apply to {self.learner}: this learner has no learning rate"
            )
        rate = {} if self.rate is None else {"rate": self.rate}
        return {"bits": self.bits, **rate}
