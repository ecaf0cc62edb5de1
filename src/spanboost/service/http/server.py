"""The HTTP server: uvicorn, with timeouts for slow clients.

It runs from the first second to the last one. A thread opens the state folder in the meantime. The
process ends when that fails, when the service can no longer predict or learn, or on a signal.
"""

import asyncio
import itertools
import logging
import math
import os
import resource
import signal
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple
from typing import Protocol as TypingProtocol

import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http import httptools_impl

from spanboost.errors import UsageError
from spanboost.service.http.middleware import SCOPES, is_loopback
from spanboost.service.http.startup import StartThread
from spanboost.service.http.token_guard import MIN_TOKEN_LENGTH
from spanboost.service.log import write_log

HEAD_SECONDS, HEAD_BYTES, CONNECTIONS = 10.0, 1 << 16, 1024  # limits of heads and connections
TAKING_SECONDS = 30.0  # time in which a client must read some of its response
OWN_FILES = 256  # files that the service needs besides its connections
MAX_FILES = 1 << 16  # connections before their TLS handshake are files, but are not counted
GRACE_SECONDS = 5.0  # time for open requests after a signal; then they get status 503
END_SECONDS = 30.0  # time to end after a failure; then the process is ended at once
FAILED = 1  # exit status of a service that can no longer predict or learn


# Names of uvicorn that `Protocol` relies on and that its documentation does not promise.
METHODS = (
    "on_headers_complete",
    "on_message_begin",
    "on_message_complete",
    "on_response_complete",
    "timeout_keep_alive_handler",
)
ATTRIBUTES = ("connections", "cycle", "loop", "transport")
CYCLE_ATTRIBUTES = ("more_body", "response_complete")


