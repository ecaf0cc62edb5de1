"""The process that listens: uvicorn, with connections that may not dawdle."""

import ipaddress
import signal
import socket
import sys
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from spanboost.commands.options import UsageError
from spanboost.service.gate import ADMIN, LEARN, PREDICT, Gate

HEAD_SECONDS, HEAD_BYTES, CONNECTIONS = 10.0, 1 << 16, 1024


class Protocol(HttpToolsProtocol):  # type: ignore[misc]
    """A connection that sends no whole head of a request in time, or too long a one, is closed."""

    def connection_made(self, transport: Any) -> None:
        """Somebody is there."""
        super().connection_made(transport)
        self._timer: Any = None
        self._expect_head()
        if len(self.connections) > CONNECTIONS:
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """They have gone."""
        self._head_done()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Some bytes."""
        if self._timer is not None:
            self._head_bytes += len(data)
        super().data_received(data)
        if self._timer is not None and self._head_bytes > HEAD_BYTES:
            self.transport.close()

    def on_message_begin(self) -> None:
        """The head of a request begins."""
        self._expect_head()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """The head of a request is there."""
        self._head_done()
        super().on_headers_complete()

    def _expect_head(self) -> None:
        if self._timer is None:
            self._head_bytes = 0
            self._timer = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def _head_done(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


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


def server_of(app: Gate) -> Server:
    """What serves an application."""
    config = uvicorn.Config(
        app,
        http=Protocol,
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
