"""Read a Kafka topic as a member of a consumer group, for a worker.

A worker continues after the positions in its own journal. The offsets that are committed to the
brokers follow the journal. They count only where the journal has no position, or where another
worker of the group has read further: the name of the worker is committed with each offset.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from spanboost.data.messages.addresses import LATEST, Address
from spanboost.data.messages.kafka_client import (
    END_OF_PARTITION,
    METADATA_SECONDS,
    OUT_OF_RANGE,
    KafkaClient,
    partitions_of,
    start_of,
)
from spanboost.data.messages.message import Message, Positions
from spanboost.data.problems import StreamError

OPTIONS = ("start", "partitions", "config")
BATCH = 1000  # messages that are returned at a time
OBSERVERS = "spanboost-observer"  # the library needs a name; an observer joins no group
SETTINGS = {"queued.max.messages.kbytes": 16384}  # memory for messages that are read ahead


class KafkaSource:
    """The partitions of a topic that the group has given to this worker."""

    def __init__(self, address: Address, group: str, worker: str) -> None:
        """Check the address. `worker` is a name that no other worker has."""
        address.check_options(OPTIONS)
        self._client = KafkaClient(address)
        self._group, self._worker = group, worker
        self._start, self._only = start_of(address), partitions_of(address)
        self.name, self.epoch = address.name, 0
        self.chosen: dict[str, Any] = {}
        self.warnings: list[str] = []  # messages that could not be read
        self._consumer: Any = None
        self._observer: Any = None  # asks for ends; the other one would answer after its fetches
        self._positions: Positions = {}  # what was processed, when the group may ask for it
        self._paused = False
        self._next: dict[int, int] = {}  # the offset after the last message that was read

    @property
    def problem(self) -> str | None:
        """Why nothing can be read now; None if nothing is wrong."""
        return self._client.error

    def idle_reason(self) -> str | None:
        """Return that the group has given this worker no partition, if so."""
        if self._next or self._only is not None:
            return None
        return (
            f"the group {self._group!r} has given this worker no partition of {self.name}; other "
            "workers have all of them, or a worker that was killed still counts until its session "
            "ends (session.timeout.ms)"
        )

    def start(self, positions: Positions) -> None:
        """Find the topic, and join the group; the first `poll` gets partitions."""
        self._positions = positions
        self.epoch += 1
        consumer = self._client.consumer(self._group, **SETTINGS)
        self._observer = self._client.consumer(OBSERVERS)
        try:
            existing = self._client.partitions(consumer)
            for partition in self._only or ():
                if partition not in existing:
                    raise StreamError(f"{self.name}: the topic has no partition {partition}")
            if self._only is None:
                consumer.subscribe(
                    [self._client.topic],
                    on_assign=self._assign,
                    on_revoke=self._revoke,
                    on_lost=self._lose,
                )
            else:
                self._assign(consumer, [*map(self._client.topic_partition, self._only)])
        except BaseException:
            consumer.close()
            self._observer.close()
            raise
        self._consumer = consumer

    def poll(self, seconds: float, positions: Positions) -> list[Message]:
        """Return the messages that have arrived; partitions may come and go meanwhile."""
        self._positions = positions
        epoch, messages, deleted = self.epoch, list[Message](), set[int]()
        with self._client.errors():
            if self._paused:
                self._consumer.resume(self._consumer.assignment())
                self._paused = False
            first = self._consumer.poll(seconds)
            records = [] if first is None else [first, *self._consumer.consume(BATCH - 1, 0)]
        if self.epoch != epoch:  # some of them may have been read before the group took them away
            self._begin_again()
            return []
        for record in records:
            partition, offset, error = record.partition(), record.offset(), record.error()
            if error is None:
                self._next[partition] = offset + 1
                payload = record.value() or b""
                messages.append(Message(self._client.place(partition), offset, payload))
            elif error.name() == END_OF_PARTITION:
                self._next[partition] = offset
            elif error.name() == OUT_OF_RANGE:
                deleted.add(partition)
            elif not error.retriable():
                raise StreamError(f"cannot read {self.name}: {error.str()}")
        if deleted:
            self._skip_deleted(deleted)
        if records:
            self._client.error = None
        return messages

    def keep_alive(self, positions: Positions) -> None:
        """Stay in the group; without a poll, it would take the partitions away."""
        self._positions = positions
        epoch = self.epoch
        with self._client.errors():
            if not self._paused:
                self._consumer.pause(self._consumer.assignment())
            self._paused = True
            record = self._consumer.poll(0)
        if self.epoch != epoch or (record is not None and record.error() is None):
            self._begin_again()

    def commit(self, positions: Positions) -> None:
        """Commit the positions of the partitions of this worker; the brokers may miss some."""
        self._commit(self._consumer, self._offsets(self._next, positions), wait=False)

    def ends(self) -> Positions | None:
        """Return the last offset of each partition; None before there are partitions."""
        if not self._next:
            return None
        bounds = {partition: self._bounds(partition) for partition in self._next}
        return {self._client.place(partition): high - 1 for partition, (_, high) in bounds.items()}

    def has_read(self, ends: Positions) -> bool:
        """Return whether everything up to some ends was read, in the partitions that are left."""
        own = {self._client.place(partition): number for partition, number in self._next.items()}
        return all(own[place] > end for place, end in ends.items() if place in own)

    def lag(self) -> dict[str, int | None]:
        """Return the number of messages that were not read, as the brokers last told."""
        lags = dict[str, int | None]()
        for partition, following in self._next.items():
            with self._client.errors():
                _, high = self._consumer.get_watermark_offsets(
                    self._client.topic_partition(partition), cached=True
                )
            known = high >= 0 and following >= 0
            lags[self._client.place(partition)] = max(high - following, 0) if known else None
        return lags

    def close(self, positions: Positions) -> None:
        """Commit what was processed, and leave the group."""
        if self._consumer is not None:
            self._positions = positions
            if self._only is not None:
                offsets = self._offsets(self._only, positions)
                self._commit(self._consumer, offsets, wait=True)
            self._consumer.close()  # the group takes the partitions back, and `_revoke` commits
            self._observer.close()
            self._consumer = None

    def _begin_again(self) -> None:
        """Read all partitions again after the last position that was processed."""
        self.epoch += 1
        partitions = self._consumer.assignment()
        if partitions:  # otherwise the group is about to give out partitions
            self._assign(self._consumer, partitions)

    def _assign(self, consumer: Any, partitions: Sequence[Any]) -> None:
        """Continue each partition where it was left, in the journal or by another worker."""
        with self._client.errors():
            committed = consumer.committed([*partitions], timeout=METADATA_SECONDS)
        starts = {one.partition: self._first(one) for one in committed}
        self._begin_at(consumer, starts)

    def _first(self, committed: Any) -> int:
        """Return the first offset to read of a partition, given what the brokers know of it."""
        place = self._client.place(committed.partition)
        own = self._positions.get(place)
        if committed.offset >= 0:
            by_other = committed.metadata not in (None, "", self._worker)
            if own is None or (by_other and committed.offset > own + 1):
                return int(committed.offset)
        if own is not None:
            return int(own) + 1
        if isinstance(self._start, int):
            return self._start
        low, high = self._bounds(committed.partition)
        if self._start != LATEST:
            return low
        self.chosen[place] = high - 1  # a restart must not begin at a later end
        return high

    def _revoke(self, consumer: Any, partitions: Sequence[Any]) -> None:
        """Commit what was processed: another worker continues there."""
        offsets = self._offsets([one.partition for one in partitions], self._positions)
        self._commit(consumer, offsets, wait=True)
        self._lose(consumer, partitions)

    def _lose(self, _: Any, partitions: Sequence[Any]) -> None:
        for one in partitions:
            self._next.pop(one.partition, None)
        self.epoch += 1

    def _commit(self, consumer: Any, offsets: Sequence[Any], *, wait: bool) -> None:
        try:
            if offsets:
                consumer.commit(offsets=[*offsets], asynchronous=not wait)
        except self._client.library.KafkaException as error:  # the journal has the positions
            self._client.error = error.args[0].str()

    def _offsets(self, partitions: Iterable[int], positions: Positions) -> list[Any]:
        """Return the offsets to commit, in the terms of the library."""
        found = ((number, positions.get(self._client.place(number))) for number in partitions)
        return [
            self._client.topic_partition(number, last + 1, self._worker)
            for number, last in found
            if last is not None
        ]

    def _bounds(self, partition: int) -> tuple[int, int]:
        """Return the first offset of a partition, and the one after the last message."""
        with self._client.errors():
            low, high = self._observer.get_watermark_offsets(
                self._client.topic_partition(partition), timeout=METADATA_SECONDS
            )
        return int(low), int(high)

    def _skip_deleted(self, partitions: Iterable[int]) -> None:
        """Continue some partitions with the oldest message that the brokers still have."""
        for partition in partitions:
            wanted, (low, high) = self._next[partition], self._bounds(partition)
            if wanted > high:
                raise StreamError(
                    f"{self.name}: partition {partition} ends at offset {high}, before offset "
                    f"{wanted} at which the worker would continue; a new topic needs a new state "
                    "folder and a new group"
                )
            self.warnings.append(
                f"{self.name}: the messages from offset {wanted} to {low - 1} of partition "
                f"{partition} were deleted before they were read"
            )
            self._next[partition] = low
        self._begin_at(self._consumer, self._next)

    def _begin_at(self, consumer: Any, starts: Mapping[int, int]) -> None:
        """Read partitions from some offsets on."""
        self._next, self._paused = dict(starts), False
        partitions = [self._client.topic_partition(*item) for item in starts.items()]
        consumer.assign(partitions)
        consumer.resume(partitions)  # the library remembers a pause from before the rebalance
