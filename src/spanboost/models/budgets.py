"""The experts of AutoBoost: a list for each budget, chosen on many data sets (docs/auto.md)."""

from typing import Any, NamedTuple

import numpy as np

from spanboost.learners.linear import LinearSGD
from spanboost.learners.network import Network
from spanboost.learners.ridge import Ridge
from spanboost.learners.trees import Trees
from spanboost.losses import Absolute, Huber, resolve


class Expert(NamedTuple):
    """One member of the ensemble.

    smooth: whether it learns absolute loss by Huber loss. Every label then says how far it is away,
        so trees learn more from it; the experts that learn signs only are closer to the median.
    """

    name: str
    learner: Any
    parameters: dict[str, Any]
    n: int | str = 1  # "auto": chosen online, as eta
    eta: float | str | None = None  # None: one copy, without boosting
    replay: int = 0
    smooth: bool = False


NEAR_ABSOLUTE = Huber(0.1)  # in units of half the label range

# Each kind of trees is best on some data. Slow experts come first, so that threads finish at about
# the same time. The simple experts cost almost nothing.
_SIMPLE = (
    Expert("linear", LinearSGD, {"rate": 0.5}, smooth=True),
    Expert("linear quick", LinearSGD, {"rate": 2.0}),
    Expert("network", Network, {"rate": 0.5, "hidden": 20}),
    Expert("ridge", Ridge, {"dtype": np.float32}, smooth=True),  # all experts read the same rows
)
FOR_CLASSES = {"sketch": 3, "evidence": 5.0, "candidates": 64}  # trees of scores of classes
# Less evidence than the default of trees is enough, because the experts correct each other. The
# trees of "default" test half the candidates to take half the memory; wide rows lose by it.
_SOON = {"evidence": 6.5}
_EAGER = {"evidence": 3.25}
_HASTY = {"evidence": 1.3}
_LIGHT = {"candidates": 32}
_RECENT = _LIGHT | _EAGER | {"depth": 10, "delay": 10, "recency": 2}
_THOROUGH = (
    Expert(
        "trees replayed slow",
        Trees,
        _SOON | {"delay": 3, "depth": 10},
        200,
        0.05,
        replay=2,
        smooth=True,
    ),
    Expert("trees replayed eager", Trees, _EAGER | {"depth": 10}, 100, 0.1, replay=2, smooth=True),
    Expert("trees slow", Trees, _SOON | {"delay": 3}, 200, 0.05),
    Expert("trees slow eager", Trees, _EAGER | {"delay": 3, "depth": 10}, 200, 0.05, smooth=True),
    Expert("trees deep recent", Trees, _SOON | {"depth": 12, "recency": 2}, 100, 0.1),
    Expert("trees recent", Trees, _SOON | {"recency": 2}, 100, 0.1),
)
EXPERTS: dict[str, tuple[Expert, ...]] = {
    "fast": (Expert("trees", Trees, {"delay": 8}, 64, 0.15, smooth=True), *_SIMPLE),
    "default": (
        Expert(
            "trees replayed", Trees, _LIGHT | _SOON | {"depth": 10}, 100, 0.1, replay=1, smooth=True
        ),
        Expert("trees eager", Trees, _LIGHT | _EAGER | {"depth": 10}, 100, 0.1, smooth=True),
        Expert("trees slow", Trees, _LIGHT, 100, 0.05),
        Expert("trees recent", Trees, _RECENT, 50, 0.2),
        *_SIMPLE,
    ),
    "thorough": (*_THOROUGH, *_SIMPLE),
    # for clusters: no expert takes longer than the slowest one of "thorough"
    "exhaustive": (
        *_THOROUGH,
        Expert(
            "trees replayed slow, 2nd",
            *(Trees, _SOON | {"delay": 3, "depth": 10}, 200, 0.05),
            replay=2,
        ),
        Expert(
            "trees replayed slow, deep",
            *(Trees, _EAGER | {"delay": 3, "depth": 12}, 200, 0.05),
            replay=2,
        ),
        Expert("trees replayed late", Trees, _SOON | {"delay": 8, "depth": 8}, 200, 0.05, replay=2),
        Expert("trees replayed deep", Trees, _EAGER | {"depth": 12}, 100, 0.1, replay=2),
        Expert("trees replayed hasty", Trees, _HASTY | {"depth": 10}, 100, 0.1, replay=2),
        Expert(
            "trees replayed recent", Trees, _SOON | {"depth": 10, "recency": 2}, 100, 0.1, replay=2
        ),
        Expert("trees replayed", Trees, _SOON | {"depth": 8}, 100, 0.1, replay=2),
        Expert("trees replayed shallow", Trees, _SOON | {"depth": 6}, 100, 0.15, replay=2),
        *_SIMPLE,
    ),
}


def expert_loss(loss: Any, smooth: bool) -> Any:
    """Return the loss that an expert learns if this is the loss of the model."""
    return NEAR_ABSOLUTE if smooth and isinstance(resolve(loss), Absolute) else loss
