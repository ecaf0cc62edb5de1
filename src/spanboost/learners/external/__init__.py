"""Learners of other libraries as weak learners; no library is imported before it is used."""

from typing import Any


def adapted(learner: Any) -> Any:
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
