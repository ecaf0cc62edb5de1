"""The interfaces of message systems: what can be read, with positions, and what can be written.

A *place* is a part of a stream in which messages have an order: a partition of a Kafka topic, a
Redis stream, the rows of a query. A *position* names a message in its place, as a JSON value. To
resume after a position means to continue with the message that follows it.
"""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

Positions = Mapping[str, Any]  # the last position that was processed, by place


class Message(NamedTuple):
    """A message that was read."""

    place: str
    position: Any
    payload: bytes

    def __str__(self) -> str:
        return f"message {self.position} of {self.place}"


class Outgoing(NamedTuple):
    """A message to write; the key decides about its partition, if there are several."""

    key: str
    payload: bytes
    headers: Mapping[str, str] = MappingProxyType({})


class UnavailableError(Exception):
    """A message system that does not respond. The message is one sentence; a retry may succeed."""


class MessageLog(Protocol):
    """Messages that are read once, in order, by `train` and `evaluate`."""

    name: str  # for messages to the user, without passwords
    has_start: bool  # whether the address says where to begin

    def has_place(self, place: str) -> bool:
        """Return whether a place is a part of this log."""

    def read(self, after: Positions, *, wait: bool) -> Iterator[list[Message]]:
        """Yield all messages after some positions, a few at a time, up to the current end.

        wait: continue with messages that arrive later, without end.
        Raises UnavailableError if the system cannot be reached.
        """


class MessageSource(Protocol):
    """Messages that a worker processes as they arrive. Only one thread uses it."""

    name: str
    epoch: int  # changes when messages that were read and not processed will be read again
    chosen: dict[str, Any]  # positions at which the source has begun itself, to be remembered
    warnings: list[str]  # about messages that were lost; the reader of the list empties it

    @property
    def problem(self) -> str | None:
        """Why nothing can be read now; None if nothing is wrong."""

    def idle_reason(self) -> str | None:
        """Return what keeps messages from this source; None if there are no new ones."""

    def start(self, positions: Positions) -> None:
        """Connect, and resume after some positions; UnavailableError if that fails for now."""

    def poll(self, seconds: float, positions: Positions) -> list[Message]:
        """Return the messages that have arrived; wait for the first one for some seconds.

        positions: what was processed so far, for places that begin or end to belong to this source.
        """

    def keep_alive(self, positions: Positions) -> None:
        """Show the message system that this source still exists, without reading messages."""

    def commit(self, positions: Positions) -> None:
        """Tell the message system what was processed; it is only for people and other workers."""

    def ends(self) -> Positions | None:
        """Return the last position of each place; None if the places are not known yet."""

    def has_read(self, ends: Positions) -> bool:
        """Return whether everything up to some ends was read."""

    def lag(self) -> dict[str, int | None]:
        """Return the number of messages in each place that were not read; None if unknown."""

    def close(self, positions: Positions) -> None:
        """Commit what was processed, and disconnect."""


class MessageSink(Protocol):
    """A stream to write to. Only one thread uses it."""

    name: str

    def deliver(self, messages: Sequence[Outgoing]) -> None:
        """Write messages, in order; they are stored when this returns.

        Raises UnavailableError if some of them may be missing; others may have been written.
        """

    def close(self) -> None:
        """Disconnect."""
