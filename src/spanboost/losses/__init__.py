"""Loss functions, their constants L_b, beta_b and eps_b of the paper, and the radius B."""

from spanboost.losses.constants import (
    NAMES,
    adds_classes,
    constant,
    degree,
    has_log_link,
    is_binary,
    predicts_scores,
    radius,
    require_fixed_classes,
    resolve,
    scores_of,
)
from spanboost.losses.log_link import Gamma, Poisson, Tweedie
from spanboost.losses.protocol import Loss, VectorLoss
from spanboost.losses.scalar import (
    Absolute,
    Hinge,
    Huber,
    Linear,
    Logistic,
    ModifiedLeastSquares,
    PNorm,
    Quantile,
    Squared,
)
from spanboost.losses.vector import Scalar, Softmax, SquaredEuclidean, on_vectors, values_of

__all__ = [
    "NAMES",
    "Absolute",
    "Gamma",
    "Hinge",
    "Huber",
    "Linear",
    "Logistic",
    "Loss",
    "ModifiedLeastSquares",
    "PNorm",
    "Poisson",
    "Quantile",
    "Scalar",
    "Softmax",
    "Squared",
    "SquaredEuclidean",
    "Tweedie",
    "VectorLoss",
    "adds_classes",
    "constant",
    "degree",
    "has_log_link",
    "is_binary",
    "on_vectors",
    "predicts_scores",
    "radius",
    "require_fixed_classes",
    "resolve",
    "scores_of",
    "values_of",
]
