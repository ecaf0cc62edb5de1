"""The rows of a message log, read like the lines of a JSON Lines file."""

import time
from collections.abc import Iterator
from typing import Any

from spanboost.data.formats.jsonl import BadRowError, ValueChunk
from spanboost.data.messages.message import Message, MessageLog, Positions, UnavailableError
from spanboost.data.messages.payloads import decode_payload
from spanboost.data.problems import StreamError

PAUSES = (0.5, 1.0, 2.0)  # seconds before each retry; the next failure is an error


class MessageRows:
    """A message log as a source of rows.

    A message can have several rows. The position of a row in the middle of a message is a list: the
    position of the message before it, and the number of rows of the message up to this row.
    """

    def __init__(self, log: MessageLog, *, wait: bool) -> None:
        self.name, self._log, self._wait = log.name, log, wait
        self.has_start = log.has_start
        self.size, self.position = None, 0  # in bytes, which are not known
        self._after: Positions = {}

    def fingerprint(self) -> list[Any]:
        """Return what tells these rows from others."""
        return [self.name]

    def begin_after(self, positions: Positions) -> bool:
        """Read only the rows after the positions in this log; return whether there are any."""
        self._after = {
            place: position for place, position in positions.items() if self._log.has_place(place)
        }
        return bool(self._after)

    def read(self, *, exact: bool) -> Iterator[ValueChunk]:
        """Yield the rows of all messages; `exact` as for `decode_json`."""
        before = {place: _split(position) for place, position in self._after.items()}
        last = {place: position for place, (position, _) in before.items()}
        skipped = {place: rows for place, (_, rows) in before.items()}
        line = 1
        for messages in self._messages(last):
            values, positions = list[Any](), list[tuple[str, Any]]()
            for message in messages:
                place, rows = message.place, _values(message, exact)
                done = skipped.pop(place, 0)
                values += rows[done:]
                inside = [(place, [last.get(place), k]) for k in range(done + 1, len(rows))]
                positions += inside + [(place, message.position)] * bool(rows)
                last[place] = message.position
            if values:
                yield ValueChunk([*range(line, line + len(values))], values, positions)
            line += len(values)

    def _messages(self, last: Positions) -> Iterator[list[Message]]:
        """Yield all messages after positions that the caller updates; retry after a failure."""
        pauses = iter(PAUSES)
        while True:
            try:
                for messages in self._log.read(last, wait=self._wait):
                    yield messages
                    pauses = iter(PAUSES)
                return
            except UnavailableError as error:
                pause = next(pauses, None)
                if pause is None:
                    raise StreamError(str(error)) from None
                time.sleep(pause)


def _split(position: Any) -> tuple[Any, int]:
    """Return the last complete message, and the number of rows of the next one."""
    return (position[0], position[1]) if isinstance(position, list) else (position, 0)


def _values(message: Message, exact: bool) -> list[Any]:
    try:
        return decode_payload(message.payload, exact=exact)
    except BadRowError as error:
        return [BadRowError(f"{error} ({message})", error.field, error.summary)]
