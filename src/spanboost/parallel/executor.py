"""Executors run tasks: in this process, one after the other, or on a cluster (cluster.py).

A task is a function of this package with its arguments. It must not change them, so that it can run
anywhere, and again if its worker is lost. The handle of a task's result can be an argument of
another task; the result then does not pass through this process.

An object can also live on a worker, between calls of its methods. It is lost with its worker;
residents.py creates it again.
"""

import pickle
from collections.abc import Callable, Sequence
from typing import Any, Protocol


class WorkerLostError(RuntimeError):
    """The worker that an object lives on was lost. The message is one sentence."""


class Executor(Protocol):
    """Runs tasks, locally or on a cluster."""

    def put(self, value: Any) -> Any:
        """Return a handle for a value that is an argument of many tasks."""

    def call(self, task: Callable[..., Any], *args: Any, answers: int = 1) -> Any:
        """Start a task; return the handle of its result, or of each of several `answers`.

        Arguments that are handles are replaced by their values.
        """

    def results(self, handles: Sequence[Any]) -> list[Any]:
        """Wait for the results of these handles; return them in the same order.

        Raises `WorkerLostError` if one of them is the result of a method of a lost object.
        """

    def start(self, kind: Callable[..., Any], *args: Any) -> Any:
        """Create an object on a worker, where it stays; return its handle."""

    def ask(self, resident: Any, method: str, *args: Any) -> Any:
        """Start a method of an object on a worker; return the handle of its result.

        Methods of one object run one after the other, in the order of the calls.
        """

    def stop(self, resident: Any) -> None:
        """Remove an object from its worker."""


class LocalExecutor:
    """Runs every task at once, in this process; the handle of a value is the value."""

    def put(self, value: Any) -> Any:
        """Return the value itself."""
        return value

    def call(self, task: Callable[..., Any], *args: Any, answers: int = 1) -> Any:
        """Run the task; return its result."""
        return task(*args)

    def results(self, handles: Sequence[Any]) -> list[Any]:
        """Return the handles, which are the results."""
        return list(handles)

    def start(self, kind: Callable[..., Any], *args: Any) -> Any:
        """Create the object in this process."""
        return kind(*args)

    def ask(self, resident: Any, method: str, *args: Any) -> Any:
        """Call the method; return its result."""
        return getattr(resident, method)(*args)

    def stop(self, resident: Any) -> None:
        """Do nothing: the object is removed with its last reference."""


def pickle_model(model: Any) -> bytes:
    """Return a snapshot of a model."""
    return pickle.dumps(model, protocol=5)


def unpickle_model(state: bytes) -> Any:
    """Return a new model from a snapshot."""
    return pickle.loads(state)
