"""A lock whose holders take turns: who has had it waits behind those who were waiting."""

import threading
import time


class FairLock:
    """Between the writer, who learns, and those who predict."""

    def __init__(self) -> None:
        self._next, self._held = threading.Lock(), threading.Lock()
        self.asked = 0.0  # when a prediction was last made

    def __enter__(self) -> None:
        with self._next:  # whoever waits here comes before whoever held it last
            self._held.acquire()

    def __exit__(self, *_: object) -> None:
        self._held.release()

    def note(self) -> None:
        """A prediction is asked for: blocks that are learned should be small now."""
        self.asked = time.monotonic()

    @property
    def quiet(self) -> bool:
        """Whether nobody has asked for a prediction in the last second."""
        return time.monotonic() - self.asked > 1
