"""What all clients of Kafka share: settings, topics and errors."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from spanboost.data.messages.addresses import EARLIEST, LATEST, Address
from spanboost.data.messages.message import UnavailableError
from spanboost.data.problems import StreamError
from spanboost.errors import did_you_mean, install_hint

PORT = 9092
METADATA_SECONDS = 5.0  # time for an answer of the brokers
MISSING_TOPIC = ("UNKNOWN_TOPIC_OR_PART", "TOPIC_EXCEPTION", "_UNKNOWN_TOPIC")
END_OF_PARTITION, OUT_OF_RANGE = "_PARTITION_EOF", "_AUTO_OFFSET_RESET"  # names of errors
_LOGGER = logging.getLogger("spanboost.kafka")  # librdkafka would write to standard error
_LOGGER.addHandler(logging.NullHandler())
_LOGGER.propagate = False


class KafkaClient:
    """The settings of clients for one topic, and the last error that one of them reported."""

    def __init__(self, address: Address) -> None:
        """Read the settings; StreamError if they are invalid or a package is missing."""
        try:
            import confluent_kafka
        except ImportError:
            raise StreamError(
                f"{address.name}: Kafka needs packages that are not installed: "
                f"{install_hint('kafka')}"
            ) from None
        self.library: Any = confluent_kafka
        if len(address.path) > 1:
            raise StreamError(f"{address.name}: the name of a topic cannot contain a slash")
        self.name, self.topic = address.name, address.path[0]
        self.error: str | None = None  # of the connection, until something was received again
        hosts = [host if _has_port(host) else f"{host}:{PORT}" for host in address.hosts.split(",")]
        self._settings = {
            "client.id": "spanboost",
            "bootstrap.servers": ",".join(hosts),
            **_read_settings(address),
        }

    def place(self, partition: int) -> str:
        """Return the name of a partition."""
        return f"kafka:{self.topic}/{partition}"

    def consumer(self, group: str, **settings: Any) -> Any:
        """Return a consumer that commits nothing by itself."""
        fixed = {
            "group.id": group,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",  # positions are never replaced silently
            "partition.assignment.strategy": "cooperative-sticky",
        }
        return self._create(self.library.Consumer, {**settings, **self._settings, **fixed})

    def producer(self) -> Any:
        """Return a producer whose messages are stored by all replicas, in order."""
        fixed = {"enable.idempotence": True, "acks": "all"}
        return self._create(self.library.Producer, {"linger.ms": 5, **self._settings, **fixed})

    def partitions(self, client: Any) -> list[int]:
        """Return the partitions of the topic; StreamError if there is no such topic."""
        try:
            with self.errors():
                topic = client.list_topics(self.topic, timeout=METADATA_SECONDS).topics[self.topic]
        except UnavailableError:
            client.poll(0)  # reports what is wrong with the connection
            if self.error is None:
                raise
            raise UnavailableError(f"cannot reach {self.name}: {self.error}") from None
        error = topic.error
        if error is not None and error.name() in MISSING_TOPIC:
            with self.errors():
                known = client.list_topics(timeout=METADATA_SECONDS).topics
            near = did_you_mean(self.topic, known)
            raise StreamError(f"{self.name}: there is no topic {self.topic!r}{near}")
        if error is not None:
            raise UnavailableError(f"cannot read {self.name}: {error.str()}")
        return sorted(topic.partitions)

    def topic_partition(self, partition: int, offset: int | None = None, owner: str = "") -> Any:
        """Return a partition of the topic in the terms of the library."""
        if offset is None:
            return self.library.TopicPartition(self.topic, partition)
        return self.library.TopicPartition(self.topic, partition, offset, owner)

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Turn errors of the library into an UnavailableError."""
        try:
            yield
        except self.library.KafkaException as error:
            reason = self.error or error.args[0].str()
            raise UnavailableError(f"cannot reach {self.name}: {reason}") from None

    def _create(self, kind: Callable[..., Any], settings: dict[str, Any]) -> Any:
        try:
            return kind({**settings, "error_cb": self._note_error}, logger=_LOGGER)
        except self.library.KafkaException as error:
            why = error.args[0].str()
            raise StreamError(f"{self.name}: invalid settings of Kafka: {why}") from None

    def _note_error(self, error: Any) -> None:
        # that all brokers are down says less than the error before it
        if not self.error or error.name() != "_ALL_BROKERS_DOWN":
            self.error = error.str()


def start_of(address: Address) -> str | int:
    """Return where to begin a partition without a position: earliest, latest or an offset."""
    start = address.options.get("start", EARLIEST)
    if start in (EARLIEST, LATEST):
        return start
    if not start.isascii() or not start.isdigit():
        raise StreamError(
            f"{address.name}: start must be {EARLIEST}, {LATEST} or an offset (got {start!r:.40})"
        )
    return int(start)


def partitions_of(address: Address) -> list[int] | None:
    """Return the partitions that an address names; None if it names none."""
    text = address.options.get("partitions")
    if text is None:
        return None
    parts = text.split(",")
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise StreamError(
            f"{address.name}: partitions must be numbers separated by commas (got {text!r:.40})"
        )
    return sorted({int(part) for part in parts})


def _has_port(host: str) -> bool:
    return ":" in host.rpartition("]")[2]


def _read_settings(address: Address) -> dict[str, str]:
    """Return the settings in the file that ?config= names: lines KEY=VALUE."""
    if "config" not in address.options:
        return {}
    path, settings = Path(address.options["config"]), dict[str, str]()
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not text"
        raise StreamError(f"{address.name}: cannot read the settings in {path}: {why}") from None
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        key, mark, value = line.partition("=")
        if not mark:
            raise StreamError(f"{path}:{number}: expected KEY=VALUE")
        settings[key.strip()] = value.strip()
    return settings
