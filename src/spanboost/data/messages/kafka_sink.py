"""Write messages to a Kafka topic."""

import time
from collections.abc import Sequence
from typing import Any

from spanboost.data.messages.addresses import Address
from spanboost.data.messages.kafka_client import KafkaClient
from spanboost.data.messages.message import Outgoing, UnavailableError
from spanboost.data.problems import StreamError

OPTIONS = ("config",)
DELIVERY_SECONDS = 5.0  # time after which a delivery counts as failed for now


class KafkaSink:
    """A topic to write to; messages with the same key go to the same partition."""

    def __init__(self, address: Address) -> None:
        """Find the topic; StreamError if there is none, UnavailableError if it is not reached."""
        address.check_options(OPTIONS)
        self.name, self._client = address.name, KafkaClient(address)
        self._producer = self._client.producer()
        self._queued: Sequence[Outgoing] | None = None  # messages that the library still delivers
        self._failure: str | None = None  # of a message that the library has given up
        self._find_topic()

    def _find_topic(self) -> None:
        """Find the topic; a broker that creates topics needs a moment for a new one."""
        for pause in (0.5, 1.0, None):
            try:
                self._client.partitions(self._producer)
                return
            except StreamError:
                if pause is None:
                    raise
                time.sleep(pause)

    def deliver(self, messages: Sequence[Outgoing]) -> None:
        """Write messages; all replicas have them when this returns.

        After an UnavailableError, the same list continues where it was.
        """
        if messages is not self._queued:
            self._queued, self._failure = messages, None
            for message in messages:
                self._produce(message)
        if self._producer.flush(DELIVERY_SECONDS):
            reason = self._client.error or "the brokers do not respond"
            raise UnavailableError(f"cannot write to {self.name}: {reason}")
        self._queued = None
        if self._failure is not None:
            raise UnavailableError(f"cannot write to {self.name}: {self._failure}")
        self._client.error = None

    def close(self) -> None:
        """Disconnect; messages that were not delivered are dropped."""
        self._producer.purge()
        self._producer.flush(0)

    def _produce(self, message: Outgoing) -> None:
        headers = [(name, value.encode()) for name, value in message.headers.items()]
        arguments = (self._client.topic, message.payload, message.key.encode())
        while True:
            try:
                self._producer.produce(*arguments, headers=headers, on_delivery=self._note_delivery)
                return
            except BufferError:  # the queue of the library is full
                self._producer.poll(DELIVERY_SECONDS)
            except self._client.library.KafkaException as error:  # such as a message too large
                why = error.args[0].str()
                raise StreamError(f"cannot write to {self.name}: {why}") from None

    def _note_delivery(self, error: Any, _: Any) -> None:
        if error is not None:
            self._failure = error.str()
