"""Learners of other libraries as weak learners; no library is imported before it is used."""

from typing import Any

import numpy as np

from spanboost.compiling.arrays import Array


def adapt_external(learner: Any) -> Any:
    """A learner of another library as an object that can be boosted; any other as it is."""
    library = type(learner).__module__.partition(".")[0]
    if library == "vowpalwabbit":
        from spanboost.learners.external.vw import VowpalWabbit

        return VowpalWabbit(str(learner.get_arguments()))
    if hasattr(learner, "predict_one") and hasattr(learner, "learn_one"):
        from spanboost.learners.external.river import RiverRegressor

        return RiverRegressor(learner) if library == "river" else learner
    if hasattr(learner, "partial_fit") and hasattr(learner, "predict"):
        from spanboost.learners.external.sklearn import PartialFit

        return PartialFit(learner)
    if hasattr(learner, "backward") or hasattr(learner, "state_dict"):
        raise TypeError(
            f"{type(learner).__name__} has parameters, but nothing that learns them: give "
            "spanboost.TorchModule(module, optimiser), such as "
            "TorchModule(module, lambda parameters: torch.optim.SGD(parameters, lr=0.1))"
        )
    return learner


def numbers(x: Any, learner: Any) -> Array:
    """A row that is a sequence of numbers; a TypeError in one sentence for any other."""
    try:
        return np.asarray(x, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            f"{type(learner).__name__} learns from rows of numbers, and this one is {x!r:.60}"
        ) from None
