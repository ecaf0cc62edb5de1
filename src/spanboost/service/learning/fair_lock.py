"""A lock that is passed in order: a thread that releases it queues behind those that wait."""

import threading
import time


class FairLock:
    """Guards the model between the thread that learns and the thread that predicts."""

    def __init__(self) -> None:
        self._next, self._held = threading.Lock(), threading.Lock()
        self._last_prediction = 0.0

    def __enter__(self) -> None:
        with self._next:  # a thread that waits here gets the lock before its last holder
            self._held.acquire()

    def __exit__(self, *_: object) -> None:
        self._held.release()

    def note_prediction(self) -> None:
        """Record that a prediction was requested, so that learning uses small blocks."""
        self._last_prediction = time.monotonic()

    @property
    def idle(self) -> bool:
        """Whether no prediction was requested in the last second."""
        return time.monotonic() - self._last_prediction > 1
