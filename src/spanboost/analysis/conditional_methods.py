"""Methods of estimators that exist only with certain parameters."""

from collections.abc import Callable
from types import MethodType
from typing import Any


class ConditionalMethod:
    """A method that `hasattr` does not find while there is a reason against it.

    scikit-learn has `available_if` for this, but its message does not say the reason.
    """

    def __init__(self, method: Callable[..., Any], reason: Callable[[Any], str | None]) -> None:
        self._method, self._reason = method, reason
        self.__doc__ = method.__doc__

    def __get__(self, estimator: Any, owner: type) -> Any:
        if estimator is None:
            return self._method
        reason = self._reason(estimator)
        if reason is not None:
            raise AttributeError(f"{owner.__name__}.{self._method.__name__} {reason}")
        return MethodType(self._method, estimator)


def unless(reason: Callable[[Any], str | None]) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator of methods; `reason` returns why an estimator does not have it, or None.

    >>> class Model:
    ...     fitted = False
    ...
    ...     @unless(lambda model: None if model.fitted else "needs a fitted model")
    ...     def predict(self):
    ...         return 1
    >>> model = Model()
    >>> hasattr(model, "predict")
    False
    >>> model.predict()
    Traceback (most recent call last):
        ...
    AttributeError: Model.predict needs a fitted model
    >>> model.fitted = True
    >>> model.predict()
    1
    """
    return lambda method: ConditionalMethod(method, reason)
