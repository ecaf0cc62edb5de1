"""Middleware for every request: tokens, limits, metrics, the log and security headers."""

import asyncio
import ipaddress
import logging
import re
import time
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from secrets import token_hex
from typing import Any

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from spanboost.service.http.health import STOPPING
from spanboost.service.http.metrics import RequestCounters
from spanboost.service.http.token_guard import WINDOW, Access, TokenGuard
from spanboost.service.limits import RequestLimits
from spanboost.service.log import LimitedLog

PREDICT, LEARN, ADMIN = "predict", "learn", "admin"  # what a token permits
HEALTH_PATHS = ("/healthz", "/readyz")
UNLIMITED_PATHS = (*HEALTH_PATHS, "/metrics")  # answered however many requests are open
EVENTS_PATH, BACKUP_PATH = "/events", "/backup"
ENDLESS_PATHS = (EVENTS_PATH, BACKUP_PATH)  # a response takes as long as the client reads it
PREFIX = "spanboost.prefix"  # key of the scope: what was removed from the path of a request
SCOPES = (PREDICT, LEARN, ADMIN)
PATH_SCOPES = {"/predict": (PREDICT,), "/learn": (LEARN,), "/openapi.json": SCOPES}  # others: ADMIN
UNANSWERED = 0  # status of a request without a response; counted as 500 at its end
_REQUEST_ID = re.compile(rb"[\w.:/+=-]{1,64}")
SECURITY_HEADERS = (
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


class Middleware:
    """An ASGI application that wraps another one."""

    def __init__(
        self,
        app: ASGIApp,
        tokens: dict[str, str],
        limits: RequestLimits,
        counters: RequestCounters,
        paths: set[str],
        stopping: asyncio.Event,
        scopes: Collection[str] = SCOPES,
    ) -> None:
        """Wrap an application.

        tokens: by scope.
        paths: paths that metrics name; requests to other paths are counted together.
        stopping: set when the server stops, so that later requests are refused.
        scopes: scopes of the paths. Without a token for each of them, only requests to a loopback
            address are answered.
        """
        self.app, self.tokens, self.limits, self.counters = app, tokens, limits, counters
        self.paths, self.stopping = paths, stopping
        self.protected = all(scope in tokens for scope in scopes)
        self.guard = TokenGuard(tokens)
        self.open_requests = 0
        self._deadlines: set[asyncio.Timeout] = set()  # of all open requests
        self._log = LimitedLog()

    def expire(self) -> None:
        """Answer all open requests with status 503 now; those that are answered end as usual."""
        now = asyncio.get_running_loop().time()
        for deadline in self._deadlines:
            deadline.reschedule(now)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        began, status, body_bytes = time.perf_counter(), UNANSWERED, 0
        request_id = _request_id(scope)

        async def counting_receive() -> MutableMapping[str, Any]:
            nonlocal body_bytes
            message = await receive()
            size = len(message.get("body", b""))
            body_bytes += size
            self.counters.open_body_bytes += size
            return message

        async def protecting_send(message: MutableMapping[str, Any]) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                own = (b"x-request-id", request_id)
                message["headers"] = [*message.get("headers", []), *SECURITY_HEADERS, own]
            await send(message)

        limited = scope["path"] not in UNLIMITED_PATHS
        self.open_requests += limited
        try:
            app = self._refuse(scope) or self.app
            await self._run_in_time(app, scope, counting_receive, protecting_send)
        except TimeoutError:
            if status == UNANSWERED:  # otherwise the client does not read its response
                why = STOPPING if self.stopping.is_set() else "the request took too long"
                response = error_response(503, why, {"Retry-After": "5"})
                await response(scope, receive, protecting_send)
        except Exception:  # the application has answered with status 500
            why, id = "a request failed", request_id.decode()
            self._log.write(why, logging.ERROR, why, traceback=True, id=id)
        finally:
            self.open_requests -= limited
            self.counters.open_body_bytes -= body_bytes
            seconds = time.perf_counter() - began
            self._record(scope, request_id.decode(), status or 500, seconds)

    async def _run_in_time(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the application until the deadline of the request, then raise TimeoutError."""
        endless = scope["path"] in ENDLESS_PATHS
        async with asyncio.timeout(None if endless else self.limits.request_seconds) as deadline:
            self._deadlines.add(deadline)
            try:
                await app(scope, receive, send)
            finally:
                self._deadlines.discard(deadline)

    def _record(self, scope: Scope, request_id: str, status: int, seconds: float) -> None:
        """Count a request, and log it if it failed; the log never has paths that clients chose."""
        path = scope["path"] if scope["path"] in self.paths else "other"
        self.counters.record(path, status, seconds)
        if status >= 400 and path not in HEALTH_PATHS:
            level = logging.WARNING if status < 500 else logging.ERROR
            client = scope.get("client") or ("",)
            self._log.write(
                (path, status),
                level,
                f"status {status}",
                path=scope.get(PREFIX, "") + path,
                id=request_id,
                client=client[0],
                seconds=round(seconds, 4),
            )

    def _refuse(self, scope: Scope) -> Callable[..., Awaitable[None]] | None:
        """Return an error response if the request must not reach the application."""
        headers = dict(scope["headers"])
        path = scope["path"]
        if path in HEALTH_PATHS:
            return None
        if [name for name, _ in scope["headers"]].count(b"host") > 1:
            return error_response(400, "the request has more than one Host header")
        limited = path not in UNLIMITED_PATHS
        if limited and self.stopping.is_set():
            return error_response(503, STOPPING, {"Retry-After": "5", "Connection": "close"})
        if limited and self.open_requests > self.limits.open_requests:
            return error_response(
                503, "too many requests are open; retry later", {"Retry-After": "1"}
            )
        if not self.protected and not is_loopback(_host_name(headers.get(b"host", b""))):
            return error_response(
                421, "without all three tokens, the server only answers requests to localhost"
            )
        return self._refuse_token(scope, headers.get(b"authorization", b""))

    def _refuse_token(self, scope: Scope, header: bytes) -> Callable[..., Awaitable[None]] | None:
        """Return an error response if the path needs a token that the header does not have."""
        scopes = PATH_SCOPES.get(scope["path"], (ADMIN,))
        if not any(needed in self.tokens for needed in scopes):
            return None
        address = scope["client"][0] if scope.get("client") else ""
        access = self.guard.check(address, header, scopes)
        if access is Access.GRANTED:
            return None
        if access is Access.BRAKED:
            return error_response(
                access.value,
                "too many requests with a wrong token from this address; retry later",
                {"Retry-After": f"{WINDOW:.0f}"},
            )
        # with Basic, a browser asks for the token as a password; the user name is ignored
        challenge, realm = "Basic" if scopes == (ADMIN,) else "Bearer", " or ".join(scopes)
        return error_response(
            access.value,
            f"missing or invalid token: this path needs the {realm} token",
            {"WWW-Authenticate": f'{challenge} realm="{realm}"'},
        )


def error_response(status: int, why: str, headers: dict[str, str] | None = None) -> JSONResponse:
    """Return a response that says why a request failed."""
    return JSONResponse({"error": why}, status, headers)


def _request_id(scope: Scope) -> bytes:
    """Return the id that the client gave to the request, or a new one."""
    given = dict(scope["headers"]).get(b"x-request-id", b"")
    return given if _REQUEST_ID.fullmatch(given) else token_hex(8).encode()


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _host_name(header: bytes) -> str:
    """Return a host without its port, and without the brackets of an IPv6 address."""
    text = header.decode("latin-1").lower()
    name, colon, port = text.rpartition(":")
    if colon and port.isdigit():
        text = name
    return text[1:-1] if text[:1] == "[" and text[-1:] == "]" else text
