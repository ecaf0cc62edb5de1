"""Constructors whose errors say what a parameter of another library is called here."""

from collections.abc import Callable, Collection, Mapping
from functools import wraps
from inspect import signature
from types import FunctionType
from typing import Any, TypeVar

from spanboost.errors import did_you_mean

T = TypeVar("T")

_QUANTILE = 'loss="quantile:0.9"'
_OTHER_NAMES = {  # what parameters are called elsewhere: names here
    **dict.fromkeys(("max_depth", "depth"), "depth"),
    "alpha": "alpha",
    **dict.fromkeys(("quantile", "tau"), "quantile"),
    **dict.fromkeys(("n", "n_estimators", "n_models", "iterations"), "n"),
    **dict.fromkeys(("eta", "step", "learning_rate", "lr"), "step"),
    **dict.fromkeys(("objective", "criterion", "loss_function"), "loss"),
    **dict.fromkeys(("early_stopping", "validation_fraction", "n_iter_no_change"), "stopping"),
    **dict.fromkeys(("max_iter", "n_iter", "epochs", "num_epochs"), "n_epochs"),
    **dict.fromkeys(("random_state", "seed"), "seed"),
}
_INSTEAD = {  # what to write for classes that have no such parameter
    "depth": "learner=Trees(depth=...)",
    **dict.fromkeys(("alpha", "quantile"), _QUANTILE),
    "stopping": 'n_epochs="auto"',
}


def own_constructor(names: Mapping[str, str]) -> Callable[[type[T]], type[T]]:
    """Give a class the constructor of its specification, under the name of the class.

    Errors about arguments then name the class that the user called, and what a parameter of another
    library is called here.

    names: as for `unknown_parameter`.
    """

    def decorate(cls: type[T]) -> type[T]:
        init: Any = cls.__init__
        known = [*signature(init).parameters][1:]  # without self
        copy = FunctionType(
            init.__code__, init.__globals__, "__init__", init.__defaults__, init.__closure__
        )
        copy.__kwdefaults__, copy.__annotations__ = init.__kwdefaults__, init.__annotations__
        copy.__qualname__ = f"{cls.__qualname__}.__init__"

        @wraps(copy)
        def __init__(self: Any, *args: Any, **given: Any) -> None:  # noqa: N807
            for name in given.keys() - set(known):
                raise TypeError(unknown_parameter(cls.__name__, name, names, known))
            copy(self, *args, **given)

        cls.__init__ = __init__  # type: ignore[method-assign]
        return cls

    return decorate


def unknown_parameter(cls: str, name: str, names: Mapping[str, str], known: Collection[str]) -> str:
    """Return the message about a parameter that a class does not have.

    names: what the class calls parameters, if that is not the name in `_OTHER_NAMES`.
    known: the parameters of the class.
    """
    meant = _OTHER_NAMES.get(name, "")
    own = names.get(meant, meant)
    if own not in known:
        own = _INSTEAD.get(meant, "")
    found = own.partition("=")[0] in known
    if own == _QUANTILE and cls.endswith("Classifier"):
        found = False  # the losses of classes have no quantiles
    hint = f"; use {own}" if found else did_you_mean(name, known)
    if not hint and "budget" in known and meant in ("n", "step", "depth"):
        hint = "; its experts are given, and a larger budget has more of them"
    return f"{cls} has no parameter {name!r}{hint}"
