"""Choose how a booster treats labels: a fixed range, one that follows the labels, or classes."""

from typing import Any

from spanboost import losses
from spanboost.checks import GROWING
from spanboost.errors import ParameterError
from spanboost.learners.protocol import Learner
from spanboost.rows.breathing_labels import BreathingLabels
from spanboost.rows.labels import FixedLabels, GrowingClasses, GrowingLabels, Labels
from spanboost.rows.mean_labels import FixedMeans, MeanLabels

_SCALABLE = "; or scalable=True, if its bank has rescale(self, a, b) (docs/own-learner.md)"


def new_labels(booster: Any, learner: Learner) -> Labels:
    """Return the labels of a booster before the first row; raise an error if they do not fit."""
    d = int(losses.on_vectors(booster.loss_).d)
    if losses.adds_classes(booster.loss) and getattr(learner, "widens", False) is not True:
        raise ParameterError(
            "loss",
            f"must be Softmax(d) with the number of classes d for the learner "
            f"{type(booster.learner).__name__}, to which classes cannot be added (in "
            "spanboost.sklearn: name all classes in the first partial_fit)",
        )
    log_link = losses.has_log_link(booster.loss_)
    if not isinstance(booster.label_range, str):
        if log_link:
            return FixedMeans(booster.loss_, d, booster.label_range)
        fixed = GrowingClasses if losses.adds_classes(booster.loss) else FixedLabels
        return fixed(booster.loss_, d, booster.label_range)
    if log_link:
        return MeanLabels(booster.loss_, d, booster.label_range)
    if getattr(learner, "scalable", False) is not True:
        raise ValueError(
            f"label_range={booster.label_range!r} rescales what was learned when the range "
            f"changes, and {type(booster.learner).__name__} cannot be rescaled: give "
            f"label_range=(low, high){_SCALABLE if hasattr(learner, 'scalable') else ''}"
        )
    kind = GrowingLabels if booster.label_range in GROWING else BreathingLabels
    return kind(booster.loss_, d, booster.label_range)
