"""Interrupts (Ctrl-C) that wait until a model is consistent.

Python raises a `KeyboardInterrupt` between any two instructions. Inside a method that `finishes`,
it waits for the end of the method. A learner of your own may take long, so its loop looks for
interrupts after each row.
"""

import inspect
import signal
import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

Method = TypeVar("Method", bound=Callable[..., Any])

# without the conversions to enums, which take longer than a row
_get_handler = inspect.unwrap(signal.getsignal)
_set_handler = inspect.unwrap(signal.signal)


class _Waiting:
    """A handler that remembers the first interrupt, and raises the second one at once."""

    def __init__(self) -> None:
        self.arrived = False

    def __call__(self, *_: Any) -> None:
        if self.arrived:
            raise KeyboardInterrupt
        self.arrived = True


def finishes(method: Method) -> Method:
    """Let a method finish before an interrupt is raised.

    Only the main thread receives interrupts. A program's own handler keeps its effect.
    """

    @wraps(method)
    def call(*args: Any, **given: Any) -> Any:
        main = threading.get_ident() == threading.main_thread().ident
        if not main or _get_handler(signal.SIGINT) is not signal.default_int_handler:
            return method(*args, **given)
        waiting = _Waiting()
        _set_handler(signal.SIGINT, waiting)
        try:
            return method(*args, **given)
        finally:
            _set_handler(signal.SIGINT, signal.default_int_handler)
            if waiting.arrived:
                raise KeyboardInterrupt

    return call  # type: ignore[return-value]


def raise_interrupt() -> None:
    """Raise an interrupt that waits."""
    handler = _get_handler(signal.SIGINT)
    if not (isinstance(handler, _Waiting) and handler.arrived):
        return
    if threading.get_ident() == threading.main_thread().ident:
        handler.arrived = False
        raise KeyboardInterrupt
