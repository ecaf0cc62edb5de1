"""The HTTP interface of the service: an ASGI application."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import orjson
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from spanboost.service.column_parser import parse_examples
from spanboost.service.http.backups import BackupHandler
from spanboost.service.http.challenger_paths import (
    CHALLENGER_PATH,
    PROMOTE_PATH,
    ChallengerPaths,
)
from spanboost.service.http.controls import ControlHandler
from spanboost.service.http.error_handlers import HANDLERS
from spanboost.service.http.forwarding import restore_client
from spanboost.service.http.health import Health
from spanboost.service.http.metrics import RequestCounters, collect_metrics, describe_follower
from spanboost.service.http.middleware import (
    BACKUP_PATH,
    EVENTS_PATH,
    PREFIX,
    Middleware,
    error_response,
)
from spanboost.service.http.openapi import describe_api
from spanboost.service.http.predictions import PredictionHandler, parse_flag, skips_bad_rows
from spanboost.service.http.replication import JOURNAL_PATH, SNAPSHOT_PATH, Replication
from spanboost.service.http.responses import ParsedRequest, describe_problem
from spanboost.service.http.routes import ApiRoute
from spanboost.service.http.version_paths import VERSIONS_PATH, VersionPaths
from spanboost.service.learning.engine import Engine
from spanboost.service.learning.follower import Follower
from spanboost.service.learning.jobs import CopyJob, LearnJob
from spanboost.service.learning.memory_pool import Reservation
from spanboost.service.limits import RequestLimits
from spanboost.service.request_rows import CONFLICT
from spanboost.service.streaming.stream_worker import StreamWorker

PAGE_FOLDER = Path(__file__).parent / "page"
PAGE_FILES = {
    "/": "text/html",
    "/page.css": "text/css",
    "/page.js": "text/javascript",
    "/icon.svg": "image/svg+xml",
}
ENDPOINTS = (
    *("/predict", "/learn", "/model", BACKUP_PATH, "/openapi.json", VERSIONS_PATH, EVENTS_PATH),
    *(CHALLENGER_PATH, PROMOTE_PATH),
    *PAGE_FILES,
)
REPLICATION = (JOURNAL_PATH, SNAPSHOT_PATH)
EVENT_STREAM = "text/event-stream"
DEFAULT_LIMITS = RequestLimits()
_READING = ("GET", "HEAD", "OPTIONS")  # methods that change nothing
METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]  # all that clients may use


class Service(PredictionHandler):
    """The request handlers."""

    def __init__(self, engine: Engine, id: str, limits: RequestLimits, health: Health) -> None:
        super().__init__(engine, id, limits, health.counters)
        self.engine, self.stopping, self._health = engine, health.stopping, health
        self._dashboards = 0

    async def predict(self, request: Request) -> Response:
        """Return predictions, each with an id to send the label with."""
        if self._health.follower is not None and parse_flag(request, "keep", True):
            leader = self._health.follower.address
            raise HTTPException(
                CONFLICT,
                "this server is a follower and stores no rows: predict with ?keep=false, or send "
                f"the request to its leader, {leader}",
            )
        return await super().predict(request)

    async def learn(self, request: Request) -> Response:
        """Learn from labels; they are in the journal when the response is sent.

        With `wait`, they are also learned by then, so the next prediction uses them.
        """
        skip, wait = skips_bad_rows(request), parse_flag(request, "wait", False)
        with Reservation(self.engine.work_memory) as memory:
            parsed = await self.parse(request, parse_examples, memory)
            ids = parsed.rows.pending_ids()
            if ids:
                await memory.enlarge(await run_in_threadpool(self.engine.pending_memory, ids))
            return await self._learn(parsed, skip, wait, memory)

    async def _learn(
        self, parsed: ParsedRequest, skip: bool, wait: bool, memory: Reservation
    ) -> Response:
        rejected = parsed.rejected
        if rejected and not skip:
            return self.reject(rejected)
        learned = duplicates = 0
        if parsed.rows.numbers:
            job = LearnJob(parsed.rows, skip, wait, memory)
            learned, duplicates, more = await self.engine.writer.run(job)
            rejected = sorted([*rejected, *more])
            if rejected and not skip:
                return self.reject(rejected)
        self.counters.refused_rows += len(rejected)
        problems = [describe_problem(row) for row in rejected]
        content = {
            "learned": learned,
            "duplicates": duplicates,
            "problems": problems,
            "queued": 0 if wait else learned,  # rows in the journal, not necessarily learned yet
        }
        return JSONResponse(content)

    async def model(self, request: Request) -> Response:
        """Return the current model as a file."""
        data = await self.engine.writer.run(CopyJob())
        headers = {"Content-Disposition": 'attachment; filename="model.sb"'}
        return Response(data, media_type="application/octet-stream", headers=headers)

    async def openapi(self, request: Request) -> Response:
        """Return the OpenAPI description."""
        prefix = request.scope.get(PREFIX, "")
        return JSONResponse(describe_api(self.parser, self.limits, prefix))

    async def page(self, request: Request) -> Response:
        """Return a file of the dashboard."""
        path = request.url.path
        data = (PAGE_FOLDER / (path[1:] or "page.html")).read_bytes()
        return Response(data, media_type=PAGE_FILES[path])

    async def events(self, request: Request) -> Response:
        """Stream metrics to the dashboard, once a second."""
        if request.method == "HEAD":
            return Response(media_type=EVENT_STREAM)
        if self._dashboards >= self.limits.dashboards:
            why = "too many dashboards are open; close one or retry later"
            return error_response(503, why, {"Retry-After": "10"})

        async def stream() -> AsyncIterator[bytes]:
            self._dashboards += 1
            try:
                while not self.stopping.is_set():
                    metrics = collect_metrics(self.engine, self.counters)
                    metrics["follower"] = describe_follower(self._health.follower)
                    yield b"data: %b\n\n" % orjson.dumps(metrics)
                    try:
                        await asyncio.wait_for(self.stopping.wait(), 1)
                    except TimeoutError:
                        continue
                yield b"event: stopping\ndata: \n\n"
            finally:
                self._dashboards -= 1

        return StreamingResponse(stream(), media_type=EVENT_STREAM)


class Application:
    """The ASGI application: health checks at once, all other requests after `begin`."""

    def __init__(self, tokens: dict[str, str], id: str, limits: RequestLimits) -> None:
        self.counters = RequestCounters()
        self.health = Health(self.counters)
        self._id, self.limits = id, limits
        self._monitoring = [
            ApiRoute("/healthz", self.health.healthz),
            ApiRoute("/readyz", self.health.readyz),
            ApiRoute("/metrics", self.health.metrics),
        ]
        paths = {*ENDPOINTS, *REPLICATION, *(route.path for route in self._monitoring)}
        everything = [Route("/{path:path}", self._refuse, methods=METHODS)]
        self._app = _build_routes([*self._monitoring, *everything])
        stopping = self.health.stopping
        self._middleware = Middleware(
            self._dispatch, tokens, limits, self.counters, paths, stopping
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request, which a worker process may have passed on."""
        if self.health.workers is not None:
            scope = restore_client(scope, self.health.workers.secret)
        await self._middleware(scope, receive, send)

    def begin(self, engine: Engine, follower: Follower | None = None) -> None:
        """Answer requests with an engine from now on; any thread may call this.

        follower: the thread that copies the journal of a leader, if this server has one.
        """
        self.health.follower = follower
        service = Service(engine, self._id, self.limits, self.health)
        controls = ControlHandler(engine)
        routes = [
            service.route(),
            ApiRoute("/learn", service.learn, ["POST"], parameters=["on_error", "wait"]),
            ApiRoute("/model", service.model),
            ApiRoute(BACKUP_PATH, BackupHandler(engine.writer).backup),
            ApiRoute("/openapi.json", service.openapi),
            ApiRoute(EVENTS_PATH, service.events),
            *VersionPaths(engine, controls).routes(),
            *ChallengerPaths(engine, controls, service.read_body).routes(),
            *(ApiRoute(path, service.page) for path in PAGE_FILES),
            *Replication(engine, self.health.stopping).routes(),
        ]
        self._app = _build_routes([*self._monitoring, *routes])
        self.health.engine = engine

    def attach(self, stream: StreamWorker) -> None:
        """Show how a worker that reads streams is doing, and close it with the application."""
        self.health.stream = stream

    def cancel_start(self) -> None:
        """End the start, if the model has not started yet."""
        self.health.progress.cancel()
        if self.health.stream is not None:
            self.health.stream.stop()

    def stop(self) -> None:
        """Refuse new requests, and end the responses that would not end otherwise."""
        self.health.stopping.set()
        if self.health.stream is not None:
            self.health.stream.stop()
        if self.health.workers is not None:
            self.health.workers.stop()

    def expire(self) -> None:
        """Answer open requests with status 503."""
        self._middleware.expire()

    def close(self) -> None:
        """Close the engine, after the last response."""
        if self.health.stream is not None:
            self.health.stream.close()
        if self.health.follower is not None:
            self.health.follower.close()
        if self.health.engine is not None:
            self.health.engine.close()
        if self.health.workers is not None:
            self.health.workers.stop()  # again, because the start may have failed
            self.health.workers.wait()

    async def _dispatch(self, scope: Scope, receive: Receive, send: Send) -> None:
        follower = self.health.follower
        if follower is not None and scope["method"] not in _READING and scope["path"] != "/predict":
            why = (
                "this server is a follower and changes nothing itself: send the request to its "
                f"leader, {follower.address}"
            )
            await error_response(CONFLICT, why)(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _refuse(self, request: Request) -> Response:
        why = self.health.describe().get("error", "the server is starting")
        return error_response(503, f"{why}; retry later", {"Retry-After": "1"})


def build_app(
    engine: Engine | None,
    tokens: dict[str, str] | None = None,
    id: str = "id",
    limits: RequestLimits = DEFAULT_LIMITS,
) -> Application:
    """Return the application; without an engine, it waits for `Application.begin`."""
    app = Application(tokens or {}, id, limits)
    if engine is not None:
        app.begin(engine)
    return app


def _build_routes(routes: list[Route]) -> Starlette:
    app = Starlette(routes=routes, exception_handlers=HANDLERS)
    app.router.redirect_slashes = False
    return app
