"""The stage for past labels of a new model."""

from spanboost.errors import ParameterError
from spanboost.losses import Softmax, resolve
from spanboost.models.past_class_stage import PastClassStage
from spanboost.models.past_stage import LEAST_BITS, PastStage, can_correct
from spanboost.models.spec import AutoSpec


def new_past_stage(spec: AutoSpec) -> PastStage | PastClassStage | None:
    """Return the stage of a new AutoBoost; None if it has none."""
    classes = isinstance(resolve(spec.loss), Softmax)
    possible = classes or (can_correct(spec.loss) and (spec.bits or LEAST_BITS) >= LEAST_BITS)
    wanted = spec.budget != "fast" if spec.past is None else spec.past
    if not possible and (spec.past or spec.key is not None):
        raise ParameterError(
            "past" if spec.key is None else "key",
            "needs squared, absolute, Huber, quantile, logistic or softmax loss, and at least "
            f"{LEAST_BITS} bits",
        )
    if not possible or not (wanted or spec.key is not None):
        return None
    if classes:
        return PastClassStage(spec.loss, spec.key)
    return PastStage(spec.loss, spec.seed, spec.bits, spec.key)
