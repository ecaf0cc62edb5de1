"""Where work is done: here, one task after the other, or on a cluster (cluster.py).

A task is a function of this package and what it is given; it changes nothing that it is given, so
that it can be done anywhere, and again if it was lost. What it answers may be given to the next one
by its handle, without coming here.
"""

import pickle
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from spanboost.errors import LabelWarning, warn_caller


class Executor(Protocol):
    """Somewhere to work."""

    def put(self, value: Any) -> Any:
        """A handle of something that many tasks will be given."""

    def call(self, task: Callable[..., Any], *given: Any, answers: int = 1) -> Any:
        """The handle of what a task answers, or so many of them; those given are looked up."""

    def results(self, handles: Sequence[Any]) -> list[Any]:
        """What became of them, in this order; waits for all of it."""


class LocalExecutor:
    """A place in this process."""

    def put(self, value: Any) -> Any:
        """The value itself."""
        return value

    def call(self, task: Callable[..., Any], *given: Any, answers: int = 1) -> Any:
        """The answer itself."""
        return task(*given)

    def results(self, handles: Sequence[Any]) -> list[Any]:
        """They are here already."""
        return list(handles)


def capture_warnings(work: Callable[[], Any]) -> tuple[Any, list[str]]:
    """What the work comes to, and our own warnings: nobody would hear them over there."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        answer = work()
    return answer, [str(one.message) for one in said if issubclass(one.category, LabelWarning)]


def reissue_warnings(said: Sequence[str]) -> None:
    """The warnings once more, to the one who called us."""
    for text in said:
        warn_caller(text, LabelWarning)


def pickle_model(model: Any) -> bytes:
    """A model as it is now."""
    return pickle.dumps(model, protocol=5)


def unpickle_model(state: bytes) -> Any:
    """The model of a snapshot, which shares nothing with it."""
    return pickle.loads(state)
