"""Lines of the log that say why a worker reads nothing, and why it stopped."""

import time
from collections.abc import Callable, Mapping
from logging import INFO, WARNING

from spanboost.service.log import write_log

IDLE_SECONDS = 5.0  # without a message, before the log says why


class IdleLog:
    """Says why a worker waits, once for each reason."""

    def __init__(self) -> None:
        self._last = time.monotonic()  # when a message was read
        self._said: list[str] = []  # the reasons that the log has named

    def note_messages(self) -> None:
        """Remember that messages were read."""
        self._last = time.monotonic()

    def report(self, ask: Callable[[], Mapping[str, str | None]], pending: int) -> None:
        """Log what the worker waits for, if it read nothing for a while and the reason is new.

        ask: returns what keeps messages from each stream; None if there are no new ones.
        pending: number of predicted rows without a label.
        """
        if time.monotonic() - self._last < IDLE_SECONDS:
            return
        known = ask()
        labels = "predicted rows wait for their labels"
        reasons = [f"{part}: {why or 'no new messages'}" for part, why in known.items()]
        reasons += [labels] if pending else []
        if reasons != self._said:
            level = WARNING if any(known.values()) else INFO
            text = "; ".join(reasons).replace(labels, f"{labels}: {pending:,}")
            write_log(level, f"the worker waits; {text}")
        self._said = reasons


def log_end(drained: bool, problems: Mapping[str, str | None], pending: int) -> None:
    """Log why a worker stopped without an error, and what it leaves behind."""
    parts = ["all messages were processed" if drained else "it was asked to stop"]
    parts += [f"{part}: {why}" for part, why in problems.items() if why is not None]
    parts += [f"predicted rows without a label: {pending:,}"] if pending else []
    write_log(INFO, f"the worker stopped; {'; '.join(parts)}")
