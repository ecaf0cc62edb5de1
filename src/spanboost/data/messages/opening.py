"""Open the message system that an address names. Its library is imported only then."""

from spanboost.data.messages.addresses import DATABASES, KAFKA, parse_address, scheme_of
from spanboost.data.messages.message import MessageLog, MessageSink, MessageSource
from spanboost.data.problems import StreamError
from spanboost.data.query_table import Query


def open_log(text: str) -> MessageLog:
    """Return the messages at an address, to be read once."""
    address = parse_address(text)
    if address.scheme == KAFKA:
        from spanboost.data.messages.kafka_log import KafkaLog

        return KafkaLog(address)
    from spanboost.data.messages.redis_log import RedisLog

    return RedisLog(address)


def open_source(
    text: str, group: str, worker: str, query: Query | None = None, id: str = "id"
) -> MessageSource:
    """Return the messages at an address, to be processed by a worker.

    group: name of the group of workers that share the messages.
    worker: a name that no other worker has.
    query: of rows, if the address is that of a database.
    id: the key of ids in rows.
    """
    if query is not None:
        from spanboost.data.messages.table_source import TableSource

        return TableSource(text, query)
    if scheme_of(text) in DATABASES:
        raise StreamError("a database needs --query and --resume-column")
    address = parse_address(text)
    if address.scheme == KAFKA:
        from spanboost.data.messages.kafka_source import KafkaSource

        return KafkaSource(address, group, worker)
    from spanboost.data.messages.redis_source import RedisSource

    return RedisSource(address, group, worker, id)


def open_sink(text: str) -> MessageSink:
    """Return the stream at an address, to be written; UnavailableError if it is not reached."""
    address = parse_address(text)
    if address.scheme == KAFKA:
        from spanboost.data.messages.kafka_sink import KafkaSink

        return KafkaSink(address)
    from spanboost.data.messages.redis_sink import RedisSink

    return RedisSink(address)
