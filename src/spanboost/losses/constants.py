"""Look up losses by name, compute their constants, and compute the radius B from them."""

import math
import sys
from functools import partial
from typing import Any

import numpy as np

from spanboost.checks import is_number
from spanboost.compiling.arrays import Array
from spanboost.errors import ConstantWarning, ParameterError, suggest_loss, warn_caller
from spanboost.losses.estimates import can_estimate, estimate
from spanboost.losses.log_link import Gamma, Poisson, Tweedie
from spanboost.losses.scalar import (
    Absolute,
    Hinge,
    Linear,
    Logistic,
    ModifiedLeastSquares,
    Quantile,
    Squared,
)
from spanboost.losses.vector import Softmax

MEANING = {
    "L": "its Lipschitz constant L_b",
    "beta": "its smoothness beta_b",
    "eps": "its projection loss eps_b",
}
NAMES = {
    "linear": Linear(),
    "squared": Squared(),
    "modified_least_squares": ModifiedLeastSquares(),
    "logistic": Logistic(),
    "absolute": Absolute(),
    "hinge": Hinge(),
    "poisson": Poisson(),
    "gamma": Gamma(),
    "softmax": Softmax(2),  # to begin with: a model adds classes as they appear
}
WITH_NUMBER = {"quantile": Quantile, "tweedie": Tweedie}  # names followed by : and a number
NUMBERS = {
    "quantile": "'quantile:TAU' with TAU between 0 and 1",
    "tweedie": "'tweedie:POWER' with POWER between 1 and 2",
}


def resolve(loss: Any) -> Any:
    """Return the loss object for a name or a loss object, and check its parameters."""
    if isinstance(loss, str):
        return _by_name(loss)
    if isinstance(loss, type):
        raise TypeError(f"{loss.__name__} is a class: pass an instance, {loss.__name__}(...)")
    parts = ("value", "values", "gradient", "gradients", *MEANING)
    if not any(hasattr(loss, name) for name in parts):
        raise ParameterError("loss", f"must be a name or a loss object (got {loss!r})")
    kind = type(loss)
    if kind.__module__.partition(".")[0] == "river":
        raise ParameterError(
            "loss",
            f"must be a name such as 'quantile:0.9', or a loss object of spanboost.losses (got "
            f"{kind.__module__}.{kind.__name__})",
        )
    if callable(getattr(loss, "check", None)):
        loss.check()
    missing = [name for name in MEANING if not callable(getattr(loss, name, None))]
    if missing and can_estimate(loss):
        what = (
            f"{type(loss).__name__} does not define "
            f"{', '.join(MEANING[name] for name in missing)}: "
            "estimated from its gradient, assuming a convex loss; for guarantees, add the methods "
            f"{', '.join(f'{name}(b)' for name in missing)}"
        )
        warn_caller(ConstantWarning(what))
    return loss


def _by_name(name: str) -> Any:
    """Return the loss of a name: one of `NAMES`, "quantile:TAU" or "tweedie:POWER"."""
    kind, _, number = name.partition(":")
    if kind in WITH_NUMBER:
        try:
            return resolve(WITH_NUMBER[kind](float(number)))
        except ValueError:
            needed = NUMBERS[kind]
            raise ParameterError("loss", f"must be {needed} (got {name!r})") from None
    if name not in NAMES:
        raise ParameterError(
            "loss",
            f"must be one of {', '.join([*map(repr, NAMES), *NUMBERS.values()])}, or a loss "
            "object such as PNorm(4), Huber(0.1) or Softmax(3) "
            f"(got {name!r}){suggest_loss(kind, [*NAMES, *WITH_NUMBER])}",
        )
    return NAMES[name]


def adds_classes(loss: Any) -> bool:
    """Return whether a model with this loss, a name or a loss object, adds classes by itself."""
    return isinstance(loss, str) and loss == "softmax"


def require_fixed_classes(loss: Any, what: str) -> None:
    """Raise a ParameterError if a model with this loss would add classes by itself."""
    if adds_classes(loss):
        raise ParameterError(
            "loss",
            f"must be Softmax(d) for {what}, with the number of classes d (on the command line: "
            "--classes K)",
        )


def predicts_scores(loss: Any) -> bool:
    """Return whether predictions are scores rather than numbers in label units."""
    return is_binary(loss) or getattr(loss, "margin", False) is True


def has_log_link(loss: Any) -> bool:
    """Return whether models predict means, and the loss takes their logarithms."""
    return getattr(loss, "log_link", False) is True


def scores_of(loss: Any, predictions: Array) -> Array:
    """Return predictions in the units of the labels, or scores, as the loss takes them."""
    if not has_log_link(loss):
        return predictions
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(predictions)


def is_binary(loss: Any) -> bool:
    """Return whether the labels are -1 and +1."""
    return getattr(loss, "binary", False) is True


def degree(loss: Any) -> float:
    """Return the p for which l(a y*, a y) = a^p l(y*, y); 2, unless the loss defines it.

    A loss without such a p, such as Huber's, counts as degree 2: that is how a smooth loss behaves
    near the label.
    """
    p = getattr(loss, "degree", 2.0)
    if not (is_number(p) and 1 <= p < math.inf):
        raise ValueError(f"{type(loss).__name__}.degree must be a number, at least 1 (got {p!r})")
    return float(p)


def constant(loss: Any, name: str, b: float) -> float:
    """Return L_b, beta_b or eps_b of a loss, estimated if undefined (estimates.py)."""
    method = getattr(loss, name, None)
    if not callable(method):
        if not can_estimate(loss):
            raise ValueError(
                f"the loss {type(loss).__name__} has no method {name}(b), {MEANING[name]}; "
                "estimating it needs the methods value(label, y) and gradient(label, y)"
            )
        method = partial(estimate, loss, name)
    try:
        value = float(method(b))
        if not value >= 0 or (name == "L" and value == 0):
            allowed = "positive" if name == "L" else "at least 0"
            raise ValueError(
                f"{type(loss).__name__}.{name}({b:g}) must be {allowed} (got {value:g})"
            )
        return value
    except OverflowError:
        return sys.float_info.max  # finite: infinity would mean that the loss has a kink


def radius(loss: Any, eta: float, N: int, D: float) -> float:
    """Return B = min{eta N D, inf{b >= D : eta beta_b b^2 >= eps_b D}} (Algorithm 1, line 1).

    For a learner scaled by lambda, pass lambda D as D. By definition beta_b b^2 increases with b
    and eps_b decreases, so bisection finds the infimum, exact to the last float. A loss with a kink
    (beta_b infinite) needs eps_b = 0 instead, so that projecting costs nothing.

    >>> radius(Squared(), eta=0.1, N=100, D=1.0)
    1.0
    >>> radius(Logistic(), eta=0.1, N=100, D=1.0)  # the paper states ln(4 / eta) = 3.69
    2.0...
    """
    loss = resolve(loss)

    def enough(b: float) -> bool:
        beta, eps = constant(loss, "beta", b), constant(loss, "eps", b)
        return eps <= 0 if math.isinf(beta) else eta * beta * b * b >= eps * D

    low, high = D, max(eta * N * D, D)
    if enough(low):
        return low
    if not enough(high):
        return high
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
