"""Addresses of message systems: what they mean, what is refused, and that passwords stay hidden."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanboost.data.inputs import find_inputs
from spanboost.data.messages.addresses import hide_password, parse_address, scheme_of
from spanboost.data.messages.kafka_client import partitions_of, start_of
from spanboost.data.problems import StreamError
from spanboost.data.query_table import Query

SECRET = "s3cret"


def test_parts_of_addresses():
    kafka = parse_address("kafka://one:9092,two/rows?start=latest&partitions=0,2")
    assert kafka.name == "kafka://one:9092,two/rows"
    assert (start_of(kafka), partitions_of(kafka)) == ("latest", [0, 2])
    redis = parse_address("redis://me:s3cret%2F@host:6380/3/my%20rows?start=5-1")
    assert (redis.user, redis.password, redis.path) == ("me", "s3cret/", ("3", "my rows"))
    assert redis.name == "redis://host:6380/3/my rows"
    assert start_of(parse_address("kafka://h/t")) == "earliest"
    assert start_of(parse_address("kafka://h/t?start=17")) == 17
    assert partitions_of(parse_address("kafka://h/t")) is None
    assert scheme_of("postgresql+psycopg://h/db") == "postgresql"
    assert scheme_of("rows.csv") == ""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rows.csv", "rows.csv is not the address of a stream; expected kafka://HOST:PORT/TOPIC"),
        ("amqp://host/rows", "amqp://host/rows is not the address of a stream"),
        ("kafka://host", "invalid kafka address; expected kafka://HOST:PORT/TOPIC"),
        ("kafka://host/", "invalid kafka address"),
        ("kafka:///rows", "invalid kafka address"),
        ("kafka://host:port/rows", "invalid kafka address"),
        ("kafka://host,/rows", "invalid kafka address"),
        ("redis://host/rows/", "invalid redis address; expected redis://HOST:PORT/STREAM"),
        (f"redis://me:{SECRET}/rows", "invalid redis address"),  # the host is missing
        (f"kafka://me:{SECRET}@host/rows", "put them into a file of settings and add ?config=FILE"),
        (f"amqp://me:{SECRET}@host/rows", "is not the address of a stream"),
    ],
)
def test_invalid_addresses(text, message):
    with pytest.raises(StreamError) as caught:
        parse_address(text)
    assert message in str(caught.value)
    assert SECRET not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("kafka://h/t?strat=1", "unknown option 'strat'; did you mean 'start'?"),
        ("kafka://h/t?maxlen=1", "unknown option 'maxlen'; expected start, partitions, config"),
        ("kafka://h/t?start=soon", "start must be earliest, latest or an offset (got 'soon')"),
        ("kafka://h/t?partitions=a", "partitions must be numbers separated by commas (got 'a')"),
        ("kafka://h/t/u", "the name of a topic cannot contain a slash"),
        ("kafka://h/t?config=/no/such/file", "cannot read the settings in /no/such/file"),
        ("redis://h/t?start=soon", "start must be earliest, latest or the id of an entry"),
        ("redis://h,g/t", "an address of Redis has one host"),
        ("redis://h/one/two", "expected redis://HOST:PORT/STREAM or redis://HOST:PORT/NUMBER/"),
        ("sqlite:///rows.db", "name the rows with --query 'SELECT ...'"),
    ],
)
def test_invalid_inputs(address, message):
    pytest.importorskip("confluent_kafka", reason="needs confluent-kafka")
    pytest.importorskip("redis", reason="needs redis")
    with pytest.raises(StreamError) as caught:
        find_inputs([address], None, wait=False)
    assert message in str(caught.value)


def test_inputs_that_cannot_be_combined():
    with pytest.raises(StreamError, match="cannot be read together with other data"):
        find_inputs(["rows.csv", "kafka://h/t"], None, wait=False)
    for address in ("rows.csv", "kafka://h/t"):
        with pytest.raises(StreamError, match="--query needs the address of a database"):
            find_inputs([address], Query("SELECT 1", None), wait=False)


def read_first(address):
    """Return the first rows at an address."""
    ((source,), _) = find_inputs([address], None, wait=False)
    return next(source.read(exact=False))


def test_settings_of_kafka(tmp_path):
    pytest.importorskip("confluent_kafka", reason="needs confluent-kafka")
    path = tmp_path / "client.properties"
    for text, message in (
        ("# a comment\n\nsasl.password", ":3: expected KEY=VALUE"),
        (f"no.such.setting={SECRET}", "invalid settings of Kafka: No such configuration property"),
    ):
        path.write_text(text)
        with pytest.raises(StreamError) as caught:
            read_first(f"kafka://h/t?config={path}")
        assert message in str(caught.value)
        assert SECRET not in str(caught.value)


PASSWORDS = st.text(st.characters(codec="ascii", categories=["L", "N", "P", "S"]), min_size=6)


@given(PASSWORDS, st.sampled_from(["redis", "postgresql", "kafka", "https"]))
def test_passwords_are_hidden(password, scheme):
    text = hide_password(f"train {scheme}://user:{password}@host/path?x=1 -o model.sb")
    assert password not in text or password in "train https://***@host/path?x=1 -o model.sb"
    assert text.endswith("host/path?x=1 -o model.sb")


def test_secrets_in_options_are_hidden():
    text = hide_password("postgresql://host/db?user=me&password=abc&sslmode=require")
    assert text == "postgresql://host/db?user=me&password=***&sslmode=require"
    assert hide_password("a@b.c rows.csv") == "a@b.c rows.csv"
