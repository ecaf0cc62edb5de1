"""Several models in one server: each has an application of its own under /m/NAME/.

The applications share nothing but the process. Each has its own folder, tokens, limits and
metrics, so a client of one model cannot use up the limits of another.
"""

import asyncio
from collections.abc import Mapping

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from spanboost.service.http.app import DEFAULT_LIMITS, METHODS, Application
from spanboost.service.http.error_handlers import HANDLERS
from spanboost.service.http.metrics import RequestCounters, merge_metrics
from spanboost.service.http.middleware import ADMIN, PREFIX, Middleware, error_response
from spanboost.service.http.routes import ApiRoute

BASE = "/m/"


class SeveralModels:
    """The ASGI application that passes requests on to the application of a model."""

    def __init__(self, apps: Mapping[str, Application], tokens: dict[str, str]) -> None:
        """Create the application; the admin token of `tokens` protects /metrics."""
        self._apps = apps
        self._stopping = asyncio.Event()
        routes = [
            ApiRoute("/healthz", self._healthz),
            ApiRoute("/readyz", self._readyz),
            ApiRoute("/metrics", self._metrics),
            ApiRoute("/m/{name}", self._redirect),
        ]
        paths = {route.path for route in routes}
        routes.append(Route("/{path:path}", self._refuse, methods=METHODS))
        self._middleware = Middleware(
            Starlette(routes=routes, exception_handlers=HANDLERS),
            tokens,
            DEFAULT_LIMITS,
            RequestCounters(),
            paths,
            self._stopping,
            scopes=(ADMIN,),
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        name, slash, path = scope["path"].removeprefix(BASE).partition("/")
        app = self._apps.get(name) if slash and scope["path"].startswith(BASE) else None
        if app is None:
            await self._middleware(scope, receive, send)
        else:
            # `root_path` would be removed from every path that begins with it
            await app({**scope, "path": f"/{path}", PREFIX: f"{BASE}{name}"}, receive, send)

    def cancel_start(self) -> None:
        """End the start of all models."""
        for app in self._apps.values():
            app.cancel_start()

    def stop(self) -> None:
        """Refuse new requests, and end the responses that would not end otherwise."""
        self._stopping.set()
        for app in self._apps.values():
            app.stop()

    def expire(self) -> None:
        """Answer open requests with status 503."""
        self._middleware.expire()
        for app in self._apps.values():
            app.expire()

    def close(self) -> None:
        """Close all engines, after the last response."""
        for app in self._apps.values():
            app.close()

    async def _healthz(self, request: Request) -> Response:
        return JSONResponse({"status": "alive"})

    async def _readyz(self, request: Request) -> Response:
        """Tell which models can predict and learn."""
        models = {name: app.health.describe() for name, app in self._apps.items()}
        waiting = [name for name, one in models.items() if one["status"] != "ready"]
        if not waiting:
            return JSONResponse({"status": "ready", "models": models})
        error = "; ".join(f"{name}: {models[name]['error']}" for name in waiting)
        content = {"status": "not ready", "error": error, "models": models}
        return JSONResponse(content, 503, {"Retry-After": "5"})

    async def _metrics(self, request: Request) -> Response:
        texts = {name: app.health.metrics_text() for name, app in self._apps.items()}
        return PlainTextResponse(merge_metrics(texts), media_type="text/plain; version=0.0.4")

    async def _redirect(self, request: Request) -> Response:
        """Add the slash that the relative addresses of the dashboard need."""
        name = request.path_params["name"]
        return RedirectResponse(f"{BASE}{name}/", 308) if name in self._apps else self._not_found()

    async def _refuse(self, request: Request) -> Response:
        return self._not_found()

    def _not_found(self) -> Response:
        known = ", ".join(f"{BASE}{name}/" for name in self._apps)
        return error_response(404, f"not found; the paths of the models begin with {known}")
