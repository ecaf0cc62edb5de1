"""What all clients of Redis streams share: connections, entries and errors."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import orjson

from spanboost.data.messages.addresses import REDIS_TLS, Address
from spanboost.data.messages.message import Message, UnavailableError
from spanboost.data.problems import StreamError
from spanboost.errors import install_hint

PORT = 6379
CONNECT_SECONDS, ANSWER_SECONDS = 5.0, 30.0
PASSWORD = "REDISCLI_AUTH"  # the environment variable that redis-cli uses
FIELD = "data"  # the field of an entry that has the payload
FIRST = "0-0"  # before all entries
_TEMPORARY = ("MISCONF ", "NOREPLICAS ")  # the server cannot store anything at the moment
_PIPELINE = " of pipeline caused error: "  # after a command, which can have values of rows
Entry = tuple[bytes, dict[bytes, bytes]]


class RedisClient:
    """A connection to the server of one stream."""

    def __init__(self, address: Address) -> None:
        """Check the address; StreamError if it is invalid or a package is missing."""
        try:
            import redis.backoff
            import redis.retry
        except ImportError:
            raise StreamError(
                f"{address.name}: Redis needs packages that are not installed: "
                f"{install_hint('redis')}"
            ) from None
        self._library: Any = redis
        self.name = address.name
        host, port = _host_and_port(address)
        number, self.stream = _number_and_stream(address)
        self.place = f"redis:{self.stream}" if not number else f"redis:{number}/{self.stream}"
        self._connection = redis.Redis(
            host=host,
            port=port,
            db=number,
            username=address.user or None,
            password=address.password or os.environ.get(PASSWORD) or None,
            ssl=address.scheme == REDIS_TLS,
            client_name="spanboost",
            socket_connect_timeout=CONNECT_SECONDS,
            socket_timeout=ANSWER_SECONDS,
            # a repeated read would skip the entries of an answer that was lost
            retry=redis.retry.Retry(redis.backoff.NoBackoff(), 0),
        )

    def call(self, command: str, *arguments: Any, **options: Any) -> Any:
        """Run a command on the stream; UnavailableError if the server does not respond."""
        with self.errors():
            return getattr(self._connection, command)(self.stream, *arguments, **options)

    def read(self, after: str, count: int, seconds: float, group: tuple[str, str] | None) -> Any:
        """Return the entries after an id, and wait for the first one.

        group: names of a group and a consumer, for which `after` is ">" or where to read again.
        """
        place = {self.stream: after}
        block = None if seconds <= 0 else max(int(1000 * seconds), 1)
        with self.errors():
            if group is None:
                found = self._connection.xread(place, count, block)
            else:
                found = self._connection.xreadgroup(*group, place, count, block)
        if not found:
            return []
        ((_, entries),) = found.items() if isinstance(found, dict) else found
        return [*entries]

    def pipeline(self) -> Any:
        """Return a list of commands that are sent at once."""
        return self._connection.pipeline(transaction=False)

    def close(self) -> None:
        """Disconnect."""
        self._connection.close()

    def check_stream(self, *, may_be_new: bool = False) -> None:
        """Raise StreamError if there is no such stream, unless it may be a new one."""
        kind = self.call("type")
        if kind == b"none":
            if may_be_new:
                return
            raise StreamError(f"{self.name}: there is no stream {self.stream!r}")
        if kind != b"stream":
            raise StreamError(
                f"{self.name}: {self.stream!r} is a {kind.decode()}; expected a stream"
            )

    def check_position(self, last: str | None) -> None:
        """Raise StreamError if the stream cannot contain an entry, because it is a new one."""
        newest = self.last_id()
        if last is not None and id_key(newest) < id_key(last):
            raise StreamError(
                f"{self.name}: the stream ends at entry {newest}, before entry {last}, after which "
                "to continue; a stream that was created again needs a new model, or a new state "
                "folder and a new group"
            )

    def last_id(self) -> str:
        """Return the id of the newest entry that was ever added."""
        return as_text(self.call("xinfo_stream")["last-generated-id"])

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Turn errors of the library into sentences."""
        errors = self._library.exceptions
        try:
            yield
        except errors.AuthenticationError as error:
            raise StreamError(f"{self.name}: {_reason(error)}") from None
        except (errors.ConnectionError, errors.TimeoutError, errors.ReadOnlyError) as error:
            raise UnavailableError(f"cannot reach {self.name}: {_reason(error)}") from None
        except (errors.OutOfMemoryError, errors.ClusterDownError, errors.TryAgainError) as error:
            raise UnavailableError(f"{self.name}: {_reason(error)}") from None
        except errors.RedisError as error:
            reason = _reason(error)
            if reason.startswith(_TEMPORARY):
                raise UnavailableError(f"{self.name}: {reason}") from None
            raise StreamError(f"{self.name}: {reason}") from None

    def message(self, entry: Entry, field: str, text: str | None = None) -> Message:
        """Return an entry as a message; without the field, its fields are the keys of a row.

        text: field whose value is text even if it looks like a number.
        """
        id, fields = entry
        payload = fields.get(field.encode())
        if payload is None:
            payload = _flat_row(fields, text)
        return Message(self.place, as_text(id), payload)


def id_key(id: str) -> tuple[int, int]:
    """Return what ids are ordered by."""
    first, _, second = id.partition("-")
    return int(first), int(second or 0)


def check_id(address: Address, id: str) -> str:
    """Return an id that an address names; StreamError if it is invalid."""
    first, mark, second = id.partition("-")
    parts = (first, second) if mark else (first,)
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise StreamError(
            f"{address.name}: start must be earliest, latest or the id of an entry (got {id!r:.40})"
        )
    return id


def as_text(value: bytes | str) -> str:
    """Return a name or an id, whose type depends on the version of the library, as text."""
    return value.decode() if isinstance(value, bytes) else value


def _flat_row(fields: dict[bytes, bytes], text: str | None) -> bytes:
    """Return the fields of an entry as a JSON object, with numbers where they look like numbers."""
    row: dict[str, float | str] = {_decode(name): _cell(value) for name, value in fields.items()}
    if text in row:
        row[text] = _decode(fields[text.encode()])
    return orjson.dumps(row)


def _cell(value: bytes) -> float | str:
    try:
        number = orjson.loads(value)
    except orjson.JSONDecodeError:
        return _decode(value)
    return number if type(number) in (int, float) else _decode(value)


def _decode(value: bytes) -> str:
    return value.decode(errors="replace")


def _host_and_port(address: Address) -> tuple[str, int]:
    if "," in address.hosts:
        raise StreamError(f"{address.name}: an address of Redis has one host")
    host, _, port = address.hosts.rpartition(":")
    if not host or port.endswith("]"):
        return address.hosts.strip("[]"), PORT
    return host.strip("[]"), int(port)


def _number_and_stream(address: Address) -> tuple[int, str]:
    """Return the number of the database and the name of the stream."""
    if len(address.path) == 1:
        return 0, address.path[0]
    number, *rest = address.path
    if len(rest) > 1 or not number.isdigit():
        raise StreamError(
            f"{address.name}: expected redis://HOST:PORT/STREAM or redis://HOST:PORT/NUMBER/STREAM"
        )
    return int(number), rest[0]


def _reason(error: Exception) -> str:
    text = " ".join(str(error).rpartition(_PIPELINE)[2].split())[:200].rstrip(".")
    # the answers to a client without a password, of newer and older versions of the library
    if "already authenticated" in text or text == "Authentication required":
        return f"the server needs a password; set the environment variable {PASSWORD}"
    return text
