"""Retries of what a message system or a disk refuses for now, with pauses that grow."""

import threading
from collections.abc import Callable
from logging import INFO, WARNING
from typing import TypeVar

from spanboost.data.messages.message import UnavailableError
from spanboost.service.learning.jobs import StorageError
from spanboost.service.learning.worker import BusyError
from spanboost.service.log import write_log

FIRST_SECONDS, MOST_SECONDS = 0.25, 15.0
_TEMPORARY = (UnavailableError, StorageError, BusyError)
Result = TypeVar("Result")


class StoppedError(Exception):
    """The worker was stopped while it waited."""


class Retries:
    """Repeats calls until they succeed, or the worker is stopped."""

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop
        self.problems: dict[str, str] = {}  # the last error of each part that fails now

    def call(self, part: str, action: Callable[[], Result]) -> Result:
        """Return the result of a call; raise StoppedError if it never succeeds."""
        pause = FIRST_SECONDS
        while True:
            try:
                result = action()
            except _TEMPORARY as error:
                self.note_problem(part, error)
                if self._stop.wait(pause):
                    raise StoppedError from None
                pause = min(2 * pause, MOST_SECONDS)
            else:
                self._note_success(part)
                return result

    def note_problem(self, part: str, error: Exception) -> None:
        """Remember why a part fails, and log it if the reason is new."""
        reason = str(error) or "the service is busy"
        if self.problems.get(part) != reason:
            write_log(WARNING, f"{reason}; retrying")
        self.problems[part] = reason

    def _note_success(self, part: str) -> None:
        if self.problems.pop(part, None) is not None:
            write_log(INFO, f"{part}: working again")
