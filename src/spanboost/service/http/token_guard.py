"""Access by token, with a brake on guessing.

An address that sends many wrong tokens gets status 429 for a while, whether or not its next token
is right, so guessing on tells it nothing. An address that has sent a right token before is still
served with right tokens, because honest clients may share a proxy with the attacker.
"""

import hmac
import ipaddress
import time
from base64 import b64decode
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from enum import Enum
from typing import TypeVar

MIN_TOKEN_LENGTH = 16  # characters
MAX_FAILURES, WINDOW = 20, 60.0  # wrong tokens that an address may send in this many seconds
MAX_ADDRESSES = 10_000  # addresses to remember

Entry = TypeVar("Entry")


class Access(Enum):
    """The answer to a request with some token, or without one."""

    GRANTED = 200
    REFUSED = 401
    BRAKED = 429


class TokenGuard:
    """Compares the tokens of requests, and counts wrong ones by address."""

    def __init__(
        self, tokens: Mapping[str, str], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Create a guard; `tokens` has the token of each scope that is protected."""
        self.tokens, self._clock = tokens, clock
        self._failures: OrderedDict[str, tuple[float, int]] = OrderedDict()  # since when, how many
        self._proved: OrderedDict[str, None] = OrderedDict()  # addresses that had a right token

    def check(self, address: str, header: bytes, scopes: Collection[str]) -> Access:
        """Return whether the Authorization header has the token of one of the scopes."""
        network = _network(address)
        # compare all of them: the time must not depend on which one is right
        known = [scope for scope, token in self.tokens.items() if _has_token(header, token)]
        if self._is_braked(network) and not (known and network in self._proved):
            return Access.BRAKED
        if known:
            _remember(self._proved, network, None)
        elif header:  # a request without a token is not a guess
            since, failures = self._failures.get(network, (self._clock(), 0))
            _remember(self._failures, network, (since, failures + 1))
        return Access.GRANTED if any(scope in scopes for scope in known) else Access.REFUSED

    def _is_braked(self, network: str) -> bool:
        since, failures = self._failures.get(network, (0.0, 0))
        if failures and self._clock() - since > WINDOW:
            del self._failures[network]
            return False
        return failures >= MAX_FAILURES


def _remember(entries: OrderedDict[str, Entry], key: str, value: Entry) -> None:
    """Set an entry, and forget the oldest ones if there are too many."""
    entries[key] = value
    entries.move_to_end(key)
    while len(entries) > MAX_ADDRESSES:
        entries.popitem(last=False)


def _network(address: str) -> str:
    """Return the address; for IPv6 its first 64 bits, which one client can have all of."""
    try:
        number = ipaddress.ip_address(address)
    except ValueError:
        return address
    return address if number.version == 4 else number.exploded[:19]


def _has_token(header: bytes, token: str) -> bool:
    """Return whether an Authorization header has the token; compares in constant time."""
    scheme, _, credentials = header.partition(b" ")
    if scheme.lower() == b"basic":
        try:
            credentials = b64decode(credentials, validate=True).partition(b":")[2]
        except ValueError:
            credentials = b""
    elif scheme.lower() != b"bearer":
        credentials = b""
    return hmac.compare_digest(credentials.strip(), token.encode(errors="surrogateescape"))


class ProvedAddresses:
    """Addresses for which another process has accepted a token."""

    def __init__(self, token: str | None) -> None:
        """Create an empty set; `token` is the one that requests need, None for no token."""
        self._token = token
        self._proved: OrderedDict[str, None] = OrderedDict()

    def add(self, address: str, header: bytes) -> None:
        """Note that a request with this Authorization header was accepted."""
        if self._token is not None and _has_token(header, self._token):
            _remember(self._proved, _network(address), None)

    def permit(self, address: str, header: bytes) -> bool:
        """Return whether the header has the token, and had it before at the other process.

        Otherwise the other process must decide, because it counts the wrong tokens.
        """
        if self._token is None:
            return True
        return _has_token(header, self._token) and _network(address) in self._proved
