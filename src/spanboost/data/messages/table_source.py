"""Read the rows of a query as messages, for a worker; new rows are found by asking again."""

import time
from typing import Any

import orjson

from spanboost.data.messages.message import Message, Positions, UnavailableError
from spanboost.data.query_table import (
    NoConnectionError,
    Query,
    QueryError,
    QueryTable,
    decode_position,
    encode_position,
    is_large,
    plain_value,
)

BATCH = 1000  # rows that are returned at a time
PAUSE_SECONDS = 1.0  # time between two queries, if the first one found no rows


class TableSource:
    """The rows of a query, in the order of the column to resume from."""

    def __init__(self, address: str, query: Query) -> None:
        self._table = QueryTable(address, query)
        self.name, self.epoch = self._table.name, 0
        self.problem: str | None = None
        self.chosen: dict[str, Any] = {}
        self.warnings: list[str] = []
        self._last: Any = None  # value of the last row that was read
        self._asked = -PAUSE_SECONDS  # when the last query found no rows

    def idle_reason(self) -> str | None:
        """Return None: the query is the only reason for rows to be missing."""
        return None

    def start(self, positions: Positions) -> None:
        """Continue after a position; StreamError if it is one of another query."""
        self._table.begin_after(positions)
        self._last = self._table.after
        self.epoch += 1
        try:
            self._table.check()
        except NoConnectionError as error:
            raise UnavailableError(str(error)) from None

    def poll(self, seconds: float, positions: Positions) -> list[Message]:
        """Return the next rows; without any, wait before the next query."""
        if time.monotonic() - self._asked < PAUSE_SECONDS:
            time.sleep(seconds)
            return []
        try:
            messages = self._fetch()
        except QueryError as error:  # the query was checked at the start
            raise UnavailableError(str(error)) from None
        if not messages:
            self._asked = time.monotonic()
        return messages

    def _fetch(self) -> list[Message]:
        """Return the next rows."""
        messages = list[Message]()
        for names, rows in self._table.fetch(self._last, BATCH):
            column = names.index(self._table.query.column or "")
            for row in rows[: BATCH - len(messages)]:
                values = dict(zip(names, map(plain_value, row), strict=True))
                self._last = row[column]
                messages.append(
                    Message(self._table.place, encode_position(self._last), _as_json(values))
                )
        return messages

    def keep_alive(self, positions: Positions) -> None:
        """Do nothing: a database does not know its readers."""

    def commit(self, positions: Positions) -> None:
        """Do nothing: a database does not know its readers."""

    def ends(self) -> Positions | None:
        """Return the largest value of the column."""
        try:
            return {self._table.place: encode_position(self._table.last())}
        except QueryError as error:
            raise UnavailableError(str(error)) from None

    def has_read(self, ends: Positions) -> bool:
        """Return whether the row with some value was read."""
        end = decode_position(ends[self._table.place])
        return end is None or (self._last is not None and self._last >= end)

    def lag(self) -> dict[str, int | None]:
        """Return nothing: counting rows may take a database long."""
        return {}

    def close(self, positions: Positions) -> None:
        """Do nothing: there is a connection only during a query."""


def _as_json(values: dict[str, Any]) -> bytes:
    """Return a row as a JSON object; integers can have any size, as in other messages."""
    large = {name: orjson.Fragment(str(value)) for name, value in values.items() if is_large(value)}
    return orjson.dumps({**values, **large}, default=_describe)


def _describe(value: Any) -> dict[str, str]:
    """Return a value of a type that is not supported as an object, which no row can have."""
    return {type(value).__name__: str(value)}