class Protocol(httptools_impl.HttpToolsProtocol):  # type: ignore[misc]
    """A connection that is closed if the client is too slow.

    The head of a request must arrive in time and must not be too large. The rest of a request that
    was already answered must arrive in time. The client must keep reading its response.

    If there are too many connections, a new one replaces the one that has been idle for longest:
    otherwise idle connections would shut out health checks.
    """

    idle_since: int | None  # position in the order of idling; None while answering a request
    _positions = itertools.count()  # not the time: many connections can come in the same instant

    def connection_made(self, transport: Any) -> None:
        """Expect the head of a request; close another connection if there are too many."""
        super().connection_made(transport)
        self._timer: Any = None
        self._watch: Any = None
        self.idle_since = next(self._positions)
        self._expect_head()
        if len(self.connections) > max_connections():
            self._find_oldest_idle().close()

    def close(self) -> None:
        """Close the connection without waiting for the client."""
        self.connections.discard(self)  # at once, so that the next connection closes another one
        self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop all timers."""
        self._done()
        self.resume_writing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Close the connection if the head of the request is too large."""
        self._room -= len(data)
        super().data_received(data)
        if self._timer is not None and self._room < 0:
            self.transport.close()

    def on_message_begin(self) -> None:
        """Start the timer for the head of a request."""
        self._expect_head()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Stop the timer for the head of a request."""
        self._done()
        self.idle_since = None
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Stop the timer for the rest of a request."""
        self._done()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Start a timer for the rest of the request if it has not arrived."""
        super().on_response_complete()
        if self.cycle.response_complete:
            self.idle_since = next(self._positions)
            if self.cycle.more_body:
                self._expect(math.inf)

    def pause_writing(self) -> None:
        """Watch a client that reads its response too slowly."""
        super().pause_writing()
        self._watch_taking()

    def resume_writing(self) -> None:
        """Stop watching: the client has read most of its response."""
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
        super().resume_writing()

    def timeout_keep_alive_handler(self) -> None:
        """Watch that the client reads the rest of its last response."""
        super().timeout_keep_alive_handler()
        if self._watch is None:
            self._watch_taking()

    def _watch_taking(self, before: float = math.inf) -> None:
        size = self.transport.get_write_buffer_size()
        if size < before:
            self._watch = self.loop.call_later(TAKING_SECONDS, self._watch_taking, size)
        else:
            self.transport.abort()

    def _find_oldest_idle(self) -> "Protocol":
        """Return the connection that has been idle for longest; this one is idle, too."""
        idle = (one for one in self.connections if one.idle_since is not None)
        return min(idle, key=lambda one: one.idle_since)

    def _expect_head(self) -> None:
        if self._timer is None:
            self._expect(HEAD_BYTES)

    def _expect(self, most: float) -> None:
        """Close the connection unless `_done` follows in time, after at most this many bytes."""
        self._room = most
        self._timer = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def _done(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def check_exposure(host: str, tokens: dict[str, str], scopes: Iterable[str] = SCOPES) -> None:
    """Refuse an address that other machines can reach, unless the tokens of all scopes are set."""
    missing = [scope for scope in scopes if scope not in tokens]
    if missing and not is_loopback(host):
        names = ", ".join(token_variable(scope) for scope in missing)
        raise UsageError(f"other machines can reach {host}; set {names} first")


def check_tokens(tokens: dict[str, str]) -> None:
    """Refuse tokens that are easy to guess."""
    for scope, token in tokens.items():
        check_token(token_variable(scope), token)


def check_token(name: str, token: str) -> None:
    """Refuse a token that is easy to guess."""
    if len(token) < MIN_TOKEN_LENGTH:
        raise UsageError(
            f"{name} has {len(token)} characters; a token needs at least {MIN_TOKEN_LENGTH}. To "
            "make one: python3 -c 'import secrets; print(secrets.token_urlsafe())'"
        )


def token_variable(scope: str) -> str:
    """Return the environment variable that holds a token."""
    return f"SPANBOOST_{scope.upper()}_TOKEN"


def bind_socket(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 chooses a free port."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        sock = socket.create_server(address[:2], family=family, backlog=512)
    except OSError as error:
        raise UsageError(f"cannot listen on {host} port {port}: {error.strerror}") from None
    # connections inherit this; without it a response waits 40 ms for the delayed ACK of the client
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def max_connections() -> int:
    """Return the maximum number of connections, so that files can be opened besides them."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return CONNECTIONS if files < 0 else max(min(CONNECTIONS, files - OWN_FILES), 1)


def raise_file_limit() -> None:
    """Allow this process many open files, if the system permits it."""
    files, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    new = MAX_FILES if most < 0 else min(MAX_FILES, most)
    if 0 <= files < new:
        resource.setrlimit(resource.RLIMIT_NOFILE, (new, most))


