"""Workers that share a topic or a stream: groups, rebalances, and where each one continues."""

import json
import threading
import time

import pytest
from brokers import PARTITIONS

from spanboost.data.messages.message import Outgoing
from spanboost.data.messages.opening import open_sink, open_source
from spanboost.data.problems import StreamError

pytestmark = pytest.mark.process
NUMBERS = iter(range(1000))


class Member:
    """A worker without a model: `positions` is its journal, `found` is what it has processed."""

    def __init__(self, broker, topic, name, group, commits=True, **options):
        self.broker, self.topic, self.name, self.group = broker, topic, name, group
        self.options, self.commits = options, commits
        self.positions, self.found = {}, []
        self.source = None

    def start(self):
        self.source = open_source(
            self.broker.url(self.topic, **self.options), self.group, self.name
        )
        self.source.start(self.positions)
        return self

    def step(self, seconds=0.05):
        for message in self.source.poll(seconds, self.positions):
            self.found.append(json.loads(message.payload)["k"])
            self.positions = {**self.positions, message.place: message.position}
        if self.commits:
            self.source.commit(self.positions)

    def read_all(self, *others, seconds=30):
        """Read until this member and others have everything that exists."""
        end = time.monotonic() + seconds
        members = [self, *others]
        while not all(
            one.source.ends() and one.source.has_read(one.source.ends()) for one in members
        ):
            assert time.monotonic() < end
            for one in members:
                one.step()
        return self

    def stop(self):
        self.source.close(self.positions)

    def crash(self):
        """End without a commit, as far as a test can have it."""
        self.source.close({})


class Thread(threading.Thread):
    """Lets a member read on its own, as a worker in another process does, until it is stopped."""

    def __init__(self, member):
        super().__init__(daemon=True)
        self.member, self.stopped = member.start(), threading.Event()
        self.partitions = 0  # only this thread may ask the source
        self.start()

    def run(self):
        while not self.stopped.is_set():
            self.member.step()
            self.partitions = len(self.member.source.lag())

    def stop(self):
        self.stopped.set()
        self.join(10)


