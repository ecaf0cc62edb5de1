"""Addresses of message systems and databases: their parts, and how they are shown.

kafka://HOST[:PORT][,HOST[:PORT]...]/TOPIC[?OPTION=VALUE&...]
redis://[USER:PASSWORD@]HOST[:PORT][/NUMBER]/STREAM[?OPTION=VALUE&...]
"""

import re
from collections.abc import Collection
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from spanboost.data.problems import StreamError
from spanboost.errors import did_you_mean

KAFKA, REDIS, REDIS_TLS = "kafka", "redis", "rediss"
SCHEMES = (KAFKA, REDIS, REDIS_TLS)
DATABASES = ("sqlite", "duckdb", "postgresql", "postgres", "mysql", "mariadb", "mssql", "oracle")
EARLIEST, LATEST = "earliest", "latest"
FORMS = {
    KAFKA: "kafka://HOST:PORT/TOPIC",
    REDIS: "redis://HOST:PORT/STREAM",
    REDIS_TLS: "rediss://HOST:PORT/STREAM",
}
_PORTS = {KAFKA: ":9092", REDIS: ":6379", REDIS_TLS: ":6379"}
_CREDENTIALS = re.compile(r"://[^\s]*@")
_SECRET = re.compile(r"([?&][^=&\s]*(?:password|secret|token)[^=&\s]*=)[^&\s]*", re.IGNORECASE)
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:/\[\]]+)(:\d{1,5})?")


class Address(NamedTuple):
    """The parts of an address."""

    scheme: str
    hosts: str  # with ports, separated by commas
    path: tuple[str, ...]
    options: dict[str, str]
    user: str | None = None
    password: str | None = None

    @property
    def name(self) -> str:
        """The address as it is shown: without credentials and options."""
        return f"{self.scheme}://{self.hosts}/{'/'.join(self.path)}"

    @property
    def stream(self) -> tuple[str, frozenset[str], tuple[str, ...]]:
        """What two addresses of the same stream share, if they name hosts in the same way."""
        port = _PORTS[self.scheme]
        hosts = (one if re.search(r":\d+$", one) else one + port for one in self.hosts.split(","))
        first = self.path[:-1] or (("0",) if self.scheme != KAFKA else ())
        return self.scheme, frozenset(hosts), (*first, self.path[-1])

    def check_options(self, known: Collection[str]) -> None:
        """Raise StreamError for an option that is not among the known ones."""
        for name in self.options:
            if name not in known:
                choice = did_you_mean(name, known) or f"; expected {', '.join(known)}"
                raise StreamError(f"{self.name}: unknown option {name!r:.40}{choice}")


def scheme_of(text: str) -> str:
    """Return the scheme of an address, without a driver; empty if the text is not an address."""
    scheme, mark, _ = text.partition("://")
    return scheme.partition("+")[0].lower() if mark else ""


def parse_address(text: str) -> Address:
    """Return the parts of the address of a message system; StreamError if it is invalid."""
    scheme = scheme_of(text)
    if scheme not in SCHEMES:
        raise StreamError(
            f"{hide_password(text)} is not the address of a stream; expected "
            f"{' or '.join(FORMS[one] for one in (KAFKA, REDIS))}"
        )
    parts = urlsplit(text)
    credentials, _, hosts = parts.netloc.rpartition("@")
    path = tuple(unquote(part) for part in parts.path.split("/")[1:])
    # the text may be a misplaced password, so it is not shown
    if not hosts or not all(map(_is_host, hosts.split(","))) or not path or "" in path:
        raise StreamError(f"invalid {scheme} address; expected {FORMS[scheme]}")
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    user, _, password = credentials.partition(":")
    address = Address(scheme, hosts, path, options, unquote(user), unquote(password))
    if credentials and scheme == KAFKA:
        raise StreamError(
            f"{address.name}: an address of Kafka has no user and password; put them into a file "
            "of settings and add ?config=FILE"
        )
    return address


def _is_host(text: str) -> bool:
    return _HOST.fullmatch(text) is not None


def hide_password(text: str) -> str:
    """Return a text in which the credentials of addresses are replaced by ***."""
    return _SECRET.sub(r"\1***", _CREDENTIALS.sub("://***@", text))