class Servable(TypingProtocol):
    """An ASGI application that can be stopped."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""

    def cancel_start(self) -> None:
        """End the start."""

    def stop(self) -> None:
        """Refuse new requests, and end the responses that would not end otherwise."""

    def expire(self) -> None:
        """Answer open requests with status 503."""

    def close(self) -> None:
        """Close everything, after the last response."""


class Server(uvicorn.Server):  # type: ignore[misc]
    """Answers all requests before it stops, and stops if the service fails."""

    failure: str | None = None  # why the service can no longer predict or learn
    workers_socket: socket.socket | None = None  # on which worker processes pass requests on
    _deadline: threading.Timer | None = None

    async def startup(self, sockets: Any = None) -> None:
        """Listen on all sockets; worker processes do not use TLS."""
        await super().startup(sockets)
        if self.workers_socket is not None:
            loop = asyncio.get_running_loop()
            self.servers.append(
                await loop.create_unix_server(self._build_protocol, sock=self.workers_socket)
            )

    def _build_protocol(self) -> Any:
        return self.config.http_protocol_class(
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )

    async def shutdown(self, sockets: Any = None) -> None:
        """Stop the application, then the server."""
        app = self.config.app
        app.stop()  # open dashboards would prevent the end
        timer = asyncio.get_running_loop().call_later(GRACE_SECONDS, app.expire)
        try:
            await super().shutdown(sockets)
        finally:
            timer.cancel()

    def stop(self) -> None:
        """Stop soon; any thread may call this."""
        self.should_exit = True

    def fail(self, why: str) -> None:
        """Stop because the service can no longer predict or learn; any thread may call this."""
        if self.failure is None:
            self.failure = why
            write_log(logging.CRITICAL, f"the server ends: {why}")
            self._deadline = threading.Timer(END_SECONDS, os._exit, [FAILED])
            self._deadline.daemon = True
            self._deadline.start()
        self.stop()

    def finish(self) -> int:
        """Return the exit status after everything has ended."""
        if self._deadline is not None:
            self._deadline.cancel()
        return 0 if self.failure is None else FAILED


class Tls(NamedTuple):
    """The files of a certificate and its private key, in PEM format."""

    certificate: Path
    key: Path

    def check(self) -> None:
        """Raise UsageError if the files cannot be used."""
        for flag, path in (("--tls-cert", self.certificate), ("--tls-key", self.key)):
            if not os.access(path, os.R_OK):
                raise UsageError(f"{flag} {path}: the file does not exist or cannot be read")
        try:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.certificate, self.key, password=_refuse_password)
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", None) or error
            raise UsageError(
                f"--tls-cert {self.certificate} and --tls-key {self.key} are not a certificate and "
                f"its key in PEM format, without a password ({reason})"
            ) from None


def _refuse_password() -> str:
    raise ValueError("the key has a password")


def missing_names() -> list[str]:
    """Return names that `Protocol` needs and that this version of uvicorn does not have."""
    base = httptools_impl.HttpToolsProtocol
    if not hasattr(httptools_impl, "RequestResponseCycle"):
        return ["RequestResponseCycle"]
    # attributes exist only in objects: look at those that the constructors assign
    own = base.__init__.__code__.co_names
    cycle = httptools_impl.RequestResponseCycle.__init__.__code__.co_names
    return [
        *(name for name in METHODS if not hasattr(base, name)),
        *(name for name in ATTRIBUTES if name not in own),
        *(name for name in CYCLE_ATTRIBUTES if name not in cycle),
    ]


def choose_protocol() -> dict[str, Any]:
    """Return the options of uvicorn that limit connections.

    Slow clients are disconnected by `Protocol`, which depends on names of uvicorn that may change.
    Without them, uvicorn's public option still limits the number of connections.
    """
    missing = missing_names()
    if not missing:
        return {"http": Protocol}
    write_log(
        logging.WARNING,
        f"uvicorn {uvicorn.__version__} does not have {', '.join(missing)}; slow clients are not "
        "disconnected",
    )
    return {"http": "httptools", "limit_concurrency": CONNECTIONS}


def build_server(app: Servable, tls: Tls | None = None) -> Server:
    """Return the server of an application."""
    config = uvicorn.Config(
        app,
        **choose_protocol(),
        ssl_certfile=tls and tls.certificate,
        ssl_keyfile=tls and tls.key,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="error",
        access_log=False,
        server_header=False,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=10,
    )
    return Server(config)


def run(server: Server, sock: socket.socket, start: Callable[[], None]) -> int:
    """Serve until SIGTERM or SIGINT, and return the exit status.

    start: opens the state folder and calls `Application.begin`; it runs in a thread. Its error ends
        the server and is raised here.
    """
    app: Servable = server.config.app
    sys.setswitchinterval(0.0005)  # the HTTP thread waits at most this long for the others
    raise_file_limit()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)  # uvicorn raises the signal again at the end
    thread = StartThread(start, server.stop)
    server.run(sockets=[sock])
    app.cancel_start()
    thread.wait(GRACE_SECONDS)
    app.close()
    return server.finish()
