"""Write messages to a Redis stream."""

from collections.abc import Sequence

from spanboost.data.messages.addresses import Address
from spanboost.data.messages.message import Outgoing
from spanboost.data.messages.redis_client import FIELD, RedisClient
from spanboost.data.problems import StreamError

OPTIONS = ("field", "maxlen")
BATCH = 1000  # entries that are sent at a time


class RedisSink:
    """A stream to write to; the server creates it with the first entry."""

    def __init__(self, address: Address) -> None:
        """Reach the server; StreamError if the address is invalid."""
        address.check_options(OPTIONS)
        self.name, self._client = address.name, RedisClient(address)
        self._field = address.options.get("field", FIELD)
        limit = address.options.get("maxlen")
        if limit is not None and not (limit.isascii() and limit.isdigit() and int(limit) > 0):
            raise StreamError(f"{self.name}: maxlen must be a positive number (got {limit!r:.40})")
        self._limit = None if limit is None else int(limit)
        self._client.check_stream(may_be_new=True)

    def deliver(self, messages: Sequence[Outgoing]) -> None:
        """Write messages; the server has them when this returns."""
        for first in range(0, len(messages), BATCH):
            commands = self._client.pipeline()
            for message in messages[first : first + BATCH]:
                fields = {self._field: message.payload, **message.headers}
                commands.xadd(self._client.stream, fields, maxlen=self._limit)
            with self._client.errors():
                commands.execute()

    def close(self) -> None:
        """Disconnect."""
        self._client.close()
