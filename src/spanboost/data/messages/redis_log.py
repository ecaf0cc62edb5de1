"""Read a Redis stream once, from its beginning to its end, without a group."""

from collections.abc import Iterator

from spanboost.data.messages.addresses import EARLIEST, LATEST, Address
from spanboost.data.messages.message import Message, Positions
from spanboost.data.messages.redis_client import (
    FIELD,
    FIRST,
    RedisClient,
    as_text,
    check_id,
    id_key,
)

OPTIONS = ("start", "field")
BATCH = 1000  # entries that are requested at a time


class RedisLog:
    """The entries of a stream."""

    def __init__(self, address: Address) -> None:
        address.check_options(OPTIONS)
        self.name, self._client = address.name, RedisClient(address)
        self._field = address.options.get("field", FIELD)
        self.has_start = "start" in address.options
        self._start = address.options.get("start", EARLIEST)
        if self._start not in (EARLIEST, LATEST):
            check_id(address, self._start)

    def has_place(self, place: str) -> bool:
        """Return whether a place is the stream."""
        return place == self._client.place

    def read(self, after: Positions, *, wait: bool) -> Iterator[list[Message]]:
        """Yield all entries after a position, up to the current end."""
        client = self._client
        client.check_stream()
        end = client.last_id()
        last = self._first(after, end)
        client.check_position(after.get(client.place))
        try:
            while wait or id_key(last) < id_key(end):
                entries = (
                    client.read(last, BATCH, 1.0, None)
                    if wait
                    else client.call("xrange", f"({last}", end, BATCH)
                )
                if entries:
                    last = as_text(entries[-1][0])
                    yield [client.message(entry, self._field) for entry in entries]
                elif not wait:
                    return
        finally:
            client.close()

    def _first(self, after: Positions, end: str) -> str:
        """Return the id after which to begin."""
        last = after.get(self._client.place)
        if last is not None:
            return str(last)
        return {EARLIEST: FIRST, LATEST: end}.get(self._start, self._start)
