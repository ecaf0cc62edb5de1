"""Read a Kafka topic as a member of a consumer group, for a worker.

A worker continues after the positions in its own journal. The offsets that are committed to the
brokers follow the journal. They count only where the journal has no position, or where another
worker of the group has read further: the name of the worker is committed with each offset.

The group moves single partitions (cooperative rebalancing). So a worker commits what it has
processed of a partition while it is still a member, before another worker gets the partition.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
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
RETRY_SECONDS, PAUSE_SECONDS = 2.0, 0.1  # of a commit before a partition is given up
SETTLE_SECONDS = 1.0  # time in which others can commit late, before a partition is read
LEAVE_SECONDS = 8.0  # time for a rebalance to end, before a worker leaves without a commit
REBALANCE = ("REBALANCE_IN_PROGRESS", "ILLEGAL_GENERATION")  # names of errors


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
        self._begun: dict[int, int] = {}  # the offset at which this worker began each of them
        self._committed: dict[int, int] = {}  # the offsets that the brokers have confirmed
        self._owed: dict[int, int] = {}  # offsets of lost partitions that were refused

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
        self._next, self._begun, self._committed, self._owed = {}, {}, {}, {}
        self.epoch += 1
        consumer = self._client.consumer(self._group, on_commit=self._note_commit, **SETTINGS)
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
        offsets = self._offsets(self._next, positions)
        if offsets:
            with suppress(self._client.library.KafkaException):  # the next commit has them, too
                self._consumer.commit(offsets=offsets, asynchronous=True)

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
            try:
                with self._client.errors():
                    self._commit_to_leave(self._consumer)
            finally:
                self._consumer.close()  # the group takes the partitions back
                self._observer.close()
                self._consumer = None
                owed = [*map(self._client.topic_partition, self._owed)]
                self._warn(owed, "the brokers did not accept them in time")

    def _begin_again(self) -> None:
        """Read all partitions again after the last position that was processed."""
        self.epoch += 1
        self._move({number: self._unprocessed(number) for number in self._next})

    def _assign(self, consumer: Any, partitions: Sequence[Any]) -> None:
        """Continue more partitions where they were left, in the journal or by another worker."""
        starts = dict[int, int]()
        self._commit_owed(consumer)
        if partitions:
            time.sleep(SETTLE_SECONDS if self._only is None else 0)
            with self._client.errors():
                committed = consumer.committed([*partitions], timeout=METADATA_SECONDS)
            starts = {one.partition: self._first(one) for one in committed}
        self._next |= starts
        self._begun |= starts
        self._read_from(consumer, starts)

    def _unprocessed(self, partition: int) -> int:
        """Return the first offset of a partition that is not processed, here or by another one."""
        last = self._positions.get(self._client.place(partition))
        begun = self._begun[partition]
        return begun if last is None else max(begun, int(last) + 1)

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
        numbers = [one.partition for one in partitions]
        self._give_up(consumer, numbers)
        self._forget(numbers)

    def _lose(self, _: Any, partitions: Sequence[Any]) -> None:
        """Stop reading partitions that another worker may have already."""
        numbers = [one.partition for one in partitions]
        why = "this worker did not respond within session.timeout.ms"
        self._warn(self._offsets(numbers, self._positions), why)
        self._forget(numbers)

    def _forget(self, partitions: Iterable[int]) -> None:
        for number in partitions:
            for known in (self._next, self._begun, self._committed):
                known.pop(number, None)
        self.epoch += 1

    def _give_up(self, consumer: Any, partitions: Iterable[int]) -> None:
        """Commit what was processed of some partitions, or owe it to the group."""
        offsets = self._offsets(partitions, self._positions)
        end, error = time.monotonic() + RETRY_SECONDS, self._commit(consumer, offsets)
        while error is not None and not _is_rebalance(error) and time.monotonic() < end:
            time.sleep(PAUSE_SECONDS)
            error = self._commit(consumer, offsets)
        if error is not None:
            self._owed |= {one.partition: one.offset for one in offsets}

    def _commit_owed(self, consumer: Any) -> None:
        """Commit what was not committed in time, unless another worker has read further."""
        if not self._owed:
            return
        owed = self._owed
        with self._client.errors():
            known = consumer.committed(
                [*map(self._client.topic_partition, owed)], timeout=METADATA_SECONDS
            )
        offsets = [
            self._client.topic_partition(one.partition, owed[one.partition], self._worker)
            for one in known
            if one.offset < owed[one.partition]
        ]
        error, self._owed = self._commit(consumer, offsets), {}
        if error is not None:
            self._warn(offsets, error.str())

    def _commit_to_leave(self, consumer: Any) -> None:
        """Commit what was processed; while the group rebalances, this succeeds only afterwards."""
        end = time.monotonic() + LEAVE_SECONDS
        while self._only is None and time.monotonic() < end:
            error = self._commit(consumer, self._offsets(self._next, self._positions))
            if error is None or not _is_rebalance(error):
                break
            consumer.pause(consumer.assignment())
            consumer.poll(PAUSE_SECONDS)
        self._commit_owed(consumer)
        if self._only is not None:
            self._give_up(consumer, self._only)

    def _warn(self, offsets: Sequence[Any], why: str) -> None:
        """Note that offsets could not be committed, if there are any."""
        if offsets:
            numbers = ", ".join(str(one.partition) for one in offsets)
            self.warnings.append(
                f"{self.name}: cannot commit the offsets of the partitions {numbers}: {why}; "
                "another worker of the group that continues there learns the rows since the last "
                "commit again"
            )

    def _commit(self, consumer: Any, offsets: Sequence[Any]) -> Any:
        """Commit offsets, and return the error; None if the brokers have stored them."""
        try:
            done = consumer.commit(offsets=[*offsets], asynchronous=False) if offsets else ()
        except self._client.library.KafkaException as error:
            return error.args[0]
        self._note_commit(None, done)
        return next((one.error for one in done if one.error is not None), None)

    def _note_commit(self, error: Any, partitions: Sequence[Any]) -> None:
        """Remember what the brokers have stored."""
        for one in partitions if error is None else ():
            if one.error is None and one.partition in self._next:
                self._committed[one.partition] = one.offset

    def _offsets(self, partitions: Iterable[int], positions: Positions) -> list[Any]:
        """Return the offsets to commit, in the terms of the library.

        They never lie before the offset at which this worker began: another worker has processed
        the messages up to it.
        """
        found = ((number, positions.get(self._client.place(number))) for number in partitions)
        ends = {number: last + 1 for number, last in found if last is not None}
        return [
            self._client.topic_partition(number, end, self._worker)
            for number, end in ends.items()
            if end >= self._begun.get(number, 0) and end != self._committed.get(number)
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
            self._next[partition] = self._begun[partition] = low
        self._move({partition: self._next[partition] for partition in partitions})

    def _move(self, starts: Mapping[int, int]) -> None:
        """Continue partitions that this worker has at other offsets."""
        if starts:
            self._next |= starts
            partitions = [*map(self._client.topic_partition, starts)]
            with self._client.errors():
                self._consumer.incremental_unassign(partitions)
            self._read_from(self._consumer, starts)

    def _read_from(self, consumer: Any, starts: Mapping[int, int]) -> None:
        """Read partitions from some offsets on."""
        partitions = [self._client.topic_partition(*item) for item in starts.items()]
        with self._client.errors():
            consumer.incremental_assign(partitions)
            consumer.resume(partitions)  # the library remembers a pause from before the rebalance
        self._paused = False


def _is_rebalance(error: Any) -> bool:
    """Return whether a commit failed because the group moves partitions now."""
    return error.name() in REBALANCE