def read_for(member, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        member.step()


def has_all(member):
    ends = member.source.ends()
    return ends is not None and member.source.has_read(ends)


@pytest.fixture
def topic(broker):
    name = f"shared{next(NUMBERS)}"
    broker.create(name)
    return name


def numbers(first, last):
    return [{"k": k} for k in range(first, last)]


def test_a_new_member_begins_at_the_start_or_at_the_end(broker, topic):
    broker.send(topic, numbers(0, 10))
    options = {"partitions": 0} if broker.name == "kafka" else {}
    late = Member(broker, topic, "late", "late", start="latest", **options).start()
    late.step()
    assert late.found == []
    chosen = dict(late.source.chosen)
    assert list(chosen) == [broker.place(topic)]
    broker.send(topic, numbers(10, 12))
    late.crash()
    again = Member(broker, topic, "late", "late", start="latest", **options)
    again.positions = chosen  # without it, a restart would begin at the new end
    assert again.start().read_all().found == [10, 11]
    again.stop()
    early = Member(broker, topic, "early", "early", **options).start().read_all()
    assert early.found == [*range(12)]
    early.stop()


def test_the_journal_is_stronger_than_what_was_committed(broker, topic):
    options = {"partitions": 0} if broker.name == "kafka" else {}
    broker.send(topic, numbers(0, 4))
    member = Member(broker, topic, "me", "g", **options).start().read_all()
    backup = member.positions
    member.stop()
    broker.send(topic, numbers(4, 8))
    member = Member(broker, topic, "me", "g", **options)
    member.positions = backup
    member.start().read_all()
    assert member.found == [4, 5, 6, 7]
    member.stop()
    restored = Member(broker, topic, "me", "g", **options)
    restored.positions = backup  # everything since then was committed, by the same worker
    assert restored.start().read_all().found == [4, 5, 6, 7]
    restored.crash()
    ahead = Member(broker, topic, "me", "g", **options)
    ahead.positions = restored.positions  # a crash came before the commit
    assert ahead.start().read_all().found == []
    ahead.stop()


def test_partitions_move_between_workers(kafka):
    topic = f"shared{next(NUMBERS)}"
    kafka.create(topic)
    for k in range(40):
        kafka.send(topic, numbers(k, k + 1), partition=k % PARTITIONS)
    first = Member(kafka, topic, "first", "moving").start().read_all()
    second = Member(kafka, topic, "second", "moving").start()
    end = time.monotonic() + 30
    while [len(one.source.lag()) for one in (first, second)] != [2, 2]:
        assert time.monotonic() < end
        first.step()
        second.step()
    for k in range(40, 80):
        kafka.send(topic, numbers(k, k + 1), partition=k % PARTITIONS)
    first.read_all(second)
    second.stop()
    for k in range(80, 120):
        kafka.send(topic, numbers(k, k + 1), partition=k % PARTITIONS)
    end = time.monotonic() + 30
    while len(first.source.lag()) < PARTITIONS:
        assert time.monotonic() < end
        first.step()
    first.read_all()
    assert sorted(first.found + second.found) == [*range(120)]  # each by one of them
    assert second.found
    assert sum(first.source.lag().values()) == 0
    first.stop()
    committed = kafka.committed(topic, "moving")
    assert sum(committed.values()) == 120


def test_a_worker_never_moves_its_group_backwards(kafka):
    topic = f"shared{next(NUMBERS)}"
    kafka.create(topic)
    kafka.send(topic, numbers(0, 10))
    first, second = (Member(kafka, topic, name, "forward") for name in ("first", "second"))
    first.start().read_all().stop()
    kafka.send(topic, numbers(10, 20))
    second.start().read_all().stop()
    assert second.found == [*range(10, 20)]
    for _ in range(2):  # there is nothing to read
        first.start().read_all().stop()
        assert kafka.committed(topic, "forward")[0] == 20
    kafka.send(topic, numbers(20, 25))
    first.start().read_all().stop()
    second.start().read_all().stop()
    assert first.found == [*range(10), *range(20, 25)]
    assert second.found == [*range(10, 20)]
    assert kafka.committed(topic, "forward")[0] == 25


def test_a_worker_that_gives_up_a_partition_commits_first(kafka):
    topic = f"shared{next(NUMBERS)}"
    kafka.create(topic)
    for k in range(40):
        kafka.send(topic, numbers(k, k + 1), partition=k % PARTITIONS)
    first = Member(kafka, topic, "first", "rare", commits=False).start().read_all()
    second = Member(kafka, topic, "second", "rare", commits=False).start()
    end = time.monotonic() + 30
    while [len(one.source.lag()) for one in (first, second)] != [2, 2]:
        assert time.monotonic() < end
        first.step()
        second.step()
    first.read_all(second)
    assert sorted(first.found + second.found) == [*range(40)]  # no row by both
    assert first.source.warnings == []
    second.stop()
    first.stop()


def refuse_commits(monkeypatch, count):
    """Let the brokers refuse the next commits that a worker waits for; return a list of them."""
    import confluent_kafka

    refused = []

    class Refusing(confluent_kafka.Consumer):
        def commit(self, offsets, asynchronous):
            if asynchronous or len(refused) >= count:
                return super().commit(offsets=offsets, asynchronous=asynchronous)
            refused.append(offsets)
            error = confluent_kafka.KafkaError.REBALANCE_IN_PROGRESS
            raise confluent_kafka.KafkaException(confluent_kafka.KafkaError(error))

    monkeypatch.setattr(confluent_kafka, "Consumer", Refusing)
    return refused


def test_a_commit_that_a_rebalance_refuses_is_repeated_after_it(kafka, monkeypatch):
    refused = refuse_commits(monkeypatch, 1)
    topic = f"shared{next(NUMBERS)}"
    kafka.create(topic)
    for k in range(40):
        kafka.send(topic, numbers(k, k + 1), partition=k % PARTITIONS)
    first = Member(kafka, topic, "first", "late", commits=False).start().read_all()
    second = Member(kafka, topic, "second", "late", commits=False)
    second, end = Thread(second), time.monotonic() + 30
    while [len(first.source.lag()), second.partitions] != [2, 2]:
        assert time.monotonic() < end
        first.step()
    second.stop()
    assert len(refused) == 1
    assert sorted(first.found + second.member.found) == [*range(40)]  # no row by both
    assert first.source.warnings == []
    second.member.stop()
    first.stop()


def test_a_commit_that_fails_when_a_worker_stops_is_reported(kafka, monkeypatch):
    refuse_commits(monkeypatch, 1000)
    for name in ("RETRY_SECONDS", "LEAVE_SECONDS"):
        monkeypatch.setattr(f"spanboost.data.messages.kafka_source.{name}", 0.2)
    topic = f"shared{next(NUMBERS)}"
    kafka.create(topic)
    kafka.send(topic, numbers(0, 10), partition=2)
    member = Member(kafka, topic, "me", "refused", commits=False).start().read_all()
    member.stop()
    (warning,) = member.source.warnings
    assert "cannot commit the offsets of the partitions 2: " in warning
    assert warning.endswith("learns the rows since the last commit again")


def test_messages_that_wait_survive_a_rebalance(kafka):
    topic = f"shared{next(NUMBERS)}"
    kafka.create(topic)
    kafka.send(topic, numbers(0, 10))
    first = Member(kafka, topic, "first", "held").start()
    held = []
    while not held:
        held = first.source.poll(0.1, first.positions)
    epoch = first.source.epoch
    second = Member(kafka, topic, "second", "held").start()
    end = time.monotonic() + 30
    while first.source.epoch == epoch:  # the messages are not processed in the meantime
        assert time.monotonic() < end
        first.source.keep_alive(first.positions)
        second.source.poll(0.05, second.positions)
    first.read_all(second)  # the held messages were dropped, and are read again by one of them
    assert sorted(first.found + second.found) == [*range(10)]
    first.stop()
    second.stop()


def test_keeping_alive_reads_nothing(kafka):
    topic = f"shared{next(NUMBERS)}"
    kafka.create(topic)
    kafka.send(topic, numbers(0, 5))
    member = Member(kafka, topic, "me", "alive", partitions=0).start().read_all()
    for _ in range(5):
        kafka.send(topic, numbers(5, 6))
        member.source.keep_alive(member.positions)
        time.sleep(0.05)
    member.read_all()
    assert member.found == [0, 1, 2, 3, 4, 5, 5, 5, 5, 5]
    member.stop()


def test_deleted_messages_are_reported(kafka):
    topic = f"shared{next(NUMBERS)}"
    kafka.create(topic)
    member = Member(kafka, topic, "me", "deleted", partitions=0)
    member.positions = {kafka.place(topic): 0}
    text = "x" * 900_000  # the mock cluster keeps 5 MB
    kafka.send(topic, [{"k": k, "text": text} for k in range(12)])
    member.start().read_all()
    (warning,) = member.source.warnings
    assert "the messages from offset 1 to" in warning
    assert "were deleted before they were read" in warning
    assert member.found == [*range(member.found[0], 12)]
    member.stop()
    beyond = Member(kafka, topic, "me", "beyond", partitions=0)
    beyond.positions = {kafka.place(topic): 99}
    beyond.start()
    with pytest.raises(StreamError, match="ends at offset 12, before offset 100"):
        read_for(beyond, seconds=30)
    beyond.crash()


def test_entries_are_acknowledged_after_they_are_processed(redis):
    topic = f"shared{next(NUMBERS)}"
    redis.create(topic)
    redis.send(topic, numbers(0, 6))
    member = Member(redis, topic, "me", "g").start()
    (_, *rest) = messages = member.source.poll(0.1, {})
    assert redis.client.xpending(topic, "g")["pending"] == 6
    member.positions = {messages[0].place: messages[0].position}
    member.source.commit(member.positions)
    assert redis.client.xpending(topic, "g")["pending"] == 5
    member.crash()
    again = Member(redis, topic, "me", "g")
    again.positions = {rest[1].place: rest[1].position}  # three are in the journal
    assert again.start().read_all().found == [3, 4, 5]
    again.stop()
    assert redis.client.xpending(topic, "g")["pending"] == 0


def test_a_stream_that_was_created_again_is_an_error(redis):
    topic = f"shared{next(NUMBERS)}"
    redis.client.xadd(topic, {"data": b'{"k": 1}'}, id="500-0")
    member = Member(redis, topic, "me", "g").start().read_all()
    member.stop()
    redis.client.xtrim(topic, maxlen=0)  # entries may be deleted
    member.start().stop()
    redis.client.delete(topic)
    redis.client.xadd(topic, {"data": b'{"k": 2}'}, id="7-0")
    with pytest.raises(StreamError, match="ends at entry 7-0, before entry 500-0, after which"):
        member.start()


def test_workers_share_the_entries_of_a_stream(redis):
    topic = f"shared{next(NUMBERS)}"
    redis.create(topic)
    members = [Member(redis, topic, name, "g").start() for name in ("a", "b")]
    for k in range(0, 60, 3):
        redis.send(topic, numbers(k, k + 3))
        members[k % 2].step()
    first, second = members
    first.read_all(second)
    assert sorted(first.found + second.found) == [*range(60)]
    assert first.found
    assert second.found
    first.crash()
    again = Member(redis, topic, "a", "g")  # the other one has read further
    again.positions = first.positions
    assert again.start().read_all().found == []
    again.stop()
    second.stop()


@pytest.mark.parametrize("how", ["deleted", "trimmed", "all"])
def test_delivered_entries_that_are_gone_are_skipped_and_named(redis, how):
    topic = f"shared{next(NUMBERS)}"
    redis.create(topic)
    redis.send(topic, numbers(0, 9))
    member = Member(redis, topic, "me", "g").start()
    ids = [message.position for message in member.source.poll(0.1, {})]
    if how == "deleted":
        gone, named = [ids[1]], ids[1]
        redis.client.xdel(topic, *gone)
    else:
        gone = ids[:7] if how == "trimmed" else ids
        named = f"{', '.join(gone[:5])} and {len(gone) - 5} more"
        redis.client.xtrim(topic, maxlen=9 - len(gone), approximate=False)
    member.crash()
    again = Member(redis, topic, "me", "g").start().read_all()
    assert again.found == [k for k, id in enumerate(ids) if id not in gone]
    (warning,) = again.source.warnings
    assert f"skipped {len(gone)} of the entries delivered to this worker" in warning
    assert warning.endswith(f"because they were deleted before it processed them: {named}")
    assert redis.client.xpending(topic, "g")["pending"] == 0
    again.stop()


def test_entries_deleted_before_they_were_delivered_are_not_waited_for(redis):
    topic = f"shared{next(NUMBERS)}"
    redis.create(topic)
    member = Member(redis, topic, "me", "g").start().read_all(seconds=5)
    redis.send(topic, numbers(0, 3))
    ends = member.source.ends()
    redis.client.xtrim(topic, maxlen=0)
    assert member.source.has_read(ends)
    assert member.source.lag() == {redis.place(topic): 0}
    redis.send(topic, numbers(3, 5))
    assert not member.source.has_read(member.source.ends())
    assert member.source.has_read(ends)
    assert member.read_all(seconds=5).found == [3, 4]
    member.stop()


def test_a_restored_worker_reads_again_although_entries_were_deleted(redis):
    topic = f"shared{next(NUMBERS)}"
    redis.create(topic)
    redis.send(topic, numbers(0, 6))
    member = Member(redis, topic, "me", "g").start()
    messages = member.source.poll(0.1, {})
    backup = {messages[0].place: messages[0].position}
    member.positions = {messages[2].place: messages[2].position}
    member.source.commit(member.positions)
    redis.client.xdel(topic, *(message.position for message in messages[3:5]))
    member.crash()
    restored = Member(redis, topic, "me", "g")
    restored.positions = backup
    assert restored.start().read_all().found == [1, 2, 5]
    restored.stop()


def test_entries_of_a_worker_that_was_killed_are_named(redis, monkeypatch):
    monkeypatch.setattr("spanboost.data.messages.redis_source.SILENT_SECONDS", 2.0)
    topic = f"shared{next(NUMBERS)}"
    redis.create(topic)
    redis.send(topic, numbers(0, 3))
    killed = Member(redis, topic, "killed", "g").start()
    assert len(killed.source.poll(0.1, {})) == 3
    member = Member(redis, topic, "me", "g").start().read_all()
    assert member.source.idle_reason() is None
    time.sleep(2.2)
    member.step()
    assert member.source.idle_reason() == (
        f"{member.source.name} has entries that were delivered to workers which do not read now: "
        "killed (3); to process them, start these workers again with their state folders"
    )
    Member(redis, topic, "killed", "g").start().read_all().stop()
    assert member.source.idle_reason() is None
    member.stop()


def test_a_worker_without_a_partition_says_so(kafka):
    topic = f"shared{next(NUMBERS)}"
    kafka.create(topic)
    member = Member(kafka, topic, "me", "waits").start()
    assert "has given this worker no partition" in member.source.idle_reason()
    member.read_all()
    assert member.source.idle_reason() is None
    member.stop()


def test_sinks_write_in_order(broker, topic):
    sink = open_sink(broker.url(topic))
    for first in (0, 2500):
        sink.deliver(
            [Outgoing("same", b"%d" % k, {"n": str(k)}) for k in range(first, first + 2500)]
        )
    sink.close()
    found = broker.read(topic)
    assert found == [(b"%d" % k, {"n": str(k)}) for k in range(5000)]


def test_a_stream_of_predictions_can_be_limited(redis):
    sink = open_sink(redis.url("limited", maxlen=100))
    sink.deliver([Outgoing("", b"%d" % k) for k in range(5000)])
    assert 100 <= redis.client.xlen("limited") < 1000
    sink.close()
    with pytest.raises(StreamError, match="maxlen must be a positive number"):
        open_sink(redis.url("limited", maxlen="many"))


def test_names_of_topics_that_do_not_exist(kafka):
    member = Member(kafka, "shared-not", "me", "g")
    with pytest.raises(StreamError, match="there is no topic 'shared-not'"):
        member.start()
    kafka.create("shared-yes")
    with pytest.raises(StreamError, match="the topic has no partition 7"):
        Member(kafka, "shared-yes", "me", "g", partitions=7).start()
