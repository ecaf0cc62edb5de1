"""Models by the names of the command line."""

from typing import Any, NamedTuple

from spanboost.learners.ball import LinearBall
from spanboost.learners.linear import LinearSGD
from spanboost.learners.network import Network
from spanboost.learners.stumps import Stumps
from spanboost.learners.trees import Trees
from spanboost.losses import Quantile, Softmax
from spanboost.models.auto import AnyModel, AutoBoost
from spanboost.models.booster import HullBoost, SpanBoost

LEARNERS: dict[str, Any] = {
    "linear": LinearSGD,
    "stumps": Stumps,
    "stumps-intercept": lambda **parameters: Stumps(intercept=True, **parameters),
    "network": Network,
    "trees": Trees,
    "ball": LinearBall,
}
AUTO = "auto"  # all of them at once, nothing to choose
ROOM = 6.0  # of scores: probabilities from 0.0025 to 0.9975
SCORES = ("logistic", "hinge", "softmax")  # losses whose predictions are scores


class Recipe(NamedTuple):
    """What a model is made of."""

    learner: str = AUTO
    booster: str = "span"
    n: int | None = None  # 100 trees, 32 of any other
    step: float | None = None
    loss: str = "squared"
    feedback: str = "greedy"
    rate: float | None = None
    label_range: tuple[float, float] | str = "auto"
    bits: int | None = None
    seed: int = 0
    classes: int | None = None
    x_norm: float | None = None
    budget: str = "default"  # of auto
    replay: int = 0
    memory: int = 50_000

    @property
    def name(self) -> str:
        """Short, for tables and plots."""
        if self.learner == AUTO:
            return AUTO
        return f"{self.learner} alone" if self == self.alone else f"{self.learner}:{self.booster}"

    @property
    def copies(self) -> int:
        """How many there are of the learner."""
        return self.n or (100 if self.learner == "trees" else 32)

    @property
    def alone(self) -> "Recipe":
        """One copy, given the loss itself: the learner without boosting; a linear one for auto."""
        learner = "linear" if self.learner == AUTO else self.learner
        return self._replace(learner=learner, booster="hull", n=1, step=None, replay=0)

    @property
    def scores(self) -> bool:
        """Whether predictions are scores, not numbers in the units of the labels."""
        return self.loss in SCORES

    def model(self) -> AnyModel:
        """Fresh, as this says; a ValueError in one sentence where it cannot be."""
        shared: dict[str, Any] = {
            "loss": self._loss(),
            "label_range": (-1, 1) if self.scores else self.label_range,
            "seed": self.seed,
        }
        if self.learner == AUTO:
            if self.x_norm is not None:
                raise ValueError("--x-norm is for --learner ball")
            return AutoBoost(budget=self.budget, bits=self.bits, **shared)
        room = ROOM if self.loss in ("logistic", "softmax") else 1.0
        shared |= {"n": self.copies, "feedback": self.feedback, "D": room}
        shared |= {"replay": self.replay, "memory": self.memory}
        learner = LEARNERS[self.learner](**self._parameters())
        if self.booster == "hull":
            if self.step is not None:
                raise ValueError("--step is for --booster span: Algorithm 2 has steps of its own")
            return HullBoost(learner, **shared)
        least = 1 / self.copies
        if self.step is not None and not least - 1e-12 <= self.step <= 1:
            raise ValueError(f"--step {self.step:g} is not allowed: from 1/n = {least:g} to 1")
        return SpanBoost(learner, eta=self.step, **shared)

    def _parameters(self) -> dict[str, Any]:
        """Of the learner."""
        if self.learner == "ball":
            if self.x_norm is None:
                raise ValueError("--learner ball needs --x-norm R, the norm of the longest row")
            if isinstance(self.label_range, str) and not self.scores:
                raise ValueError("--learner ball needs a range of labels: --label-range LO,HI")
            if self.rate is not None or self.bits is not None:
                raise ValueError("--learner ball has steps of its own and no table: no -l, no -b")
            return {"x_norm": self.x_norm}
        if self.x_norm is not None:
            raise ValueError("--x-norm is for --learner ball")
        if self.learner == "trees" and self.rate is not None:
            raise ValueError(
                "trees have no learning rate: -l goes with another --learner, such as linear"
            )
        rate = {} if self.rate is None else {"rate": self.rate}
        return {"bits": self.bits, **rate}

    def _loss(self) -> Any:
        name, _, tau = self.loss.partition(":")
        if name == "quantile":
            return Quantile(float(tau or 0.5))
        return Softmax(self.classes or 0) if name == "softmax" else self.loss
