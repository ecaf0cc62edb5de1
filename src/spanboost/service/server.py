"""The process that listens: uvicorn, with connections that may not dawdle."""

import math
import signal
import socket
import sys
from typing import Any

import uvicorn
from uvicorn.protocols.http import httptools_impl

from spanboost.errors import UsageError
from spanboost.service.middleware import ADMIN, LEARN, PREDICT, Gate, is_loopback

HEAD_SECONDS, HEAD_BYTES, CONNECTIONS = 10.0, 1 << 16, 1024
TAKING_SECONDS = 30.0


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
    """A connection whose other end dawdles is closed.

    It has some seconds for the head of a request, which may not be too long; as many for the rest
    of a request that has been answered already; and has to take answers, some of them at least.
    """

    def connection_made(self, transport: Any) -> None:
        """Somebody is there."""
        super().connection_made(transport)
        self._timer: Any = None
        self._watch: Any = None
        self._expect_head()
        if len(self.connections) > CONNECTIONS:
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """They have gone."""
        self._done()
        self.resume_writing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Some bytes."""
        self._room -= len(data)
        super().data_received(data)
        if self._timer is not None and self._room < 0:
            self.transport.close()

    def on_message_begin(self) -> None:
        """The head of a request begins."""
        self._expect_head()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """The head of a request is there."""
        self._done()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """All of a request is there."""
        self._done()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """All of an answer is there, maybe before all of its request."""
        super().on_response_complete()
        if self.cycle.response_complete and self.cycle.more_body:
            self._expect(math.inf)

    def pause_writing(self) -> None:
        """More of an answer waits to be taken than should."""
        super().pause_writing()
        self._watch_taking()

    def resume_writing(self) -> None:
        """Most of it has been taken."""
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
        super().resume_writing()

    def timeout_keep_alive_handler(self) -> None:
        """Nobody asks for anything more."""
        super().timeout_keep_alive_handler()
        if self._watch is None:
            self._watch_taking()

    def _watch_taking(self, before: float = math.inf) -> None:
        size = self.transport.get_write_buffer_size()
        if size < before:
            self._watch = self.loop.call_later(TAKING_SECONDS, self._watch_taking, size)
        else:
            self.transport.abort()

    def _expect_head(self) -> None:
        if self._timer is None:
            self._expect(HEAD_BYTES)

    def _expect(self, most: float) -> None:
        """Something, of so many bytes at most, in time."""
        self._room = most
        self._timer = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def _done(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def refuse_open(host: str, tokens: dict[str, str]) -> None:
    """No address that others can reach, unless all they could ask for needs a token."""
    missing = [scope for scope in (PREDICT, LEARN, ADMIN) if scope not in tokens]
    if missing and not is_loopback(host):
        names = ", ".join(variable(scope) for scope in missing)
        raise UsageError(f"{host} can be reached by others: set {names} first")


def variable(scope: str) -> str:
    """The environment variable that holds a token."""
    return f"SPANBOOST_{scope.upper()}_TOKEN"


def listening(host: str, port: int) -> socket.socket:
    """A socket; port 0 is any that is free."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        sock = socket.create_server(address[:2], family=family, backlog=512)
    except OSError as error:
        raise UsageError(f"cannot listen on {host} port {port}: {error.strerror}") from None
    # handed down to connections: without it an answer waits 40 ms for the client's delayed ACK
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


class Server(uvicorn.Server):  # type: ignore[misc]
    """Tells the application when it is about to stop: live pages would keep it from that."""

    async def shutdown(self, sockets: Any = None) -> None:
        """End well."""
        self.config.app.stop()
        await super().shutdown(sockets)


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
    print(
        f"spanboost: uvicorn {uvicorn.__version__} does not have {', '.join(missing)}; "
        "slow clients are not disconnected",
        file=sys.stderr,
    )
    return {"http": "httptools", "limit_concurrency": CONNECTIONS}


def server_of(app: Gate) -> Server:
    """What serves an application."""
    config = uvicorn.Config(
        app,
        **choose_protocol(),
        ws="none",
        lifespan="on",
        log_level="error",
        access_log=False,
        server_header=False,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=10,
    )
    return Server(config)


def run(app: Gate, sock: socket.socket) -> None:
    """Serve until told to stop (SIGTERM, SIGINT); what was asked for before is answered."""
    sys.setswitchinterval(0.0005)  # the thread that answers waits for others no longer than that
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)  # uvicorn raises it once more when all is done
    server_of(app).run(sockets=[sock])
