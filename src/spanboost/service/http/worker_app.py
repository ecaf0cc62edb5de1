"""The application of a worker process: it predicts, and passes all other requests on."""

import asyncio

from starlette.applications import Starlette
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from spanboost.service.http.error_handlers import HANDLERS
from spanboost.service.http.forwarding import LeaderLink
from spanboost.service.http.metrics import RequestCounters
from spanboost.service.http.middleware import PREDICT, Middleware
from spanboost.service.http.predictions import PREDICT_PATH, PredictionHandler
from spanboost.service.http.routes import ApiRoute
from spanboost.service.http.token_guard import ProvedAddresses
from spanboost.service.learning.replica import Replica
from spanboost.service.limits import RequestLimits

HEALTH_PATH = "/healthz"
_ACCEPTED = 200


class WorkerApplication:
    """The ASGI application of a worker."""

    def __init__(
        self,
        replica: Replica,
        link: LeaderLink,
        tokens: dict[str, str],
        id: str,
        limits: RequestLimits,
    ) -> None:
        self._replica, self._link = replica, link
        self._proved = ProvedAddresses(tokens.get(PREDICT))
        self._stopping = asyncio.Event()
        counters = RequestCounters()
        handler = PredictionHandler(replica, id, limits, counters)
        routes = [
            handler.route(),
            ApiRoute(HEALTH_PATH, self._healthz),
        ]
        app = Starlette(routes=routes, exception_handlers=HANDLERS)
        paths = {PREDICT_PATH, HEALTH_PATH}
        self._middleware = Middleware(app, tokens, limits, counters, paths, self._stopping)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if self._answers(scope):
            await self._middleware(scope, receive, send)
            return

        def note_status(status: int) -> None:
            if scope["path"] == PREDICT_PATH and status == _ACCEPTED:
                self._proved.add(_address(scope), _authorization(scope))

        await self._link.forward(scope, receive, send, note_status)

    def cancel_start(self) -> None:
        """Do nothing: the model has been loaded before the first request."""

    def stop(self) -> None:
        """Refuse new requests."""
        self._stopping.set()

    def expire(self) -> None:
        """Answer open predictions with status 503; the leader does it for other requests."""
        self._middleware.expire()

    def close(self) -> None:
        """Close the model, after the last response."""
        self._replica.close()

    def _answers(self, scope: Scope) -> bool:
        """Return whether this process answers a request, and not the leader."""
        if scope["path"] == HEALTH_PATH:
            return True
        if scope["path"] != PREDICT_PATH or scope["method"] != "POST":
            return False
        keeps = QueryParams(scope["query_string"]).get("keep") != "false"
        permitted = self._proved.permit(_address(scope), _authorization(scope))
        return not keeps and permitted and self._replica.fresh

    async def _healthz(self, request: Request) -> Response:
        """Tell that the process responds."""
        return JSONResponse({"status": "alive"})


def _address(scope: Scope) -> str:
    return scope["client"][0] if scope.get("client") else ""


def _authorization(scope: Scope) -> bytes:
    headers: dict[bytes, bytes] = dict(scope["headers"])
    return headers.get(b"authorization", b"")
