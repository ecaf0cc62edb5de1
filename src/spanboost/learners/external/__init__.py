"""Adapters for learners of other libraries; each library is imported only when it is used."""

from typing import Any

import numpy as np

from spanboost.compiling.arrays import Array


def adapt_external(learner: Any) -> Any:
    """Wrap a learner of another library so that it can be boosted; return others unchanged."""
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
    if library == "sklearn" and hasattr(learner, "steps"):
        raise TypeError(
            "a pipeline of scikit-learn cannot learn one row at a time: scale the columns first "
            "and pass the regressor, or boost a pipeline of River"
        )
    if hasattr(learner, "backward") or hasattr(learner, "state_dict"):
        raise TypeError(
            f"{type(learner).__name__} has parameters but no optimiser: pass "
            "spanboost.TorchModule(module, optimiser), for example "
            "TorchModule(module, lambda parameters: torch.optim.SGD(parameters, lr=0.1))"
        )
    return learner


def to_vector(x: Any, learner: Any) -> Array:
    """Return a row as an array of numbers; raise a TypeError if it is not a sequence of numbers."""
    try:
        return np.asarray(x, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{type(learner).__name__} needs rows of numbers (got {x!r:.60})") from None
