"""What every request passes: who may ask, how many at once, what headers an answer has."""

import asyncio
import hmac
import ipaddress
import time
from base64 import b64decode
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, NamedTuple

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from spanboost.service.metrics import RequestCounters

PREDICT, LEARN, ADMIN = "predict", "learn", "admin"
FREE = ("/healthz", "/readyz")
LIVE = "/events"
UNANSWERED = 500
SCOPES = {"/predict": PREDICT, "/learn": LEARN, "/openapi.json": None}
HEADERS = (
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; "
        b"connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; "
        b"frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)


class Limits(NamedTuple):
    """How much a request may ask for."""

    body: int = 16 << 20  # bytes
    rows: int = 10_000
    width: int = 10_000  # names in a row
    open: int = 256  # requests
    seconds: float = 30.0  # for a body to arrive
    longest: float = 120.0  # seconds from the first byte of a request to the last of its answer
    pages: int = 16  # live ones

    @property
    def bodies(self) -> int:
        """Bytes of all bodies that are being worked on."""
        return 16 * self.body


LIMITS = Limits()


class Middleware:
    """Around the application."""

    def __init__(
        self,
        app: ASGIApp,
        tokens: dict[str, str],
        limits: Limits,
        meter: RequestCounters,
        paths: set[str],
        stop: Callable[[], None],
    ) -> None:
        """stop: ends the answers that would go on for ever."""
        self.app, self.tokens, self.limits, self.meter = app, tokens, limits, meter
        self.paths, self.stop = paths, stop
        self.closed = all(scope in tokens for scope in (PREDICT, LEARN, ADMIN))
        self.open = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status, size = time.perf_counter(), UNANSWERED, 0

        async def take() -> MutableMapping[str, Any]:
            nonlocal size
            message = await receive()
            more = len(message.get("body", b""))
            size += more
            self.meter.bodies += more
            return message

        async def answer(message: MutableMapping[str, Any]) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", []), *HEADERS]
            await send(message)

        self.open += 1
        live = scope["path"] == LIVE
        try:
            async with asyncio.timeout(None if live else self.limits.longest):
                await (self._refusal(scope) or self.app)(scope, take, answer)
        except TimeoutError:  # who does not take an answer gets none
            if status == UNANSWERED:
                await problem_response(503, "it took too long", {"Retry-After": "5"})(
                    scope, receive, answer
                )
        finally:
            self.open -= 1
            self.meter.bodies -= size
            path = scope["path"] if scope["path"] in self.paths else "other"
            self.meter.note(path, status, time.perf_counter() - began)

    def _refusal(self, scope: Scope) -> Callable[..., Awaitable[None]] | None:
        """The answer to a request that goes no further."""
        headers = dict(scope["headers"])
        path = scope["path"]
        if path in FREE:
            return None
        if self.open > self.limits.open:
            return problem_response(
                503, "too many requests are open: try again", {"Retry-After": "1"}
            )
        if not self.closed and not is_loopback(_name(headers.get(b"host", b""))):
            return problem_response(
                421, "this server answers to localhost only, unless it has all tokens"
            )
        need = SCOPES.get(path, ADMIN)
        token = self.tokens.get(need or "")
        if token is None or _matches(token, headers.get(b"authorization", b"")):
            return None
        # a browser asks for the page's token as a password, whatever the name
        challenge = "Basic" if need == ADMIN else "Bearer"
        return problem_response(
            401,
            f"this needs the token for {need}",
            {"WWW-Authenticate": f'{challenge} realm="{need}"'},
        )


def problem_response(status: int, why: str, headers: dict[str, str] | None = None) -> JSONResponse:
    """An answer that says why."""
    return JSONResponse({"error": why}, status, headers)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _name(host: bytes) -> str:
    """A host without its port, and without the brackets of an address that has colons."""
    text = host.decode("latin-1").lower()
    name, colon, port = text.rpartition(":")
    if colon and port.isdigit():
        text = name
    return text[1:-1] if text[:1] == "[" and text[-1:] == "]" else text


def _matches(token: str, header: bytes) -> bool:
    """Whether a request has the token, in a time that does not tell how much of it is right."""
    kind, _, given = header.partition(b" ")
    if kind.lower() == b"basic":
        try:
            given = b64decode(given, validate=True).partition(b":")[2]
        except ValueError:
            given = b""
    elif kind.lower() != b"bearer":
        given = b""
    return hmac.compare_digest(given.strip(), token.encode(errors="surrogateescape"))
