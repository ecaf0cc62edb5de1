"""Read a Kafka topic once, from its beginning to its end, without a consumer group.

The messages of several partitions are merged by their times. So the order of the rows depends only
on the topic, and the same topic gives the same model.
"""

import time
from collections import deque
from collections.abc import Iterator
from typing import Any

from spanboost.data.messages.addresses import LATEST, Address
from spanboost.data.messages.kafka_client import (
    END_OF_PARTITION,
    METADATA_SECONDS,
    KafkaClient,
    partitions_of,
    start_of,
)
from spanboost.data.messages.message import Message, Positions, UnavailableError
from spanboost.data.problems import StreamError

OPTIONS = ("start", "partitions", "config")
GROUP = "spanboost-reader"  # the library needs a name; the reader neither joins nor commits
BATCH = 1000  # messages that are requested at a time
QUEUED = 10_000  # messages of a partition that wait for those of others, about
SILENT_SECONDS = 30.0  # time without messages after which an error of the connection counts


class KafkaLog:
    """The messages of a topic."""

    def __init__(self, address: Address) -> None:
        address.check_options(OPTIONS)
        self._client = KafkaClient(address)
        self.name = address.name
        self._start, self._only = start_of(address), partitions_of(address)
        self.has_start = "start" in address.options

    def has_place(self, place: str) -> bool:
        """Return whether a place is a partition of the topic."""
        return place.rpartition("/")[0] == self._client.place(0).rpartition("/")[0]

    def read(self, after: Positions, *, wait: bool) -> Iterator[list[Message]]:
        """Yield all messages after some positions, up to the current end."""
        consumer = self._client.consumer(GROUP)
        try:
            merge = _Merge(self._client, consumer, self._bounds(consumer, after), wait)
            yield from merge.read()
        finally:
            consumer.close()

    def _bounds(self, consumer: Any, after: Positions) -> dict[int, tuple[int, int]]:
        """Return the first offset to read of each partition, and the offset to end before."""
        bounds = dict[int, tuple[int, int]]()
        existing = self._client.partitions(consumer)
        for partition in existing if self._only is None else self._only:
            if partition not in existing:
                raise StreamError(f"{self.name}: the topic has no partition {partition}")
            with self._client.errors():
                low, high = consumer.get_watermark_offsets(
                    self._client.topic_partition(partition), timeout=METADATA_SECONDS
                )
            first = self._first(partition, after, low, high)
            bounds[partition] = first, high
        return bounds

    def _first(self, partition: int, after: Positions, low: int, high: int) -> int:
        last = after.get(self._client.place(partition))
        if last is None:
            return high if self._start == LATEST else max(low, int(_number(self._start)))
        if last + 1 < low:
            raise StreamError(
                f"{self.name}: the messages from offset {last + 1} to {low - 1} of partition "
                f"{partition} were deleted before they were read; add ?start=earliest to continue "
                "without them"
            )
        if last + 1 > high:
            raise StreamError(
                f"{self.name}: partition {partition} ends at offset {high}, before offset "
                f"{last + 1} at which the model would continue; if the topic is a new one, add "
                "?start=earliest"
            )
        return int(last) + 1


def _number(start: str | int) -> int:
    return start if isinstance(start, int) else 0


class _Merge:
    """Partitions that are read at the same time; the oldest message of all is the next one."""

    def __init__(
        self, client: KafkaClient, consumer: Any, bounds: dict[int, tuple[int, int]], wait: bool
    ) -> None:
        self._client, self._consumer, self._wait = client, consumer, wait
        self._ends = {partition: end for partition, (_, end) in bounds.items()}
        self._queues = {partition: deque[Any]() for partition in bounds}
        # partitions in which older messages than those of others may follow
        self._open = {partition for partition, (first, end) in bounds.items() if first < end}
        self._paused = set[int]()
        starts = {p: first for p, (first, _) in bounds.items() if wait or p in self._open}
        consumer.assign([client.topic_partition(*item) for item in starts.items()])

    def read(self) -> Iterator[list[Message]]:
        last = time.monotonic()
        while self._open or self._wait:
            arrived = self._consume()
            if arrived:
                last, self._client.error = time.monotonic(), None
            elif self._client.error is not None and time.monotonic() - last > SILENT_SECONDS:
                raise UnavailableError(f"cannot read {self._client.name}: {self._client.error}")
            if messages := self._merge():
                yield messages
            self._balance()
        if messages := self._merge():
            yield messages

    def _consume(self) -> bool:
        """Put the next messages into the queues; return whether there were any."""
        with self._client.errors():
            records = self._consumer.consume(BATCH, 0.2)
        for record in records:
            partition, offset, error = record.partition(), record.offset(), record.error()
            if error is None:
                if self._wait or offset < self._ends[partition]:
                    self._queues[partition].append(record)
                if offset + 1 >= self._ends[partition]:
                    self._open.discard(partition)
            elif error.name() == END_OF_PARTITION:
                self._open.discard(partition)  # the last offsets need not have messages
            elif not error.retriable():
                raise StreamError(f"cannot read {self._client.name}: {error.str()}")
        return bool(records)

    def _merge(self) -> list[Message]:
        """Take the messages that are older than all that may follow."""
        messages, queues = list[Message](), self._queues
        while all(queues[partition] for partition in self._open):
            waiting = [partition for partition, queue in queues.items() if queue]
            if not waiting:
                break
            oldest = min(waiting, key=lambda one: (queues[one][0].timestamp()[1], one))
            record = queues[oldest].popleft()
            place = self._client.place(oldest)
            messages.append(Message(place, record.offset(), record.value() or b""))
        return messages

    def _balance(self) -> None:
        """Stop fetching partitions that are far ahead of others."""
        full = {partition for partition, queue in self._queues.items() if len(queue) > QUEUED}
        empty = {partition for partition in self._paused if not self._queues[partition]}
        for partitions, act in (
            (full - self._paused, self._consumer.pause),
            (empty, self._consumer.resume),
        ):
            if partitions:
                act([self._client.topic_partition(partition) for partition in partitions])
        self._paused = (self._paused | full) - empty
