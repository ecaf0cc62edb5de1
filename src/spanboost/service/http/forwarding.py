"""Requests that a worker process passes on to the leader, through a Unix socket.

Heads, bodies and responses are passed on as they are, piece by piece. Only headers that belong to a
connection are not. The leader checks tokens and limits, so a worker must tell it the address of the
client. A secret, which only the leader and its workers have, proves that the address is right.
"""

import asyncio
import hmac
import socket
from collections.abc import Callable
from contextlib import suppress

import httptools
from starlette.types import Receive, Scope, Send

from spanboost.service.http.middleware import error_response

CLIENT_HEADER = b"x-spanboost-client"  # the secret, and the address and port of the client
PIECE_BYTES = 1 << 16
_OF_CONNECTION = (b"connection", b"keep-alive", b"expect", b"upgrade", b"transfer-encoding")
_OF_RESPONSE = (b"date", b"keep-alive", b"transfer-encoding")  # the worker's server adds its own


class _Response:
    """The part of a response that has arrived; httptools calls the methods."""

    def __init__(self, bodiless: bool) -> None:
        self.headers: list[tuple[bytes, bytes]] = []
        self.has_head = self.complete = False
        self.body: list[bytes] = []
        self._bodiless = bodiless  # the response to HEAD states the length of a missing body

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() not in _OF_RESPONSE:
            self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        self.has_head = True
        self.complete = self._bodiless

    def on_body(self, body: bytes) -> None:
        self.body.append(body)

    def on_message_complete(self) -> None:
        self.complete = True


class LeaderLink:
    """An ASGI application that passes requests on to the leader."""

    def __init__(self, path: str, secret: str) -> None:
        """Create the link; `path` is the Unix socket of the leader."""
        self._path, self._secret = path, secret.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and its response back."""
        await self.forward(scope, receive, send)

    async def forward(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        on_status: Callable[[int], None] = lambda status: None,
    ) -> None:
        """Pass a request on, and its response back; `on_status` receives the status."""
        loop = asyncio.get_running_loop()
        # a socket and not a stream: a stream that cannot write would not read the response
        with socket.socket(socket.AF_UNIX) as link:
            link.setblocking(False)
            try:
                await loop.sock_connect(link, self._path)
            except OSError:
                await _refuse(scope, receive, send)
                return
            upload = asyncio.create_task(self._upload(scope, receive, link))
            try:
                if not await _download(link, scope, send, on_status):
                    await _refuse(scope, receive, send)
            finally:
                upload.cancel()
                with suppress(asyncio.CancelledError):
                    await upload

    async def _upload(self, scope: Scope, receive: Receive, link: socket.socket) -> None:
        """Send the request; close the connection if the client disconnects."""
        chunked = any(name == b"transfer-encoding" for name, _ in scope["headers"])
        loop = asyncio.get_running_loop()
        with suppress(ConnectionError):  # the leader may respond without reading the whole body
            await loop.sock_sendall(link, self._head(scope, chunked))
            more = True
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    link.shutdown(socket.SHUT_RDWR)  # so that reading ends
                    return
                data = message.get("body", b"")
                if data and chunked:
                    data = b"%x\r\n%b\r\n" % (len(data), data)
                if more and not message.get("more_body", False):
                    more = False
                    data += b"0\r\n\r\n" if chunked else b""
                await loop.sock_sendall(link, data)

    def _head(self, scope: Scope, chunked: bool) -> bytes:
        query = scope["query_string"]
        target = scope["raw_path"] + (b"?" + query if query else b"")
        host, port = scope.get("client") or ("", 0)
        lines = [b"%b %b HTTP/1.1" % (scope["method"].encode(), target)]
        own = (*_OF_CONNECTION, CLIENT_HEADER, *((b"content-length",) if chunked else ()))
        lines += [b"%b: %b" % one for one in scope["headers"] if one[0] not in own]
        lines += [b"transfer-encoding: chunked"] if chunked else []
        lines += [b"%b: %b %b %d" % (CLIENT_HEADER, self._secret, host.encode(), port)]
        return b"\r\n".join(lines) + b"\r\n\r\n"


def restore_client(scope: Scope, secret: str) -> Scope:
    """Return the scope of a request with the address of the client that a worker states.

    A header without the secret changes nothing.
    """
    stated = [value for name, value in scope["headers"] if name == CLIENT_HEADER]
    given, _, client = stated[0].partition(b" ") if len(stated) == 1 else (b"", b"", b"")
    if not hmac.compare_digest(given, secret.encode()):
        return scope
    host, _, port = client.decode().rpartition(" ")
    headers = [one for one in scope["headers"] if one[0] != CLIENT_HEADER]
    return {**scope, "client": (host, int(port)) if host else None, "headers": headers}


async def _download(
    link: socket.socket, scope: Scope, send: Send, on_status: Callable[[int], None]
) -> bool:
    """Send the response to the client; return False if the leader sends no response.

    A response that ends too early is left incomplete, so that the client notices it.
    """
    response, started = _Response(scope["method"] == "HEAD"), False
    parser, loop = httptools.HttpResponseParser(response), asyncio.get_running_loop()
    while not response.complete:
        try:
            data = await loop.sock_recv(link, PIECE_BYTES)
        except ConnectionError:
            data = b""
        if not data:
            return started
        parser.feed_data(data)
        if response.has_head and not started:
            started, status = True, parser.get_status_code()
            on_status(status)
            head = {"type": "http.response.start", "status": status, "headers": response.headers}
            await send(head)
        if started:
            body, response.body = b"".join(response.body), []
            more = not response.complete
            await send({"type": "http.response.body", "body": body, "more_body": more})
    return True


async def _refuse(scope: Scope, receive: Receive, send: Send) -> None:
    why = "the leader process of the server does not respond; retry later"
    await error_response(503, why, {"Retry-After": "1"})(scope, receive, send)
