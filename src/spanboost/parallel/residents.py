"""Objects that live on the workers of an executor, and survive the loss of a worker.

This process keeps the last snapshot of each object, and the calls that have changed it since. If
its worker is lost, a new object starts from the snapshot on another worker and repeats these calls.
"""

from collections.abc import Callable
from typing import Any

from spanboost.errors import ClusterError
from spanboost.parallel.executor import Executor, WorkerLostError

RETRIES = 3  # of one call


class Resident:
    """An object on a worker.

    kind: creates the object from a snapshot; its method `snapshot` returns one. A call must depend
        on nothing but the snapshot and the calls before it.
    """

    def __init__(self, executor: Executor, kind: Callable[[Any], Any], snapshot: Any) -> None:
        self._executor, self._kind = executor, kind
        self._snapshot = executor.put(snapshot)
        self._changes: list[tuple[Any, ...]] = []  # calls since the snapshot
        self._call: tuple[Any, ...] = ()  # the last call: its method and arguments
        self._object: Any = None
        self._answer: Any = None  # the handle of its result

    def ask(self, method: str, *args: Any) -> None:
        """Start a method; `answer` returns its result. Arguments may be handles."""
        self._call = method, *args
        if self._object is None:
            self._begin()
        else:
            self._answer = self._executor.ask(self._object, *self._call)

    def answer(self) -> Any:
        """Wait for the result of the last call; repeat it if its worker is lost."""
        for _ in range(RETRIES):
            try:
                return self._executor.results([self._answer])[0]
            except WorkerLostError:
                self.stop()
                self._begin()
        try:
            return self._executor.results([self._answer])[0]
        except WorkerLostError as error:
            message = f"{error}, and its work failed after {RETRIES} retries"
            raise ClusterError(message) from None

    def keep(self) -> None:
        """Add the last call to those that a new object has to repeat."""
        self._changes.append(self._call)

    def save(self) -> Any:
        """Take a snapshot; a new object starts from it. Return the snapshot."""
        if self._changes:
            self.ask("snapshot")
            self._snapshot, self._changes = self._executor.put(self.answer()), []
        return self._executor.results([self._snapshot])[0]

    def stop(self) -> None:
        """End the object; the next call starts it again, without calls that were not kept."""
        if self._object is not None:
            self._executor.stop(self._object)
            self._object = None

    def _begin(self) -> None:
        """Start a new object, bring it up to date, and repeat the last call."""
        self._object = self._executor.start(self._kind, self._snapshot)
        for call in (*self._changes, self._call):
            self._answer = self._executor.ask(self._object, *call)
