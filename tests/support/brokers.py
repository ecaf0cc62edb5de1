"""Message systems for tests: the mock cluster of librdkafka, and a real Redis server."""

import contextlib
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time

import pytest

from benchmarks.streams import MOCK, PARTITIONS


class Kafka:
    """A mock cluster in another process. It serves other processes over TCP."""

    name = "kafka"

    def __init__(self, address, settings):
        self.address, self.settings = address, settings
        self._producer = None
        self._clients = []

    def url(self, topic, **options):
        query = "&".join(
            f"{key}={value}" for key, value in {"config": self.settings, **options}.items()
        )
        return f"kafka://{self.address}/{topic}?{query}"

    def place(self, topic, partition=0):
        return f"kafka:{topic}/{partition}"

    def create(self, *topics):
        for topic in topics:
            self.producer.list_topics(topic, timeout=10)

    @property
    def producer(self):
        from confluent_kafka import Producer

        if self._producer is None:
            self._producer = Producer(
                {"bootstrap.servers": self.address, "linger.ms": 1}, logger=quiet_logger()
            )
        return self._producer

    def send(self, topic, values, partition=0, time=0):
        """Write messages; `time`: of all of them, in milliseconds; 0 is now."""
        for value in values:
            self.producer.produce(topic, as_bytes(value), partition=partition, timestamp=time)
        assert self.producer.flush(30) == 0

    def consumer(self, group="test", **settings):
        from confluent_kafka import Consumer

        fixed = {"bootstrap.servers": self.address, "group.id": group, "enable.auto.commit": False}
        return Consumer({**fixed, **settings}, logger=quiet_logger())

    def read(self, topic):
        """Return all messages of a topic: payload and headers."""
        from confluent_kafka import TopicPartition

        consumer, found = self.consumer(), []
        for partition in range(PARTITIONS):
            place = TopicPartition(topic, partition, 0)
            _, end = consumer.get_watermark_offsets(place, timeout=10)
            consumer.assign([place])
            position = 0
            while position < end:
                for message in consumer.consume(1000, 0.5):
                    assert message.error() is None, message.error()
                    position = message.offset() + 1
                    headers = {key: value.decode() for key, value in message.headers() or ()}
                    found.append((message.value(), headers))
        consumer.close()
        return found

    def committed(self, topic, group="spanboost"):
        """Return the offsets that a group has committed, by partition."""
        from confluent_kafka import TopicPartition

        consumer = self.consumer(group)
        places = [TopicPartition(topic, partition) for partition in range(PARTITIONS)]
        found = {one.partition: one.offset for one in consumer.committed(places, timeout=10)}
        consumer.close()
        return {partition: offset for partition, offset in found.items() if offset >= 0}


class Redis:
    """A real Redis server in another process."""

    name = "redis"

    def __init__(self, port):
        import redis

        self.port = port
        self.client = redis.Redis(port=port)

    def url(self, stream, **options):
        query = "&".join(f"{key}={value}" for key, value in options.items())
        return f"redis://127.0.0.1:{self.port}/{stream}" + (f"?{query}" if query else "")

    def place(self, stream, partition=0):
        return f"redis:{stream}"

    def create(self, *streams):
        for stream in streams:  # an empty stream exists
            self.client.xtrim(stream, maxlen=0) if self.client.xadd(stream, {"x": 1}) else None

    def send(self, stream, values, partition=0, time=0):
        pipeline = self.client.pipeline(transaction=False)
        for value in values:
            pipeline.xadd(stream, {"data": as_bytes(value)})
        pipeline.execute()

    def read(self, stream):
        """Return all entries of a stream: payload and other fields."""
        found = []
        for _, fields in self.client.xrange(stream):
            headers = {key.decode(): value.decode() for key, value in fields.items()}
            found.append((fields[b"data"], {k: v for k, v in headers.items() if k != "data"}))
        return found


def as_bytes(value):
    return value if isinstance(value, bytes) else json.dumps(value).encode()


def quiet_logger():
    import logging

    logger = logging.getLogger("tests.kafka")
    logger.disabled = True
    return logger


@contextlib.contextmanager
def mock_kafka():
    """Run a mock cluster; skip the test without its library."""
    pytest.importorskip("confluent_kafka", reason="needs confluent-kafka")
    process = subprocess.Popen(
        [sys.executable, "-c", MOCK], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        address = process.stdout.readline().strip()
        with tempfile.NamedTemporaryFile("w", suffix=".properties") as settings:
            settings.write("session.timeout.ms=4000\nheartbeat.interval.ms=200\n")
            settings.flush()
            yield Kafka(address, settings.name)
    finally:
        process.kill()
        process.wait(10)
        process.stdin.close()
        process.stdout.close()


@contextlib.contextmanager
def redis_server():
    """Run a Redis server; skip the test if it is not installed."""
    pytest.importorskip("redis", reason="needs redis")
    if shutil.which("redis-server") is None:
        pytest.skip("redis-server is not installed")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", ""],
            cwd=folder,
            stdout=subprocess.DEVNULL,
        )
        try:
            server = Redis(port)
            wait_for(server.client)
            yield server
        finally:
            server.client.close()
            process.kill()
            process.wait(10)


def wait_for(client):
    """Wait until a server responds."""
    from redis.exceptions import RedisError

    end = time.monotonic() + 10
    while True:
        try:
            client.ping()
            return
        except RedisError:
            assert time.monotonic() < end
            time.sleep(0.02)
